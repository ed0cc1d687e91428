package cli

import (
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/agent"
	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/report"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// unrunnable is what of a task this version can plan and not run, and the type and attribute of the block that asks for it; "" where it runs.
func unrunnable(t *task.Task) (what, typ, attr string) {
	switch s := t.Spec.(type) {
	case *kind.ImageSpec:
		if s.Ref != "" {
			return "runtimes with an image", "runtime", "image"
		}
		return "runtimes with an image", "runtime", "build"
	case *kind.HandshakeSpec:
		return "handshakes", "handshake", ""
	case *kind.SampleSpec:
		if !slices.Contains(agent.Kinds, s.Agent) {
			return "agents of kind " + s.Agent, "agent", "kind"
		}
	case *kind.ReportSpec:
		if !slices.Contains(report.Formats, s.Format) {
			return "reports in " + s.Format, "report", "formats"
		}
	}
	return "", "", ""
}

// checkRunnable refuses a plan that would run what this version cannot, each such block named once with its remedy.
func (s *session) checkRunnable(p *plan.Plan) error {
	var ds decl.Diagnostics
	seen := map[string]bool{}
	for i := range p.Items {
		if !p.Wanted[i] || p.Items[i].Decision > plan.Maybe {
			continue
		}
		t := &s.graph.Tasks[i]
		what, typ, attr := unrunnable(t)
		if what == "" {
			continue
		}
		addr := s.address(task.ID(i))
		block, _, _ := strings.Cut(addr, "[")
		block, _, _ = strings.Cut(block, "/")
		if seen[block+what] {
			continue
		}
		seen[block+what] = true
		ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Not runnable yet", Address: addr, Range: s.asks(t, block, typ, attr),
			Detail: fmt.Sprintf("This version plans %s and does not run them. Nothing was started; choose with selectors what does without them.", what)})
	}
	if len(ds) == 0 {
		return nil
	}
	s.diags.Add(ds...)
	s.app.view.showDiagnostics(s.dir, ds)
	return said(ExitUsage)
}

// asks is the place of the block that asks for what a task does: of an agent's sample not the matrix but the agent.
func (s *session) asks(t *task.Task, block, typ, attr string) decl.Range {
	name := strings.TrimPrefix(block, typ+".")
	for _, b := range s.ws.Blocks {
		if b.Type != typ {
			continue
		}
		if sample, ok := t.Spec.(*kind.SampleSpec); ok {
			if agent, _ := decl.Constant[string](b, "kind"); agent != sample.Agent {
				continue
			}
		} else if b.Name != name {
			continue
		}
		if a := b.Attrs[attr]; a != nil {
			return a.Range
		}
		if n := b.Nested(attr); n != nil {
			return n.Range
		}
		return b.Range
	}
	return decl.Range{}
}
