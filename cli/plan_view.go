package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// planSentence is a plan in one line. restored counts the outputs that are written back from the store; the tasks that made them are reused.
func planSentence(t plan.Tally, restored int) string {
	var parts []string
	for _, c := range []struct {
		n     int
		words string
	}{{t.Run, "to run"}, {t.Maybe, "that may run"}, {t.Reuse, "reused"}, {t.Unneeded, "not needed"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.words))
		}
	}
	if len(parts) == 0 {
		return "Plan: the workspace declares nothing that runs."
	}
	if t.Run+t.Maybe == 0 && restored > 0 {
		return "Plan: " + plural(restored, "output") + " to restore; " + strings.Join(parts, ", ") + "."
	}
	if restored > 0 {
		parts = append(parts, plural(restored, "output")+" to restore")
	}
	if t.Run+t.Maybe == 0 {
		return "Plan: nothing to do; " + strings.Join(parts, ", ") + "."
	}
	return "Plan: " + strings.Join(parts, ", ") + "."
}

// A blockSummary is one line of a plan: a declared block, and why its tasks run.
type blockSummary struct {
	block   string
	tally   [4]int // by decision
	reasons map[plan.Code]*reasonSummary
}

type reasonSummary struct {
	code    plan.Code
	tasks   int
	details map[string]int
}

// summarize groups a plan by block, in the order of the graph. A task that several objects share counts for the first.
func summarize(p *plan.Plan) []*blockSummary {
	byBlock := map[string]*blockSummary{}
	var out []*blockSummary
	counted := make([]bool, len(p.Items))
	for i := range p.Graph.Objects {
		o := &p.Graph.Objects[i]
		for _, s := range o.Steps {
			if counted[s.Task] || !p.Wanted[s.Task] {
				continue
			}
			counted[s.Task] = true
			b := byBlock[o.Block]
			if b == nil {
				b = &blockSummary{block: o.Block, reasons: map[plan.Code]*reasonSummary{}}
				byBlock[o.Block] = b
				out = append(out, b)
			}
			item := &p.Items[s.Task]
			b.tally[item.Decision]++
			if item.Decision <= plan.Maybe || len(item.Restore) > 0 {
				b.count(p.Reasons(s.Task))
			}
		}
	}
	return out
}

// count counts a task once under each code of its reasons, of which it may have one for every component of its key.
func (b *blockSummary) count(rs []plan.Reason) {
	for i, r := range rs {
		s := b.reasons[r.Code]
		if s == nil {
			s = &reasonSummary{code: r.Code, details: map[string]int{}}
			b.reasons[r.Code] = s
		}
		if !slices.ContainsFunc(rs[:i], func(before plan.Reason) bool { return before.Code == r.Code }) {
			s.tasks++
		}
		if len(s.details) < 100 || s.details[r.Detail] > 0 { // a summary needs the common details, not every file
			s.details[r.Detail]++
		}
	}
}

// why is a block's reasons, the most common first, each with its most common detail.
func (b *blockSummary) why() string {
	rs := slices.Collect(maps.Values(b.reasons))
	slices.SortFunc(rs, func(x, y *reasonSummary) int {
		return cmp.Or(cmp.Compare(y.tasks, x.tasks), cmp.Compare(x.code, y.code))
	})
	var parts []string
	for _, r := range rs[:min(3, len(rs))] {
		parts = append(parts, r.text())
	}
	if len(rs) > 3 {
		parts = append(parts, "...")
	}
	return strings.Join(parts, "; ")
}

func (r *reasonSummary) text() string {
	text := reasonWords[r.code]
	if r.code == plan.NeverFinished && r.details[""] < r.tasks {
		text = "failed last time"
	}
	if r.tasks > 1 {
		text = fmt.Sprintf("%d %s", r.tasks, text)
	}
	top := ""
	for d, k := range r.details {
		if d != "" && (top == "" || k > r.details[top] || k == r.details[top] && d < top) {
			top = d
		}
	}
	if top == "" || r.code == plan.New {
		return text
	}
	if len(r.details) > 1 {
		return text + " (" + top + ", ...)"
	}
	return text + " (" + top + ")"
}

// reasonWords say each code in words that stand after a count.
var reasonWords = map[plan.Code]string{
	plan.New:             "never ran",
	plan.SpecChanged:     "declared otherwise",
	plan.InputChanged:    "input changed",
	plan.UpstreamChanged: "upstream changed",
	plan.OutputMissing:   "output missing",
	plan.Restore:         "output to restore",
	plan.Expired:         "expired",
	plan.Replaced:        "asked to run again",
	plan.Resampled:       "to be sampled again",
	plan.Salt:            "salt changed",
	plan.KindVersion:     "pbuild's own rules changed",
	plan.Isolation:       "record of too weak an isolation",
	plan.NeverFinished:   "never finished",
	plan.UpstreamUnknown: "waits for what runs before it",
}

