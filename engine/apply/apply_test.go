package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func TestApplyTwiceRunsNothing(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	b := w.add(&spec{kind: pureKind, name: "b"}, on(a))
	w.add(&spec{kind: stateKind, name: "c"}, on(a), on(b))
	if s := w.apply(); s.Run != 3 || s.Reuse != 0 || s.Failed != 0 {
		t.Errorf("first: %+v", s)
	}
	w.ran("a", "b", "c")
	if s := w.apply(); s.Run != 0 || s.Reuse != 3 {
		t.Errorf("second: %+v", s)
	}
	w.ran()
}

func TestEarlyCutoff(t *testing.T) {
	w := newWorld(t)
	src := &spec{kind: testKind, name: "a", coarse: 1} // whatever its value, its output is the same
	a := w.add(src)
	b := w.add(&spec{kind: testKind, name: "b"}, on(a))
	w.add(&spec{kind: testKind, name: "c"}, on(b))
	w.apply()
	src.value = 1
	p := w.plan()
	for id, want := range []plan.Decision{plan.Run, plan.Maybe, plan.Maybe} {
		if got := p.Items[id].Decision; got != want {
			t.Errorf("task %d: %s, want %s", id, got, want)
		}
	}
	w.apply()
	w.ran("a")
}

func TestMaybeRunsWhereUpstreamDiffers(t *testing.T) {
	w := newWorld(t)
	src := &spec{kind: testKind, name: "a"}
	a := w.add(src)
	w.add(&spec{kind: testKind, name: "b"}, on(a))
	w.apply()
	src.value = 1
	if d := w.plan().Items[1].Decision; d != plan.Maybe {
		t.Errorf("b is %s", d)
	}
	w.apply()
	w.ran("a", "b")
	src.value = 0 // an edit taken back runs nothing
	w.apply()
	w.ran()
}

func TestOpaqueDependentsKeyOnTheKey(t *testing.T) {
	w := newWorld(t)
	state := &spec{kind: stateKind, name: "state", coarse: 1}
	st := w.add(state)
	w.add(&spec{kind: testKind, name: "test"}, task.Dep{On: st, Role: "below", Use: task.UseKey})
	p := w.plan()
	if !p.Items[1].Known {
		t.Error("the test's key is not known, though its state's key is")
	}
	w.apply()
	w.ran("state", "test")
	state.value = 1 // its output stays the same, its key does not
	w.apply()
	w.ran("state", "test")
}

// An opaque dependency without a record runs, and what keys on its key is reused all the same.
func TestOpaqueRunsDependentReused(t *testing.T) {
	w := newWorld(t)
	st := w.add(&spec{kind: stateKind, name: "state"})
	w.add(&spec{kind: testKind, name: "test"}, task.Dep{On: st, Role: "below", Use: task.UseKey})
	w.apply()
	for k, r := range w.j.byKey {
		if r.Kind == "state" {
			delete(w.j.byKey, k)
		}
	}
	w.apply()
	w.ran("state")
}

func TestToleranceMatrix(t *testing.T) {
	const (
		fact     = "fact"  // failed, recorded
		failed   = "fail"  // failed, not recorded
		infra    = "infra" // not recorded
		unneeded = "unneeded"
		below    = "below" // skipped below a recorded failure
	)
	phases := map[task.Tolerance]map[string]string{
		task.TolerateNone:   {fact: "skipped", failed: "skipped", infra: "skipped", unneeded: "unneeded", below: "skipped"},
		task.TolerateUnmet:  {fact: "skipped", failed: "skipped", infra: "skipped", unneeded: "done", below: "skipped"},
		task.TolerateFailed: {fact: "done", failed: "done", infra: "skipped", unneeded: "done", below: "done"},
		task.TolerateAny:    {fact: "done", failed: "done", infra: "done", unneeded: "done", below: "done"},
	}
	recorded := map[string]bool{fact: true, unneeded: true, below: true}
	for tol, ends := range phases {
		for end, want := range ends {
			w := newWorld(t)
			w.run = func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
				if a.Task.Spec.(*spec).do == infra {
					return task.Outcome{}, errors.New("no daemon")
				}
				return compute(a), nil
			}
			up := task.Task{Spec: &spec{kind: testKind, name: "up", do: end}}
			switch end {
			case unneeded, below:
				root := w.add(&spec{kind: testKind, name: "root", do: map[string]string{below: fact}[end]})
				up.Spec.(*spec).do = ""
				up.Deps = []task.Dep{on(root)}
				if end == unneeded {
					up.When = []task.Condition{{On: root, Fact: "never"}}
				}
			}
			id := w.addTask("up", up)
			down := w.add(&spec{kind: testKind, name: "down"}, tolerant(id, tol))
			phase := map[task.ID]string{}
			w.options = func(o *Options) {
				o.Retries = 0
				o.Events = func(e Event) {
					if e.Type == "end" {
						phase[e.Task] = e.Phase
					}
				}
			}
			w.apply()
			if phase[down] != want {
				t.Errorf("tolerance %d of %s: %s, want %s", tol, end, phase[down], want)
			}
			if kept := w.j.Latest("task.down") != nil; kept != (want == "done" && recorded[end]) {
				t.Errorf("tolerance %d of %s: recorded is %v", tol, end, kept)
			}
			w.apply()
			if again := w.runs["task.down"]; (again > 0) != (want == "done" && !recorded[end]) {
				t.Errorf("tolerance %d of %s: the second apply ran it %d times", tol, end, again)
			}
		}
	}
}

