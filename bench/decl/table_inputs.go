package decl

// The blocks that say what there is: rows, sources, runtimes, nodes and the commands that run in them.

var datasetBlock = BlockDef{Type: "dataset", Label: true, Doc: "An ordered set of rows. It is never a value: it stands only in `for_each` and where an attribute takes a dataset.",
	OneOf: [][]string{{"file", "union", "filter", "admit", "mine", "derive"}},
	Attrs: []AttrDef{
		{Name: "file", Type: String, Doc: "A file of rows, relative to the workspace. A task may make it."},
		{Name: "union", Type: Refs, Refs: []string{"dataset"}, Doc: "The rows of several datasets, in order. Equal rows with one identity are one row."},
		{Name: "key", Type: String, Needs: []string{"file"}, Doc: "The column that identifies a row."},
		{Name: "format", Type: String, OneOf: []string{"jsonl", "json", "csv", "swe-bench"}, Needs: []string{"file"}, Default: "by extension",
			Doc: "`swe-bench` implies `key = \"instance_id\"` and decodes lists that are given as strings."},
		{Name: "where", Type: Condition, Doc: "Which rows to keep, over `row.COLUMN`."},
		{Name: "depends_on", Type: Refs, Refs: Referable, Needs: []string{"file"}, Doc: "Blocks that must be done first: tasks that make the file."},
		{Name: "tags", Type: Strings, Doc: "Names for the selector `tag:NAME`."},
	},
	Blocks: []BlockDef{
		{Type: "filter", Doc: "Some rows of another dataset.", Attrs: []AttrDef{
			{Name: "from", Type: RefType, Refs: []string{"dataset"}, Required: true, Doc: "The dataset to choose from."},
			{Name: "where", Type: Condition, Required: true, Doc: "Which rows to keep, over `row.COLUMN`."},
		}},
		{Type: "admit", Doc: "The rows whose instances a gate admits: what is made of them waits for its verdict.", Attrs: []AttrDef{
			{Name: "gate", Type: RefType, Refs: []string{"gate"}, Required: true, Doc: "The gate."},
		}},
		{Type: "mine", Free: true, Later: true, Doc: "Rows found in the history of repositories."},
		{Type: "derive", Free: true, Later: true, Doc: "Rows made from other rows."},
	}}

// sourceKinds is what a source tree may come from: exactly one.
var sourceKinds = []BlockDef{
	{Type: "git", Doc: "A commit of a git repository.", Attrs: []AttrDef{
		{Name: "url", Type: String, Required: true, Doc: "Any URL or path that git takes; a path is relative to the workspace."},
		{Name: "commit", Type: String, Required: true, Keyed: true, Doc: "The full commit."},
		{Name: "subdir", Type: String, Keyed: true, Doc: "Only this directory of it."},
		{Name: "submodules", Type: Bool, Keyed: true, Default: "false", Doc: "With submodules."},
	}},
	{Type: "gomod", Doc: "A version of a Go module.", Attrs: []AttrDef{
		{Name: "path", Type: String, Required: true, Keyed: true, Doc: "The module's path."},
		{Name: "version", Type: String, Required: true, Keyed: true, Doc: "Its version, such as `v1.2.3`."},
		{Name: "sum", Type: String, Keyed: true, Doc: "Its hash, `h1:...`, which is verified."},
	}},
	{Type: "archive", Doc: "A tar or zip file.", OneOf: [][]string{{"url", "path"}}, Attrs: []AttrDef{
		{Name: "url", Type: String, Doc: "Where it is downloaded from."},
		{Name: "path", Type: String, Doc: "Where it lies, relative to the workspace."},
		{Name: "sha256", Type: String, Required: true, Keyed: true, Doc: "Its SHA-256, 64 hexadecimal digits."},
		{Name: "strip", Type: Int, Keyed: true, Default: "0", Doc: "How many leading directories to leave out."},
	}},
	{Type: "dir", Doc: "A directory of this machine, as it is when the plan is made: no task may write into it. The files of the workspace's reports are left out.", Attrs: []AttrDef{
		{Name: "path", Type: String, Required: true, Doc: "The directory, relative to the workspace."},
		{Name: "ignore", Type: Strings, Keyed: true, Doc: "Globs to leave out, beside what .gitignore names."},
	}},
}

// nestedSource is a source tree inside an instance.
func nestedSource(typ, doc string) BlockDef {
	return BlockDef{Type: typ, Doc: doc, Blocks: sourceKinds, OneOf: [][]string{{"git", "gomod", "archive", "dir"}}}
}