// reasonWord says one reason in words.
func reasonWord(r plan.Reason) string {
	if r.Code == plan.NeverFinished && r.Detail != "" {
		return "failed last time"
	}
	return reasonWords[r.Code]
}

// showPlan prints a plan: its blocks with counts and causes, in verbose every task that may run, and the sentence.
func (v *view) showPlan(p *plan.Plan, all bool) {
	t := p.Counts().Tally
	if !v.quiet {
		if v.verbose || all {
			v.showTasks(v.out, v.color, p, all)
		} else {
			v.showBlocks(p)
		}
	}
	v.printf("%s\n", v.paint(bold, planSentence(t, restores(p))))
}

func (v *view) showBlocks(p *plan.Plan) {
	var rows [][]string
	idle := 0
	for _, b := range summarize(p) {
		if b.tally[plan.Run]+b.tally[plan.Maybe] == 0 && len(b.reasons) == 0 {
			idle++
			continue
		}
		rows = append(rows, []string{v.paint(bold, b.block), v.countCell(b.tally, plan.Run, "run", green),
			v.countCell(b.tally, plan.Maybe, "maybe", yellow), v.countCell(b.tally, plan.Reuse, "reuse", dim), v.paint(dim, printable(b.why()))})
	}
	if len(rows) == 0 {
		return
	}
	columns(v.out, "  ", rows)
	if idle > 0 {
		v.printf("  %s\n", v.paint(dim, "and "+plural(idle, "block")+" with nothing to do"))
	}
	v.printf("\n")
}

func (v *view) countCell(t [4]int, d plan.Decision, word string, s style) string {
	if t[d] == 0 {
		return ""
	}
	return v.paint(s, fmt.Sprintf("%d %s", t[d], word))
}

// showTasks prints a line for every task that may run, with all also those that are reused.
func (v *view) showTasks(w io.Writer, color bool, p *plan.Plan, all bool) {
	tones := map[plan.Decision]style{plan.Run: green, plan.Maybe: yellow, plan.Reuse: dim, plan.Unneeded: dim}
	waits := waitsFor(p)
	for i := range p.Items {
		item := &p.Items[i]
		if !p.Wanted[i] || item.Decision > plan.Maybe && !all && len(item.Restore) == 0 {
			continue
		}
		word := fmt.Sprintf("%-8s", item.Decision)
		first := waits[task.ID(i)]
		if first != "" {
			first = "  " + paint(color, dim, "waits for "+printable(first))
		}
		fmt.Fprintf(w, "  %s  %s%s\n", paint(color, tones[item.Decision], word), printable(p.Address(task.ID(i))), first)
		if first == "" && (item.Decision <= plan.Maybe || len(item.Restore) > 0) {
			for _, r := range p.Reasons(task.ID(i)) {
				fmt.Fprintf(w, "            %s\n", paint(color, dim, printable(reasonLine(r))))
			}
		}
	}
}

// waitsFor names for each task that has no reason of its own, and only waits for what runs before it, the first task of that chain which has one:
// of one edited file all that follows has the same.
func waitsFor(p *plan.Plan) map[task.ID]string {
	out := map[task.ID]string{}
	first := map[string]string{} // by address
	for i := range p.Items {     // what a task waits for stands before it
		id := task.ID(i)
		if !p.Wanted[i] || p.Items[i].Decision > plan.Maybe {
			continue
		}
		rs := p.Reasons(id)
		if len(rs) != 1 || rs[0].Code != plan.UpstreamUnknown || rs[0].Detail == "" {
			continue
		}
		root := rs[0].Detail
		if further := first[root]; further != "" {
			root = further
		}
		out[id], first[p.Address(id)] = root, root
	}
	return out
}

// reasonLine is one reason for people: code, what differs, old and new.
func reasonLine(r plan.Reason) string {
	s := string(r.Code)
	if r.Code == plan.NeverFinished && r.Detail != "" {
		s += ": failed last time"
	}
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	switch {
	case r.Old != "" && r.New != "":
		s += ": " + r.Old + " -> " + r.New
	case r.New != "":
		s += ": now " + r.New
	case r.Old != "":
		s += ": was " + r.Old
	}
	return s
}
