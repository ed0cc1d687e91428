package decl

// The blocks that say what is to be done: instances, gates, agents, models, matrices, reports and tasks.

var instanceBlock = BlockDef{Type: "instance", Label: true, Common: true, Doc: "One problem: a source tree, its fix, and the tests that tell them apart.",
	OneOf: [][]string{{"source"}, {"fix", "gold_patch", "oracle"}, {"test"}},
	Attrs: []AttrDef{
		{Name: "task", Type: String, OneOf: []string{"repair", "generate"}, Soon: []string{"generate"}, Default: `"repair"`, Doc: "What is asked for."},
		{Name: "source", Type: RefType, Refs: []string{"source"}, Doc: "The base tree."},
		{Name: "fix", Type: RefType, Refs: []string{"source"}, Doc: "The tree with the fix, from which gold and test patch are derived."},
		{Name: "oracle", Type: RefType, Refs: []string{"source"}, Doc: "A tree that solves the problem."},
		{Name: "gold_patch", Type: BytesType, Keyed: true, Needs: []string{"test_patch"}, Doc: "The patch that fixes the problem."},
		{Name: "test_patch", Type: BytesType, Keyed: true, Needs: []string{"gold_patch"}, Doc: "The patch that adds the hidden tests."},
		{Name: "test_files", Type: Strings, Keyed: true, Doc: "Globs: what of the difference to `fix` is the hidden test patch. The rest is the gold patch."},
		{Name: "test_data", Type: Strings, Keyed: true, Doc: "Globs of further files that belong to the tests."},
		{Name: "problem_statement", Type: BytesType, Keyed: true, Doc: "What the agent is told."},
		{Name: "hints", Type: BytesType, Keyed: true, Later: true, Doc: "What the agent may be told beside it."},
		{Name: "runtime", Type: RefType, Refs: []string{"runtime"}, Required: true, Doc: "What its commands run in."},
		{Name: "platform", Type: String, Keyed: true, Doc: "The platform to run on, where the runtime has several."},
		{Name: "lang", Type: String, Later: true, Doc: "The programming language, for reports."},
	},
	Blocks: []BlockDef{
		nestedSource("source", "The base tree."),
		nestedSource("fix", "The tree with the fix, from which gold and test patch are derived."),
		nestedSource("oracle", "A tree that solves the problem."),
		command("fetch", "Downloads, on the base tree. It must not build: its workspace is thrown away, HOME is kept. It has network unless `network = false`."),
		command("prepare", "Runs on the base tree; workspace and HOME are kept. An agent starts here."),
		command("build", "Builds base, gold or candidate. Its workspace is kept, HOME goes back to what it was.",
			AttrDef{Name: "keep", Type: Strings, Keyed: true, Doc: "Paths under HOME that stay."}),
		command("test", "Runs the hidden tests.",
			AttrDef{Name: "format", Type: String, OneOf: []string{"exit", "gotest", "junit", "tap"}, Default: `"exit"`, Keyed: true, Doc: "How its output is read."},
			AttrDef{Name: "report", Type: Strings, Alone: true, Keyed: true, Doc: "Files that the test writes and that are read as its report."},
			AttrDef{Name: "fail_to_pass", Type: Strings, Keyed: true, Doc: "Ids of the tests that fail on base and pass with the fix."},
			AttrDef{Name: "pass_to_pass", Type: Strings, Keyed: true, Doc: "Ids of the tests that pass on both."},
			AttrDef{Name: "protect", Type: Strings, Keyed: true, Doc: "Globs of further paths that are reset before the test; with `!` before it, of paths that are not, whatever else names them."}),
		{Type: "provenance", Free: true, Doc: "Where the instance comes from, in any form. It is in no key but those of reports whose columns name it."},
	}}

