package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"pbuild/engine/apply"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why ADDR",
		Short: "Say why a task would run, or what makes it be reused",
		Long: `Say what apply would do with a task and why: which field, file or input differs from its last run, old and new, and what of that comes from
further up. With -v every component of its key is shown, changed or not.`,
		Args:              oneAddress,
		ValidArgsFunction: a.completeAddresses,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, o, step, err := a.loadTask(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			id := o.Steps[step].Task
			p, err := s.decide(s.store, []task.ID{id}, nil)
			if err != nil {
				return err
			}
			if a.view.json {
				return a.whyJSON(p, id, address(o, step))
			}
			item := &p.Items[id]
			a.why(p, id, address(o, step), lastFailure(s.store, p.Addresses(id), item.Record, item.Decision == plan.Reuse))
			return nil
		},
	}
}

// decisionTexts say each decision as the answer to why.
var decisionTexts = map[plan.Decision]string{
	plan.Run:      "runs",
	plan.Maybe:    "may run: it is reused if what runs before it comes out as it did",
	plan.Reuse:    "is reused",
	plan.Unneeded: "is not needed",
}

// why tells it to people. failed is how the task's last run failed, if it did after the record that serves.
func (a *app) why(p *plan.Plan, id task.ID, addr string, failed *pastTask) {
	v, item := a.view, &p.Items[id]
	text := decisionTexts[item.Decision]
	if item.Decision == plan.Unneeded {
		text += ": " + whyUnneeded(p, id)
	}
	v.printf("%s %s\n", v.paint(bold, printable(addr)), text)
	reasons := p.Reasons(id)
	if len(reasons) == 0 && item.Decision == plan.Reuse {
		v.printf("  everything in its key is as it was when it ran\n")
	}
	for _, r := range reasons {
		v.printf("  %s\n", reasonWord(r))
		a.whyDetail(r)
	}
	if failed != nil && item.Decision == plan.Reuse {
		v.printf("  it has run again since and failed, which no record keeps: %s\n", printable(firstLine(failed.Detail)))
	}
	a.whyDepends(p, id)
	if item.Decision == plan.Run || item.Decision == plan.Maybe {
		a.whyUpstream(p, id)
	}
	if v.verbose {
		a.whyComponents(p, id)
	}
}

// whyUnneeded names what ended so that a condition does not hold: one of the task, or of what it cannot do without.
func whyUnneeded(p *plan.Plan, id task.ID) string {
	for {
		on, ended := unneededBy(p, id)
		switch {
		case on == task.None:
			return "a condition on it does not hold"
		case ended:
			return printable(member(p.Address(on)) + " ended with " + apply.Rejection(p.Items[on].Record))
		}
		id = on
	}
}

// unneededBy finds what makes a task unneeded, which has ended or is not needed itself.
func unneededBy(p *plan.Plan, id task.ID) (on task.ID, ended bool) {
	t := &p.Graph.Tasks[id]
	for _, c := range t.When {
		if r := p.Items[c.On].Record; r != nil && r.Has(c.Fact) == c.Not {
			return c.On, true
		}
	}
	for _, d := range t.Deps {
		if p.Items[d.On].Decision == plan.Unneeded && !d.Accepts(&task.End{}) {
			return d.On, false
		}
	}
	for _, c := range t.When {
		if p.Items[c.On].Decision == plan.Unneeded && !c.Not {
			return c.On, false
		}
	}
	return task.None, false
}

// whyDetail shows what differs, old above new, so that long values can be compared.
func (a *app) whyDetail(r plan.Reason) {
	v := a.view
	if r.Detail != "" {
		v.printf("    %s\n", v.paint(blue, printable(r.Detail)))
	}
	if r.Old != "" {
		v.printf("      %s\n", v.paint(red, "was "+printable(r.Old)))
	}
	if r.New != "" {
		v.printf("      %s\n", v.paint(green, "now "+printable(r.New)))
	}
}

