// Package report makes tables of verdicts: candidate lines, whose counts sum to their cells, and a row a cell. Rates name their denominators.
//
// It promises that a default table is a function of verdicts and isolation alone, byte for byte: it holds no time, no cost and nothing of the machine but in
// columns that were asked for. It computes no verdict.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/verdict"
)

// RendererVersion is raised by hand when a table may look different for equal cells. It is in the key of reports.
const RendererVersion = 3

// A Cell is one line of a matrix as it ended.
type Cell struct {
	Instance, Agent, Model string // Model "" where the agent takes none
	Sample                 int
	Address                string
	Outcome                verdict.CellOutcome
	Extra                  map[string]string // further columns: of the machine, and provenance
}

// Meta is what a report says besides its cells, and how it is to look.
type Meta struct {
	Name      string
	Of        string // "matrix.main"
	Gated     bool
	Isolation string // the lowest of all runs behind the cells; "" where no command ran
	Columns   []string
	By        []string
	Filter    string
}

// A Table is a report before it is rendered. Its JSON is that of `report NAME --json`.
type Table struct {
	FormatVersion int    `json:"format_version"`
	Report        string `json:"report"`
	Of            string `json:"of"`
	Gated         bool   `json:"gated"`
	Isolation     string `json:"isolation"`
	Candidates    []Line `json:"candidates"`
	Rows          []Row  `json:"rows"`

	meta Meta
	all  []Row // those that the lines count, whatever became of them
}

// A Line counts the cells of one candidate: an agent with a model, and the values of the `by` columns.
type Line struct {
	Agent        string            `json:"agent"`
	Model        *string           `json:"model"`
	Group        map[string]string `json:"group,omitempty"`
	Instances    int               `json:"instances"` // excluded ones too
	Excluded     int               `json:"excluded"`  // cells
	Cells        int               `json:"cells"`     // all counts from resolved to flaky, and excluded, sum to this
	Patches      int               `json:"patches"`   // not empty
	LocalizedAny int               `json:"localized_any"`
	LocalizedAll int               `json:"localized_all"`
	Applied      int               `json:"applied"`
	Compiled     *int              `json:"compiled"` // null: no cell was built
	Resolved     int               `json:"resolved"`
	Failed       int               `json:"failed"`
	CompileFail  int               `json:"compile_failed"`
	DoesNotApply int               `json:"does_not_apply"`
	Empty        int               `json:"empty"`
	Missing      int               `json:"missing"`
	Timeout      int               `json:"timeout"`
	StepLimit    int               `json:"step_limit"`
	WallLimit    int               `json:"wall_limit"`
	CostLimit    int               `json:"cost_limit"`
	FormatError  int               `json:"format_error"`
	AgentCrash   int               `json:"agent_crash"`
	Provider     int               `json:"provider"`
	Infra        int               `json:"infra"`
	Skipped      int               `json:"skipped"`
	Flaky        int               `json:"flaky"`
	Flagged      int               `json:"flagged"`
}

// A Row is one cell.
type Row struct {
	Instance string            `json:"instance"`
	Agent    string            `json:"agent"`
	Model    *string           `json:"model"`
	Sample   int               `json:"sample"`
	Outcome  verdict.Word      `json:"outcome"`
	Reason   *string           `json:"reason"`
	Stages   verdict.Stages    `json:"stages"`
	Tests    *verdict.Tests    `json:"tests"`
	Flags    []string          `json:"flags"`
	Address  string            `json:"address"`
	Columns  map[string]string `json:"columns,omitempty"` // those of meta that no other field holds

	extra map[string]string
}

// Build filters and counts. The cells' order is that of the rows. A filter's terms on what names a cell choose rows and lines; its terms on what became of a
// cell choose rows only, so that no denominator depends on an outcome. A column that a cell lacks is "-". An error is a mistake in
// the filter.
func Build(cells []Cell, meta Meta) (*Table, error) {
	filter, err := ParseFilter(meta.Filter)
	if err != nil {
		return nil, err
	}
	t := &Table{FormatVersion: 1, Report: meta.Name, Of: meta.Of, Gated: meta.Gated, Isolation: meta.Isolation, Candidates: []Line{}, Rows: []Row{}, meta: meta}
	lines := map[string]*tally{}
	for i := range cells {
		r := rowOf(&cells[i], meta)
		if !filter.names(&r) {
			continue
		}
		key := lineKey(&r, meta.By)
		if lines[key] == nil {
			lines[key] = newTally(&r, meta.By)
		}
		lines[key].add(&r, &cells[i].Outcome)
		t.all = append(t.all, r)
		if filter.ends(&r) {
			t.Rows = append(t.Rows, r)
		}
	}
	for _, l := range lines {
		t.Candidates = append(t.Candidates, l.finish())
	}
	slices.SortFunc(t.Candidates, func(a, b Line) int { return cmp.Compare(a.sortKey(meta.By), b.sortKey(meta.By)) })
	return t, nil
}

