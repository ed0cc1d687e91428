package exec

import (
	"strings"
	"testing"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/task"
)

func TestCellOutcome(t *testing.T) {
	blobs := new(memory)
	record := func(role string, v any, facts ...string) *task.Record {
		r := &task.Record{Outcome: task.Outcome{Status: task.OK, Facts: facts, Outcome: "base_passed"}}
		if err := put(blobs, &r.Outcome, role, v); err != nil {
			t.Fatal(err)
		}
		return r
	}
	resolved := &task.Input{Status: task.OK, Record: record(kind.OutcomeBlob, verdict.CellOutcome{Outcome: verdict.Resolved, Isolation: "process"})}
	admitted := &task.Input{Status: task.OK, Record: record(kind.Evidence, verdict.Evidence{Isolation: "sealed"}, "admitted")}
	rejected := &task.Input{Status: task.OK, Record: record(kind.Evidence, verdict.Evidence{Isolation: "sealed"})}
	ended := func(s task.Status) *task.Input { return &task.Input{Status: s, Cause: "why"} }
	unneeded := &task.Input{}
	for _, c := range []struct {
		name        string
		cell, gate  *task.Input
		want        verdict.Word
		wantsReason string
	}{
		{"its outcome", resolved, admitted, verdict.Resolved, ""},
		{"ungated", resolved, nil, verdict.Resolved, ""},
		{"left out by its gate", unneeded, rejected, verdict.Excluded, "base_passed"},
		{"undecided gate", unneeded, ended(task.Infra), verdict.CellInfra, ""},
		{"infra", ended(task.Infra), admitted, verdict.CellInfra, ""},
		{"provider", ended(task.Provider), admitted, verdict.CellProvider, ""},
		{"failed before it", ended(task.Failed), admitted, verdict.CellSkipped, ""},
		{"never ran", nil, nil, verdict.CellSkipped, ""},
	} {
		got, err := cellOutcome(c.cell, c.gate, blobs)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got.Outcome != c.want || c.wantsReason != "" && got.Reason != c.wantsReason {
			t.Errorf("%s: %+v", c.name, got)
		}
	}

	// The lowest isolation of all cells stands under the table.
	spec := &kind.ReportSpec{Name: "r", Of: "matrix.m", Gated: true, Format: "md", File: "reports/r.md", Cells: []kind.Cell{
		{Instance: "a", Agent: "x", Outcome: "0", Gate: "gate 0"}, {Instance: "b", Agent: "x", Outcome: "1", Gate: "gate 1"}}}
	inputs := map[string]*task.Input{"0": resolved, "gate 0": admitted, "1": unneeded, "gate 1": rejected}
	table, err := Table(spec, func(role string) *task.Input { return inputs[role] }, blobs)
	if err != nil {
		t.Fatal(err)
	}
	if table.Isolation != "process" || len(table.Rows) != 2 {
		t.Errorf("%+v", table)
	}
}

func TestReportWritesItsFile(t *testing.T) {
	dir := t.TempDir()
	spec := &kind.ReportSpec{Name: "r", Of: "matrix.m", Format: "md", File: "deep/er/r.md"}
	a := &task.Attempt{Task: &task.Task{Spec: spec}}
	blobs := new(memory)
	out, err := (&Reports{Dir: dir, Blobs: blobs}).Run(t.Context(), a)
	if err != nil || out.Status != task.OK {
		t.Fatalf("%+v, %v", out, err)
	}
	got, _, err := readFile(dir+"/deep/er/r.md", true)
	if err != nil || got.Digest != out.Outputs[0].Digest || got.Mode != out.Outputs[0].Mode {
		t.Errorf("file %+v, record %+v, %v", got, out.Outputs, err)
	}
	spec.Format = "papyrus"
	if out, err := (&Reports{Dir: dir, Blobs: blobs}).Run(t.Context(), a); err != nil || out.Status != task.Failed || !strings.Contains(out.Reason, "papyrus") {
		t.Errorf("%+v, %v", out, err)
	}
}
