package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pbuild/bench/kind"
	"pbuild/engine/apply"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// finish ends the stream, shows the summary and returns the exit code.
func (ap *applying) finish(sum *apply.Summary) Exit {
	excluded := ap.excluded(sum)
	code := exitOf(sum)
	more := ap.partial && code == ExitDone
	if more {
		ap.stream.part(sum, excluded, ap.app.cfg.Clock())
	}
	if ap.before != nil {
		ap.addBefore(sum)
	}
	if ap.sum = sum; more {
		return code
	}
	ap.stream.summary(sum, excluded, code, ap.app.cfg.Clock())
	v := ap.app.view
	w, color := v.summary()
	if failed := ap.roots(sum); len(failed) > 0 && (sum.Run > screenful || ap.untold) {
		fmt.Fprintf(w, "%s\n", paint(color, red, "Failed:"))
		for _, id := range failed[:min(10, len(failed))] {
			fmt.Fprintf(w, "  %s: %s\n", printable(ap.address(id)), printable(firstLine(ap.cause(&sum.Ends[id], id))))
		}
		if n := len(failed) - 10; n > 0 {
			fmt.Fprintf(w, "  and %d more\n", n)
		}
	}
	fmt.Fprintf(w, "%s\n", paint(color, bold, summarySentence(sum, excluded)))
	if v.quiet {
		return code
	}
	for _, line := range endings(ap.plan, func(id task.ID) *task.Record { return sum.Ends[id].Record }) {
		fmt.Fprintf(w, "%s\n", line)
	}
	if t := timeSentence(ap.progress.spent); t != "" {
		fmt.Fprintf(w, "%s\n", t)
	}
	if len(ap.near) > 0 {
		fmt.Fprintf(w, "Near their time limit: %s, the first %s.\n", plural(len(ap.near), "task"), printable(ap.near[0]))
	}
	if ap.drift > 0 {
		fmt.Fprintf(w, "%s made again came out different (state_drift); `pbuild show` has both.\n", plural(ap.drift, "state"))
	}
	if files := reportFiles(ap.plan, func(id task.ID) bool { return sum.Ends[id].Status == task.OK }); len(files) > 0 {
		fmt.Fprintf(w, "Reports: %s.\n", strings.Join(files, ", "))
	}
	if ap.stream.err != nil {
		fmt.Fprintf(v.err, "note: the event stream could not be written whole: %v\n", ap.stream.err)
	}
	return code
}

// addBefore adds what ran to make rows: to its user it is one apply. What it made is no reuse of an earlier one's.
func (ap *applying) addBefore(sum *apply.Summary) {
	b := ap.before
	sum.Run, sum.Restored, sum.Flaky, sum.Wall = sum.Run+b.sum.Run, sum.Restored+b.sum.Restored, sum.Flaky+b.sum.Flaky, sum.Wall+b.sum.Wall
	if b.sum.USD != nil {
		usd := *b.sum.USD
		if sum.USD != nil {
			usd += *sum.USD
		}
		sum.USD = &usd
	}
	ap.drift += b.drift
	ap.near = append(slices.Clip(b.near), ap.near...)
	if ap.stream.err == nil {
		ap.stream.err = b.stream.err
	}
	for kind, d := range b.progress.spent {
		ap.progress.spent[kind] += d
	}
	ran := map[string]bool{}
	for ; b != nil; b = b.before {
		for i := range b.plan.Items {
			if b.plan.Wanted[i] && b.plan.Items[i].Decision <= plan.Maybe {
				ran[b.address(task.ID(i))] = true
			}
		}
	}
	for i := range ap.plan.Items {
		if ap.plan.Wanted[i] && ap.plan.Items[i].Decision == plan.Reuse && ran[ap.address(task.ID(i))] {
			sum.Reuse--
		}
	}
}

// screenful is how many tasks may run before failures, which were shown as they happened, are named again at the end.
const screenful = 20

// exitOf is the code that a summary asks for.
func exitOf(sum *apply.Summary) Exit {
	var due []Exit
	if sum.Interrupted {
		due = append(due, ExitInterrupted)
	}
	if sum.Failed > 0 {
		due = append(due, ExitFailed)
	}
	if sum.Infra+sum.Provider > 0 {
		due = append(due, ExitWorld)
	}
	return worst(due...)
}