func TestSkippedNamesItsRoot(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a", do: "fact"})
	b := w.add(&spec{kind: testKind, name: "b"}, on(a))
	c := w.add(&spec{kind: testKind, name: "c"}, on(b))
	for range 2 { // run, then reused
		s := w.apply()
		if e := s.Ends[c]; e.Root != a || e.Status != task.Failed || e.Cause != "a failed" || e.Record != nil {
			t.Errorf("%+v", e)
		}
		if s.Failed != 1 || s.Skipped != 2 {
			t.Errorf("%+v", s)
		}
	}
	w.ran()
	p := w.plan()
	if it := p.Items[c]; it.Decision != plan.Unneeded {
		t.Errorf("planned %s", it.Decision)
	}
}

func TestConditions(t *testing.T) {
	for value := range 8 {
		w := newWorld(t)
		gate := w.add(&spec{kind: testKind, name: "gate", value: value})
		when := func(not bool) task.Task {
			return task.Task{
				Spec: &spec{kind: testKind, name: fmt.Sprint("cell", not)},
				Deps: []task.Dep{{On: gate, Role: "gate", Use: task.UseOrder}},
				When: []task.Condition{{On: gate, Fact: "even", Not: not}},
			}
		}
		even, odd := w.addTask("even", when(false)), w.addTask("odd", when(true))
		w.add(&spec{kind: testKind, name: "downeven"}, on(even))
		w.add(&spec{kind: testKind, name: "downodd"}, on(odd))
		p := w.plan()
		if c := p.Counts(); c.Run != 5 {
			t.Errorf("before the gate: %+v", c.Tally)
		}
		s := w.apply()
		need := "odd"
		if s.Ends[gate].Record.Has("even") {
			need = "even"
		}
		w.ran("gate", need, "down"+need)
		if s.Unneeded != 2 {
			t.Errorf("%+v", s)
		}
		if c := w.plan().Counts(); c.Reuse != 3 || c.Unneeded != 2 || c.Run != 0 {
			t.Errorf("after the gate: %+v", c.Tally)
		}
	}
}

// Two tasks of equal key, which the graph did not merge since their inputs have other names, run once.
func TestEqualKeysRunOnce(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a", coarse: 1})
	b := w.add(&spec{kind: testKind, name: "b", coarse: 1})
	dep := func(id task.ID) task.Dep { return task.Dep{On: id, Role: "in", Output: "out"} }
	c := w.addTask("c", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(a)}})
	d := w.addTask("d", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(b)}})
	if c == d {
		t.Fatal("the graph merged them")
	}
	s := w.apply()
	if n := w.runs["task.c"] + w.runs["task.d"]; n != 1 || s.Reuse != 1 {
		t.Errorf("ran %v: %+v", w.runs, s)
	}
	if s.Ends[c].Record.Key != s.Ends[d].Record.Key {
		t.Error("they ended with different records")
	}
}

// An equal task that comes later, when the first has long ended, does not run either.
func TestEqualKeyLaterIsReused(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a", coarse: 1})
	b := w.add(&spec{kind: testKind, name: "b", coarse: 1})
	w.apply()
	dep := func(id task.ID) task.Dep { return task.Dep{On: id, Role: "in", Output: "out"} }
	c := w.addTask("c", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(a)}})
	after := task.Dep{On: c, Role: "after", Use: task.UseOrder}
	d := w.addTask("d", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(b), after}})
	if p := w.plan(); !p.Items[d].Known || p.Items[c].Key != p.Items[d].Key {
		t.Fatal("their keys are not known to be equal")
	}
	w.apply()
	w.ran("c")
}

