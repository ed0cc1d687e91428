package hcl

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"

	"pbuild/bench/decl"
	"pbuild/bench/rows"
)

// A dataset is one dataset block; rows is nil until it is resolved, and if its rows are unknown or wrong.
type dataset struct {
	block *block
	phase phase
	rows  decl.Dataset
	of    int // how many there were before `where`
}

// resolveDataset finds the rows of d, after those of the datasets that it is made of. path is what led to it.
func (l *loader) resolveDataset(d *dataset, path []string) {
	address := d.block.address()
	switch d.phase {
	case closed:
		return
	case open:
		cycle := path[slices.Index(path, address):]
		for _, member := range cycle {
			l.cyclic[member] = true
		}
		l.errorf(d.block.at, "Reference cycle", "A dataset is made of itself: %s -> %s.", strings.Join(cycle, " -> "), address)
		return
	}
	d.phase = open
	path = append(path, address)
	b := d.block.body
	switch {
	case b.attr("file") != nil:
		l.fileRows(d)
	case b.attr("union") != nil:
		var sets []decl.Dataset
		known := true
		for _, r := range l.staticRefs(b.attr("union"), "dataset") {
			from := l.datasets[r.Name]
			l.resolveDataset(from, path)
			known = known && from.rows != nil
			sets = append(sets, from.rows)
		}
		if known {
			l.keep(d)(rows.Union(rangeOf(b.attr("union").at), sets...))
		}
	case b.block("filter") != nil:
		l.filteredRows(d, b.block("filter"), path)
	case b.block("admit") != nil:
		l.admittedRows(d, b.block("admit"), path)
	}
	if where := b.attr("where"); where != nil && d.rows != nil {
		d.of = d.rows.Len()
		d.rows = l.where(d.rows, where, address)
	}
	d.phase = closed
}

// keep makes a function that takes what package rows returns.
func (l *loader) keep(d *dataset) func(*rows.Set, decl.Diagnostics) {
	return func(s *rows.Set, diags decl.Diagnostics) {
		l.diags.Add(diags...)
		if s != nil {
			d.rows = s
		}
	}
}

func (l *loader) fileRows(d *dataset) {
	b := d.block.body
	def := decl.Find("dataset")
	text := func(name string) string {
		a := b.attr(name)
		if a == nil || !l.quiet(func() { l.checkNames(a.expr, &scope{}) }) {
			return ""
		}
		v, _ := l.quietly(a, def.Attr(name)).(string)
		return v
	}
	a := b.attr("file")
	path := text("file")
	if path == "" {
		return // said when the block is decoded
	}
	f := l.reader.read(path)
	defer l.reader.forget(path)
	parse := func() (*rows.Set, decl.Diagnostics) {
		return rows.Parse(string(f.bytes), rows.Options{Format: text("format"), Key: text("key"), Name: l.reader.short(l.reader.abs(path)), At: rangeOf(d.block.at)})
	}
	name := d.block.labels[0]
	if makers := l.makers(d.block, path); len(makers) > 0 && !l.o.Made[name] {
		unknown := decl.UnknownRows{Dataset: name, Makers: makers, Last: -1}
		if f.err == nil {
			if last, _ := parse(); last != nil {
				unknown.Last = last.Len()
			}
		}
		l.unknown = append(l.unknown, unknown)
		return
	}
	if f.err != nil {
		l.errorf(a.expr.Range(), "Dataset file cannot be read", "%v. The path is relative to the workspace's directory.%s", f.err, l.nearFile(path))
		return
	}
	l.keep(d)(parse())
}

