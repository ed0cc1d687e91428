package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pbuild/engine/task"
)

// lasting is an error that no second try mends.
type lasting struct{}

func (lasting) Error() string { return "gone for good" }
func (lasting) Final() bool   { return true }

func TestRetriesAreForTheWorldOnly(t *testing.T) {
	for _, c := range []struct {
		name string
		kind *task.Kind
		run  func(a *task.Attempt) (task.Outcome, error)
		runs int
		end  task.Status
	}{
		{"infra", testKind, func(*task.Attempt) (task.Outcome, error) { return task.Outcome{}, errors.New("down") }, 4, task.Infra},
		{"provider", testKind, func(*task.Attempt) (task.Outcome, error) {
			return task.Outcome{Status: task.Provider, Reason: "429"}, nil
		}, 4, task.Provider},
		{"final", testKind, func(*task.Attempt) (task.Outcome, error) { return task.Outcome{}, fmt.Errorf("start: %w", lasting{}) }, 1, task.Infra},
		{"mended", testKind, func(a *task.Attempt) (task.Outcome, error) {
			if a.Number < 3 {
				return task.Outcome{}, errors.New("down")
			}
			return compute(a), nil
		}, 3, task.OK},
		{"failed", testKind, func(*task.Attempt) (task.Outcome, error) { return task.Outcome{Status: task.Failed}, nil }, 1, task.Failed},
		{"pure", pureKind, func(*task.Attempt) (task.Outcome, error) { return task.Outcome{}, errors.New("down") }, 1, task.Infra},
		{"panic", pureKind, func(*task.Attempt) (task.Outcome, error) { panic("boo") }, 1, task.Infra},
		{"no status", pureKind, func(*task.Attempt) (task.Outcome, error) { return task.Outcome{}, nil }, 1, task.Infra},
	} {
		w := newWorld(t)
		w.add(&spec{kind: c.kind, name: "a"})
		w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) { return c.run(a) }
		s := w.apply()
		if w.runs["task.a"] != c.runs || s.Ends[0].Status != c.end || s.Run != 1 {
			t.Errorf("%s: ran %d times, ended %s", c.name, w.runs["task.a"], s.Ends[0].Status)
		}
		if kept := w.j.len() == 1; kept != (c.end == task.OK) {
			t.Errorf("%s: recorded is %v", c.name, kept)
		}
		if c.name == "panic" && !strings.Contains(s.Ends[0].Cause, "failure_test.go") {
			t.Errorf("the cause lacks the stack: %s", s.Ends[0].Cause)
		}
	}
}

func TestKindWithoutExecutor(t *testing.T) {
	w := newWorld(t)
	w.add(&spec{kind: &task.Kind{Name: "novel", Version: 1}, name: "a"})
	if s := w.apply(); s.Infra != 1 || s.Ends[0].Cause != "this version cannot run novel tasks yet" {
		t.Errorf("%+v", s.Ends[0])
	}
}

// A time-out counts only after a run that has its node to itself; here the first of three to time out is confirmed, and the others pass.
func TestConfirmingRunIsAlone(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"a", "b", "c"} {
		w.add(&spec{kind: testKind, name: n})
	}
	var running, alone, together atomic.Int32
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		n := running.Add(1)
		defer running.Add(-1)
		o := compute(a)
		if a.Alone {
			alone.Add(1)
			if n != 1 {
				together.Add(1)
			}
			if a.Before == nil || a.Before.Verdict != task.Timeout || a.Number != 2 {
				t.Errorf("the confirming run knows %+v", a.Before)
			}
			if a.Address != "task.a" {
				return o, nil
			}
		}
		o.Verdict, o.Confirm = task.Timeout, true
		return o, nil
	}
	s := w.apply()
	if alone.Load() != 3 || together.Load() != 0 {
		t.Errorf("%d confirming runs, %d not alone", alone.Load(), together.Load())
	}
	if s.Ends[0].Record.Verdict != task.Timeout || s.Ends[1].Record.Verdict != task.Pass || w.j.len() != 3 || s.Run != 3 {
		t.Errorf("%+v", s)
	}
}

// hold makes every run of a task wait until the test lets it go on, or until it is killed.
func hold(w *world) (started chan string, release chan struct{}) {
	started, release = make(chan string, 100), make(chan struct{})
	w.run = func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		started <- a.Address
		select {
		case <-release:
			return compute(a), nil
		case <-ctx.Done():
			return task.Outcome{}, ctx.Err()
		}
	}
	return started, release
}

func TestStopLetsRunningTasksFinish(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	b := w.add(&spec{kind: testKind, name: "b"}, on(a))
	stop := make(chan struct{})
	started, release := hold(w)
	stopped := make(chan struct{})
	w.options = func(o *Options) {
		o.Stop = stop
		o.Events = func(e Event) {
			if e.Type == "end" && e.Task == b {
				close(stopped) // b is cancelled while a still runs
			}
		}
	}
	go func() {
		<-started
		close(stop)
		<-stopped
		close(release)
	}()
	s := w.apply()
	if !s.Interrupted || s.Run != 1 || s.Cancelled != 1 || s.Ends[a].Status != task.OK || s.Ends[b].Status != task.Cancelled || w.j.len() != 1 {
		t.Errorf("%+v", s)
	}
}