func TestReplaceRunsAgainAndSaysUnstable(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	w.apply()
	w.inputs = func(in *plan.Inputs) { in.Replace = map[task.ID]bool{a: true} }
	w.run = func(_ context.Context, at *task.Attempt) (task.Outcome, error) {
		o := compute(at)
		o.Verdict = task.Fail
		return o, nil
	}
	s := w.apply()
	if s.Run != 1 || len(s.Ends[a].Record.Flags) != 1 || s.Ends[a].Record.Flags[0] != "unstable" {
		t.Errorf("%+v", s.Ends[a].Record)
	}
	if w.j.Latest("task.a").Verdict != task.Fail {
		t.Error("the new record does not win")
	}
}

// What is equal to a replaced task is served by the new record, whichever of them comes first and whether or not their key is known when it is planned.
func TestReplaceIsOfAllEqualWork(t *testing.T) {
	for _, sure := range []bool{true, false} {
		w := newWorld(t)
		a := w.add(&spec{kind: testKind, name: "a", coarse: 1}) // a and b come out equal
		b := w.add(&spec{kind: testKind, name: "b", coarse: 1})
		dep := func(id task.ID) task.Dep { return task.Dep{On: id, Role: "in", Output: "out"} }
		c := w.addTask("c", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(a)}})
		d := w.addTask("d", task.Task{Spec: &spec{kind: testKind, name: "same"}, Deps: []task.Dep{dep(b)}})
		w.apply()
		w.inputs = func(in *plan.Inputs) {
			in.Replace = map[task.ID]bool{d: true}
			if !sure {
				in.Replace[a], in.Replace[b] = true, true
			}
		}
		w.run = func(_ context.Context, at *task.Attempt) (task.Outcome, error) {
			o := compute(at)
			o.Verdict = task.Fail
			return o, nil
		}
		s := w.apply()
		if want := map[bool]int{true: 1, false: 3}[sure]; s.Run != want {
			t.Errorf("sure %v: ran %v, want %d", sure, w.runs, want)
		}
		for _, id := range []task.ID{c, d} {
			if r := s.Ends[id].Record; r.Verdict != task.Fail || len(r.Flags) != 1 || r.Flags[0] != "unstable" {
				t.Errorf("sure %v: task %d ended with %+v", sure, id, r)
			}
		}
		w.inputs = nil
		if s := w.apply(); s.Run != 0 {
			t.Errorf("sure %v: the next apply runs %v", sure, w.runs)
		}
	}
}

func TestNoCacheIsNotRecorded(t *testing.T) {
	w := newWorld(t)
	w.addTask("a", task.Task{Spec: &spec{kind: testKind, name: "a"}, NoCache: true})
	for range 2 {
		if s := w.apply(); s.Run != 1 {
			t.Errorf("%+v", s)
		}
	}
	if w.j.len() != 0 {
		t.Error("it was recorded")
	}
}

func TestRejectedCountsAsFailed(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	w.add(&spec{kind: testKind, name: "b"}, on(a))
	phases := map[task.ID]string{}
	w.options = func(o *Options) {
		o.Failed = func(t *task.Task, r *task.Record) bool { return t.Spec.(*spec).name == "a" }
		o.Events = func(e Event) { phases[e.Task] = e.Phase }
	}
	for i := range 2 {
		s := w.apply()
		if phases[0] != "failed" || phases[1] != []string{"done", "reused"}[i] {
			t.Errorf("%v", phases)
		}
		if s.Failed != 1 || s.Run != 2*(1-i) || s.Reuse != 2*i {
			t.Errorf("%+v", s)
		}
	}
}

func TestLostJournalEndsTheApply(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	w.add(&spec{kind: testKind, name: "b"}, on(a))
	w.j.limit = 0
	s, err := w.try(context.Background())
	if !errors.Is(err, errFull) || s.Infra != 1 || s.Skipped != 1 {
		t.Errorf("%v, %+v", err, s)
	}
	w.ran("a")
	w.j.limit = -1
	w.apply()
	w.ran("a", "b")
}