var gateBlock = BlockDef{Type: "gate", Label: true, Common: true, Doc: "Proves that an instance's tests fail on base and pass on gold.", Attrs: []AttrDef{
	{Name: "instances", Type: Refs, Refs: []string{"instance"}, Required: true, Doc: "The instances to prove."},
	{Name: "states", Type: Strings, OneOf: []string{"base", "gold"}, Keyed: true, Default: `["base", "gold"]`, Doc: "The states to test."},
	{Name: "attempts", Type: Int, Min: 1, Keyed: true, Default: "1", Doc: "How often each state is tested."},
	{Name: "quorum", Type: String, OneOf: []string{"all"}, Keyed: true, Default: `"all"`, Doc: "How many attempts must agree."},
	{Name: "compile_failure", Type: String, OneOf: []string{"reject", "admit"}, Keyed: true, Default: `"reject"`, Doc: "What to do where the tests do not compile on base."},
	{Name: "strict", Type: Bool, Keyed: true, Default: "false", Doc: "Rejects if any fail_to_pass test passes on base, not only if all do."},
	{Name: "on_reject", Type: String, OneOf: []string{"error", "exclude"}, Default: `"error"`, Doc: "Whether a rejection fails the apply or leaves the instance out."},
}}

var agentBlock = BlockDef{Type: "agent", Label: true, Common: true, Doc: "What makes a candidate patch.", Attrs: []AttrDef{
	{Name: "kind", Type: String, Required: true, OneOf: []string{"oracle", "nop", "predictions", "command", "mini-swe-agent", "llm"}, Soon: []string{"mini-swe-agent", "llm"}, Keyed: true,
		Doc: "`oracle` gives the gold patch, `nop` an empty one, `predictions` reads patches from a file, `command` runs a program over the base tree."},
	{Name: "file", Type: String, Doc: "For `predictions`: the file, relative to the workspace."},
	{Name: "command", Type: Strings, Keyed: true, Doc: "For `command`: program and arguments. The problem statement is a file that PBUILD_PROBLEM_STATEMENT names."},
	{Name: "version", Type: String, Keyed: true, Doc: "The agent's version."},
	{Name: "config", Type: Any, Keyed: true, Doc: "Its configuration, in any form."},
	{Name: "prompt", Type: BytesType, Keyed: true, Doc: "Its prompt."},
	{Name: "step_limit", Type: Int, Min: 1, Keyed: true, Doc: "How many steps it may take."},
	{Name: "cost_limit", Type: Number, Keyed: true, Doc: "What one sample may cost, in USD."},
	{Name: "wall_limit", Type: Duration, Keyed: true, Doc: "How long one sample may take."},
	{Name: "on_limit", Type: String, Keyed: true, Doc: "What becomes of a sample that meets a limit."},
	{Name: "workers", Type: Int, Min: 1, Default: "1", Doc: "How many samples run at once."},
	{Name: "allow_unsealed", Type: Bool, Default: "false", Doc: "Lets it run with an isolation below sealed, which the report says."},
}}

var modelBlock = BlockDef{Type: "model", Label: true, Common: true, Later: true, Doc: "A language model that agents use.", Attrs: []AttrDef{
	{Name: "provider", Type: String, Required: true, Keyed: true, Doc: "How it is spoken to."},
	{Name: "id", Type: String, Required: true, Keyed: true, Doc: "The provider's name for it."},
	{Name: "revision", Type: String, Keyed: true, Doc: "Its revision."},
	{Name: "endpoint", Type: String, Doc: "Where it is."},
	{Name: "endpoint_class", Type: String, Keyed: true, Doc: "What is equal about all endpoints that serve it alike."},
	{Name: "max_concurrent", Type: Int, Min: 1, Doc: "How many requests may be under way."},
	{Name: "api_key", Type: Secret, Doc: "Its key."},
}, Blocks: []BlockDef{
	{Type: "sampling", Free: true, Doc: "Sampling parameters; keyed."},
	{Type: "price", Doc: "What it costs.", Attrs: []AttrDef{
		{Name: "input_per_mtok", Type: Number, Doc: "USD for a million tokens of input."},
		{Name: "output_per_mtok", Type: Number, Doc: "USD for a million tokens of output."},
	}},
	{Type: "rate", Free: true, Doc: "Its rate limits."},
}}

