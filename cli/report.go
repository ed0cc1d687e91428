package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pbuild/bench/exec"
	"pbuild/bench/kind"
	"pbuild/bench/report"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func (a *app) reportCommand() *cobra.Command {
	format := ""
	cmd := &cobra.Command{
		Use:   "report [NAME]",
		Short: "Print reports from what is recorded, without running anything",
		Long: `Print a report, or all of them, from what is recorded. Nothing runs and no file is written: a cell whose record does not hold any more, or that has
not run, is shown as such. "pbuild apply" writes the files. Of several reports JSON is a line each.`,
		ValidArgsFunction: a.completeReports,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("`pbuild report` takes one name, and got %d", len(args))
			}
			if format != "" && a.view.json {
				return usagef("--json and --format exclude each other")
			}
			if a.view.json {
				format = "json"
			}
			name := ""
			if len(args) == 1 {
				name = strings.TrimPrefix(args[0], "report.")
			}
			return a.report(cmd, name, format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "`md`, csv or json (default md)")
	return cmd
}

// A declaredReport is a report with one of its tasks: they differ in format alone.
type declaredReport struct {
	id   task.ID
	spec *kind.ReportSpec
}

func (a *app) report(cmd *cobra.Command, name, format string) error {
	s, err := a.load(cmd.Context(), loadOptions{})
	defer s.close()
	if err != nil {
		return err
	}
	list, err := s.reportsNamed(name)
	if err != nil {
		return err
	}
	if format == "" {
		format = "md"
	}
	want := make([]task.ID, len(list))
	for i, r := range list {
		want[i] = r.id
	}
	p, err := s.decide(s.store, want, nil)
	if err != nil {
		return err
	}
	past := recentRuns(s.store)
	for _, r := range list {
		table, err := exec.Table(r.spec, s.recorded(p, r.id, past), s.store.Blobs())
		if err != nil {
			return exitWith(ExitWorld, fmt.Errorf("report.%s: %w", r.spec.Name, err))
		}
		text, err := report.Render(table, format)
		if err != nil {
			return exitWith(ExitUsage, err)
		}
		if format == "json" && len(list) > 1 {
			var line bytes.Buffer
			if err := json.Compact(&line, text); err != nil {
				panic("pbuild bug: report." + r.spec.Name + " is not JSON: " + err.Error())
			}
			text = append(line.Bytes(), '\n')
		}
		if err := a.view.raw(text); err != nil {
			return exitWith(ExitWorld, err)
		}
	}
	return nil
}

func (s *session) reportsNamed(name string) ([]declaredReport, error) {
	var list []declaredReport
	var names []string
	seen := map[string]bool{}
	for i := range s.graph.Tasks {
		spec, ok := s.graph.Tasks[i].Spec.(*kind.ReportSpec)
		if !ok || seen[spec.Name] {
			continue
		}
		seen[spec.Name] = true
		names = append(names, spec.Name)
		if name == "" || spec.Name == name {
			list = append(list, declaredReport{task.ID(i), spec})
		}
	}
	switch {
	case len(names) == 0:
		return nil, usagef("the workspace declares no report%s", s.unknownHint())
	case len(list) == 0:
		return nil, usagef("there is no report %q%s", name, didYouMean(name, names))
	}
	return list, nil
}

// recorded tells how a report's inputs ended, as far as records hold now.
func (s *session) recorded(p *plan.Plan, id task.ID, past *pastRun) func(role string) *task.Input {
	byRole := map[string]*task.Dep{}
	deps := s.graph.Tasks[id].Deps
	for i := range deps {
		byRole[deps[i].Role] = &deps[i]
	}
	return func(role string) *task.Input {
		d := byRole[role]
		if d == nil {
			return nil
		}
		in := &task.Input{Dep: *d}
		item := &p.Items[d.On]
		_, gate := s.graph.Tasks[d.On].Spec.(*kind.VerdictSpec)
		ended := past.done[p.Address(d.On)]
		switch f := rootFailure(p, d.On, past.failed, map[task.ID]bool{}); {
		case f != nil && gate && ended.Run == f.Run: // it has made an outcome of the failure, which no record keeps
			in.Status, in.Record = task.OK, &task.Record{Outcome: task.Outcome{Status: task.OK, Outcome: ended.Outcome}}
		case f != nil:
			in.Status, in.Cause = f.Status, f.Detail
		case item.Decision == plan.Reuse:
			in.Record, in.Status, in.Cause, in.Digest = item.Record, item.Record.Status, item.Record.Reason, item.Record.Digest(d.Output)
		case item.Decision != plan.Unneeded:
			return nil
		}
		return in
	}
}

// rootFailure is what kept a task whose record does not hold from running: the first failure of what it stands on, as it is now, nil where there is none.
func rootFailure(p *plan.Plan, id task.ID, failed map[string]pastTask, seen map[task.ID]bool) *pastTask {
	if d := p.Items[id].Decision; seen[id] || d == plan.Reuse || d == plan.Unneeded {
		return nil
	}
	seen[id] = true
	if item := &p.Items[id]; item.Known {
		for _, addr := range p.Addresses(id) {
			if f, ok := failed[addr]; ok && f.Key == item.Key.String() {
				return &f
			}
		}
	}
	deps := p.Graph.Tasks[id].Deps
	for i := range deps {
		if f := rootFailure(p, deps[i].On, failed, seen); f != nil {
			return f
		}
	}
	return nil
}
