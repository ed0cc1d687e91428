package hcl

import (
	"cmp"
	"math/big"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"golang.org/x/text/unicode/norm"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
)

// A textNode is a node whose value is a string, without the allocation that an `any` of one costs.
type textNode func(*decl.Each) (string, *decl.Diagnostic)

func bytesOf(b []byte) decl.Bytes { return decl.Bytes{Data: b, Digest: digest.Of(b)} }

// text is e as a string, or nil if it has no form without cty.
func (c *compiler) text(e hclsyntax.Expression) textNode {
	if t, ok := e.(*hclsyntax.TemplateExpr); ok && overRows(e) {
		return c.template(t)
	}
	n := c.node(e)
	if n == nil {
		return nil
	}
	if !overRows(e) {
		v, _ := n(nil)
		s, m := text(v)
		if m != nil {
			return c.asText(n, e.Range()) // wrong for every row
		}
		return func(*decl.Each) (string, *decl.Diagnostic) { return s, nil }
	}
	return c.asText(n, e.Range())
}

func (c *compiler) asText(n node, at hashihcl.Range) textNode {
	return func(each *decl.Each) (string, *decl.Diagnostic) {
		v, d := n(each)
		if d != nil {
			return "", d
		}
		if s, ok := v.(string); ok {
			return s, nil
		}
		s, m := text(v)
		if m != nil {
			return "", errorAt(at, "Wrong type", "%s: %s", c.a.name, m)
		}
		return s, nil
	}
}

// template joins literal text and values.
func (c *compiler) template(e *hclsyntax.TemplateExpr) textNode {
	parts := make([]textNode, len(e.Parts))
	for i, p := range e.Parts {
		if parts[i] = c.text(p); parts[i] == nil {
			return nil
		}
	}
	return func(each *decl.Each) (string, *decl.Diagnostic) {
		var few [8]string
		texts := few[:0]
		for _, p := range parts {
			s, d := p(each)
			if d != nil {
				return "", d
			}
			texts = append(texts, s)
		}
		return strings.Join(texts, ""), nil
	}
}

// A piece is one element of a list of strings, or a list of them.
type piece struct {
	one  textNode
	many node
	at   hashihcl.Range
}

// strings is e as a list of strings: a tuple, a column that holds a list, or concat of such.
func (c *compiler) strings(e hclsyntax.Expression) node {
	pieces, ok := c.pieces(e, nil)
	if !ok {
		return nil
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		out := make([]string, 0, len(pieces))
		for _, p := range pieces {
			if p.one != nil {
				s, d := p.one(each)
				if d != nil {
					return nil, d
				}
				out = append(out, s)
				continue
			}
			v, d := p.many(each)
			if d != nil {
				return nil, d
			}
			if v == nil && len(pieces) == 1 {
				return c.finishGo(nil)
			}
			l, m := texts(v)
			if m != nil {
				return nil, errorAt(p.at, "Wrong type", "%s: %s", c.a.name, m)
			}
			out = append(out, l...)
		}
		return out, nil
	}
}

func (c *compiler) pieces(e hclsyntax.Expression, to []piece) ([]piece, bool) {
	ok := true
	switch x := e.(type) {
	case *hclsyntax.TupleConsExpr:
		for _, item := range x.Exprs {
			one := c.text(item)
			if one == nil {
				return nil, false
			}
			to = append(to, piece{one: one, at: item.Range()})
		}
		return to, true
	case *hclsyntax.FunctionCallExpr:
		if x.Name != "concat" || x.ExpandFinal {
			return nil, false
		}
		for _, arg := range x.Args {
			if to, ok = c.pieces(arg, to); !ok {
				return nil, false
			}
		}
		return to, true
	}
	n := c.node(e)
	if n == nil {
		return nil, false
	}
	return append(to, piece{many: n, at: e.Range()}), true
}

// binary is a comparison or a conjunction. What compares other things than strings, numbers and bools is left to cty.
func (c *compiler) binary(e *hclsyntax.BinaryOpExpr) node {
	left, right := c.node(e.LHS), c.node(e.RHS)
	if left == nil || right == nil {
		return nil
	}
	slow := c.slow(e)
	switch e.Op {
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		decides := e.Op == hclsyntax.OpLogicalOr
		return func(each *decl.Each) (any, *decl.Diagnostic) {
			l, wrongLeft := c.truth(left, each, e.LHS)
			r, wrongRight := c.truth(right, each, e.RHS)
			if wrongLeft != nil || wrongRight != nil {
				return slow(each) // where one side fails, the other may still decide
			}
			if l == decides {
				return l, nil
			}
			return r, nil
		}
	}
	compare, ok := comparisons[e.Op]
	if !ok {
		return nil
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		l, d := left(each)
		if d != nil {
			return nil, d
		}
		r, d := right(each)
		if d != nil {
			return nil, d
		}
		if result, ok := compare(l, r); ok {
			return result, nil
		}
		return slow(each)
	}
}

func (c *compiler) truth(n node, each *decl.Each, e hclsyntax.Expression) (bool, *decl.Diagnostic) {
	v, d := n(each)
	if d != nil {
		return false, d
	}
	b, m := boolean(v)
	if m != nil {
		return false, errorAt(e.Range(), "Wrong type", "%s", m)
	}
	return b, nil
}

func (c *compiler) not(e *hclsyntax.UnaryOpExpr) node {
	n := c.node(e.Val)
	if n == nil {
		return nil
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		b, d := c.truth(n, each, e.Val)
		return !b, d
	}
}

// comparisons give false as their second result where cty has to decide.
var comparisons = map[*hclsyntax.Operation]func(l, r any) (result, ok bool){
	hclsyntax.OpEqual:              equal,
	hclsyntax.OpNotEqual:           func(l, r any) (bool, bool) { result, ok := equal(l, r); return !result, ok },
	hclsyntax.OpLessThan:           func(l, r any) (bool, bool) { sign, ok := order(l, r); return sign < 0, ok },
	hclsyntax.OpLessThanOrEqual:    func(l, r any) (bool, bool) { sign, ok := order(l, r); return sign <= 0, ok },
	hclsyntax.OpGreaterThan:        func(l, r any) (bool, bool) { sign, ok := order(l, r); return sign > 0, ok },
	hclsyntax.OpGreaterThanOrEqual: func(l, r any) (bool, bool) { sign, ok := order(l, r); return sign >= 0, ok },
}

func equal(l, r any) (result, ok bool) {
	if s, isText := l.(string); isText {
		if t, both := r.(string); both {
			return s == t || norm.NFC.String(s) == norm.NFC.String(t), true
		}
	}
	if sign, ok := order(l, r); ok {
		return sign == 0, true
	}
	if !plainValue(l) || !plainValue(r) {
		return false, false // Go cannot compare all of these
	}
	return l == r, true
}

// plainValue says whether v can be compared as Go does.
func plainValue(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string:
		return true
	}
	return false
}

// order compares numbers. Those of different precision are left to cty, to which they are equal if their texts are.
func order(l, r any) (sign int, ok bool) {
	switch l := l.(type) {
	case float64:
		switch r := r.(type) {
		case float64:
			return cmp.Compare(l, r), true
		case decl.Decimal:
			return big.NewFloat(l).Cmp(r.Float), true
		}
	case decl.Decimal:
		switch r := r.(type) {
		case float64:
			return l.Cmp(big.NewFloat(r)), true
		case decl.Decimal:
			return l.Cmp(r.Float), l.Prec() == r.Prec()
		}
	}
	return 0, false
}
