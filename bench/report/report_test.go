package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pbuild/bench/verdict"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// stages of a cell that came as far as n: 0 empty, 1 non-empty, 2 applies, 3 compiles, 4 passes.
func stages(n int, build bool) verdict.Stages {
	s := verdict.Stages{Nonempty: n > 0, Applies: n > 1, Passes: n > 3}
	if build && n > 1 {
		c := n > 2
		s.Compiles = &c
	}
	return s
}

func outcome(w verdict.Word, reason string, n int, flags ...string) verdict.CellOutcome {
	o := verdict.CellOutcome{Outcome: w, Reason: reason, Stages: stages(n, true), Flags: flags, LocalizedAny: n > 0, LocalizedAll: n > 3}
	if n > 2 {
		o.Tests = &verdict.Tests{Passed: n, Total: 4}
	}
	return o
}

func sampleCells() []Cell {
	var cells []Cell
	add := func(instance, agent, model string, o verdict.CellOutcome) {
		cells = append(cells, Cell{Instance: instance, Agent: agent, Model: model, Outcome: o,
			Address: fmt.Sprintf(`matrix.main[%q,%q,%q,0]`, instance, agent, model), Extra: map[string]string{"origin": "pr" + instance[:1], "seconds": "1.5"}})
	}
	for _, i := range []string{"b|1", "a-2", "a-10"} {
		add(i, "oracle", "", outcome(verdict.Resolved, "", 4))
		add(i, "nop", "", outcome(verdict.Empty, "", 0))
	}
	add("a-2", "mini", "m2", outcome(verdict.Unresolved, "failed_test", 3, "reset_protected"))
	add("a-10", "mini", "m2", outcome(verdict.CompileFailed, "", 2))
	add("b|1", "mini", "m2", outcome(verdict.Unresolved, "harness_edit", 3, "harness_edit", "reset_protected"))
	add("a-2", "mini", "m1", outcome(verdict.Resolved, "", 4))
	add("a-10", "mini", "m1", outcome(verdict.CellProvider, "rate\nlimit", 0))
	add("b|1", "mini", "m1", outcome(verdict.CellInfra, "disk *full*", 0))
	for _, a := range []string{"oracle", "nop"} {
		add("c", a, "", verdict.ExcludedCell("base_passed", ""))
	}
	slices.SortFunc(cells, func(a, b Cell) int { return strings.Compare(a.Address, b.Address) })
	return cells
}

func build(t *testing.T, cells []Cell, meta Meta) *Table {
	t.Helper()
	table, err := Build(cells, meta)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The three formats of one report, and of one that is ungated, filtered, grouped and has columns of its own.
func TestGolden(t *testing.T) {
	plain := Meta{Name: "table4", Of: "matrix.main", Gated: true, Isolation: "sealed"}
	rich := Meta{Name: "by origin", Of: "matrix.main", Isolation: "none", By: []string{"origin"}, Columns: []string{"instance", "agent", "model", "outcome", "seconds"},
		Filter: "agent != nop, outcome=failed|infra"}
	for name, meta := range map[string]Meta{"plain": plain, "rich": rich, "none": {Name: "none", Of: "matrix.none", Gated: true}} {
		cells := sampleCells()
		if name == "none" {
			cells = nil
		}
		table := build(t, cells, meta)
		for _, format := range Formats {
			b, err := Render(table, format)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+format, b)
		}
	}
	if _, err := Render(&Table{}, "pdf"); err == nil {
		t.Error("pdf was rendered")
	}
}

// Lines are by agent and model in any case, and have no second column of either.
func TestByAgent(t *testing.T) {
	b, err := Render(build(t, sampleCells(), Meta{Name: "r", By: []string{"agent", "origin", "origin"}}), "md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "\n| agent | model | origin | instances |") {
		t.Errorf("%s", b)
	}
}

func anyCells(t *rapid.T) []Cell {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Cell {
		n := rapid.IntRange(0, 4).Draw(t, "stage")
		o := verdict.CellOutcome{Outcome: rapid.SampledFrom(verdict.Outcomes()).Draw(t, "outcome"), Reason: rapid.String().Draw(t, "reason"), Stages: stages(n, rapid.Bool().Draw(t, "build"))}
		return Cell{Instance: rapid.StringN(1, 4, 8).Draw(t, "instance"), Agent: rapid.SampledFrom([]string{"a", "b|", "c\n"}).Draw(t, "agent"),
			Model: rapid.SampledFrom([]string{"", "m", "`n`"}).Draw(t, "model"), Sample: rapid.IntRange(0, 2).Draw(t, "sample"), Outcome: o}
	}), 0, 40).Draw(t, "cells")
}

// The order of cells is that of the rows and shows nowhere else, every cell is counted once, and a table's lines and columns survive any text.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := anyCells(t)
		for i := range cells {
			cells[i].Address = fmt.Sprint(i)
		}
		meta := Meta{Name: "r", Of: "matrix.m", Gated: true, Isolation: "none"}
		table, err := Build(cells, meta)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, l := range table.Candidates {
			sum := 0
			for _, w := range verdict.Outcomes() {
				sum += l.Count(w)
			}
			if total += l.Cells; sum != l.Cells {
				t.Fatalf("%d outcomes in %d cells", sum, l.Cells)
			}
		}
		if total != len(cells) || len(table.Rows) != len(cells) {
			t.Fatalf("%d cells, %d counted, %d listed", len(cells), total, len(table.Rows))
		}
		shuffled := slices.Clone(cells)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, _ := Build(shuffled, meta)
		for i := range shuffled {
			if table.Rows[i].Address != cells[i].Address || again.Rows[i].Address != shuffled[i].Address {
				t.Fatalf("row %d is not cell %d", i, i)
			}
		}
		var lines, same bytes.Buffer
		table.lines(&lines)
		table.pairs(&lines)
		again.lines(&same)
		again.pairs(&same)
		if lines.String() != same.String() {
			t.Fatal("what is counted depends on the order of the cells")
		}
		records, err := csv.NewReader(bytes.NewReader(table.CSV())).ReadAll()
		if err != nil || len(records) != len(cells)+1 {
			t.Fatalf("csv has %d records: %v", len(records), err)
		}
		_, listed, _ := strings.Cut(string(table.Markdown()), "## Cells\n\n")
		for _, line := range strings.Split(listed, "\n") {
			if bare := strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""); strings.HasPrefix(line, "|") && strings.Count(bare, "|") != len(columnOrder) {
				t.Fatalf("a row of the table is torn: %q", line)
			}
		}
	})
}

