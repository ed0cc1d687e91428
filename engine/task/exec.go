package task

import (
	"context"
	"errors"

	"pbuild/engine/digest"
)

// An Executor runs the tasks of one kind. An error means that the world failed (status infra), and is tried again unless it IsFinal; whatever the task itself
// did is in the Outcome, of which Log counts beside an error too. Executors are called from many goroutines at once and must return soon after ctx is cancelled.
// Blobs and trees that the Outcome names are stored before it returns; the engine syncs them before it records.
type Executor interface {
	Run(ctx context.Context, a *Attempt) (Outcome, error)
}

// IsFinal says whether trying again cannot mend err: something in its chain has a method Final that says so.
func IsFinal(err error) bool {
	var f interface{ Final() bool }
	return errors.As(err, &f) && f.Final()
}

// ExecutorFunc is a function as an Executor.
type ExecutorFunc func(ctx context.Context, a *Attempt) (Outcome, error)

func (f ExecutorFunc) Run(ctx context.Context, a *Attempt) (Outcome, error) { return f(ctx, a) }

// Executors is the table that main makes, from a kind's name to what runs it. A kind without one cannot run yet.
type Executors map[string]Executor

// An Attempt is one run of a task, as its executor sees it.
type Attempt struct {
	Address string
	Task    *Task
	Key     Key
	Number  int  // 1 is the first; infra and provider failures are tried again
	Alone   bool // it has its node to itself: this is the run that confirms a time-out
	Inputs  []Input
	// Record is what a lost product was recorded with when it was first made; nil otherwise.
	Record *Record
	Before *Record // with Alone: the run that timed out, for the evidence

	// Log passes output on as it appears, if anyone listens; it may be nil. stream is "stdout" or "stderr".
	Log func(stream string, data []byte)
	// Note reports something that is in no record: state_drift, a lost state made again.
	Note func(code, detail string)
}

// An Input is how one dependency ended.
type Input struct {
	Dep
	Digest digest.Digest // what the key holds for it; zero if it has no record
	// Record is what it ended with: nil where it is unneeded or was skipped.
	Record *Record
	// Status is OK where it is done; else the status of it or of the root failure above it. "" where it is unneeded.
	Status Status
	// Cause is the one line of the root failure, where Status is neither "" nor OK.
	Cause string
	// Attempt lets an opaque dependency's product be made again where it was lost. Its own Inputs lead further up.
	Attempt func() *Attempt
}

// Input returns the input with the given role, or nil.
func (a *Attempt) Input(role string) *Input {
	for i := range a.Inputs {
		if a.Inputs[i].Role == role {
			return &a.Inputs[i]
		}
	}
	return nil
}
