package plan

import (
	"errors"
	"fmt"
	"testing"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// keptSpec is a task whose record's output may be gone from the store.
type keptSpec struct{ kind *task.Kind }

func (s *keptSpec) Kind() *task.Kind       { return s.kind }
func (s *keptSpec) Encode(*digest.Encoder) {}

// What is no longer in the store is made again, but for what cannot be: that is an error, never a silent run.
func TestLostOutputs(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		spec := &keptSpec{&task.Kind{Name: "kept", Version: 1, Frozen: frozen}}
		g := &task.Graph{}
		id := g.Add(task.Task{Spec: spec})
		var e digest.Encoder
		record := &task.Record{Key: task.EncodeKey(&e, spec, "", nil, nil), Kind: "kept", Outcome: task.Outcome{Status: task.OK, Outputs: []task.Output{{Role: "patch", Digest: digest.Of([]byte("p"))}}}}
		there := true
		in := Inputs{Graph: g, Lookup: func(k task.Key) *task.Record {
			if k == record.Key {
				return record
			}
			return nil
		}, Stored: func(task.Output) bool { return there }}
		if p, err := Decide(in); err != nil || p.Items[id].Decision != Reuse {
			t.Errorf("frozen %v: %v, %v while all is there", frozen, p.Items[id].Decision, err)
		}
		there = false
		p, err := Decide(in)
		var lost LostSamples
		if errors.As(err, &lost) != frozen || frozen && (lost[0].Task != id || lost[0].Output != "patch") {
			t.Errorf("frozen %v: err = %v", frozen, err)
		}
		if reasons := p.Reasons(id); p.Items[id].Decision != Run || len(reasons) != 1 || reasons[0].Code != OutputMissing {
			t.Errorf("frozen %v: %v %v", frozen, p.Items[id].Decision, reasons)
		}
	}
}

// A lost sample is refused before anything that it waits for has run again, unless that has been edited: then it may be another sample.
func TestLostSampleBehindWhatRuns(t *testing.T) {
	b := newBed(t)
	first := &spec{kind: testKind, name: "first"}
	between := b.add(&spec{kind: testKind, name: "between"}, task.Dep{On: b.add(first), Role: "in", Output: "out"})
	sample := b.add(&spec{kind: iceKind, name: "sample"}, task.Dep{On: between, Role: "in", Output: "out"})
	for id := range b.g.Tasks {
		b.record(b.decide(), task.ID(id), ok(fmt.Sprint(id)))
	}
	b.in.Stored = func(task.Output) bool { return false }
	p, err := Decide(b.in)
	var lost LostSamples
	if !errors.As(err, &lost) || lost[0].Task != sample || p.Items[sample].Known {
		t.Errorf("all is lost: %v, %+v", err, p.Items[sample])
	}
	first.command = "edited"
	if p, err = Decide(b.in); err != nil || p.Items[sample].Decision != Run {
		t.Errorf("what comes first is edited: %v, %v", err, p.Items[sample].Decision)
	}
}
