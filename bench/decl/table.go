package decl

// Table is every block of the language. The decoder, the reference in docs/language.md and the checks all read it; an attribute
// that is not here does not exist.
var Table = []BlockDef{
	{Type: "pbuild", Doc: "Settings of the workspace. At most one.", Attrs: []AttrDef{
		{Name: "required_version", Type: String, Doc: "A constraint on pbuild's own version, such as `>= 0.1, < 1.0` or `~> 0.1`."},
		{Name: "slots", Type: Int, Min: 1, Default: "the number of cores", Doc: "How many tasks run at once on this machine."},
		{Name: "disk_budget", Type: Size, Default: `"50GiB"`, Doc: "How much states and images may take before the least recently used go."},
		{Name: "keep", Type: Duration, Default: `"720h"`, Doc: "How long records that the graph no longer holds are kept."},
		{Name: "min_isolation", Type: String, OneOf: []string{"none", "process", "sealed", "container"}, Soon: []string{"container"}, Default: `"none"`,
			Doc: "The lowest isolation whose records count. A weaker record is a miss."},
		{Name: "salt", Type: String, Keyed: true, Doc: "Goes into every key: another value disowns all records."},
		{Name: "report_dir", Type: String, Default: `"reports"`, Doc: "Where report files go, relative to the workspace."},
	}},
	{Type: "variable", Label: true, Doc: "An input of the workspace, `var.NAME`. Default, then `PBUILD_VAR_NAME`, `pbuild.vars.hcl`, `--var-file`, `--var`: the later wins.", Attrs: []AttrDef{
		{Name: "type", Type: Any, Default: "any", Doc: "A type constraint: `string`, `number`, `bool`, `list(string)`, `map(string)`, `object({...})`."},
		{Name: "default", Type: Any, Doc: "The value where none is given. Without it, one must be."},
		{Name: "description", Type: String, Doc: "For people."},
		{Name: "sensitive", Type: Bool, Default: "false", Doc: "Keeps the value out of everything that is stored or printed."},
	}, Blocks: []BlockDef{
		{Type: "validation", Many: true, Doc: "A condition on the value.", Attrs: []AttrDef{
			{Name: "condition", Type: Condition, Required: true, Doc: "Must be true."},
			{Name: "error_message", Type: String, Required: true, Doc: "What to say if it is not."},
		}},
	}},
	{Type: "locals", Free: true, Doc: "Named values, `local.NAME`. They may refer to each other in any order, but not in a circle."},
	datasetBlock,
	{Type: "source", Label: true, Common: true, Doc: "A source tree.", Blocks: sourceKinds, OneOf: [][]string{{"git", "gomod", "archive", "dir"}}},
	runtimeBlock,
	nodeBlock,
	instanceBlock,
	gateBlock,
	agentBlock,
	modelBlock,
	matrixBlock,
	handshakeBlock,
	reportBlock,
	taskBlock,
	{Type: "review", Label: true, Free: true, Later: true, Doc: "Review of verdicts by people or agents."},
	{Type: "release", Label: true, Free: true, Later: true, Doc: "A published set of instances."},
	{Type: "compare", Label: true, Free: true, Later: true, Doc: "A comparison of matrices."},
	{Type: "budget", Label: true, Free: true, Later: true, Doc: "A limit on what may be spent."},
	{Type: "check", Label: true, Free: true, Later: true, Doc: "A condition on results."},
	{Type: "function", Label: true, Free: true, Later: true, Doc: "A function of the user's own."},
}

// Common is what every block with Common has.
var Common = []AttrDef{
	{Name: "for_each", Type: Any, Doc: "A dataset, a map or a set of strings: one member of the block for each row or element, with `each.key` and `each.value`."},
	{Name: "depends_on", Type: Refs, Refs: Referable, Doc: "Blocks that must be done first."},
	{Name: "tags", Type: Strings, Doc: "Names for the selector `tag:NAME`."},
}

// Precondition is the nested block of every block with Common.
var Precondition = BlockDef{Type: "precondition", Many: true, Doc: "A condition without which the workspace is wrong. It is checked of each member before anything runs; where it is false of one, that is an error (exit code 2) and nothing starts. To leave rows out instead, use `where` of a dataset.", Attrs: []AttrDef{
	{Name: "condition", Type: Condition, Required: true, Doc: "Must be true."},
	{Name: "error_message", Type: String, Required: true, Doc: "What to say if it is not."},
}}

// FixedEnv are the variables that every command has with pbuild's own values.
var FixedEnv = []string{"HOME", "LANG", "TMPDIR", "TZ"}

// Referable is the types of blocks that a reference may name.
var Referable = []string{"dataset", "source", "runtime", "node", "instance", "gate", "agent", "model", "matrix", "handshake", "report", "task",
	"review", "release", "compare", "budget", "check"}

// Find returns the block of the table with the given type, or nil.
func Find(typ string) *BlockDef {
	for i := range Table {
		if Table[i].Type == typ {
			return &Table[i]
		}
	}
	return nil
}

// Attr returns the attribute with the given name, common ones included, or nil.
func (b *BlockDef) Attr(name string) *AttrDef {
	for i := range b.Attrs {
		if b.Attrs[i].Name == name {
			return &b.Attrs[i]
		}
	}
	if b.Common {
		for i := range Common {
			if Common[i].Name == name {
				return &Common[i]
			}
		}
	}
	return nil
}

// Block returns the nested block with the given type, the common one included, or nil.
func (b *BlockDef) Block(typ string) *BlockDef {
	for i := range b.Blocks {
		if b.Blocks[i].Type == typ {
			return &b.Blocks[i]
		}
	}
	if b.Common && typ == Precondition.Type {
		return &Precondition
	}
	return nil
}

// Names lists the attributes and nested blocks of b, common ones included.
func (b *BlockDef) Names() []string {
	var names []string
	for _, a := range b.Attrs {
		names = append(names, a.Name)
	}
	for _, n := range b.Blocks {
		names = append(names, n.Type)
	}
	if b.Common {
		for _, a := range Common {
			names = append(names, a.Name)
		}
		names = append(names, Precondition.Type)
	}
	return names
}
