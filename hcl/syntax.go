package hcl

import (
	"fmt"
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"pbuild/bench/decl"
)

// A body is the content of a file or block, from either syntax.
type body struct {
	attrs  []*attribute
	blocks []*block
}

// An attribute is NAME = EXPRESSION. JSON's values are turned into native expressions, so that only one kind is ever evaluated.
type attribute struct {
	name     string
	nameAt   hashihcl.Range
	at       hashihcl.Range
	expr     hclsyntax.Expression
	jsonText bool // a string of JSON, which may stand for a reference
}

// A block is TYPE LABELS { ... }.
type block struct {
	typ    string
	labels []string
	at     hashihcl.Range // of its header
	body   *body
}

func (b *block) name() string {
	if len(b.labels) == 0 {
		return ""
	}
	return b.labels[0]
}

// address is TYPE.NAME, or TYPE of a block without name.
func (b *block) address() string {
	if len(b.labels) == 0 {
		return b.typ
	}
	return b.typ + "." + b.labels[0]
}

func (b *body) attr(name string) *attribute {
	for _, a := range b.attrs {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (b *body) block(typ string) *block {
	for _, n := range b.blocks {
		if n.typ == typ {
			return n
		}
	}
	return nil
}

// parseNative parses a file in HCL's native syntax.
func parseNative(src []byte, name string) (*body, decl.Diagnostics) {
	at := hashihcl.Range{Filename: name, Start: hashihcl.InitialPos, End: hashihcl.InitialPos}
	f, diags := hclsyntax.ParseConfig(src, name, hashihcl.InitialPos)
	if f == nil || diags.HasErrors() {
		return &body{}, firstSyntax(foreign(diags, at).Sort())
	}
	return nativeBody(f.Body.(*hclsyntax.Body)), foreign(diags, at)
}

// firstSyntax is the first of a file's syntax errors: a brace or quote that is missing makes many of what follows it.
func firstSyntax(ds decl.Diagnostics) decl.Diagnostics {
	switch n := len(ds) - 1; n {
	case 0:
	case 1:
		ds[0].Detail += " One more syntax error in this file may come of it."
	default:
		ds[0].Detail += fmt.Sprintf(" %d more syntax errors in this file may come of it.", n)
	}
	return ds[:1]
}

func nativeBody(b *hclsyntax.Body) *body {
	out := &body{}
	for _, a := range b.Attributes {
		out.attrs = append(out.attrs, &attribute{name: a.Name, nameAt: a.NameRange, at: a.SrcRange, expr: openKeys(a.Expr)})
	}
	// Upstream keeps attributes in a map.
	slices.SortFunc(out.attrs, func(a, b *attribute) int { return a.at.Start.Byte - b.at.Start.Byte })
	for _, n := range b.Blocks {
		out.blocks = append(out.blocks, &block{typ: n.Type, labels: n.Labels, at: n.DefRange(), body: nativeBody(n.Body)})
	}
	return out
}
