package lower

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/report"
)

// shown are the attributes of a report that name columns, with the names. A filter that cannot be read names none.
func (l *lowerer) shown(b *decl.Block) (map[string][]string, error) {
	columns, _ := get[[]string](l, b, "columns", nil)
	by, _ := get[[]string](l, b, "by", nil)
	text, _ := get[string](l, b, "filter", nil)
	filter, err := report.ParseFilter(text)
	return map[string][]string{"columns": columns, "by": by, "filter": filter.Columns()}, err
}

// mentions gathers the columns of instances' provenance that some report mentions: no other is evaluated.
func (l *lowerer) mentions() {
	l.mentioned = map[string]bool{}
	for _, b := range l.ws.Blocks {
		if b.Type != "report" {
			continue
		}
		shown, _ := l.shown(b) // a filter that cannot be read is reported with its report
		for _, names := range shown {
			for _, name := range names {
				if !slices.Contains(report.Columns(), name) {
					l.mentioned[name] = true
				}
			}
		}
	}
}

// provenance is what reports mention of an instance's provenance. nil: nothing.
func (l *lowerer) provenance(b *decl.Block, each *decl.Each) map[string]string {
	var out map[string]string
	n := b.Nested("provenance")
	for name := range l.mentioned {
		v, ok := get[any](l, n, name, each)
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = plain(v)
	}
	return out
}

// provenanceOf gathers the names that the instances behind a matrix or gate have in their provenance.
func (l *lowerer) provenanceOf(b *decl.Block, names map[string]bool) {
	if n := b.Nested("provenance"); b.Type == "instance" && n != nil {
		for name := range n.Attrs {
			names[name] = true
		}
	}
	refs, _ := get[[]decl.Ref](l, b, "instances", nil)
	for _, ref := range refs {
		if on := l.ws.Find(ref.Type, ref.Name); on != nil {
			l.provenanceOf(on, names)
		}
	}
}

// columns reads what a report shows. known are the names in the provenance of its instances.
func (l *lowerer) columns(b *decl.Block, spec *kind.ReportSpec, known map[string]bool) {
	shown, err := l.shown(b)
	if err != nil {
		l.errorf(at(b, "filter"), nil, "Invalid filter", "%v. A filter is terms joined by commas, as in \"outcome=failed|timeout,agent!=nop\".", err)
	}
	spec.Columns, spec.By = shown["columns"], shown["by"]
	spec.Filter, _ = get[string](l, b, "filter", nil)
	for _, name := range spec.By {
		if report.TellsEnd(name) {
			l.errorf(at(b, "by"), nil, "Not a group of cells", "%q tells what became of a cell, and no denominator may depend on that. Group by what tells which cell it is: instance, agent, model, sample, or a name of the instances' provenance.", name)
		}
	}
	names := append(report.Columns(), slices.Sorted(maps.Keys(known))...)
	for _, attr := range []string{"columns", "by", "filter"} {
		for _, name := range shown[attr] {
			if slices.Contains(names, name) {
				continue
			}
			hint := ""
			if n := decl.Nearest(name, names); n != "" {
				hint = fmt.Sprintf(" Did you mean %s?", n)
			}
			l.errorf(at(b, attr), nil, "Unknown column", "%s has no column %q.%s There are %s.", b.Address(), name, hint, strings.Join(names, ", "))
		}
	}
}
