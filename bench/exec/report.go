package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pbuild/bench/kind"
	"pbuild/bench/report"
	"pbuild/bench/verdict"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// Reports writes the files of reports.
type Reports struct {
	Dir   string // the workspace
	Blobs task.Blobs
}

func (r *Reports) Run(_ context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.ReportSpec)
	table, err := Table(spec, a.Input, r.Blobs)
	if err != nil {
		return task.Outcome{}, err
	}
	content, err := report.Render(table, spec.Format)
	if err != nil {
		return task.Outcome{Status: task.Failed, Reason: err.Error()}, nil
	}
	name := filepath.Join(r.Dir, filepath.FromSlash(spec.File))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return task.Outcome{}, err
	}
	if err := replaceFile(name, content); err != nil {
		return task.Outcome{}, err
	}
	out, err := stored(r.Blobs, spec.File, content)
	out.Mode = 0o644
	return task.Outcome{Status: task.OK, Outputs: []task.Output{out}}, err
}

// replaceFile writes aside and renames, so that a reader sees the old report or the new one.
func replaceFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where the rename succeeded
	if _, err = f.Write(content); err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// Table makes a report's table of how its cells ended. input tells that by role; what never ran is nil.
func Table(spec *kind.ReportSpec, input func(role string) *task.Input, blobs task.Blobs) (*report.Table, error) {
	meta := report.Meta{Name: spec.Name, Of: spec.Of, Gated: spec.Gated, Columns: spec.Columns, By: spec.By, Filter: spec.Filter}
	lowest := lowestLevel{}
	var cells []report.Cell
	for _, c := range spec.Cells {
		cell := report.Cell{Instance: c.Instance, Agent: c.Agent, Model: c.Model, Sample: c.Sample, Address: c.Address}
		var gates []admission
		for _, name := range c.Admits {
			gates = append(gates, admission{input(c.AdmitRole(name)), name})
		}
		if c.Gate != "" {
			gates = append(gates, admission{input(c.Gate), ""})
		}
		var err error
		if cell.Outcome, err = cellOutcome(input(c.Outcome), gates, blobs); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
		cell.Extra = machine(input(c.Outcome), &cell.Outcome)
		for name, v := range c.Provenance {
			cell.Extra[name] = v
		}
		lowest.add(cell.Outcome.Isolation)
		cells = append(cells, cell)
	}
	meta.Isolation = lowest.String()
	return report.Build(cells, meta)
}

// A cost is what a cell took, the evidence of its outcome. It depends on the machine, and so is in no output.
type cost struct {
	Seconds float64 `json:"seconds"` // of its own tasks, from sample to score
	USD     float64 `json:"usd,omitempty"`
	Node    string  `json:"node,omitempty"` // several are joined by blanks
}

// costOf adds up what the tasks recorded that a cell shares with nothing but equal cells.
func costOf(a *task.Attempt) cost {
	var c cost
	nodes := map[string]bool{}
	for i := range a.Inputs {
		in := &a.Inputs[i]
		if !standsOn(in) || in.Role == "base" || in.Role == "gold" || in.Role == kind.GoldPaths {
			continue
		}
		c.Seconds += in.Record.Elapsed.Seconds()
		c.USD += in.Record.USD
		if in.Record.Node != "" {
			nodes[in.Record.Node] = true
		}
	}
	c.Node = strings.Join(slices.Sorted(maps.Keys(nodes)), " ")
	return c
}

// machine is the columns of a cell that tell of the machine; what is not known is left out.
func machine(in *task.Input, o *verdict.CellOutcome) map[string]string {
	out := map[string]string{}
	if o.Isolation != "" {
		out["isolation"] = o.Isolation
	}
	var c cost
	if in == nil || in.Status != task.OK || json.Unmarshal(in.Record.Evidence, &c) != nil {
		return out
	}
	out["seconds"] = strconv.FormatFloat(c.Seconds, 'f', 1, 64)
	if c.USD > 0 {
		out["usd"] = strconv.FormatFloat(c.USD, 'f', 4, 64)
	}
	if c.Node != "" {
		out["node"] = c.Node
	}
	return out
}

// An admission is the verdict of a gate that a cell waits for: of its own, or of one, which has its name, that is to admit its instance's row.
type admission struct {
	verdict *task.Input // nil where it never ran
	of      string
}

// cellOutcome is what became of one cell: its outcome, else that a gate left it out, else what kept it from coming to an end.
func cellOutcome(in *task.Input, gates []admission, blobs task.Blobs) (verdict.CellOutcome, error) {
	var c verdict.CellOutcome
	if in != nil && in.Status == task.OK {
		o, ok := in.Record.Find(kind.OutcomeBlob)
		if !ok {
			return c, fmt.Errorf("its record holds no outcome")
		}
		return c, get(blobs, o.Digest, &c)
	}
	ends := []*task.Input{in}
	for _, g := range gates {
		gate := g.verdict
		ends = append(ends, gate)
		if gate == nil || gate.Status != task.OK || gate.Record.Has(kind.Admitted) {
			continue
		}
		c = verdict.ExcludedCell(verdict.GateOutcome(gate.Record.Outcome.Outcome), gate.Record.Reason)
		if g.of != "" {
			c.Reason = "not admitted by " + g.of
		}
		if o, ok := gate.Record.Find(kind.Evidence); ok {
			var e verdict.Evidence
			if err := get(blobs, o.Digest, &e); err != nil {
				return c, err
			}
			c.Isolation = e.Isolation
		}
		return c, nil
	}
	for _, x := range ends {
		if x != nil && x.Status != "" && x.Status != task.OK {
			return verdict.Undone(x.Status, x.Cause), nil
		}
	}
	return verdict.Undone(task.Cancelled, "it did not run"), nil
}

// A lowestLevel is the lowest isolation of what was added; "" where nothing ran.
type lowestLevel struct {
	level run.Isolation
	any   bool
}

func (l *lowestLevel) add(name string) {
	if i, ok := run.ParseIsolation(name); ok && (!l.any || i < l.level) {
		l.level, l.any = i, true
	}
}

func (l *lowestLevel) String() string {
	if !l.any {
		return ""
	}
	return l.level.String()
}

// standsOn says whether an attempt is made of what an input gives: what only comes before it is evidence of something else.
func standsOn(in *task.Input) bool { return in.Use != task.UseOrder && in.Record != nil }

// lowest is the lowest isolation of the runs that an attempt stands on and of those that it makes itself, "" where none ran.
func lowest(a *task.Attempt, own ...string) string {
	var l lowestLevel
	for _, name := range own {
		l.add(name)
	}
	for i := range a.Inputs {
		if in := &a.Inputs[i]; standsOn(in) {
			l.add(in.Record.Isolation)
		}
	}
	return l.String()
}
