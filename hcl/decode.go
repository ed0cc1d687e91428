package hcl

import (
	"fmt"
	"slices"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"

	"pbuild/bench/decl"
)

// decode checks a block at the top level against the table and compiles its attributes.
func (l *loader) decode(b *block) *decl.Block {
	def := decl.Find(b.typ)
	if def.Label && l.blocks[b.address()] != b {
		return nil // a duplicate, or without a proper name
	}
	each := l.eachs[b.address()]
	out := l.decodeBlock(b, def, &scope{each: each}, b.address())
	out.ForEach = each.form()
	return out
}

// decodeBlock decodes b and what is nested in it. address is that of the block at the top.
func (l *loader) decodeBlock(b *block, def *decl.BlockDef, s *scope, address string) *decl.Block {
	out := &decl.Block{Type: b.typ, Name: b.name(), Range: rangeOf(b.at), Attrs: map[string]*decl.Attr{}}
	if def.Later {
		l.warnf(b.at, "Not runnable yet", "The block %s is read and checked, but pbuild does not run it yet.", b.address())
		if def.Free {
			l.checkFree(b.body, s)
			return out
		}
	}
	l.checkBody(b, def)
	for _, a := range b.body.attrs {
		attrDef := def.Attr(a.name)
		switch {
		case def.Free:
			attrDef = &decl.AttrDef{Name: a.name, Type: decl.Any}
		case attrDef == nil || a.name == "for_each":
			continue
		}
		if attrDef.Later && !def.Later {
			l.warnf(a.at, "Not runnable yet", "%s of %s is read and checked, but pbuild does not use it yet.", a.name, address)
		}
		scope := s
		if attrDef.Type == decl.Condition && a.name == "where" {
			scope = l.rowScope(l.whereRows(b, address))
		}
		expr := l.compile(a, attrDef, scope, address)
		if expr == nil {
			continue
		}
		l.checkSoon(a, attrDef, expr, s)
		out.Attrs[a.name] = &decl.Attr{Name: a.name, Range: rangeOf(a.at), Expr: expr}
	}
	for _, n := range b.body.blocks {
		if nested := def.Block(n.typ); nested != nil {
			out.Blocks = append(out.Blocks, l.decodeBlock(n, nested, s.in(n.typ), address))
			if nested == &decl.Precondition {
				l.checkCondition(n, s, nested, "Precondition failed", address)
			}
		}
	}
	return out
}

// whereRows are the rows whose columns `where` in b may name.
func (l *loader) whereRows(b *block, address string) decl.Dataset {
	if b.typ == "filter" {
		if refs := l.staticRefs(b.body.attr("from"), "dataset"); len(refs) == 1 {
			return l.datasets[refs[0].Name].rows
		}
		return nil
	}
	if d := l.datasets[strings.TrimPrefix(address, "dataset.")]; d != nil {
		return d.rows
	}
	return nil
}

// checkFree looks for undefined names in a block of any form that does not run yet. Which of its names are references is not known.
func (l *loader) checkFree(b *body, s *scope) {
	for _, a := range b.attrs {
		for _, t := range a.expr.Variables() {
			if root := t.RootName(); decl.Find(root) == nil || root == "variable" {
				l.checkName(t, s)
			} else if name, ok := step(t, 1); ok && l.blocks[root+"."+name] == nil {
				l.undefinedBlock(t.SourceRange(), root, name)
			}
		}
		l.checkFunctions(a.expr)
	}
	for _, n := range b.blocks {
		l.checkFree(n.body, s)
	}
}

// checkSoon warns of each value that does not run yet, whichever member has it.
func (l *loader) checkSoon(a *attribute, def *decl.AttrDef, expr decl.Expr, s *scope) {
	if len(def.Soon) == 0 {
		return
	}
	said := map[string]bool{}
	look := func(each *decl.Each) {
		v, _ := expr.Eval(each)
		values, _ := v.([]string)
		if s, ok := v.(string); ok {
			values = []string{s}
		}
		for _, got := range values {
			if slices.Contains(def.Soon, got) && !said[got] {
				said[got] = true
				l.warnf(a.expr.Range(), "Not runnable yet", "%s = %q is read and checked, but pbuild does not run it yet.", a.name, got)
			}
		}
	}
	if expr.Const() {
		look(nil)
	} else if s.each != nil {
		for i := range s.each.len() {
			look(s.each.member(i))
		}
	}
}

