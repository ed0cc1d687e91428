package hcl

import (
	"fmt"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// An openKey is what stands in [...]. No sensitive value may: what is chosen tells of it, and upstream takes the mark of an object's key away.
// It is a form of parentheses, so that a walk over the expression goes through it.
type openKey struct{ *hclsyntax.ParenthesesExpr }

func (k openKey) Value(ctx *hashihcl.EvalContext) (cty.Value, hashihcl.Diagnostics) {
	v, diags := k.Expression.Value(ctx)
	if _, found, _ := split(v); len(found) > 0 {
		at := k.Range()
		return cty.DynamicVal, append(diags, &hashihcl.Diagnostic{Severity: hashihcl.DiagError, Summary: "Sensitive value not allowed here", Subject: &at,
			Detail: fmt.Sprintf("This chooses an element, which is not kept out of what is stored and shown, but it comes from the sensitive %s.", variables(found))})
	}
	return v, diags
}

// openKeys makes every [KEY] in e refuse a sensitive one, and returns e.
func openKeys(e hclsyntax.Expression) hclsyntax.Expression {
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hashihcl.Diagnostics {
		if i, ok := n.(*hclsyntax.IndexExpr); ok {
			i.Key = openKey{&hclsyntax.ParenthesesExpr{Expression: i.Key, SrcRange: i.Key.Range()}}
		}
		return nil
	})
	return e
}