var matrixBlock = BlockDef{Type: "matrix", Label: true, Common: true, Doc: "Evaluates agents and models over instances: one cell for each combination and sample.", Attrs: []AttrDef{
	{Name: "instances", Type: Refs, Refs: []string{"gate", "instance"}, Required: true, Doc: "A gate: what it admits. Or instances, ungated."},
	{Name: "agents", Type: Refs, Refs: []string{"agent"}, Required: true, Doc: "The agents."},
	{Name: "models", Type: Refs, Refs: []string{"model"}, Default: "[]", Doc: "The models. Oracle, nop and predictions take none."},
	{Name: "samples", Type: Int, Min: 1, Default: "1", Doc: "How many samples an agent makes of each instance."},
	{Name: "attempts", Type: Int, Min: 1, Default: "1", Doc: "How often each candidate is tested."},
	{Name: "exclude", Type: Any, Doc: "Cells to leave out: a list of objects with any of instance, agent, model and sample."},
}, Blocks: []BlockDef{
	{Type: "axes", Free: true, Later: true, Doc: "Further axes."},
}}

var handshakeBlock = BlockDef{Type: "handshake", Label: true, Common: true, Later: true, Doc: "Runs each runtime's probe on each node.", Attrs: []AttrDef{
	{Name: "runtimes", Type: Refs, Refs: []string{"runtime"}, Required: true, Doc: "The runtimes."},
	{Name: "nodes", Type: Refs, Refs: []string{"node"}, Required: true, Doc: "The nodes."},
	{Name: "max_age", Type: Duration, Default: `"24h"`, Doc: "How long a handshake holds."},
}}

var reportBlock = BlockDef{Type: "report", Label: true, Common: true, Doc: "A table over outcomes, one file for each format.",
	OneOf: [][]string{{"matrix", "handshake", "review", "release", "of"}},
	Attrs: []AttrDef{
		{Name: "matrix", Type: RefType, Refs: []string{"matrix"}, Doc: "The matrix to report."},
		{Name: "handshake", Type: RefType, Refs: []string{"handshake"}, Later: true, Doc: "The handshake to report."},
		{Name: "review", Type: RefType, Refs: []string{"review"}, Later: true, Doc: "The review to report."},
		{Name: "release", Type: RefType, Refs: []string{"release"}, Later: true, Doc: "The release to report."},
		{Name: "of", Type: Refs, Refs: []string{"matrix", "handshake", "review", "release"}, Doc: "Several of these."},
		{Name: "formats", Type: Strings, OneOf: []string{"md", "csv", "json", "latex", "html"}, Soon: []string{"latex", "html"}, Default: `["md"]`, Doc: "One file is written for each."},
		{Name: "columns", Type: Strings, Keyed: true, Doc: "The columns to show; formats.md lists them, and the names of `provenance` are columns too."},
		{Name: "by", Type: Strings, Keyed: true, Doc: "What to group candidate lines by: columns that tell which cell it is, and names of the provenance."},
		{Name: "filter", Type: String, Keyed: true, Doc: "Which cells to show, such as `outcome=failed|timeout,agent!=nop`."},
		{Name: "path", Type: String, Default: "NAME.EXT in report_dir", Doc: "Where the file goes, without its extension."},
	}}

var taskBlock = BlockDef{Type: "task", Label: true, Common: true, Doc: "A command in the manner of make: it runs in the workspace directory, in place.", Attrs: []AttrDef{
	{Name: "command", Type: Strings, Required: true, Keyed: true, Doc: "Program and arguments; no shell."},
	{Name: "inputs", Type: Strings, Keyed: true, Doc: "Files and globs that it reads, relative to the workspace. Of a link, what it leads to is read too."},
	{Name: "outputs", Type: Strings, Keyed: true, Doc: "Files that it writes. They are removed before it runs and must exist after it."},
	{Name: "env", Type: Env, NoneOf: FixedEnv, Keyed: true, Doc: "Environment, over the runtime's. `GOSUMDB` and `GONOSUMDB` are passed on; to a task in place, which has the network, " +
		"so are the variables of proxies and mirrors (`HTTP_PROXY`, `GOPROXY`, `PIP_INDEX_URL` and the like)."},
	{Name: "runtime", Type: RefType, Refs: []string{"runtime"}, Doc: "What it runs in; without one, this machine as it is."},
	{Name: "sandbox", Type: Bool, Keyed: true, Default: "false", Doc: "Runs it in a scratch directory that holds the declared inputs only."},
	{Name: "cache", Type: Bool, Default: "outputs up to 64 KiB", Doc: "Stores large outputs too, so that they can be restored."},
	{Name: "timeout", Type: Duration, Keyed: true, Default: `"30m"`, Doc: "Its time limit."},
}}
