package hcl

import (
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// An edge says that a block refers to another, or to one member of it; at is where.
type edge struct {
	to  string
	one bool
	at  hashihcl.Range
}

func (l *loader) edge(from string, to decl.Ref, at hashihcl.Range) {
	l.edges[from] = append(l.edges[from], edge{to.Type + "." + to.Name, to.One, at})
}

// A refNode is one reference; nil is null.
type refNode func(*decl.Each) (*decl.Ref, *decl.Diagnostic)

// references compiles an attribute that names blocks.
func (c *compiler) references() decl.Expr {
	e := c.a.reference()
	items := []hclsyntax.Expression{e}
	if t, ok := e.(*hclsyntax.TupleConsExpr); ok && c.def.Type == decl.Refs {
		items = t.Exprs
	}
	nodes := make([]refNode, len(items))
	for i, item := range items {
		nodes[i] = c.reference(item)
		if nodes[i] == nil {
			c.failed = true
		}
	}
	if c.failed {
		return nil
	}
	eval := func(each *decl.Each) (any, *decl.Diagnostic) { return c.evalRefs(nodes, each) }
	if !overRows(e) {
		v, d := eval(nil)
		if d != nil {
			c.l.diags.Add(*d)
			return nil
		}
		return constant{v}
	}
	p := &perRow{c, eval}
	if c.scope.each != nil && c.scope.each.dataset == "" {
		return c.early(p)
	}
	return p
}

func (c *compiler) evalRefs(nodes []refNode, each *decl.Each) (any, *decl.Diagnostic) {
	if c.def.Type == decl.RefType {
		r, d := nodes[0](each)
		if d != nil {
			return nil, d
		}
		if r == nil {
			return c.finishGo(nil)
		}
		return *r, nil
	}
	out := make([]decl.Ref, 0, len(nodes))
	for _, n := range nodes {
		r, d := n(each)
		switch {
		case d != nil:
			return nil, d
		case r != nil:
			out = append(out, *r)
		case len(nodes) == 1:
			return c.finishGo(nil)
		default:
			return nil, c.error("Missing value", "%s holds null where a reference is required.", c.a.name)
		}
	}
	return out, nil
}

// reference compiles one reference, or reports why it is none and returns nil.
func (c *compiler) reference(e hclsyntax.Expression) refNode {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return c.reference(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return c.reference(e.Wrapped)
	case *hclsyntax.LiteralValueExpr:
		if e.Val.IsNull() {
			return func(*decl.Each) (*decl.Ref, *decl.Diagnostic) { return nil, nil }
		}
	case *hclsyntax.ConditionalExpr:
		return c.either(e)
	case *hclsyntax.ScopeTraversalExpr:
		return c.named(e)
	case *hclsyntax.IndexExpr:
		if t, ok := e.Collection.(*hclsyntax.ScopeTraversalExpr); ok {
			return c.indexed(t, e)
		}
	}
	c.notReference(e.Range())
	return nil
}

func (c *compiler) notReference(at hashihcl.Range) {
	c.l.errorf(at, "Not a reference", "%s takes a reference such as %s.NAME or, to one member, %s.NAME[KEY].", c.a.name, c.def.Refs[0], c.def.Refs[0])
}

func (c *compiler) either(e *hclsyntax.ConditionalExpr) refNode {
	yes, no := c.reference(e.TrueResult), c.reference(e.FalseResult)
	if !c.l.checkNames(e.Condition, c.scope) || yes == nil || no == nil {
		return nil
	}
	cond := c.part(e.Condition)
	if cond == nil {
		return nil
	}
	return func(each *decl.Each) (*decl.Ref, *decl.Diagnostic) {
		b, d := c.truth(cond, each, e.Condition)
		if d != nil {
			return nil, d
		}
		if b {
			return yes(each)
		}
		return no(each)
	}
}

// part compiles a key or condition inside a reference, into which no secret may go.
func (c *compiler) part(e hclsyntax.Expression) node {
	if !c.l.mentionsSecret(e) {
		if n := c.node(e); n != nil || c.failed {
			return n
		}
	}
	eval := c.through(e)
	if !overRows(e) {
		eval = func(_ *decl.Each, ctx *hashihcl.EvalContext) (cty.Value, *decl.Diagnostic) {
			v, diags := valueOf(e, ctx)
			return v, firstError(diags, e.Range())
		}
	}
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := eval(each, c.l.ctx)
		if d != nil {
			return nil, d
		}
		plain, found, _ := split(v)
		if len(found) > 0 {
			return nil, errorAt(e.Range(), "Sensitive value not allowed here", "This chooses a block, which is shown in addresses, but it comes from the sensitive %s.", variables(found))
		}
		return fromCty(plain), nil
	}
}