// roots are the tasks that failed themselves, in the order of the graph, but for what a gate made an outcome.
func (ap *applying) roots(sum *apply.Summary) []task.ID {
	var out []task.ID
	for i := range sum.Ends {
		e := &sum.Ends[i]
		if !ap.plan.Wanted[i] || e.Record == nil || sum.Absorbed[task.ID(i)] {
			continue
		}
		if e.Status != task.OK && e.Status != "" || rejected(&ap.graph.Tasks[i], e.Record) {
			out = append(out, task.ID(i))
		}
	}
	return out
}

// cause is the one line of a failure, or why a gate rejected.
func (ap *applying) cause(e *task.End, id task.ID) string {
	if rejected(&ap.graph.Tasks[id], e.Record) {
		return apply.Rejection(e.Record)
	}
	return e.Cause
}

// excluded counts the cells that a gate did not admit: their last step is unneeded.
func (ap *applying) excluded(sum *apply.Summary) int {
	n := 0
	for i := range ap.graph.Objects {
		o := &ap.graph.Objects[i]
		if o.Class != task.ClassCandidate {
			continue
		}
		last := o.Steps[len(o.Steps)-1].Task
		if e := &sum.Ends[last]; ap.plan.Wanted[last] && e.Record == nil && e.Status == "" && judged(ap.graph, o, func(id task.ID) bool { return sum.Ends[id].Record != nil || sum.Ends[id].Status == "" }) {
			n++
		}
	}
	return n
}

func summarySentence(sum *apply.Summary, excluded int) string {
	parts := []string{fmt.Sprintf("%d ran", sum.Run), fmt.Sprintf("%d reused", sum.Reuse)}
	for _, c := range []struct {
		n    int
		word string
	}{{sum.Restored, "restored"}, {sum.Failed, "failed"}, {sum.Infra, "infra"}, {sum.Provider, "provider"}, {sum.Cancelled, "cancelled"},
		{sum.Skipped, "skipped"}, {sum.Unneeded, "not needed"}, {excluded, "excluded"}, {sum.Flaky, "flaky"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
		}
	}
	verb := "Done"
	if sum.Interrupted {
		verb = "Interrupted"
	}
	return fmt.Sprintf("%s in %s: %s.", verb, seconds(sum.Wall), strings.Join(parts, ", "))
}

// timeSentence says where the time of the tasks that ran went, by kind.
func timeSentence(spent map[string]time.Duration) string {
	var total time.Duration
	for _, d := range spent {
		total += d
	}
	if total < 100*time.Millisecond {
		return ""
	}
	kinds := slices.Collect(maps.Keys(spent))
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(spent[b], spent[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, k := range kinds[:min(4, len(kinds))] {
		if spent[k]*100 >= total {
			parts = append(parts, fmt.Sprintf("%s %s (%d%%)", k, seconds(spent[k]), spent[k]*100/total))
		}
	}
	return fmt.Sprintf("Tasks took %s in all: %s.", seconds(total), strings.Join(parts, ", "))
}

// reportFiles are the files of the reports that the plan wants and that are written.
func reportFiles(p *plan.Plan, written func(task.ID) bool) []string {
	var out []string
	for i := range p.Graph.Tasks {
		if r, ok := p.Graph.Tasks[i].Spec.(*kind.ReportSpec); ok && p.Wanted[i] && written(task.ID(i)) {
			out = append(out, r.File)
		}
	}
	return out
}

// excludedCells counts the cells that the plan knows to be excluded by their gate.
func excludedCells(p *plan.Plan) int {
	n := 0
	for i := range p.Graph.Objects {
		o := &p.Graph.Objects[i]
		if o.Class != task.ClassCandidate {
			continue
		}
		last := o.Steps[len(o.Steps)-1].Task
		if p.Wanted[last] && p.Items[last].Decision == plan.Unneeded && judged(p.Graph, o, func(id task.ID) bool { return p.Items[id].Record != nil || p.Items[id].Decision == plan.Unneeded }) {
			n++
		}
	}
	return n
}

// judged says whether every gate that a cell waits for has come to a verdict, or was not needed for one: what could not be judged is not excluded.
func judged(g *task.Graph, o *task.Object, settled func(task.ID) bool) bool {
	for _, step := range o.Steps {
		for _, c := range g.Tasks[step.Task].When {
			if c.Fact == kind.Admitted && !settled(c.On) {
				return false
			}
		}
	}
	return true
}

// nullSummary is the summary of an apply that had nothing to do.
func nullSummary(t plan.Tally, wall time.Duration) *apply.Summary {
	return &apply.Summary{Reuse: t.Reuse, Unneeded: t.Unneeded, Wall: wall}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
