package apply

import (
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