// What a filter says of outcomes leaves the lines alone; what it says of names does not.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		filter     string
		lines, row int
	}{
		{"", 4, 14},
		{"outcome=failed", 4, 2},
		{"agent=mini", 2, 6},
		{"agent=mini,outcome!=failed|infra", 2, 3},
		{" agent != mini , instance = c ", 2, 2},
		{"flags=reset_protected", 4, 2},
		{"flags!=reset_protected", 4, 12},
		{"origin=pra", 4, 8},
		{"model=-", 2, 8},
		{"reason=harness_edit", 4, 1},
		{"seconds=1.5", 4, 14},
		{"node=x", 4, 0}, // of the machine: the lines stay
	} {
		table := build(t, sampleCells(), Meta{Filter: c.filter})
		if len(table.Candidates) != c.lines || len(table.Rows) != c.row {
			t.Errorf("%q: %d lines and %d rows, want %d and %d", c.filter, len(table.Candidates), len(table.Rows), c.lines, c.row)
		}
	}
	for _, bad := range []string{"outcome", "=x", "outcome=won", "agent=a,,"} {
		if _, err := Build(sampleCells(), Meta{Filter: bad}); err == nil {
			t.Errorf("filter %q was taken", bad)
		}
	}
}

// An outcome that is not in the list is a bug that shows, not a cell that is lost.
func TestUnknownOutcome(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a made-up outcome was counted")
		}
	}()
	Build([]Cell{{Outcome: verdict.CellOutcome{Outcome: "won"}}}, Meta{})
}

// The JSON has exactly the fields that spec/interface.md names.
func TestJSONFields(t *testing.T) {
	var doc struct {
		Candidates, Rows []map[string]json.RawMessage
	}
	table := build(t, sampleCells(), Meta{Name: "r", Of: "matrix.m"})
	if err := json.Unmarshal(table.JSON(), &doc); err != nil {
		t.Fatal(err)
	}
	const line = "agent model instances excluded cells patches localized_any localized_all applied compiled resolved failed compile_failed does_not_apply empty missing timeout step_limit wall_limit cost_limit format_error agent_crash provider infra skipped flaky flagged"
	const row = "instance agent model sample outcome reason stages tests flags address"
	for _, c := range []struct {
		got  map[string]json.RawMessage
		want string
	}{{doc.Candidates[0], line}, {doc.Rows[0], row}} {
		want := strings.Fields(c.want)
		if len(c.got) != len(want) {
			t.Errorf("%d fields, want %d", len(c.got), len(want))
		}
		for _, f := range want {
			if _, ok := c.got[f]; !ok {
				t.Errorf("field %s is missing", f)
			}
		}
	}
}

// Pairs leave out what was lost to the world: m1 and m2 share one cell, which only m1 resolved.
func TestPairs(t *testing.T) {
	pairs := build(t, sampleCells(), Meta{}).Pairs()
	var names []string
	for _, p := range pairs {
		names = append(names, p.First+"/"+p.Second)
		if p.Holm < p.P || p.P < 0 || p.Holm > 1 {
			t.Errorf("%+v", p)
		}
	}
	if len(pairs) != 6 || !slices.IsSorted(names) {
		t.Fatalf("%v", names)
	}
	if p := pairs[0]; p.First != "mini with m1" || p.Second != "mini with m2" || p.Cells != 1 || p.OnlyFirst != 1 || p.OnlySecond != 0 || p.P != 1 {
		t.Errorf("%+v", p)
	}
	if p := pairs[5]; p.First != "nop" || p.Second != "oracle" || p.Cells != 3 || p.OnlySecond != 3 || math.Abs(p.P-0.25) > 1e-9 {
		t.Errorf("%+v", p)
	}
}

// docs/formats.md says what every column, outcome and flag means.
func TestWordsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	words := append(Columns(), verdict.FlagResetProtected, verdict.FlagExempt, verdict.FlagHarnessEdit, verdict.FlagOutputTruncated, verdict.FlagToolError,
		verdict.FlagOutOfMemory, verdict.FlagLeftOut, verdict.FlagNearLimit, verdict.FlagStateDrift)
	for _, w := range verdict.Outcomes() {
		words = append(words, string(w))
	}
	for _, g := range []verdict.GateOutcome{verdict.Admitted, verdict.Rejected, verdict.BasePassed, verdict.GoldFailed, verdict.GoldBuildFailed, verdict.GateNoTests, verdict.GateFlaky,
		verdict.PatchFailed, verdict.SetupFailed, verdict.GateTimeout, verdict.ImageMissing, verdict.GateToolError} {
		words = append(words, string(g))
	}
	for _, w := range words {
		if !bytes.Contains(page, []byte("`"+w+"`")) {
			t.Errorf("docs/formats.md does not say what %s is", w)
		}
	}
}
