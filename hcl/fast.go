package hcl

import (
	"math"
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"pbuild/bench/decl"
)

// rowForm is the attribute's expression over rows, in the Go form of its type.
func (c *compiler) rowForm() node {
	e := c.a.expr
	if c.def.Type == decl.BytesType {
		if n := c.exactBytes(e); n != nil {
			return n
		}
		if !c.l.isNormal(c.a.at) || c.scope.each != nil && c.scope.each.altered != "" {
			c.fail(*c.wouldChange("the text of the workspace"))
			return nil
		}
	}
	if !c.l.mentionsSecret(e) && !c.mentionsAltered(e) {
		if c.def.Type == decl.Strings && len(c.def.OneOf)+len(c.def.NoneOf) == 0 && !c.def.Alone {
			if n := c.strings(e); n != nil || c.failed {
				return n
			}
		}
		if n := c.node(e); n != nil || c.failed {
			return func(each *decl.Each) (any, *decl.Diagnostic) {
				v, d := n(each)
				if d != nil {
					return nil, d
				}
				return c.finishGo(v)
			}
		}
	}
	eval := c.through(e)
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := eval(each, c.l.ctx)
		if d != nil {
			return nil, d
		}
		return c.finish(v, each)
	}
}

func (c *compiler) fail(d decl.Diagnostic) {
	c.l.diags.Add(d)
	c.failed = true
}

// mentionsAltered says whether e is to keep its bytes and names a value whose text normalisation has changed.
func (c *compiler) mentionsAltered(e hclsyntax.Expression) bool {
	if c.def.Type != decl.BytesType {
		return false
	}
	return slices.ContainsFunc(e.Variables(), func(t hashihcl.Traversal) bool {
		if t.RootName() == "each" || t.RootName() == "row" {
			return false
		}
		v, _ := t.TraverseAbs(c.l.ctx)
		_, _, alterations := split(v)
		return len(alterations) > 0
	})
}

// exactBytes is e if it is exactly each.value.COLUMN or file(...), whose bytes are kept.
func (c *compiler) exactBytes(e hclsyntax.Expression) node {
	if arg := fileCall(e); arg != nil {
		path := c.text(arg)
		if path == nil {
			path = c.asText(c.slow(arg), arg.Range())
		}
		return func(each *decl.Each) (any, *decl.Diagnostic) {
			p, d := path(each)
			if d != nil {
				return nil, d
			}
			return c.fileBytes(p)
		}
	}
	if w, ok := e.(*hclsyntax.TemplateWrapExpr); ok {
		e = w.Wrapped
	}
	t, ok := e.(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(t.Traversal) != 3 || c.scope.each == nil || c.scope.each.dataset == "" {
		return nil
	}
	part, _ := step(t.Traversal, 1)
	column, ok := step(t.Traversal, 2)
	if !ok || part != "value" {
		return nil
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		b, ok := each.Row.Bytes(column)
		if !ok {
			v := each.Row.Value(column)
			if v == nil {
				return c.finishGo(nil)
			}
			return nil, c.error("Wrong type", "%s: %s", c.a.name, wrong("a string", v))
		}
		return bytesOf(b), nil
	}
}

// node is e over plain Go values, or nil if e has no such form.
func (c *compiler) node(e hclsyntax.Expression) node {
	if !overRows(e) {
		return c.constantNode(e)
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return c.node(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return c.node(e.Wrapped)
	case *hclsyntax.ScopeTraversalExpr:
		return c.traversal(e.Traversal)
	case *hclsyntax.TemplateExpr:
		if s := c.text(e); s != nil {
			return func(each *decl.Each) (any, *decl.Diagnostic) { return boxed(s(each)) }
		}
	case *hclsyntax.TupleConsExpr:
		return c.tuple(e.Exprs)
	case *hclsyntax.ObjectConsExpr:
		return c.object(e)
	case *hclsyntax.FunctionCallExpr:
		switch {
		case e.ExpandFinal:
		case e.Name == "concat":
			return c.concat(e)
		case e.Name == "contains" && len(e.Args) == 2:
			return c.contains(e)
		}
	case *hclsyntax.BinaryOpExpr:
		return c.binary(e)
	case *hclsyntax.UnaryOpExpr:
		if e.Op == hclsyntax.OpLogicalNot {
			return c.not(e)
		}
	}
	return nil
}

func boxed(s string, d *decl.Diagnostic) (any, *decl.Diagnostic) {
	if d != nil {
		return nil, d
	}
	return s, nil
}

// constantNode is a part that names no row. If it cannot be evaluated, the whole cannot.
func (c *compiler) constantNode(e hclsyntax.Expression) node {
	v, diags := valueOf(e, c.l.ctx)
	if d := firstError(diags, e.Range()); d != nil {
		c.fail(*d)
		return nil
	}
	plain, _, _ := split(v)
	if !plain.IsWhollyKnown() {
		c.failed = true // and reported
		return nil
	}
	out := fromCty(plain)
	return func(*decl.Each) (any, *decl.Diagnostic) { return out, nil }
}

// traversal is each.key, each.value, each.value.COLUMN or row.COLUMN, and what lies in such a value.
func (c *compiler) traversal(t hashihcl.Traversal) node {
	part, _ := step(t, 1)
	over := c.scope.each
	switch {
	case t.RootName() == "row":
		return c.within(columnNode(part), t, 2)
	case part == "key" && len(t) == 2:
		return func(each *decl.Each) (any, *decl.Diagnostic) { return each.Key, nil }
	case part == "value" && over != nil && over.dataset == "":
		return c.within(func(each *decl.Each) (any, *decl.Diagnostic) { return each.Value, nil }, t, 2)
	case part == "value":
		if column, ok := step(t, 2); ok {
			return c.within(columnNode(column), t, 3)
		}
	}
	return nil
}

func columnNode(column string) node {
	return func(each *decl.Each) (any, *decl.Diagnostic) { return each.Row.Value(column), nil }
}

// within goes from a value down the steps of t from index i on.
func (c *compiler) within(n node, t hashihcl.Traversal, i int) node {
	for ; i < len(t); i++ {
		outer := n
		switch s := t[i].(type) {
		case hashihcl.TraverseAttr:
			n = attrNode(outer, s.Name, s.SrcRange)
		case hashihcl.TraverseIndex:
			if s.Key.Type() == cty.String {
				n = attrNode(outer, s.Key.AsString(), s.SrcRange)
				continue
			}
			f, _ := s.Key.AsBigFloat().Float64()
			n = elementNode(outer, f, s.SrcRange)
		default:
			return nil
		}
	}
	return n
}

func attrNode(outer node, name string, at hashihcl.Range) node {
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := outer(each)
		if d != nil {
			return nil, d
		}
		m, ok := v.(map[string]any)
		if !ok {
			return nil, errorAt(at, "Wrong type", "This has no %q: it is %s.", name, typeName(v))
		}
		e, ok := m[name]
		if !ok {
			return nil, errorAt(at, "Undefined name", "This has no %q.%s", name, didYouMean(name, sortedKeys(m)))
		}
		return e, nil
	}
}

func elementNode(outer node, index float64, at hashihcl.Range) node {
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := outer(each)
		if d != nil {
			return nil, d
		}
		l, ok := v.([]any)
		if !ok {
			return nil, errorAt(at, "Wrong type", "This has no elements by number: it is %s.", typeName(v))
		}
		if index < 0 || index >= float64(len(l)) || index != math.Trunc(index) {
			return nil, errorAt(at, "Undefined name", "This has %d elements, and none with the number %v.", len(l), index)
		}
		return l[int(index)], nil
	}
}

