package cli

import (
	"github.com/spf13/cobra"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func (a *app) listCommand() *cobra.Command {
	var deps bool
	cmd := &cobra.Command{
		Use:               "list [SELECTOR...]",
		Short:             "List the addresses of tasks",
		Long:              "List the addresses of tasks, one a line. With -v also each task's kind and what it depends on.\n\nSee `pbuild help selectors`.",
		ValidArgsFunction: a.completeSelectors,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, c, err := a.loadChoice(cmd, args)
			if err != nil {
				return err
			}
			defer s.close()
			listed := listedSteps(s.graph, c)
			if deps {
				listed = withDependencies(s.graph, listed)
			}
			if a.view.json {
				return a.listJSON(s, listed)
			}
			for _, l := range listed {
				a.view.printf("%s\n", printable(address(l.object, l.step)))
				if a.view.verbose {
					t := &s.graph.Tasks[l.object.Steps[l.step].Task]
					a.view.printf("    %s\n", a.view.paint(dim, t.Spec.Kind().Name))
					for _, d := range t.Deps {
						a.view.printf("    %s\n", a.view.paint(dim, "<- "+printable(s.address(d.On)+" as "+d.Role)))
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&deps, "deps", false, "also what they depend on, however far")
	return cmd
}

// A listed step is a task under the address that it was asked for by.
type listed struct {
	object *task.Object
	step   int
}

func listedSteps(g *task.Graph, c *choice) []listed {
	var out []listed
	if c == nil {
		for i := range g.Objects {
			for k := range g.Objects[i].Steps {
				out = append(out, listed{&g.Objects[i], k})
			}
		}
		return out
	}
	for _, o := range c.objects {
		for _, k := range o.steps {
			out = append(out, listed{&g.Objects[o.object], k})
		}
	}
	return out
}

// withDependencies adds what the listed tasks depend on, in the graph's order, after them.
func withDependencies(g *task.Graph, l []listed) []listed {
	shown := make(map[task.ID]bool, len(l))
	ids := make([]task.ID, 0, len(l))
	for _, one := range l {
		id := one.object.Steps[one.step].Task
		shown[id] = true
		ids = append(ids, id)
	}
	in := plan.Closure(g, ids)
	for i := range g.Objects {
		o := &g.Objects[i]
		for k := range o.Steps {
			if id := o.Steps[k].Task; in[id] && !shown[id] {
				shown[id] = true
				l = append(l, listed{o, k})
			}
		}
	}
	return l
}

type listTaskJSON struct {
	Address string   `json:"address"`
	Kind    string   `json:"kind"`
	Tags    []string `json:"tags"`
	Depends []string `json:"depends"`
}

func (a *app) listJSON(s *session, l []listed) error {
	tasks := make([]listTaskJSON, 0, len(l))
	for _, one := range l {
		id := one.object.Steps[one.step].Task
		tasks = append(tasks, listTaskJSON{address(one.object, one.step), s.graph.Tasks[id].Spec.Kind().Name, append([]string{}, one.object.Tags...), dependsOf(s.named, id)})
	}
	return a.view.document(struct {
		FormatVersion int            `json:"format_version"`
		Tasks         []listTaskJSON `json:"tasks"`
	}{formatVersion, tasks})
}
