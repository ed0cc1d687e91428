// Package lower makes tasks of declarations: it evaluates each block for each of its members, turns what they say into specs, and wires the specs
// into a graph whose objects have the addresses that the user knows.
//
// It is pure: what it must know of the machine it asks a Host. Equal declarations and equal answers give an equal graph, task for task, whatever the order
// of blocks in the files. It promises that a block's name, an instance's id and everything else that cannot change an outcome stays out of specs and of
// the roles of keyed edges.
package lower

import (
	"slices"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Host answers what lowering must know of the machine. Paths are absolute, but for Glob's.
type Host interface {
	// Probe is the identity of a host runtime: the digest of what its probe prints.
	Probe(runtime string, argv []string, env map[string]string, path string) (digest.Digest, error)
	// Dir lists the files below path, less what ignore names, sorted; their paths are relative to it.
	Dir(path string, ignore []string) ([]task.FileInput, error)
	// DirTakes says whether Dir would list a file of that path below dir, if it is there.
	DirTakes(dir string, ignore []string, file string) (bool, error)
	// File reads a file; its error wraps fs.ErrNotExist where there is none.
	File(path string) ([]byte, error)
	// Glob lists the workspace's files that match any of the patterns, relative, slash-separated and sorted.
	Glob(patterns []string) ([]string, error)
	// Predictions reads a file of candidate patches, by instance id.
	Predictions(path string) (map[string]kind.Data, error)
	// Repository is the path of a git repository of this machine that a URL or path of the workspace names; "" for another machine's.
	Repository(url string) string
	// Exists says whether there is such a file or directory.
	Exists(path string) bool
	// Platform is this machine's, such as linux/amd64.
	Platform() string
	// Secret is the value of a sensitive variable, for the process that needs it.
	Secret(name string) string
}

// order is how the types of blocks follow each other among the graph's objects.
var order = []string{"runtime", "instance", "gate", "matrix", "handshake", "task", "report"}

// HasTasks says whether blocks of a type may be among the graph's objects.
func HasTasks(typ string) bool { return slices.Contains(order, typ) }

// Lower returns every task of the workspace, but for those of blocks that are held. With errors the graph is nil.
func Lower(ws *decl.Workspace, h Host) (*task.Graph, decl.Diagnostics) {
	l := &lowerer{
		ws: ws, host: h, graph: &task.Graph{Pools: map[string]int{}},
		consts: map[*decl.Attr]any{}, rows: map[*decl.Block]map[string]int{}, blocks: map[*decl.Block]*lowered{},
		envs: map[envKey]*environment{}, made: map[string]maker{}, tasks: map[*decl.Block][]*pending{},
		unneeded: map[task.ID]bool{}, looked: map[string]bool{}, used: map[string]bool{},
	}
	l.graph.Salt, _ = get[string](l, ws.Find("pbuild", ""), "salt", nil)

	if l.checkSingles(); l.diags.HasErrors() {
		return nil, folded(l.diags.Sort())
	}
	l.checkTaskless()
	l.checkAdmitted()
	l.mentions()
	l.declareFiles()
	for _, typ := range order {
		for _, b := range ws.Blocks {
			if b.Type == typ && !ws.Held[b.Address()] {
				l.graph.Objects = append(l.graph.Objects, l.lower(b).objects...)
			}
		}
	}
	l.checkUnused()
	if l.diags.HasErrors() {
		return nil, folded(l.diags.Sort())
	}
	return l.graph, folded(l.diags.Sort())
}

// lowerer holds the graph as it grows. Blocks are lowered when they are first needed, so that every task stands after what it depends on.
type lowerer struct {
	ws    *decl.Workspace
	host  Host
	graph *task.Graph
	diags decl.Diagnostics

	consts map[*decl.Attr]any             // values of constant attributes
	rows   map[*decl.Block]map[string]int // members by key
	blocks map[*decl.Block]*lowered
	envs   map[envKey]*environment
	after  []task.Dep  // order edges of the member that is being lowered
	admits []admission // and the gates that are to admit its row

	last struct { // the runtime that a task asked for last
		ref decl.Ref
		env *environment
	}

	made       map[string]maker // declared files by path
	tasks      map[*decl.Block][]*pending
	open       []*pending       // tasks that are being added, each for the one before
	madeSorted []string         // the paths of made, once something asks
	mentioned  map[string]bool  // the columns that reports mention and that not every report has
	edges      int              // that depends_on has made
	unneeded   map[task.ID]bool // what mayBeUnneeded has found
	looked     map[string]bool  // paths of sources
	used       map[string]bool  // members of agents, models and sources that something names
}

// lowered is what became of a block.
type lowered struct {
	done      bool
	objects   []task.Object
	instances []*instance        // of an instance block
	gated     []gated            // of a gate
	verdicts  map[string]task.ID // of those, by id, once a row waits for one
	cells     []cell             // of a matrix or handshake
}

// lower lowers a block once. One that needs itself is an error.
func (l *lowerer) lower(b *decl.Block) *lowered {
	if have := l.blocks[b]; have != nil {
		if !have.done {
			l.errorf(b.Range, nil, "Dependency cycle", "%s depends on itself.", b.Address())
		}
		return have
	}
	out := &lowered{}
	l.blocks[b] = out
	after, admits := l.after, l.admits
	l.after, l.admits = nil, nil
	defer func() { l.after, l.admits, out.done = after, admits, true }()
	switch b.Type {
	case "runtime":
		l.runtimes(b, out)
	case "instance":
		l.instances(b, out)
	case "gate":
		l.gate(b, out)
	case "matrix":
		l.matrix(b, out)
	case "handshake":
		l.handshake(b, out)
	case "task":
		l.taskBlock(b, out)
	case "report":
		l.report(b, out)
	}
	return out
}

// add adds a task of the member that is being lowered.
func (l *lowerer) add(t task.Task) task.ID {
	t.Deps = append(t.Deps, l.after...)
	await(&t, l.admits)
	return l.graph.Add(t)
}
