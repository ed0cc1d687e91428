package apply

import (
	"context"
	"strings"
	"testing"

	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// A sample whose key turns out, while the apply is under way, to have a record of which the output is gone fails: it is not paid for a second time unasked.
func TestLostSampleIsNotRunAgain(t *testing.T) {
	w := newWorld(t)
	src := &spec{kind: testKind, name: "a", coarse: 1} // whatever its value, its output is the same
	a := w.add(src)
	sample := w.add(&spec{kind: frozenKind, name: "sample"}, on(a))
	gone := w.apply().Ends[sample].Record.Digest("out")
	src.value = 1
	w.inputs = func(in *plan.Inputs) { in.Stored = func(o task.Output) bool { return o.Digest != gone } }
	s := w.apply()
	w.ran("a")
	if end := s.Ends[sample]; end.Status != task.Failed || !strings.Contains(end.Cause, "cannot be made again") {
		t.Errorf("%+v", end)
	}
	if gone == (digest.Digest{}) {
		t.Error("the sample gave nothing")
	}
}

// A sample that has come to its end is tried to be recorded even after another batch could not be: it was paid for.
func TestSampleIsRecordedAfterAFailedBatch(t *testing.T) {
	w := newWorld(t)
	w.add(&spec{kind: testKind, name: "a"})
	w.add(&spec{kind: frozenKind, name: "sample"})
	failed := make(chan bool)
	w.j.refuse = func(rs []*task.Record) bool {
		if rs[0].Address != "task.a" {
			return false
		}
		close(failed)
		return true
	}
	w.run = func(_ context.Context, a *task.Attempt) (task.Outcome, error) {
		if a.Address == "task.sample" {
			<-failed
		}
		return compute(a), nil
	}
	if _, err := w.try(context.Background()); err == nil {
		t.Error("an apply whose journal failed has no error")
	}
	if w.j.Latest("task.sample") == nil || w.j.Latest("task.a") != nil {
		t.Errorf("recorded are %v", w.j.byAddr)
	}
}
