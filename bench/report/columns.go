package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pbuild/bench/verdict"
)

// columnOrder is the columns of every row, as csv has them.
var columnOrder = []string{"instance", "agent", "model", "sample", "outcome", "reason",
	"nonempty", "applies", "compiles", "passes", "tests_passed", "tests_total", "flags", "address"}

// machineColumns tell of the machine and the run. They are shown where they are asked for, and Cell.Extra holds their values.
var machineColumns = []string{"seconds", "usd", "node", "isolation"}

// Columns are the names that every report knows; all others are of an instance's provenance.
func Columns() []string { return slices.Concat(columnOrder, machineColumns) }

// columns says how each of columnOrder is shown. "-" stands for null.
var columns = map[string]func(*Row) string{
	"instance":     func(r *Row) string { return r.Instance },
	"agent":        func(r *Row) string { return r.Agent },
	"model":        func(r *Row) string { return dash(r.Model) },
	"sample":       func(r *Row) string { return strconv.Itoa(r.Sample) },
	"outcome":      func(r *Row) string { return string(r.Outcome) },
	"reason":       func(r *Row) string { return dash(r.Reason) },
	"nonempty":     func(r *Row) string { return r.stage(&r.Stages.Nonempty) },
	"applies":      func(r *Row) string { return r.stage(&r.Stages.Applies) },
	"compiles":     func(r *Row) string { return r.stage(r.Stages.Compiles) },
	"passes":       func(r *Row) string { return r.stage(&r.Stages.Passes) },
	"tests_passed": func(r *Row) string { return tests(r.Tests, func(t *verdict.Tests) int { return t.Passed }) },
	"tests_total":  func(r *Row) string { return tests(r.Tests, func(t *verdict.Tests) int { return t.Total }) },
	"flags":        func(r *Row) string { return strings.Join(r.Flags, " ") },
	"address":      func(r *Row) string { return r.Address },
}

func dash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// unknown are outcomes of cells of whose patch nothing is known.
var unknown = []verdict.Word{verdict.CellInfra, verdict.CellProvider, verdict.CellSkipped, verdict.Excluded}

// stage is "-" where nothing is known.
func (r *Row) stage(reached *bool) string {
	switch {
	case reached == nil || slices.Contains(unknown, r.Outcome):
		return "-"
	case *reached:
		return "yes"
	}
	return "no"
}

func tests(t *verdict.Tests, of func(*verdict.Tests) int) string {
	if t == nil {
		return "-"
	}
	return strconv.Itoa(of(t))
}

// column is a row's value of any column; one that the cell lacks is "-".
func (r *Row) column(name string) string {
	if f := columns[name]; f != nil {
		return f(r)
	}
	if v, ok := r.extra[name]; ok {
		return v
	}
	return "-"
}

// A Filter chooses rows: terms joined by commas that must all hold, each COLUMN=VALUE|VALUE... or COLUMN!=VALUE|VALUE..., as in
// "outcome=failed|timeout,agent=mini". Blanks around a term are ignored. The zero Filter chooses all.
type Filter struct{ terms []term }

type term struct {
	column string
	not    bool
	values []string
}

// endColumns tell what became of a cell, all others which cell it is.
var endColumns = append([]string{"outcome", "reason", "nonempty", "applies", "compiles", "passes", "tests_passed", "tests_total", "flags"}, machineColumns...)

// TellsEnd says whether a column tells what became of a cell.
func TellsEnd(column string) bool { return slices.Contains(endColumns, column) }

// ParseFilter reads a filter.
func ParseFilter(s string) (Filter, error) {
	var f Filter
	if strings.TrimSpace(s) == "" {
		return f, nil
	}
	for _, part := range strings.Split(s, ",") {
		name, values, ok := strings.Cut(part, "=")
		t := term{column: strings.TrimSpace(name)}
		t.column, t.not = strings.CutSuffix(t.column, "!")
		t.column = strings.TrimSpace(t.column)
		if !ok || t.column == "" {
			return Filter{}, fmt.Errorf("filter term %q is not COLUMN=VALUE or COLUMN!=VALUE", strings.TrimSpace(part))
		}
		for _, v := range strings.Split(values, "|") {
			t.values = append(t.values, strings.TrimSpace(v))
		}
		if t.column == "outcome" {
			for _, v := range t.values {
				if !slices.Contains(verdict.Outcomes(), verdict.Word(v)) {
					return Filter{}, fmt.Errorf("filter term %q: %q is none of the outcomes %v", strings.TrimSpace(part), v, verdict.Outcomes())
				}
			}
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// Columns are the columns that the terms are on.
func (f Filter) Columns() []string {
	var names []string
	for _, t := range f.terms {
		names = append(names, t.column)
	}
	return names
}

func (t term) holds(r *Row) bool {
	if t.column == "flags" {
		return slices.ContainsFunc(t.values, func(v string) bool { return slices.Contains(r.Flags, v) }) != t.not
	}
	return slices.Contains(t.values, r.column(t.column)) != t.not
}

// names says whether the terms on which cell it is hold for r, ends whether those on what became of it do.
func (f Filter) names(r *Row) bool { return f.hold(r, false) }
func (f Filter) ends(r *Row) bool  { return f.hold(r, true) }

func (f Filter) hold(r *Row, ends bool) bool {
	for _, t := range f.terms {
		if TellsEnd(t.column) == ends && !t.holds(r) {
			return false
		}
	}
	return true
}
