package cli

import (
	"strconv"
	"strings"
	"testing"

	"pbuild/bench/kind"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func TestExcludedLine(t *testing.T) {
	g := &task.Graph{}
	for _, on := range []string{"exclude", "exclude", "error", "exclude", "exclude", "exclude"} {
		n := strconv.Itoa(len(g.Objects))
		of := g.Add(task.Task{Spec: &kind.TaskSpec{Argv: []string{n}}})
		id := g.Add(task.Task{Spec: &kind.VerdictSpec{OnReject: on}, Deps: []task.Dep{{On: of, Role: "of"}}})
		g.Objects = append(g.Objects, task.Object{Class: task.ClassGate, Block: "gate.g", Index: []string{n}, Steps: []task.Step{{Name: "verdict", Task: id}}})
	}
	p := &plan.Plan{Graph: g, Items: make([]plan.Item, len(g.Tasks)), Wanted: make([]bool, len(g.Tasks))}
	for i := range p.Wanted {
		p.Wanted[i] = true
	}
	record := func(id task.ID) *task.Record {
		return &task.Record{Outcome: task.Outcome{Status: task.OK, Outcome: "base_passed"}}
	}
	const want = `Excluded: gate.g["0"]: base_passed, gate.g["1"]: base_passed, gate.g["3"]: base_passed and 2 more.`
	if got := strings.Join(endings(p, record), "\n"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
