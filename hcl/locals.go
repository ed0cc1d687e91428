package hcl

import (
	"slices"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// A local is one named value.
type local struct {
	name  string
	attr  *attribute
	refs  []string // the locals that it names
	value cty.Value
	phase phase
}

// phase is how far a depth-first walk has come with a thing.
type phase uint8

const (
	untouched phase = iota
	open
	closed
)

func (l *loader) declareLocals(b *block) {
	for _, n := range b.body.blocks {
		l.errorf(n.at, "Unknown block", "locals holds values, not blocks: write %s = ...", n.typ)
	}
	for _, a := range b.body.attrs {
		if first := l.locals[a.name]; first != nil {
			l.errorf(a.nameAt, "Duplicate local", "local.%s is already set at %s.", a.name, rangeOf(first.attr.at))
			continue
		}
		l.locals[a.name] = &local{name: a.name, attr: a, value: cty.DynamicVal}
	}
}

// evaluateLocals puts the locals into the order in which they refer to each other, evaluates them, and makes the scope of everything that follows.
func (l *loader) evaluateLocals() {
	for _, name := range sortedKeys(l.locals) {
		lo := l.locals[name]
		if !l.checkNames(lo.attr.expr, &scope{}) {
			lo.phase = closed // its value stays unknown, which is not reported again
			continue
		}
		for _, t := range lo.attr.expr.Variables() {
			if ref, _ := step(t, 1); t.RootName() == "local" {
				lo.refs = append(lo.refs, ref)
			}
		}
	}
	var order, path []*local
	for _, name := range sortedKeys(l.locals) {
		l.orderLocals(l.locals[name], &order, &path)
	}
	l.localOrder = order
	l.ctx = l.context(l.variableValues(), func(lo *local, ctx *hashihcl.EvalContext) cty.Value {
		v, diags := valueOf(lo.attr.expr, ctx)
		if diags.HasErrors() {
			l.diags.Add(foreign(diags, lo.attr.at)...)
			return cty.DynamicVal
		}
		return l.markAltered(v, lo.attr.at)
	})
	for _, lo := range order {
		lo.value = l.ctx.Variables["local"].GetAttr(lo.name)
	}
}

// orderLocals appends lo to order, after what it refers to. path is what led to it.
func (l *loader) orderLocals(lo *local, order, path *[]*local) {
	switch lo.phase {
	case closed:
		return
	case open:
		cycle := (*path)[slices.Index(*path, lo):]
		var names strings.Builder
		for _, c := range cycle {
			names.WriteString("local." + c.name + " -> ")
		}
		l.errorf(lo.attr.at, "Reference cycle", "Local values are made of each other in a circle: %slocal.%s. Give one of them a value of its own.", &names, lo.name)
		return
	}
	lo.phase = open
	*path = append(*path, lo)
	for _, ref := range lo.refs {
		l.orderLocals(l.locals[ref], order, path)
	}
	*path = (*path)[:len(*path)-1]
	lo.phase = closed
	*order = append(*order, lo)
}

// context evaluates all locals over the given variables. Each sees only those that it names, so that the work is linear.
func (l *loader) context(vars cty.Value, evaluate func(*local, *hashihcl.EvalContext) cty.Value) *hashihcl.EvalContext {
	values := make(map[string]cty.Value, len(l.locals))
	for name := range l.locals {
		values[name] = cty.DynamicVal
	}
	for _, lo := range l.localOrder {
		seen := make(map[string]cty.Value, len(lo.refs))
		for _, ref := range lo.refs {
			seen[ref] = values[ref]
		}
		values[lo.name] = evaluate(lo, &hashihcl.EvalContext{
			Variables: map[string]cty.Value{"var": vars, "local": cty.ObjectVal(seen)},
			Functions: l.functions,
		})
	}
	return &hashihcl.EvalContext{
		Variables: map[string]cty.Value{"var": vars, "local": cty.ObjectVal(values)},
		Functions: l.functions,
	}
}

// markAltered marks v if the source text that it comes from is not in normal form: its literals no longer say what is written there.
func (l *loader) markAltered(v cty.Value, at hashihcl.Range) cty.Value {
	if l.isNormal(at) {
		return v
	}
	return v.Mark(altered{"the text at " + rangeOf(at).String()})
}
