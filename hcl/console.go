package hcl

import (
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"pbuild/bench/decl"
)

// consoleFile is the name that positions in a console's expressions have.
const consoleFile = "console"

// Console evaluates one expression over var, local and the functions, and gives its value as HCL and as JSON. length(dataset.NAME) is the number of
// its rows. Of a sensitive value, and of one that is not known yet, text says so, and value is nil.
func (c *Config) Console(expr string) (text string, value []byte, ds decl.Diagnostics) {
	at := hashihcl.InitialPos
	e, parsed := hclsyntax.ParseExpression([]byte(expr), consoleFile, at)
	if parsed.HasErrors() {
		return "", nil, foreign(parsed, hashihcl.Range{Filename: consoleFile, Start: at, End: at}).Sort()
	}
	l := c.l
	kept := l.diags
	l.diags = nil
	defer func() { l.diags = kept }()
	openKeys(e)
	l.rowCounts(e)
	if l.ctx == nil {
		return "", nil, kept // the files do not parse
	}
	if !l.checkNames(e, &scope{}) || l.diags.HasErrors() {
		return "", nil, l.secrets.redactAll(l.diags)
	}
	v, diags := valueOf(e, l.ctx)
	if diags.HasErrors() {
		return "", nil, l.secrets.redactAll(foreign(diags, e.Range()))
	}
	plain, found, _ := split(v)
	switch {
	case len(found) > 0:
		return "(sensitive value of " + variables(found) + ")", nil, nil
	case !plain.IsWhollyKnown():
		return "(not known before apply)", nil, nil
	}
	value, err := ctyjson.SimpleJSONValue{Value: plain}.MarshalJSON()
	if err != nil {
		panic("pbuild bug: a known value has no JSON form: " + err.Error())
	}
	return string(hclwrite.Format(hclwrite.TokensForValue(plain).Bytes())), value, nil
}

// rowCounts turns each length(dataset.NAME) in e into max(N): a dataset is never a value.
func (l *loader) rowCounts(e hclsyntax.Expression) {
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hashihcl.Diagnostics {
		call, ok := n.(*hclsyntax.FunctionCallExpr)
		if !ok || call.Name != "length" || len(call.Args) != 1 {
			return nil
		}
		t, ok := call.Args[0].(*hclsyntax.ScopeTraversalExpr)
		if !ok || t.Traversal.RootName() != "dataset" || len(t.Traversal) != 2 {
			return nil
		}
		name, _ := step(t.Traversal, 1)
		count := cty.UnknownVal(cty.Number)
		if d := l.datasets[name]; d == nil {
			l.undefinedBlock(t.SrcRange, "dataset", name)
		} else if d.rows != nil {
			count = cty.NumberIntVal(int64(d.rows.Len()))
		}
		call.Name, call.Args = "max", []hclsyntax.Expression{&hclsyntax.LiteralValueExpr{Val: count, SrcRange: t.SrcRange}}
		return nil
	})
}

// Snippet is the source line at the start of r, without its end, and whether there is one. Sensitive values are not in it.
func (c *Config) Snippet(r decl.Range) (string, bool) {
	src, ok := c.l.sources[r.File]
	if !ok || r.Line < 1 {
		return "", false
	}
	if c.l.closed[r.File] {
		return "(sensitive values)", true
	}
	lines := strings.SplitN(string(src), "\n", r.Line+1)
	if len(lines) < r.Line {
		return "", false
	}
	return c.l.secrets.redact(strings.TrimSuffix(lines[r.Line-1], "\r")), true
}