func rowOf(c *Cell, meta Meta) Row {
	o := &c.Outcome
	r := Row{Instance: c.Instance, Agent: c.Agent, Model: optional(c.Model), Sample: c.Sample, Outcome: o.Outcome, Reason: optional(o.Reason),
		Stages: o.Stages, Tests: o.Tests, Flags: append([]string{}, o.Flags...), Address: c.Address, extra: c.Extra}
	for _, name := range slices.Concat(meta.Columns, meta.By) {
		if v, ok := c.Extra[name]; ok && columns[name] == nil {
			if r.Columns == nil {
				r.Columns = map[string]string{}
			}
			r.Columns[name] = v
		}
	}
	return r
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// A tally is a Line that is being counted.
type tally struct {
	Line
	seen map[string]bool
}

func newTally(r *Row, by []string) *tally {
	l := &tally{Line: Line{Agent: r.Agent, Model: r.Model}, seen: map[string]bool{}}
	for _, name := range by {
		if l.Group == nil {
			l.Group = map[string]string{}
		}
		l.Group[name] = r.column(name)
	}
	return l
}

func lineKey(r *Row, by []string) string {
	return newTally(r, by).sortKey(by)
}

// sortKey orders lines bytewise by agent, model and group. No part can hold a zero byte, as all come from HCL or JSON text that is printed; if
// one did, lines would only stand in another order.
func (l *Line) sortKey(by []string) string {
	parts := []string{l.Agent, ""}
	if l.Model != nil {
		parts[1] = *l.Model
	}
	for _, name := range by {
		parts = append(parts, l.Group[name])
	}
	return strings.Join(parts, "\x00")
}

func (l *tally) add(r *Row, o *verdict.CellOutcome) {
	if !l.seen[r.Instance] {
		l.seen[r.Instance] = true
		l.Instances++
	}
	l.Cells++
	*l.counter(o.Outcome)++
	count := func(n *int, on bool) {
		if on {
			*n++
		}
	}
	count(&l.Patches, o.Stages.Nonempty)
	count(&l.LocalizedAny, o.LocalizedAny)
	count(&l.LocalizedAll, o.LocalizedAll)
	count(&l.Applied, o.Stages.Applies)
	count(&l.Flagged, len(o.Flags) > 0)
	if c := o.Stages.Compiles; c != nil {
		if l.Compiled == nil {
			l.Compiled = new(int)
		}
		count(l.Compiled, *c)
	}
}

// counter is where an outcome is counted.
func (l *Line) counter(w verdict.Word) *int {
	switch w {
	case verdict.Resolved:
		return &l.Resolved
	case verdict.Unresolved:
		return &l.Failed
	case verdict.CompileFailed:
		return &l.CompileFail
	case verdict.DoesNotApply:
		return &l.DoesNotApply
	case verdict.Empty:
		return &l.Empty
	case verdict.Missing:
		return &l.Missing
	case verdict.CellTimeout:
		return &l.Timeout
	case verdict.StepLimit:
		return &l.StepLimit
	case verdict.WallLimit:
		return &l.WallLimit
	case verdict.CostLimit:
		return &l.CostLimit
	case verdict.FormatError:
		return &l.FormatError
	case verdict.AgentCrash:
		return &l.AgentCrash
	case verdict.CellProvider:
		return &l.Provider
	case verdict.CellInfra:
		return &l.Infra
	case verdict.Excluded:
		return &l.Excluded
	case verdict.CellSkipped:
		return &l.Skipped
	case verdict.CellFlaky:
		return &l.Flaky
	}
	panic(fmt.Sprintf("pbuild bug: outcome %q is not in the list", w))
}

// Count is how many cells ended in w.
func (l *Line) Count(w verdict.Word) int { return *l.counter(w) }

// finish checks the invariant of a line: its counts sum to its cells.
func (l *tally) finish() Line {
	sum := 0
	for _, w := range verdict.Outcomes() {
		sum += l.Count(w)
	}
	if sum != l.Cells {
		panic(fmt.Sprintf("pbuild bug: %d outcomes in %d cells of %s", sum, l.Cells, l.Agent))
	}
	return l.Line
}
