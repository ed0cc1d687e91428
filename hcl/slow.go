package hcl

import (
	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// columns are what an expression names of a row.
type columns struct {
	key   bool
	whole bool     // each.value as such
	names []string // each.value.NAME or row.NAME
	row   bool     // by row, not each
}

func columnsOf(e hclsyntax.Expression) columns {
	var out columns
	seen := map[string]bool{}
	for _, t := range e.Variables() {
		at := 2
		switch part, _ := step(t, 1); {
		case t.RootName() == "row":
			at, out.row = 1, true
		case t.RootName() != "each":
			continue
		case part == "key":
			out.key = true
			continue
		}
		name, named := step(t, at)
		out.whole = out.whole || !named
		if named && !seen[name] {
			seen[name] = true
			out.names = append(out.names, name)
		}
	}
	return out
}

// through returns a function that evaluates e by cty, over base, with the member or row of only what e names.
func (c *compiler) through(e hclsyntax.Expression) func(*decl.Each, *hashihcl.EvalContext) (cty.Value, *decl.Diagnostic) {
	cols := columnsOf(e)
	if s := c.scope.each; cols.whole && s != nil && s.set != nil {
		cols.names = s.set.Columns()
	}
	keepBytes := c.def.Type == decl.BytesType
	return func(each *decl.Each, base *hashihcl.EvalContext) (cty.Value, *decl.Diagnostic) {
		var value cty.Value
		if each.Row == nil {
			value = toCty(each.Value)
		} else {
			row := make(map[string]cty.Value, len(cols.names))
			for _, name := range cols.names {
				v := each.Row.Value(name)
				if keepBytes && !normalValue(v) {
					return cty.NilVal, c.wouldChange("the column " + name)
				}
				row[name] = toCty(v)
			}
			value = cty.ObjectVal(row)
		}
		ctx := base.NewChild()
		if cols.row {
			ctx.Variables = map[string]cty.Value{"row": value}
		} else {
			ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": cty.StringVal(each.Key), "value": value})}
		}
		v, diags := valueOf(e, ctx)
		if d := firstError(diags, e.Range()); d != nil {
			return cty.NilVal, d
		}
		return v, nil
	}
}

// slow is e evaluated by cty, as a Go value. Secrets and alterations are not followed: c.rowForm sees to them.
func (c *compiler) slow(e hclsyntax.Expression) node {
	eval := c.through(e)
	return func(each *decl.Each) (any, *decl.Diagnostic) {
		v, d := eval(each, c.l.ctx)
		if d != nil {
			return nil, d
		}
		plain, _, _ := split(v)
		return fromCty(plain), nil
	}
}
