package exec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
	own := func(gate *task.Input) []admission { return []admission{{gate, ""}} }
	for _, c := range []struct {
		name        string
		cell        *task.Input
		gates       []admission
		want        verdict.Word
		wantsReason string
	}{
		{"its outcome", resolved, own(admitted), verdict.Resolved, ""},
		{"ungated", resolved, nil, verdict.Resolved, ""},
		{"left out by its gate", unneeded, own(rejected), verdict.Excluded, "base_passed"},
		{"not of its dataset", unneeded, append([]admission{{admitted, "gate.a"}, {rejected, "gate.b"}}, own(unneeded)...), verdict.Excluded, "not admitted by gate.b"},
		{"not of its dataset, ungated", unneeded, []admission{{rejected, "gate.a"}, {unneeded, "gate.b"}}, verdict.Excluded, "not admitted by gate.a"},
		{"undecided dataset", ended(task.Infra), append([]admission{{ended(task.Infra), "gate.a"}}, own(ended(task.Infra))...), verdict.CellInfra, ""},
		{"undecided gate", unneeded, own(ended(task.Infra)), verdict.CellInfra, ""},
		{"infra", ended(task.Infra), own(admitted), verdict.CellInfra, ""},
		{"provider", ended(task.Provider), own(admitted), verdict.CellProvider, ""},
		{"failed before it", ended(task.Failed), own(admitted), verdict.CellSkipped, ""},
		{"never ran", nil, nil, verdict.CellSkipped, ""},
	} {
		got, err := cellOutcome(c.cell, c.gates, blobs)
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
	table, err = Table(spec, func(string) *task.Input { return nil }, blobs)
	if err != nil {
		t.Fatal(err)
	}
	if table.Isolation != "" || !strings.HasSuffix(string(table.Markdown()), "Isolation: no command ran behind these outcomes.\n") {
		t.Errorf("nothing ran, and the isolation is %q:\n%s", table.Isolation, table.Markdown())
	}
}

// What a cell took is in its outcome's evidence, and in columns that ask for it; what it shares with its gate is not its own.
func TestColumnsOfTheMachine(t *testing.T) {
	took := func(role string, seconds int, usd float64, node string) task.Input {
		r := &task.Record{Elapsed: time.Duration(seconds) * time.Second, Outcome: task.Outcome{Status: task.OK, USD: usd, Node: node}}
		return task.Input{Dep: task.Dep{Role: role}, Status: task.OK, Record: r}
	}
	c := costOf(&task.Attempt{Inputs: []task.Input{took("sample", 3, 0.25, "b"), took("test.0", 4, 0, "a"), took("score.0", 0, 0, ""), took("base", 100, 9, "z"),
		took(kind.GoldPaths, 100, 9, "z"), {Dep: task.Dep{Role: "build"}}}})
	if want := (cost{Seconds: 7, USD: 0.25, Node: "a b"}); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	evidence, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	blobs := new(memory)
	r := &task.Record{Outcome: task.Outcome{Status: task.OK, Evidence: evidence}}
	if err := put(blobs, &r.Outcome, kind.OutcomeBlob, verdict.CellOutcome{Outcome: verdict.Resolved, Isolation: "process"}); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*task.Input{"0": {Status: task.OK, Record: r}}
	spec := &kind.ReportSpec{Columns: []string{"instance", "seconds", "usd", "node", "isolation", "origin"}, Cells: []kind.Cell{
		{Instance: "a", Outcome: "0", Provenance: map[string]string{"origin": "pr 7"}}, {Instance: "b", Outcome: "1"}}}
	table, err := Table(spec, func(role string) *task.Input { return inputs[role] }, blobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a,7.0,0.2500,a b,process,pr 7,", "b,-,-,-,-,-,"} {
		if !strings.Contains(string(table.CSV()), want) {
			t.Errorf("got\n%s\nwant %s", table.CSV(), want)
		}
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
	got, _, err := (&Tasks{Dir: dir}).readOutput("deep/er/r.md", true)
	if err != nil || got.Digest != out.Outputs[0].Digest || got.Mode != out.Outputs[0].Mode {
		t.Errorf("file %+v, record %+v, %v", got, out.Outputs, err)
	}
	spec.Format = "papyrus"
	if out, err := (&Reports{Dir: dir, Blobs: blobs}).Run(t.Context(), a); err != nil || out.Status != task.Failed || !strings.Contains(out.Reason, "papyrus") {
		t.Errorf("%+v, %v", out, err)
	}
}