func (c *compiler) tuple(exprs []hclsyntax.Expression) node {
	parts := make([]node, len(exprs))
	for i, e := range exprs {
		if parts[i] = c.node(e); parts[i] == nil {
			return nil
		}
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		out := make([]any, len(parts))
		for i, p := range parts {
			v, d := p(each)
			if d != nil {
				return nil, d
			}
			out[i] = v
		}
		return out, nil
	}
}

func (c *compiler) object(e *hclsyntax.ObjectConsExpr) node {
	keys, parts := make([]string, len(e.Items)), make([]node, len(e.Items))
	for i, item := range e.Items {
		var ok bool
		if keys[i], ok = c.constantKey(item.KeyExpr); !ok {
			return nil
		}
		if parts[i] = c.node(item.ValueExpr); parts[i] == nil {
			return nil
		}
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		out := make(map[string]any, len(keys))
		for i, p := range parts {
			v, d := p(each)
			if d != nil {
				return nil, d
			}
			out[keys[i]] = v
		}
		return out, nil
	}
}

// concat appends lists. Sets and such are left to cty.
func (c *compiler) concat(e *hclsyntax.FunctionCallExpr) node {
	parts := make([]node, len(e.Args))
	for i, arg := range e.Args {
		if parts[i] = c.node(arg); parts[i] == nil {
			return nil
		}
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		out := []any{}
		for i, p := range parts {
			v, d := p(each)
			if d != nil {
				return nil, d
			}
			l, ok := v.([]any)
			if !ok {
				return nil, errorAt(e.Args[i].Range(), "Wrong type", "concat: %s", wrong("a list", v))
			}
			out = append(out, l...)
		}
		return out, nil
	}
}

// contains looks for a string among constant strings.
func (c *compiler) contains(e *hclsyntax.FunctionCallExpr) node {
	if overRows(e.Args[0]) {
		return nil
	}
	all, n := c.constantNode(e.Args[0]), c.node(e.Args[1])
	if all == nil || n == nil {
		return nil
	}
	v, _ := all(nil)
	names, m := texts(v)
	if m != nil {
		return nil
	}
	set := map[string]bool{}
	for i, s := range v.([]any) {
		if _, isText := s.(string); !isText {
			return nil
		}
		set[names[i]] = true
	}
	slow := c.slow(e)
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := n(each)
		if s, ok := v.(string); ok && d == nil {
			return set[norm.NFC.String(s)], nil
		}
		return slow(each)
	}
}