// checkBody compares the names in b with the table, and says whether all is there and nothing else.
func (l *loader) checkBody(b *block, def *decl.BlockDef) bool {
	before := len(l.diags)
	for _, a := range b.body.attrs {
		switch {
		case def.Free || def.Attr(a.name) != nil:
		case a.name == "for_each":
			l.errorf(a.nameAt, "Unknown attribute", "The block %s cannot have for_each.", b.typ)
		case def.Block(a.name) != nil:
			l.errorf(a.nameAt, "Not an attribute", "%s is a block: write %s { ... }, without an equals sign.", a.name, a.name)
		default:
			l.errorf(a.nameAt, "Unknown attribute", "The block %s has no attribute %q.%s", b.typ, a.name, didYouMean(a.name, def.Names()))
		}
	}
	first := map[string]*block{}
	for _, n := range b.body.blocks {
		nested := def.Block(n.typ)
		switch {
		case nested == nil && def.Attr(n.typ) != nil:
			l.errorf(n.at, "Not a block", "%s is an attribute: write %s = ...", n.typ, n.typ)
		case nested == nil:
			l.errorf(n.at, "Unknown block", "The block %s holds no block %q.%s", b.typ, n.typ, didYouMean(n.typ, def.Names()))
		case first[n.typ] != nil && !nested.Many:
			l.errorf(n.at, "Duplicate block", "%s is already given at %s. It may stand once.", n.typ, rangeOf(first[n.typ].at))
		case len(n.labels) > 0:
			l.errorf(n.at, "Too many names", "The block %s takes no name.", n.typ)
		}
		if first[n.typ] == nil {
			first[n.typ] = n
		}
	}
	for _, a := range def.Attrs {
		if a.Required && b.body.attr(a.Name) == nil {
			l.errorf(b.at, "Missing attribute", "%s needs %s. %s", describe(b), a.Name, a.Doc)
		}
		if b.body.attr(a.Name) != nil {
			l.checkNeeds(b, &a)
		}
	}
	for _, group := range def.OneOf {
		l.checkGroup(b, group)
	}
	return len(l.diags) == before
}

// describe names b for a sentence.
func describe(b *block) string {
	if b.name() == "" {
		return "The block " + b.typ
	}
	return b.address()
}

func (l *loader) checkNeeds(b *block, a *decl.AttrDef) {
	for _, need := range a.Needs {
		if b.body.attr(need) == nil && b.body.block(need) == nil {
			l.errorf(b.body.attr(a.Name).at, "Missing attribute", "%s is of use only with %s, which is not given.", a.Name, need)
		}
	}
}

// checkGroup demands exactly one of a group of attributes and nested blocks.
func (l *loader) checkGroup(b *block, group []string) {
	var names []string
	var places []hashihcl.Range
	for _, name := range group {
		if a := b.body.attr(name); a != nil {
			names, places = append(names, name), append(places, a.at)
		}
		if n := b.body.block(name); n != nil {
			names, places = append(names, name), append(places, n.at)
		}
	}
	switch {
	case len(names) == 0 && len(group) == 1:
		l.errorf(b.at, "Missing block", "%s needs %s.", describe(b), group[0])
	case len(names) == 0:
		l.errorf(b.at, "Missing block", "%s needs one of %s.", describe(b), list(group))
	case len(names) > 1:
		given := make([]string, len(names))
		for i, name := range names {
			given[i] = fmt.Sprintf("%s at %s", name, rangeOf(places[i]))
		}
		what := "one of " + list(group)
		if len(group) == 1 {
			what = group[0] + " once, as an attribute or as a block"
		}
		l.errorf(places[len(places)-1], "Conflicting attributes", "%s takes %s, but has %s.", describe(b), what, strings.Join(given, " and "))
	}
}
