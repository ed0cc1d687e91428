package lower

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/report"
	"pbuild/engine/task"
)

// reportFiles are the files that a report writes, by format.
func (l *lowerer) reportFiles(b *decl.Block) (formats, files []string) {
	if stem, ok := get[string](l, b, "path", nil); ok && slices.Contains([]string{"", ".", ".."}, stem[strings.LastIndexByte(stem, '/')+1:]) {
		l.errorf(at(b, "path"), nil, "Invalid path", "%q names no file: it is the report's path without the extension, such as %q.", stem, path.Join(stem, b.Name))
		return nil, nil
	}
	all, named := l.ws.ReportFiles(b)
	for i, f := range named {
		if file, ok := l.inside(f, at(b, "path"), nil); ok {
			formats, files = append(formats, all[i]), append(files, file)
		}
	}
	return formats, files
}

// report lowers one task for each format.
func (l *lowerer) report(b *decl.Block, out *lowered) {
	known := map[string]bool{}
	spec, cells := l.reported(b, known)
	spec.Renderer, spec.Name = report.RendererVersion, b.Name
	l.columns(b, &spec, known)
	slices.SortStableFunc(cells, func(x, y cell) int {
		return cmp.Or(cmp.Compare(x.Instance, y.Instance), cmp.Compare(x.Agent, y.Agent), cmp.Compare(x.Model, y.Model),
			cmp.Compare(x.Sample, y.Sample), cmp.Compare(x.Address, y.Address))
	})
	var deps []task.Dep
	for i, c := range cells {
		line := c.Cell
		line.Outcome = strconv.Itoa(i)
		deps = append(deps, task.Dep{On: c.outcome, Role: line.Outcome, Output: c.output, Tolerate: task.TolerateAny})
		for _, a := range c.admits {
			line.Admits = append(line.Admits, a.gate)
			deps = append(deps, task.Dep{On: a.verdict, Role: line.AdmitRole(a.gate), Tolerate: task.TolerateAny})
		}
		if c.verdict != task.None {
			line.Gate = "gate " + line.Outcome
			deps = append(deps, task.Dep{On: c.verdict, Role: line.Gate, Tolerate: task.TolerateAny})
		}
		spec.Cells = append(spec.Cells, line)
	}
	tags, _ := get[[]string](l, b, "tags", nil)
	formats, files := l.reportFiles(b)
	l.under(b, nil, func() {
		for i, format := range formats {
			s := spec
			s.Format, s.File = format, files[i]
			id := l.add(task.Task{Spec: &s, Deps: slices.Clone(deps), Outputs: []string{files[i]}, Store: true})
			out.objects = append(out.objects, task.Object{Class: task.ClassReport, Block: b.Address(), Tags: tags, Steps: []task.Step{{Name: format, Task: id}}})
		}
	})
}

// reported are the cells of what a report is over. The names in their instances' provenance become known.
func (l *lowerer) reported(b *decl.Block, known map[string]bool) (kind.ReportSpec, []cell) {
	refs, _ := get[[]decl.Ref](l, b, "of", nil)
	for _, name := range []string{"matrix", "handshake"} {
		if ref, ok := get[decl.Ref](l, b, name, nil); ok {
			refs = append(slices.Clone(refs), ref)
		}
	}
	spec := kind.ReportSpec{Gated: true}
	var cells []cell
	var of []string
	seen := map[[4]string]cell{} // by instance, agent, model and sample
	for _, ref := range refs {
		on := l.ws.Find(ref.Type, ref.Name)
		if on == nil {
			l.errorf(b.Range, nil, "Undefined name", "There is no %s.", ref)
			continue
		}
		if slices.Contains(of, ref.String()) {
			l.errorf(at(b, "of"), nil, "Named twice", "%s is over %s twice, and would count each of its cells double. Name it once.", b.Address(), ref)
			continue
		}
		of = append(of, ref.String())
		l.provenanceOf(on, known)
		for _, c := range l.lower(on).cells {
			spec.Gated = spec.Gated && c.verdict != task.None
			name := [4]string{c.Instance, c.Agent, c.Model, strconv.Itoa(c.Sample)}
			first, named := seen[name]
			switch {
			case !named:
				seen[name] = c
				cells = append(cells, c)
			case first.outcome != c.outcome:
				l.errorf(b.Range, nil, "Two cells of one name", "%s and %s are of one instance, agent, model and sample, and %s would count them as one candidate's. Report them apart.",
					first.Address, c.Address, b.Address())
				return spec, cells
			}
		}
	}
	spec.Of = strings.Join(of, ", ")
	return spec, cells
}