// target checks that a traversal begins with a block that the attribute may name.
func (c *compiler) target(t *hclsyntax.ScopeTraversalExpr) (decl.Ref, bool) {
	typ, at := t.Traversal.RootName(), t.SrcRange
	if typ == "var" || typ == "local" || typ == "each" || typ == "row" || decl.Find(typ) == nil {
		if decl.Find(typ) != nil || c.l.checkName(t.Traversal, c.scope) {
			c.notReference(at)
		}
		return decl.Ref{}, false
	}
	name, ok := step(t.Traversal, 1)
	if !ok {
		c.notReference(at)
		return decl.Ref{}, false
	}
	if !slices.Contains(c.def.Refs, typ) {
		c.l.errorf(at, "Wrong type of block", "%s takes %s, and %s.%s is %s.", c.a.name, blockKinds(c.def.Refs), typ, name, article(typ))
		return decl.Ref{}, false
	}
	if c.l.blocks[typ+"."+name] == nil {
		c.l.undefinedBlock(at, typ, name)
		return decl.Ref{}, false
	}
	return decl.Ref{Type: typ, Name: name}, true
}

func blockKinds(types []string) string {
	if len(types) > 6 {
		return "a block that can be done"
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = article(t)
	}
	return list(names)
}

func article(typ string) string {
	if slices.Contains([]byte("aeiou"), typ[0]) {
		return "an " + typ
	}
	return "a " + typ
}

// named is TYPE.NAME, or TYPE.NAME["KEY"] with a literal key.
func (c *compiler) named(t *hclsyntax.ScopeTraversalExpr) refNode {
	ref, ok := c.target(t)
	if !ok {
		return nil
	}
	switch len(t.Traversal) {
	case 2:
		if c.def.Type == decl.RefType && c.l.eachs[ref.String()] != nil {
			c.l.errorf(t.SrcRange, "Many members", "%s takes one, but %s has for_each and stands for all its members. Choose one: %s[KEY].", c.a.name, ref, ref)
			return nil
		}
		c.l.edge(c.address, ref, t.SrcRange)
		return func(*decl.Each) (*decl.Ref, *decl.Diagnostic) { return &ref, nil }
	case 3:
		if i, isIndex := t.Traversal[2].(hashihcl.TraverseIndex); isIndex && i.Key.IsKnown() && !i.Key.IsNull() {
			key := fromCty(i.Key)
			return c.member(ref, func(*decl.Each) (any, *decl.Diagnostic) { return key, nil }, t.SrcRange)
		}
	}
	c.l.errorf(t.SrcRange, "Not a reference", "%s names a block; what is in it cannot be named.", ref)
	return nil
}

// indexed is TYPE.NAME[EXPRESSION].
func (c *compiler) indexed(t *hclsyntax.ScopeTraversalExpr, e *hclsyntax.IndexExpr) refNode {
	ref, ok := c.target(t)
	if !ok || !c.l.checkNames(e.Key, c.scope) {
		return nil
	}
	if len(t.Traversal) != 2 {
		c.l.errorf(t.SrcRange, "Not a reference", "%s names a block; what is in it cannot be named.", ref)
		return nil
	}
	key := c.part(e.Key.(openKey).Expression) // part says better what is wrong with a sensitive one
	if key == nil {
		return nil
	}
	return c.member(ref, key, e.SrcRange)
}

// member is one member of a block, which must be there.
func (c *compiler) member(ref decl.Ref, key node, at hashihcl.Range) refNode {
	each := c.l.eachs[ref.String()]
	if each == nil {
		c.l.errorf(at, "No members", "%s has no for_each, and so no members to choose from. Name it without [...].", ref)
		return nil
	}
	c.l.edge(c.address, decl.Ref{Type: ref.Type, Name: ref.Name, One: true}, at)
	keyed := c.asText(key, at)
	return func(row *decl.Each) (*decl.Ref, *decl.Diagnostic) {
		k, d := keyed(row)
		if d != nil {
			return nil, d
		}
		found := each.unknown()
		if !found {
			if k, found = each.find(k); !found {
				return nil, errorAt(at, "Undefined member", "%s has no member %q.%s", ref, k, didYouMean(k, each.someKeys()))
			}
		}
		return &decl.Ref{Type: ref.Type, Name: ref.Name, Key: k, One: true}, nil
	}
}
