// Package apply runs a plan: the loop over plan, scheduler, executors and committer. It is where the engine's goroutines are.
//
// It promises that a task is Done only once its record is durable, that nothing is recorded which is not a fact, and that only
// tasks run which the plan decided run or maybe. One goroutine, the caller's, owns all that is decided; workers run
// executors, one committer appends records, one teller calls Events.
package apply

import (
	"context"
	"fmt"
	"time"

	"pbuild/engine/plan"
	"pbuild/engine/sched"
	"pbuild/engine/task"
)

// Options is everything that an apply needs.
type Options struct {
	Plan      *plan.Plan
	Executors task.Executors
	Journal   Journal
	Slots     int
	Pure      int // how many tasks of pure kinds run besides; 0 is as many as Slots
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
	// Failed says that an ok record counts as failed all the same (a gate that rejects with on_reject = "error"). Its dependents see it as ok.
	Failed func(t *task.Task, r *task.Record) bool
}

// Journal is the part of the store that apply uses. Append makes blobs and trees that the records name durable, then the records, then returns.
// Lookup may be called while Append runs.
type Journal interface {
	Lookup(task.Key) *task.Record
	Append([]*task.Record) error
}

// A Refresher is a plan.Files that remembers what it saw without looking again; Refresh makes it forget one path.
type Refresher interface{ Refresh(path string) }

// An Event is one line of `apply --json`, before its form.
type Event struct {
	Type    string // start, log, end, retry, reuse, note
	Task    task.ID
	Attempt int
	Key     task.Key     // start
	Stream  string       // log
	Data    []byte       // log; end of a failure: the log's tail
	Record  *task.Record // end, reuse, retry; nil where it was skipped or unneeded
	Status  task.Status  // end: what it ended with; of what was skipped, what kept it from starting
	Phase   string       // end: done, failed, skipped, unneeded; reuse: reused, restored, failed. What Options.Failed names is failed
	Code    string       // note
	Detail  string       // note, retry, end of failed and skipped: the cause
	Time    time.Time
}

// A Summary counts what became of the tasks.
type Summary struct {
	Run      int // tasks that were started, whatever they ended with
	Reuse    int // tasks for which a record served, restored ones included
	Restored int
	// By the status that tasks ended with; Failed also counts reused failures, and those that Options.Failed names, but not those in Absorbed.
	Failed, Infra, Provider, Cancelled int
	Skipped, Unneeded                  int
	Flaky                              int // tasks whose outcome is "flaky"
	USD                                *float64
	Wall                               time.Duration
	Interrupted                        bool
	// Absorbed are the failed tasks of which a dependent that tolerates failures made something: what is to be said of them, it says.
	Absorbed map[task.ID]bool
	// Ends is parallel to the graph's tasks: what each ended with, as its dependents saw it. Status is "" also of what was not wanted.
	Ends []task.End
}

// Apply runs the plan to its end. An error means that the engine itself could not go on (the disk is full); what failed in tasks is in the Summary.
func Apply(ctx context.Context, o Options) (*Summary, error) {
	if o.Slots < 1 {
		panic(fmt.Sprintf("pbuild bug: apply with %d slots", o.Slots))
	}
	if o.Pure < 1 {
		o.Pure = o.Slots
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	l := newLoop(ctx, o)
	defer l.close()
	l.run(ctx)
	return l.summary(), l.fatal
}

// weight is a task's part of the critical path: how long it took last, else a second.
func weight(p *plan.Plan) func(task.ID) time.Duration {
	return func(id task.ID) time.Duration {
		if p.Items[id].Decision >= plan.Reuse {
			return 0
		}
		if d, history := p.Estimate(id); history {
			return d
		}
		return time.Second
	}
}

// newState makes the scheduler of an apply.
func newState(o *Options) *sched.State {
	return sched.New(sched.Config{
		Graph: o.Plan.Graph, Wanted: o.Plan.Wanted, Slots: o.Slots, Pure: o.Pure,
		Retries: o.Retries, Backoff: o.Backoff, FailFast: o.FailFast, Weight: weight(o.Plan),
	})
}
