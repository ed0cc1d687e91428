// Package apply runs a plan: the loop over plan, scheduler, executors and committer. It is where the engine's goroutines are.
package apply

import (
	"context"
	"time"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// Options is everything that an apply needs.
type Options struct {
	Plan      *plan.Plan
	Executors task.Executors
	Journal   Journal
	Slots     int
	FailFast  bool
	Retries   int           // how often infra and provider failures are tried again; 3
	Backoff   time.Duration // before the first of these, doubling
	Run       string        // the run's id, in every record
	Events    func(Event)   // called from one goroutine, in order
	Clock     func() time.Time
	// Stop, when closed, lets running tasks finish and starts no more: the first Ctrl-C. Cancelling the context kills: the second.
	Stop <-chan struct{}
	// Restore writes an output of a Files task back from the store.
	Restore func(o task.Output) error
	// Failed says that an ok record counts as failed all the same (a gate that rejects with on_reject = "error").
	Failed func(t *task.Task, r *task.Record) bool
}

// Journal is the part of the store that apply writes. Append makes blobs and trees that the records name durable, then the records, then returns.
type Journal interface {
	Lookup(task.Key) *task.Record
	Append([]*task.Record) error
}

// An Event is one line of `apply --json`, before its form.
type Event struct {
	Type    string // start, log, end, retry, reuse, note
	Task    task.ID
	Attempt int
	Stream  string       // log
	Data    []byte       // log; end of a failure: the log's tail
	Record  *task.Record // end
	Phase   string       // end: done, failed, skipped, reused, restored, unneeded
	Code    string       // note
	Detail  string       // note, retry, end of failed and skipped: the cause
	Time    time.Time
	Running int
}

// A Summary counts what became of the tasks.
type Summary struct {
	Run, Reuse, Restored, Failed, Skipped, Unneeded, Infra, Provider, Cancelled, Flaky int
	USD                                                                                *float64
	Wall                                                                               time.Duration
	Interrupted                                                                        bool
	// Ends is parallel to the graph's tasks: what each ended with, as its dependents saw it.
	Ends []End
}

// An End is how one task ended. Record is nil where it was skipped or unneeded. Status is "" where it is unneeded or was not wanted.
type End struct {
	Record *task.Record
	Status task.Status
	Cause  string
	Root   task.ID // the root failure, where it was skipped
}

// Apply runs the plan to its end. An error means that the engine itself could not go on (the disk is full); what failed in tasks is in the Summary.
func Apply(ctx context.Context, o Options) (*Summary, error) { panic("pbuild bug: not written") }