func TestFilesChangedWhileRunning(t *testing.T) {
	w := newWorld(t)
	w.disk.put("in.txt", "1")
	w.addTask("a", task.Task{Spec: &spec{kind: filesKind, name: "a"}, Inputs: []string{"in.txt"}})
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		w.disk.put("in.txt", "2")
		return compute(a), nil
	}
	s := w.apply()
	if s.Failed != 1 || s.Ends[0].Cause != "input changed while running: in.txt" || w.j.len() != 0 {
		t.Errorf("%+v", s.Ends[0])
	}
	w.run = nil
	if s := w.apply(); s.Run != 1 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// Files tasks: a change of an input runs what reads it, a lost output is restored or made again.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	w.disk.put("in.txt", "1")
	a := w.addTask("a", task.Task{Spec: &spec{kind: filesKind, name: "a"}, Inputs: []string{"in.txt"}, Outputs: []string{"mid.txt"}})
	w.addTask("b", task.Task{
		Spec: &spec{kind: filesKind, name: "b"}, Inputs: []string{"mid.txt"}, Outputs: []string{"out.txt"},
		Deps: []task.Dep{{On: a, Role: "mid", Output: "mid.txt"}},
	})
	made := func(path string) task.Output {
		f := w.disk[path]
		return task.Output{Role: path, Digest: f.Digest, Mode: f.Mode}
	}
	w.run = func(_ context.Context, at *task.Attempt) (task.Outcome, error) {
		path := at.Task.Outputs[0]
		content := path
		for _, in := range at.Task.Inputs {
			content += w.disk[in].Digest.String()
		}
		w.disk.put(path, content)
		return task.Outcome{Status: task.OK, Outputs: []task.Output{made(path)}}, nil
	}
	w.apply()
	w.ran("a", "b")
	w.apply()
	w.ran()
	w.disk.put("in.txt", "2")
	w.apply()
	w.ran("a", "b")
	was := w.disk["mid.txt"]
	delete(w.disk, "mid.txt")
	w.apply()
	w.ran("a") // its output comes out equal
	w.inputs = func(in *plan.Inputs) { in.Stored = func(task.Output) bool { return true } }
	w.options = func(o *Options) {
		o.Restore = func(out task.Output) error {
			w.disk[out.Role] = task.FileInput{Path: out.Role, Mode: out.Mode, Digest: out.Digest}
			return nil
		}
	}
	delete(w.disk, "mid.txt")
	if s := w.apply(); s.Restored != 1 || s.Reuse != 2 || w.disk["mid.txt"] != was {
		t.Errorf("%+v", s)
	}
	w.ran()
	w.disk.put("mid.txt", "spoilt")
	w.options = func(o *Options) { o.Restore = func(task.Output) error { return errors.New("blob is damaged") } }
	if s := w.apply(); s.Infra != 1 || !strings.Contains(s.Ends[a].Cause, "blob is damaged") {
		t.Errorf("%+v", s.Ends[a])
	}
	w.ran()
}

// What an executor sees of its inputs, and the way up to a lost state's own attempt.
func TestAttemptLeadsUp(t *testing.T) {
	w := newWorld(t)
	src := w.add(&spec{kind: testKind, name: "src"})
	low := w.add(&spec{kind: stateKind, name: "low"}, on(src))
	high := w.add(&spec{kind: stateKind, name: "high"}, task.Dep{On: low, Role: "below", Use: task.UseKey})
	w.add(&spec{kind: testKind, name: "test"}, task.Dep{On: high, Role: "below", Use: task.UseKey}, on(src))
	var led atomic.Bool
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		if a.Address == "task.test" {
			up := a.Input("below").Attempt().Input("below").Attempt()
			in := up.Input("in0")
			led.Store(up.Address == "task.low" && up.Key == task.Key(a.Input("below").Attempt().Input("below").Digest) &&
				in.Record != nil && in.Digest == in.Record.Digest("out") && a.Input("in0").Attempt == nil)
		}
		return compute(a), nil
	}
	w.apply()
	if !led.Load() {
		t.Error("the attempt of the lower state is not what it ran with")
	}
}

func TestKeysInRecordsAreTheirPreimages(t *testing.T) {
	w := newWorld(t)
	a := w.add(&spec{kind: testKind, name: "a"})
	w.add(&spec{kind: testKind, name: "b"}, on(a))
	w.apply()
	for k, r := range w.j.byKey {
		if r.Key != k || digest.Of(r.Preimage) != digest.Digest(k) || r.Run != "run1" || r.Attempt != 1 {
			t.Errorf("%+v", r)
		}
	}
}
