package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pbuild/engine/task"
)

func TestBatchesClose(t *testing.T) {
	small := &task.Record{}
	c := newCommitter(sink{})
	for i := range batchRecords {
		if len(c.closed) != 0 {
			t.Fatalf("closed after %d records", i)
		}
		c.add(task.ID(i), small, false)
	}
	if len(c.closed) != 1 || len(c.closed[0].records) != batchRecords || c.timer != nil {
		t.Errorf("%d batches are closed", len(c.closed))
	}
	c.add(0, &task.Record{Preimage: make([]byte, batchBytes/2)}, false)
	c.add(1, &task.Record{Outcome: task.Outcome{Evidence: make([]byte, batchBytes/2)}}, false)
	if len(c.closed) != 2 {
		t.Errorf("half and half a batch of bytes close none: %d", len(c.closed))
	}
	c.add(0, small, false)
	c.add(1, small, true) // alone
	if len(c.closed) != 4 || len(c.closed[2].ids) != 1 || len(c.closed[3].ids) != 1 {
		t.Errorf("%d batches are closed", len(c.closed))
	}
	c.add(0, small, false)
	select {
	case <-c.expired:
	case <-time.After(20 * batchAge):
		t.Error("a batch does not age")
	}
	for c.flush(); len(c.closed) > 0 || c.busy; c.busy = false {
		c.pump()
		<-c.out
	}
	c.stop()
}

// A task that runs long must not hold back what waits for the record of another.
func TestSlowTaskHoldsBackNoCommit(t *testing.T) {
	w := newWorld(t)
	w.add(&spec{kind: testKind, name: "slow"})
	quick := w.add(&spec{kind: testKind, name: "quick"})
	last := w.add(&spec{kind: pureKind, name: "pure"}, on(quick))
	ended := make(chan struct{})
	w.options = func(o *Options) {
		o.Events = func(e Event) {
			if e.Type == "end" && e.Task == last {
				close(ended)
			}
		}
	}
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		if a.Address == "task.slow" {
			<-ended
		}
		return compute(a), nil
	}
	if s := w.apply(); s.Run != 3 || s.Ends[last].Status != task.OK {
		t.Errorf("%+v", s)
	}
}

func TestRetryAfterBackoff(t *testing.T) {
	w := newWorld(t)
	w.add(&spec{kind: testKind, name: "a"})
	var retries []string
	w.options = func(o *Options) {
		o.Backoff = time.Millisecond
		o.Events = func(e Event) {
			if e.Type == "retry" {
				retries = append(retries, fmt.Sprint(e.Attempt, e.Detail))
			}
		}
	}
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		if a.Number < 3 {
			return task.Outcome{}, errors.New("down")
		}
		return compute(a), nil
	}
	if s := w.apply(); s.Ends[0].Record.Attempt != 3 || !slices.Equal(retries, []string{"2down", "3down"}) {
		t.Errorf("%q, %+v", retries, s.Ends[0])
	}
}