// whyDepends lists what the task depends on, each with what becomes of it.
func (a *app) whyDepends(p *plan.Plan, id task.ID) {
	v := a.view
	seen := map[task.ID]bool{}
	var rows [][]string
	for _, d := range p.Graph.Tasks[id].Deps {
		if !seen[d.On] {
			seen[d.On] = true
			rows = append(rows, []string{p.Items[d.On].Decision.String(), printable(p.Address(d.On)), v.paint(dim, "as "+printable(d.Role))})
		}
	}
	if len(rows) > 0 {
		v.printf("  depends on:\n")
		columns(v.out, "    ", rows)
	}
}

// whyUpstream names what runs before the task, nearest first, down to where the cause is its own.
func (a *app) whyUpstream(p *plan.Plan, id task.ID) {
	v := a.view
	seen := map[task.ID]bool{id: true}
	queue := []task.ID{id}
	shown := 0
	for len(queue) > 0 && shown < 10 {
		at := queue[0]
		queue = queue[1:]
		for _, d := range p.Graph.Tasks[at].Deps {
			if seen[d.On] || p.Items[d.On].Decision > plan.Maybe {
				continue
			}
			seen[d.On] = true
			queue = append(queue, d.On)
			var words []string
			for _, r := range p.Reasons(d.On) {
				words = append(words, reasonLine(r))
			}
			if shown == 0 {
				v.printf("  what runs before it:\n")
			}
			shown++
			v.printf("    %s %s\n", printable(p.Address(d.On)), v.paint(dim, printable(clip(strings.Join(words, "; "), 120))))
		}
	}
	if len(queue) > 0 {
		v.printf("    and what these wait for\n")
	}
}

func (a *app) whyComponents(p *plan.Plan, id task.ID) {
	v := a.view
	v.printf("  its key:\n")
	for _, c := range p.Why(id) {
		switch {
		case c.Unknown:
			v.printf("    %s %s\n", v.paint(yellow, "?"), printable(c.Name)+" is not known yet")
		case c.Same():
			v.printf("      %s = %s\n", printable(c.Name), printable(c.New.Shown))
		default:
			if c.Old != nil {
				v.printf("    %s %s = %s\n", v.paint(red, "-"), printable(c.Name), printable(c.Old.Shown))
			}
			if c.New != nil {
				v.printf("    %s %s = %s\n", v.paint(green, "+"), printable(c.Name), printable(c.New.Shown))
			}
		}
	}
}

// A whyComponentJSON is one component of the key; old and new are null where there is none, or where the new one is not known yet.
type whyComponentJSON struct {
	Name    string  `json:"name"`
	Old     *string `json:"old"`
	New     *string `json:"new"`
	Unknown bool    `json:"unknown"`
	Changed bool    `json:"changed"`
}

func (a *app) whyJSON(p *plan.Plan, id task.ID, addr string) error {
	item := &p.Items[id]
	components := []whyComponentJSON{}
	for _, c := range p.Why(id) {
		j := whyComponentJSON{Name: c.Name, Unknown: c.Unknown, Changed: !c.Same()}
		if c.Old != nil {
			j.Old = &c.Old.Shown
		}
		if c.New != nil {
			j.New = &c.New.Shown
		}
		components = append(components, j)
	}
	return a.view.document(struct {
		FormatVersion int                `json:"format_version"`
		Address       string             `json:"address"`
		Kind          string             `json:"kind"`
		Decision      string             `json:"decision"`
		Key           *string            `json:"key"`
		Reasons       []reasonJSON       `json:"reasons"`
		Components    []whyComponentJSON `json:"components"`
		Depends       []string           `json:"depends"`
	}{formatVersion, addr, p.Graph.Tasks[id].Spec.Kind().Name, item.Decision.String(), keyOf(item), reasonsJSON(p.Reasons(id)), components, dependsOf(p, id)})
}

// dependsOf lists the addresses of what a task depends on, each once, in the order of its roles.
func dependsOf(p *plan.Plan, id task.ID) []string {
	out := []string{}
	seen := map[task.ID]bool{}
	for _, d := range p.Graph.Tasks[id].Deps {
		if !seen[d.On] {
			seen[d.On] = true
			out = append(out, p.Address(d.On))
		}
	}
	return out
}
