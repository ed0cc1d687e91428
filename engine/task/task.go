// Package task is the engine's vocabulary: what a task is, what its key holds, and what is remembered of a run.
//
// A task is a node of the graph. Its Key is the hash of everything that can change its outcome; a Record says what
// came out under a Key. The package runs nothing, touches no disk, and knows no benchmark: kinds are values that others make.
package task

import (
	"slices"
	"time"

	"pbuild/engine/digest"
)

// A Kind says how tasks of one sort are keyed and treated. Compare by pointer.
type Kind struct {
	Name    string
	Version int // in every key of the kind; raised by hand when its result may differ

	Opaque bool // dependents use the task's Key, not its output: its product is a state
	Frozen bool // cannot be recomputed: runs once per key, and a missing output is an error, not a re-run
	Pure   bool // a function of its inputs: takes no slot, is never retried
	Files  bool // declares files of the workspace (Task.Inputs, Task.Outputs), checked against the disk
}

// A Spec is everything about a task, but for its dependencies and files, that can change its outcome. The same value
// makes the command: no field stands in one and not in the other.
type Spec interface {
	Kind() *Kind
	// Encode writes every field that can change the outcome, and nothing else.
	Encode(*digest.Encoder)
}

// ID is a task's index in its Graph.
type ID int32

// None is no task.
const None ID = -1

// A Task is a node. Edges point from it to what it depends on.
type Task struct {
	Spec Spec
	Deps []Dep
	When []Condition

	// Files of the workspace, relative and slash-separated, for kinds with Files. Patterns are already expanded: Inputs is sorted.
	Inputs  []string
	Outputs []string
	Store   bool // store outputs above 64 KiB too

	// None of these is in the key.
	Pool    string        // a named pool that bounds how many run at once; "" for none
	MaxAge  time.Duration // a record older than this is expired; 0 for never
	NoCache bool          // a result may not be recorded (its precondition is not known before it starts)
	Timeout time.Duration // the longest a run may take, for the planner's estimate; 0 if unknown
	Apart   string        // keeps it from being one task with an equal one whose Apart differs: the record of either serves both
}

// Use says what of a dependency enters the key of its dependent.
type Use uint8

const (
	UseOutput Use = iota // the digest of the named output
	UseKey               // the dependency's Key: it is opaque
	UseOrder             // nothing: an edge of order (and of conditions)
)

// Tolerance says which ends of a dependency still let its dependent run.
type Tolerance uint8

const (
	TolerateNone   Tolerance = iota // it must be Done
	TolerateUnmet                   // it may be unneeded
	TolerateFailed                  // it, or what it waited for, may also have failed (not infra, provider or cancelled)
	TolerateAny                     // anything: reports
)

// A Dep is an edge. Role names it within its task and its key, and is unique there.
type Dep struct {
	On       ID
	Role     string
	Output   string // which output of On, for UseOutput; "" is all of them with the verdict
	Use      Use
	Tolerate Tolerance
}

// A Condition holds while the task On has ended with (Not: without) Fact among its record's facts.
// One known not to hold makes its task unneeded. On must be among the task's Deps.
type Condition struct {
	On   ID
	Fact string
	Not  bool
}

// Status says how a run ended. It is not the verdict.
type Status string

const (
	OK        Status = "ok"
	Failed    Status = "failed"
	Infra     Status = "infra"
	Provider  Status = "provider"
	Cancelled Status = "cancelled"
)

// Verdict is what an ok run proved.
type Verdict string

const (
	NoVerdict Verdict = ""
	Pass      Verdict = "pass"
	Fail      Verdict = "fail"
	Timeout   Verdict = "timeout"
)

// Output is one product of a run.
type Output struct {
	Role   string        `json:"role"`
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size,omitempty"` // bytes, for files and blobs
	Mode   uint32        `json:"mode,omitempty"` // 0644, 0755 or ModeLink, for files of the workspace
}

// FlagUnstable is of a record whose verdict is not that of the record before it, under one key.
const FlagUnstable = "unstable"

// An Outcome is what an executor returns: a Record without the engine's part.
type Outcome struct {
	Status  Status
	Verdict Verdict
	Exit    int    // the command's exit status; 128+n for a signal
	Outcome string // the one word a gate or candidate ends in
	Reason  string // one line for people
	Outputs []Output
	Facts   []string // what conditions ask for: "admitted", "nonempty", "applies", "pass"
	Flags   []string // near_limit, output_truncated, state_drift...
	Log     digest.Digest
	Tail    []byte // the last lines of the log, for a failure; not recorded

	Record      bool // with Failed: this failure is a fact (it had no network) and may be recorded
	Confirm     bool // with Timeout: it counts only after one more run, alone on its node
	Node        string
	Isolation   string
	Environment string
	Limits      string
	Evidence    []byte // JSON, the kind's own
	USD         float64
}

// A Record is the journal's fact: what came out under a Key. Only ok, and a Failed with Record, are kept for reuse.
type Record struct {
	Key      Key
	Kind     string
	Address  string // who asked when it ran; not in the key
	Preimage []byte // the encoding whose hash is Key
	Started  int64  // Unix nanoseconds
	Elapsed  time.Duration
	Attempt  int // 1 is the first
	Run      string
	Outcome
}

// Find returns the output with the given role.
func (o *Outcome) Find(role string) (Output, bool) {
	for _, out := range o.Outputs {
		if out.Role == role {
			return out, true
		}
	}
	return Output{}, false
}

// Has says whether fact is among o's facts.
func (o *Outcome) Has(fact string) bool { return slices.Contains(o.Facts, fact) }

// Digest is what dependents key on: of the output with the given role, or for "" of all outputs with status, verdict, outcome, facts and reason:
// a dependent may put the reason into what it makes, so what ended for another reason is another thing.
func (o *Outcome) Digest(role string) digest.Digest {
	if role != "" {
		out, _ := o.Find(role)
		return out.Digest
	}
	var e digest.Encoder
	e.String("status", string(o.Status))
	e.String("verdict", string(o.Verdict))
	e.String("outcome", o.Outcome)
	e.Set("facts", o.Facts)
	e.String("reason", o.Reason)
	for _, out := range o.Outputs {
		e.Digest(out.Role, out.Digest)
		e.Int("mode", int64(out.Mode))
	}
	return e.Sum()
}
