package cli

import (
	"fmt"
	"strings"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// namedAtEnd is how many of a kind the end of an apply names in one line.
const namedAtEnd = 3

// leavesOut says whether r is the verdict of a gate that excludes what it rejects, and did.
func leavesOut(t *task.Task, r *task.Record) bool {
	v, ok := t.Spec.(*kind.VerdictSpec)
	return ok && v.OnReject == "exclude" && r != nil && r.Status == task.OK && !r.Has(kind.Admitted)
}

// member is the address of what a gate's verdict is about.
func member(verdict string) string { return strings.TrimSuffix(verdict, "/verdict") }

// endings are the lines at the end of an apply that say what came out and is no failure. record is how a task ended; nil where nothing is known.
func endings(p *plan.Plan, record func(task.ID) *task.Record) []string {
	return append(excludedLine(p, record), controlLine(p, record)...)
}

// excludedLine names the first of what gates excluded.
func excludedLine(p *plan.Plan, record func(task.ID) *task.Record) []string {
	var names []string
	n := 0
	for i := range p.Graph.Tasks {
		id := task.ID(i)
		if r := record(id); p.Wanted[i] && leavesOut(&p.Graph.Tasks[i], r) {
			if n++; n <= namedAtEnd {
				names = append(names, printable(member(p.Address(id))+": "+r.Outcome.Outcome))
			}
		}
	}
	if n == 0 {
		return nil
	}
	line := "Excluded: " + strings.Join(names, ", ")
	if more := n - len(names); more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return []string{line + "."}
}

// controlLine tells of oracle cells that are not resolved. A nop cell never is: it is empty.
func controlLine(p *plan.Plan, record func(task.ID) *task.Record) []string {
	cells, wrong, first := 0, 0, ""
	for i := range p.Graph.Objects {
		o := &p.Graph.Objects[i]
		if o.Class != task.ClassCandidate {
			continue
		}
		last := len(o.Steps) - 1
		r := record(o.Steps[last].Task)
		s, ok := p.Graph.Tasks[o.Steps[0].Task].Spec.(*kind.SampleSpec)
		if !ok || s.Agent != "oracle" || !p.Wanted[o.Steps[last].Task] || r == nil || r.Status != task.OK {
			continue // also what is excluded or skipped
		}
		word := verdict.Word(r.Outcome.Outcome)
		if word == verdict.CellInfra || word == verdict.CellProvider {
			continue
		}
		cells++
		if word == verdict.Resolved {
			continue
		}
		if wrong++; wrong == 1 {
			first = printable(strings.TrimSuffix(address(o, last), "/outcome") + ": " + string(word))
		}
	}
	if wrong == 0 {
		return nil
	}
	are := "are"
	if wrong == 1 {
		are = "is"
	}
	return []string{fmt.Sprintf("Controls: %d of %s %s not resolved, such as %s; the benchmark or its environment is wrong.", wrong, plural(cells, "oracle cell"), are, first)}
}