var runtimeBlock = BlockDef{Type: "runtime", Label: true, Common: true, Doc: "What commands run in.",
	OneOf: [][]string{{"host", "image", "build"}},
	Attrs: []AttrDef{
		{Name: "image", Type: String, Keyed: true, Later: true, Doc: "A container image, to be pinned in `pbuild.lock.hcl`."},
		{Name: "probe", Type: Strings, Keyed: true, Doc: "A command whose output identifies the runtime. A host runtime needs one."},
		{Name: "platforms", Type: Strings, Doc: "The platforms it exists for, such as `linux/amd64`. Of a host runtime this machine's must be among them."},
		{Name: "env", Type: Env, NoneOf: FixedEnv, Keyed: true, Doc: "Environment of every command that runs in it."},
		{Name: "pass_env", Type: Strings, NoneOf: FixedEnv, Doc: "Variables taken over from pbuild's own environment; their names are keyed, their values are not."},
		{Name: "path", Type: String, Keyed: true, Default: "the caller's PATH", Doc: "Fixes PATH."},
		{Name: "user", Type: String, Keyed: true, Doc: "Of an image: the user that commands run as."},
		{Name: "workdir", Type: String, Keyed: true, Default: `"/workspace"`, Doc: "Of an image: where the workspace is mounted."},
		{Name: "cpus", Type: Number, Keyed: true, Doc: "Limit of cores; in the key if set."},
		{Name: "memory", Type: Size, Keyed: true, Doc: "Limit of memory; in the key if set."},
		{Name: "pids", Type: Int, Min: 1, Keyed: true, Doc: "Limit of processes; in the key if set."},
	},
	Blocks: []BlockDef{
		{Type: "host", Doc: "This machine's own toolchain.", Attrs: []AttrDef{
			{Name: "paths", Type: Strings, Keyed: true, Doc: "Further paths of this machine to show, read-only, in a sealed sandbox."},
		}},
		{Type: "build", Later: true, Doc: "An image built from a Dockerfile.", Attrs: []AttrDef{
			{Name: "context", Type: String, Required: true, Keyed: true, Doc: "The build context, relative to the workspace."},
			{Name: "dockerfile", Type: String, Keyed: true, Default: `"Dockerfile"`, Doc: "The Dockerfile, relative to the context."},
			{Name: "args", Type: StringMap, Keyed: true, Doc: "Build arguments."},
			{Name: "target", Type: String, Keyed: true, Doc: "The stage to build."},
			{Name: "secrets", Type: Env, Keyed: true, Doc: "Build secrets, by name: only the names are keyed."},
		}},
		command("prepare", "Runs once for the runtime, without a source tree, to warm caches. It has network unless `network = false`."),
	}}

var nodeBlock = BlockDef{Type: "node", Label: true, Common: true, Later: true, Doc: "A machine that runs tasks. Without a node block it is this machine.",
	OneOf: [][]string{{"docker", "oci", "kubernetes"}},
	Attrs: []AttrDef{
		{Name: "docker", Type: String, Doc: "The address of a Docker daemon, such as `ssh://user@host`."},
		{Name: "oci", Type: String, Doc: "A machine without a daemon: images unpacked once, run by `launcher`."},
		{Name: "kubernetes", Type: String, Doc: "A cluster's context."},
		{Name: "platform", Type: String, Doc: "Its platform, such as `linux/arm64`."},
		{Name: "emulate", Type: Strings, Doc: "Platforms that it can emulate."},
		{Name: "overlay", Type: StringMap, Doc: "Compatibility layers, by name."},
		{Name: "launcher", Type: String, OneOf: []string{"crun", "runc", "bwrap", "proot"}, Doc: "What starts a container on an oci node."},
		{Name: "slots", Type: Int, Min: 1, Default: "its number of cores", Doc: "How many tasks run at once on it."},
		{Name: "labels", Type: StringMap, Doc: "For choosing nodes."},
	}}

// commandAttrs is what every command block has.
var commandAttrs = []AttrDef{
	{Name: "command", Type: Strings, Required: true, Keyed: true, Doc: "Program and arguments; no shell."},
	{Name: "cwd", Type: String, Keyed: true, Default: "the workspace", Doc: "Where it runs, relative to the workspace's tree."},
	{Name: "env", Type: Env, NoneOf: FixedEnv, Keyed: true, Doc: "Environment, over the runtime's."},
	{Name: "network", Type: Bool, Keyed: true, Default: "false; fetch and runtime.prepare: true", Doc: "Whether it may use the network. Where it may, the variables of the machine's proxies and mirrors are passed on, unkeyed."},
	{Name: "timeout", Type: Duration, Keyed: true, Default: `"30m"`, Doc: "Its time limit."},
	{Name: "idle_timeout", Type: Duration, Keyed: true, Default: "off", Doc: "How long it may print nothing."},
	{Name: "cpus", Type: Number, Keyed: true, Doc: "Limit of cores; in the key if set."},
	{Name: "memory", Type: Size, Keyed: true, Doc: "Limit of memory; in the key if set."},
	{Name: "pids", Type: Int, Min: 1, Keyed: true, Doc: "Limit of processes; in the key if set."},
	{Name: "output_limit", Type: Size, Keyed: true, Default: `"10MiB"`, Doc: "How much output is kept."},
}

// command is a command block with attributes of its own beside the common ones.
func command(typ, doc string, more ...AttrDef) BlockDef {
	return BlockDef{Type: typ, Doc: doc, Attrs: append(commandAttrs[:len(commandAttrs):len(commandAttrs)], more...)}
}
