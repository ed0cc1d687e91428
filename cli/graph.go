package cli

import (
	"bufio"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func (a *app) graphCommand() *cobra.Command {
	format := "dot"
	cmd := &cobra.Command{
		Use:               "graph [SELECTOR...]",
		Short:             "Print the graph of tasks, as DOT or JSON",
		Long:              "Print the chosen tasks and all that they depend on. Edges point from a task to what it depends on.",
		ValidArgsFunction: a.completeSelectors,
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "dot" && format != "json" {
				return usagef("--format is dot or json, not %q", format)
			}
			if format == "dot" && cmd.Flags().Changed("format") && a.view.json {
				return usagef("--json and --format dot exclude each other")
			}
			s, c, err := a.loadChoice(cmd, args)
			if err != nil {
				return err
			}
			defer s.close()
			var ids []task.ID
			if c != nil {
				ids = c.tasks
			}
			in := plan.Closure(s.graph, ids)
			if format == "json" || a.view.json {
				return a.graphJSON(s, in)
			}
			return a.graphDOT(s, in)
		},
	}
	cmd.Flags().StringVar(&format, "format", format, "`dot` or json")
	return cmd
}

func (a *app) graphDOT(s *session, in []bool) error {
	w := bufio.NewWriter(a.view.out)
	fmt.Fprintln(w, "digraph pbuild {")
	fmt.Fprintln(w, "  rankdir = LR; node [shape = box];")
	for i := range s.graph.Tasks {
		if !in[i] {
			continue
		}
		t := &s.graph.Tasks[i]
		fmt.Fprintf(w, "  t%d [label = %s, tooltip = %s];\n", i, strconv.Quote(s.address(task.ID(i))), strconv.Quote(t.Spec.Kind().Name))
		for _, d := range t.Deps {
			look := ""
			if d.Use == task.UseOrder {
				look = ", style = dashed"
			}
			fmt.Fprintf(w, "  t%d -> t%d [label = %s%s];\n", i, d.On, strconv.Quote(d.Role), look)
		}
	}
	fmt.Fprintln(w, "}")
	return w.Flush()
}

type graphNodeJSON struct {
	Address string          `json:"address"`
	Kind    string          `json:"kind"`
	Depends []graphEdgeJSON `json:"depends"`
	Inputs  []string        `json:"inputs,omitempty"`
	Outputs []string        `json:"outputs,omitempty"`
}

// A graphEdgeJSON says what of a dependency is in the key: its output, its key, or nothing (an edge of order).
type graphEdgeJSON struct {
	Address string `json:"address"`
	Role    string `json:"role"`
	Use     string `json:"use"`
}

var useNames = map[task.Use]string{task.UseOutput: "output", task.UseKey: "key", task.UseOrder: "order"}

func (a *app) graphJSON(s *session, in []bool) error {
	nodes := []graphNodeJSON{}
	for i := range s.graph.Tasks {
		if !in[i] {
			continue
		}
		t := &s.graph.Tasks[i]
		n := graphNodeJSON{Address: s.address(task.ID(i)), Kind: t.Spec.Kind().Name, Depends: []graphEdgeJSON{}, Inputs: t.Inputs, Outputs: t.Outputs}
		for _, d := range t.Deps {
			n.Depends = append(n.Depends, graphEdgeJSON{s.address(d.On), d.Role, useNames[d.Use]})
		}
		nodes = append(nodes, n)
	}
	return a.view.document(struct {
		FormatVersion int             `json:"format_version"`
		Tasks         []graphNodeJSON `json:"tasks"`
	}{formatVersion, nodes})
}
