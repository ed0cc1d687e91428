// Package plan decides for every task of a graph whether it runs, and why. It is pure: what it needs of the journal and the disk it asks
// of the functions in Inputs.
//
// It promises that its decisions are an upper bound: whatever comes out upstream, an apply starts no task that was decided neither run nor maybe. It
// does not know how a task is run, nor what an output means.
package plan

import (
	"sync"

	"pbuild/engine/task"
)

// A Decision is what apply would do with a task.
type Decision uint8

const (
	Run      Decision = iota
	Maybe             // its upstream runs, and a record exists that serves if that comes out equal
	Reuse             // a record serves
	Unneeded          // a condition on it is known to be false; it is counted apart
)

var decisionNames = [...]string{"run", "maybe", "reuse", "unneeded"}

func (d Decision) String() string { return decisionNames[d] }

// A Code says why a task runs. The list is closed.
type Code string

const (
	New             Code = "new"
	SpecChanged     Code = "spec_changed"
	InputChanged    Code = "input_changed"
	UpstreamChanged Code = "upstream_changed"
	OutputMissing   Code = "output_missing"
	Restore         Code = "restore"
	Expired         Code = "expired"
	Replaced        Code = "replaced"
	Resampled       Code = "resampled"
	Salt            Code = "salt"
	KindVersion     Code = "kind_version"
	Isolation       Code = "isolation"
	NeverFinished   Code = "never_finished"
	UpstreamUnknown Code = "upstream_unknown"
)

// A Reason is one cause, naming the field or file that differs.
type Reason struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"` // "spec.command", "files.in/a.txt.content", "inputs.tree", an address
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// An Item is what was decided for the task of the same index.
type Item struct {
	Decision Decision
	Known    bool         // Key is known: everything upstream that enters it is
	Key      task.Key     // if Known; for Maybe, the key if upstream comes out equal
	Record   *task.Record // for Reuse and Maybe, the record that serves
	Reasons  []Reason     // only what Decide came by: why a record does not serve, or is restored; Plan.Reasons has them all
	Restore  []int        // for Reuse and Maybe: indices of Task.Outputs to be restored from the store
}

// Inputs is everything that Decide needs besides the graph. Functions may be nil where there is nothing to tell. Lookup, Files, Stored and
// MinIsolation may be called from several goroutines at once.
type Inputs struct {
	Graph        *task.Graph
	Lookup       func(task.Key) *task.Record                       // the newest record under a key, or nil
	Latest       func(address string) *task.Record                 // the newest record that an address ran under, whatever its key, or nil
	Started      func(address string) (failure string, began bool) // whether an earlier run began a task under this address, and how it failed if it did
	Files        Files
	Stored       func(o task.Output) bool                  // whether the content of an output is in the store; nil: all is
	Now          int64                                     // Unix nanoseconds, for best-before
	Want         []task.ID                                 // the tasks chosen; what they depend on comes along. nil is all
	Replace      map[task.ID]bool                          // run although a record holds, and so does what has their key
	MinIsolation func(t *task.Task, isolation string) bool // whether a record's isolation is enough for its task; nil: any is
}

// Files tells what is on the disk. Paths are of the workspace, slash-separated. Implementations cache by stat.
type Files interface {
	// Input returns mode and digest; ok is false if there is no such regular file or link.
	Input(path string) (in task.FileInput, ok bool, err error)
}

// Links is a Files that knows where links lead.
type Links interface {
	// Leads returns the path, as Input takes it, that a link names; ok is false if there is no link.
	Leads(path string) (to string, ok bool)
}

// A Plan is a graph with its decisions. Items are parallel to Graph.Tasks; tasks outside Want are not Wanted.
// Its methods but Address are for one goroutine at a time: what they derive is kept.
type Plan struct {
	Graph  *task.Graph
	Items  []Item
	Wanted []bool
	Inputs *Inputs

	decider  *decider
	replaced map[task.Key]bool // whose records are to be replaced, whichever task has them
	names    addresses
	once     sync.Once
}

// Closure says which tasks want needs: itself and all that it depends on. nil is all.
func Closure(g *task.Graph, want []task.ID) []bool {
	wanted := make([]bool, len(g.Tasks))
	for i := range wanted {
		wanted[i] = want == nil
	}
	for _, id := range want {
		wanted[id] = true
	}
	if want == nil {
		return wanted
	}
	for id := len(g.Tasks) - 1; id >= 0; id-- { // dependents come after what they depend on
		if wanted[id] {
			for _, d := range g.Tasks[id].Deps {
				wanted[d.On] = true
			}
		}
	}
	return wanted
}
