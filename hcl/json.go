package hcl

import (
	"bytes"
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// A jsonFile turns HCL's JSON syntax into the same bodies and expressions as the native syntax. JSON does not say which of its
// properties are blocks: the table does, and for a name that is both, the value.
type jsonFile struct {
	src   []byte
	diags decl.Diagnostics
}

// parseJSON parses a file in HCL's JSON syntax whose blocks are the given ones.
func parseJSON(src []byte, name string, defs []decl.BlockDef) (*body, decl.Diagnostics) {
	at := hashihcl.Range{Filename: name, Start: hashihcl.InitialPos, End: hashihcl.InitialPos}
	f, diags := json.Parse(src, name)
	j := &jsonFile{src: src, diags: foreign(diags, at)}
	if f == nil || diags.HasErrors() {
		return &body{}, firstSyntax(j.diags)
	}
	return j.body(f.Body, &decl.BlockDef{Blocks: defs}), j.diags
}

func (j *jsonFile) body(b hashihcl.Body, def *decl.BlockDef) *body {
	out, end := &body{}, b.MissingItemRange()
	attrs, diags := b.JustAttributes()
	j.diags.Add(foreign(diags, end)...)
	if diags.HasErrors() {
		return out
	}
	var schema hashihcl.BodySchema
	for name, a := range attrs {
		nested := def.Block(name)
		if nested == nil || def.Attr(name) != nil && !j.opensBody(a.Expr.Range()) {
			out.attrs = append(out.attrs, j.attribute(a))
			continue
		}
		header := hashihcl.BlockHeaderSchema{Type: name}
		if nested.Label {
			header.LabelNames = []string{"name"}
		}
		schema.Blocks = append(schema.Blocks, header)
	}
	slices.SortFunc(out.attrs, func(a, b *attribute) int { return a.at.Start.Byte - b.at.Start.Byte })
	content, _, diags := b.PartialContent(&schema)
	j.diags.Add(foreign(diags, end)...)
	for _, n := range content.Blocks {
		out.blocks = append(out.blocks, &block{typ: n.Type, labels: n.Labels, at: hashihcl.RangeBetween(n.TypeRange, n.DefRange), body: j.body(n.Body, def.Block(n.Type))})
	}
	return out
}

func (j *jsonFile) opensBody(r hashihcl.Range) bool {
	text := bytes.TrimSpace(r.SliceBytes(j.src))
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

func (j *jsonFile) attribute(a *hashihcl.Attribute) *attribute {
	return &attribute{name: a.Name, nameAt: a.NameRange, at: a.Range, expr: openKeys(j.expr(a.Expr)), jsonText: true}
}

// expr is e as a native expression: strings are templates, arrays tuples, objects objects whose keys are templates too.
func (j *jsonFile) expr(e hashihcl.Expression) hclsyntax.Expression {
	at := e.Range()
	if text := bytes.TrimSpace(at.SliceBytes(j.src)); len(text) > 0 {
		switch text[0] {
		case '[':
			items, _ := hashihcl.ExprList(e)
			out := &hclsyntax.TupleConsExpr{SrcRange: at, OpenRange: e.StartRange()}
			for _, item := range items {
				out.Exprs = append(out.Exprs, j.expr(item))
			}
			return out
		case '{':
			items, _ := hashihcl.ExprMap(e)
			out := &hclsyntax.ObjectConsExpr{SrcRange: at, OpenRange: e.StartRange()}
			for _, item := range items {
				key := &hclsyntax.ObjectConsKeyExpr{Wrapped: j.expr(item.Key), ForceNonLiteral: true}
				out.Items = append(out.Items, hclsyntax.ObjectConsItem{KeyExpr: key, ValueExpr: j.expr(item.Value)})
			}
			return out
		}
	}
	// Without a context, upstream returns a string as it is written.
	v, _ := e.Value(nil)
	if v.Type() != cty.String || v.IsNull() {
		return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: at}
	}
	start := at.Start
	start.Byte, start.Column = start.Byte+1, start.Column+1 // past the quote
	out, diags := hclsyntax.ParseTemplate([]byte(v.AsString()), at.Filename, start)
	if diags.HasErrors() {
		j.diags.Add(foreign(diags, at)...)
		return &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: at}
	}
	return out
}

// asExpression reads a JSON string that holds no template as an expression: "runtime.go" is then what it is in the native syntax.
func asExpression(e hclsyntax.Expression) hclsyntax.Expression {
	switch x := e.(type) {
	case *hclsyntax.TemplateWrapExpr:
		return x.Wrapped
	case *hclsyntax.TupleConsExpr:
		out := *x
		out.Exprs = nil
		for _, item := range x.Exprs {
			out.Exprs = append(out.Exprs, asExpression(item))
		}
		return &out
	case *hclsyntax.TemplateExpr:
		if !x.IsStringLiteral() {
			return e
		}
		v, diags := x.Value(nil)
		if diags.HasErrors() {
			return e
		}
		out, diags := hclsyntax.ParseExpression([]byte(v.AsString()), x.SrcRange.Filename, x.SrcRange.Start)
		if diags.HasErrors() {
			return e
		}
		return openKeys(out)
	}
	return e
}

// reference is the expression of an attribute where a block may be named.
func (a *attribute) reference() hclsyntax.Expression {
	if a.jsonText {
		return asExpression(a.expr)
	}
	return a.expr
}