func TestCancelKills(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	w.add(&spec{kind: testKind, name: "b"}, on(a))
	started, _ := hold(w)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-started
		cancel()
	}()
	s, err := w.try(ctx)
	if err != nil || !s.Interrupted || s.Cancelled != 2 || w.j.len() != 0 {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestStoppedBeforeItBegan(t *testing.T) {
	w := newWorld(t)
	w.add(&spec{kind: testKind, name: "a"})
	stop := make(chan struct{})
	close(stop)
	w.options = func(o *Options) { o.Stop = stop }
	if s := w.apply(); s.Run != 0 || s.Cancelled != 1 || !s.Interrupted {
		t.Errorf("%+v", s)
	}
}

func TestFailFast(t *testing.T) {
	w := newWorld(t)
	bad := w.add(&spec{kind: testKind, name: "bad", do: "fail"})
	below := w.add(&spec{kind: testKind, name: "below"}, on(bad))
	ok := w.add(&spec{kind: testKind, name: "ok"}, task.Dep{On: bad, Role: "after", Use: task.UseOrder, Tolerate: task.TolerateAny})
	w.options = func(o *Options) { o.FailFast = true }
	s := w.apply()
	if s.Failed != 1 || s.Skipped != 1 || s.Cancelled != 1 || s.Ends[below].Root != bad || s.Ends[ok].Status != task.Cancelled || s.Interrupted {
		t.Errorf("%+v", s)
	}
}

func TestFrozenFlushesAlone(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"a", "b", "c", "d"} {
		w.add(&spec{kind: testKind, name: n})
		w.add(&spec{kind: frozenKind, name: "frozen " + n})
	}
	w.apply()
	frozen := 0
	for _, b := range w.j.batches {
		for _, r := range b {
			if r.Kind == "frozen" {
				frozen++
				if len(b) != 1 {
					t.Errorf("a frozen record shares its batch with %d", len(b)-1)
				}
			}
		}
	}
	if frozen != 4 {
		t.Errorf("%d frozen records", frozen)
	}
}

func TestEventsAreInOrder(t *testing.T) {
	w := newWorld(t)
	var last task.ID = -1
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		deps := []task.Dep(nil)
		if last >= 0 {
			deps = append(deps, on(last))
		}
		last = w.add(&spec{kind: testKind, name: n}, deps...)
	}
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		a.Log("stdout", []byte("hello"))
		a.Note("state_drift", a.Address)
		return compute(a), nil
	}
	var seen []string
	w.options = func(o *Options) {
		o.Events = func(e Event) { seen = append(seen, e.Type+string(rune('0'+e.Task))) }
	}
	w.apply()
	var want []string
	for i := range 5 {
		for _, typ := range []string{"start", "log", "note", "end"} {
			want = append(want, typ+string(rune('0'+i)))
		}
	}
	if strings.Join(seen, " ") != strings.Join(want, " ") {
		t.Errorf("%v", seen)
	}
}

// A listener that does not listen loses log output, and nothing else.
func TestSlowListener(t *testing.T) {
	var mu sync.Mutex
	var logged, notes, ends int
	gate := make(chan struct{})
	tl := newTeller(func(e Event) {
		<-gate
		mu.Lock()
		defer mu.Unlock()
		switch e.Type {
		case "log":
			logged += len(e.Data)
		case "note":
			notes++
		case "end":
			ends++
		}
	})
	data := make([]byte, 1<<20)
	for range 100 {
		tl.tell(Event{Type: "log", Data: data})
		tl.tell(Event{Type: "end"})
	}
	close(gate)
	tl.close()
	if logged >= 100<<20 || logged < maxTold || notes == 0 || ends != 100 {
		t.Errorf("%d bytes, %d notes, %d ends", logged, notes, ends)
	}
}

// What was skipped for two failures tells of both: neither counts where a dependent makes an outcome of it.
func TestAbsorbedFailures(t *testing.T) {
	w := newWorld(t)
	a, b := w.add(&spec{kind: testKind, name: "a"}), w.add(&spec{kind: testKind, name: "b"})
	c := w.add(&spec{kind: testKind, name: "c"}, on(a), on(b))
	w.add(&spec{kind: testKind, name: "verdict"}, tolerant(c, task.TolerateFailed))
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		if a.Address == "task.a" || a.Address == "task.b" {
			return task.Outcome{Status: task.Failed}, nil
		}
		return compute(a), nil
	}
	if s := w.apply(); s.Failed != 0 || len(s.Absorbed) != 2 {
		t.Errorf("%d failed, absorbed are %v", s.Failed, s.Absorbed)
	}
}
