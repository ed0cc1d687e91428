package exec

import (
	"encoding/json"
	"testing"
	"time"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// What depends_on names comes before, and is nothing that an outcome stands on: its isolation, flags and time are its own.
func TestOrderIsNoEvidence(t *testing.T) {
	ended := func(role string, use task.Use, isolation string) task.Input {
		r := &task.Record{Elapsed: time.Second, Outcome: task.Outcome{Status: task.OK, Isolation: isolation, Node: isolation, Flags: []string{verdict.FlagOutOfMemory}}}
		return task.Input{Dep: task.Dep{Role: role, Use: use}, Status: task.OK, Record: r}
	}
	before := ended("after.0", task.UseOrder, "none")
	a := &task.Attempt{Inputs: []task.Input{ended(kind.Below, task.UseKey, "sealed"), before}}
	if got := lowest(a); got != "sealed" {
		t.Errorf("the lowest isolation is %q, want sealed", got)
	}
	if got := lowest(a, run.IsolationProcess.String()); got != "process" {
		t.Errorf("with a run at process the lowest isolation is %q", got)
	}
	if got := lowest(&task.Attempt{Inputs: []task.Input{before}}); got != "" {
		t.Errorf("where nothing ran the lowest isolation is %q", got)
	}

	sample := ended("sample", task.UseOutput, "sealed")
	sample.Record.Outcome.Flags = nil
	extract := ended("extract", task.UseOutput, "")
	extract.Record.Outcome.Outcome, extract.Record.Outcome.Flags = string(verdict.Empty), nil
	j := &Judge{Blobs: new(memory)}
	out, err := j.Outcome(t.Context(), &task.Attempt{Task: &task.Task{Spec: &kind.OutcomeSpec{Attempts: 1}}, Inputs: []task.Input{sample, extract, before}})
	if err != nil {
		t.Fatal(err)
	}
	var c cost
	if err := json.Unmarshal(out.Evidence, &c); err != nil {
		t.Fatal(err)
	}
	if out.Isolation != "sealed" || len(out.Flags) != 0 || c.Seconds != 2 || c.Node != "sealed" {
		t.Errorf("isolation %q, flags %q, cost %+v", out.Isolation, out.Flags, c)
	}
}