// makers are what must have run before a dataset's file is what it is to be: what the dataset depends on, and the tasks that have the file among
// their outputs.
func (l *loader) makers(b *block, file string) []decl.Ref {
	var refs []decl.Ref
	for _, typ := range decl.Find("dataset").Attr("depends_on").Refs {
		refs = append(refs, l.staticRefs(b.body.attr("depends_on"), typ)...)
	}
	l.outputs(func(ref decl.Ref, output string) {
		if output == l.reader.abs(file) {
			l.edge(b.address(), ref, b.body.attr("file").at)
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	})
	return refs
}

// outputs visits what tasks without for_each make, by absolute path.
func (l *loader) outputs(visit func(ref decl.Ref, output string)) {
	for _, address := range sortedKeys(l.blocks) {
		t := l.blocks[address]
		if t.typ != "task" || t.body.attr("outputs") == nil || t.body.attr("for_each") != nil {
			continue
		}
		outputs, _ := l.quietly(t.body.attr("outputs"), decl.Find("task").Attr("outputs")).([]string)
		for _, o := range outputs {
			visit(decl.Ref{Type: t.typ, Name: t.name()}, l.reader.abs(o))
		}
	}
}

// nearFile is a sentence that names the file which was probably meant: one that a task makes, or one beside it; or nothing.
func (l *loader) nearFile(path string) string {
	makers := map[string]string{}
	l.outputs(func(ref decl.Ref, output string) { makers[l.reader.short(output)] = ref.String() })
	path = l.reader.short(l.reader.abs(path))
	if near := decl.Nearest(path, sortedKeys(makers)); near != "" {
		return fmt.Sprintf(" Did you mean %q, which %s makes?", near, makers[near])
	}
	entries, _ := l.reader.list(filepath.Dir(path))
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			files = append(files, filepath.ToSlash(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return didYouMean(path, files)
}

// quietly is the value of an attribute that is decoded, and so reported on, later.
func (l *loader) quietly(a *attribute, def *decl.AttrDef) (value any) {
	l.quiet(func() {
		e := l.compile(a, def, &scope{}, "")
		if e != nil && e.Const() {
			value, _ = e.Eval(nil)
		}
	})
	return value
}

// quiet runs f, drops what it reports, and says whether that held no error.
func (l *loader) quiet(f func()) bool {
	kept := l.diags
	l.diags = nil
	f()
	ok := !l.diags.HasErrors()
	l.diags = kept
	return ok
}

// staticRefs are the blocks of the given type, or with a literal key the members, that an attribute names; those that do not exist are left out, and reported when the block is decoded.
func (l *loader) staticRefs(a *attribute, typ string) []decl.Ref {
	var out []decl.Ref
	if a == nil {
		return nil
	}
	for _, t := range a.reference().Variables() {
		if name, ok := step(t, 1); ok && t.RootName() == typ && l.blocks[typ+"."+name] != nil {
			key, one := step(t, 2)
			out = append(out, decl.Ref{Type: typ, Name: name, Key: key, One: one})
		}
	}
	return out
}

func (l *loader) filteredRows(d *dataset, filter *block, path []string) {
	refs := l.staticRefs(filter.body.attr("from"), "dataset")
	where := filter.body.attr("where")
	if len(refs) != 1 || where == nil {
		return // said when the block is decoded
	}
	from := l.datasets[refs[0].Name]
	l.resolveDataset(from, path)
	if from.rows != nil {
		d.of = from.rows.Len()
		d.rows = l.where(from.rows, where, d.block.address())
	}
}

// admittedRows gives d the rows of the instances that a gate looks at, each with that gate: what it will admit is among them.
func (l *loader) admittedRows(d *dataset, admit *block, path []string) {
	var sets []decl.Dataset
	for _, gate := range l.staticRefs(admit.body.attr("gate"), "gate") {
		g := l.blocks[gate.Type+"."+gate.Name]
		for _, instance := range l.staticRefs(g.body.attr("instances"), "instance") {
			address := instance.Type + "." + instance.Name
			each := l.blocks[address].body.attr("for_each")
			name, ok := "", false
			if each != nil {
				name, ok = l.eachDataset(each)
			}
			if !ok {
				l.errorf(admit.at, "Gate without rows", "%s looks at %s, which is not made of a dataset, so that there are no rows to admit.", gate, address)
				return
			}
			from := l.datasets[name]
			if from == nil {
				return
			}
			l.resolveDataset(from, append(slices.Clone(path), gate.String(), address))
			if from.rows == nil {
				return
			}
			sets = append(sets, rows.Admit(from.rows, gate.Name, func(key string) bool { return !instance.One || key == instance.Key }))
		}
	}
	if len(sets) > 0 {
		l.keep(d)(rows.Union(rangeOf(admit.at), sets...))
	}
}

// where keeps the rows for which a condition over `row` is true. A row for which it cannot be evaluated is reported; after some, the rest is only counted.
func (l *loader) where(set decl.Dataset, a *attribute, address string) decl.Dataset {
	cond := l.compile(a, &decl.AttrDef{Name: "where", Type: decl.Condition, Required: true}, l.rowScope(set), address)
	if cond == nil {
		return nil
	}
	tally := &tally{l: l}
	out, _ := rows.Filter(set, func(r decl.Row) (bool, *decl.Diagnostic) {
		v, d := cond.Eval(&decl.Each{Row: r})
		tally.add(d)
		keep, _ := v.(bool)
		return keep, nil
	})
	tally.finish(a.at)
	if out == nil || tally.n > 0 {
		return nil
	}
	return out
}

// rowScope is the scope of `where` over a dataset.
func (l *loader) rowScope(set decl.Dataset) *scope {
	s := &scope{row: func(string) bool { return true }, rows: func() []string { return nil }}
	if set != nil {
		s.rows = set.Columns
		s.row = func(column string) bool { return mayHave(set, column) }
	}
	return s
}

// A tally reports the first mistakes of many rows and counts the rest.
type tally struct {
	l *loader
	n int
}

func (t *tally) add(d *decl.Diagnostic) {
	if d == nil {
		return
	}
	if t.n++; t.n <= decl.ShownRows {
		t.l.diags.Add(*d)
	}
}

func (t *tally) finish(at hashihcl.Range) {
	if t.n > decl.ShownRows {
		t.l.errorf(at, "More rows", "The same is wrong in %d more rows.", t.n-decl.ShownRows)
	}
}
