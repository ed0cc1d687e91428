package hcl

import (
	"cmp"
	"slices"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// Values of env, of secrets and of api_key may be sensitive. Each such value becomes known under a name that tells how it is made and not what
// it is: the name goes into keys, the value only to the process that needs it.

// environment is v as variables, sorted by name.
func (c *compiler) environment(v cty.Value, each *decl.Each) (any, *decl.Diagnostic) {
	v, outer, _ := splitShallow(v)
	if v.IsNull() {
		return c.finishGo(nil)
	}
	t := v.Type()
	if !t.IsMapType() && !t.IsObjectType() {
		plain, _, _ := split(v)
		return nil, c.error("Wrong type", "%s: %s", c.a.name, wrong("a map of strings", fromCty(plain)))
	}
	var out []decl.EnvVar
	for name, e := range v.AsValueMap() {
		plain, found, _ := split(e)
		value, m := text(fromCty(plain))
		if m != nil {
			return nil, c.error("Wrong type", "%s: The value of %s: %s", c.a.name, name, m)
		}
		variable := decl.EnvVar{Name: name, Value: value}
		if found = append(found, outer...); len(found) > 0 {
			variable.Secret = c.nameSecret(value, found, each, name)
		}
		out = append(out, variable)
	}
	slices.SortFunc(out, func(a, b decl.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	if out == nil {
		out = []decl.EnvVar{}
	}
	return out, nil
}

// splitShallow is split of the outermost value.
func splitShallow(v cty.Value) (plain cty.Value, secrets, alterations []string) {
	plain, marks := v.Unmark()
	for m := range marks {
		if s, ok := m.(secret); ok {
			secrets = append(secrets, s.variable)
		}
	}
	return plain, secrets, alterations
}

// secretAttr is v as one value that may be sensitive.
func (c *compiler) secretAttr(v cty.Value, each *decl.Each) (any, *decl.Diagnostic) {
	plain, found, _ := split(v)
	if plain.IsNull() {
		return c.finishGo(nil)
	}
	value, m := text(fromCty(plain))
	if m != nil {
		return nil, c.error("Wrong type", "%s: %s", c.a.name, m)
	}
	out := decl.EnvVar{Name: c.a.name, Value: value}
	if len(found) > 0 {
		out.Secret = c.nameSecret(value, found, each, "")
	}
	return out, nil
}

// nameSecret finds the name for a sensitive value: what the expression comes to if each sensitive variable holds its own name. part is
// the element of it that is meant.
func (c *compiler) nameSecret(value string, from []string, each *decl.Each, part string) string {
	slices.Sort(from)
	otherwise := strings.Join(append(slices.Compact(from), memberAddress(c.address, each), c.a.name, part), " ")
	shown, ok := c.shown(each)
	if ok && part != "" {
		if t := shown.Type(); t.IsObjectType() || t.IsMapType() {
			shown, ok = shown.AsValueMap()[part]
		}
	}
	if !ok || shown == cty.NilVal || shown.IsNull() || !shown.IsKnown() || shown.Type() != cty.String {
		return c.l.secrets.add(otherwise, otherwise, value)
	}
	return c.l.secrets.add(secretName(shown.AsString()), otherwise, value)
}

// shown evaluates the expression over placeholders.
func (c *compiler) shown(each *decl.Each) (cty.Value, bool) {
	ctx := c.l.placeholders()
	if each != nil {
		v, d := c.through(c.a.expr)(each, ctx)
		if d != nil {
			return cty.NilVal, false
		}
		v, _ = v.UnmarkDeep()
		return v, true
	}
	v, diags := c.a.expr.Value(ctx)
	if diags.HasErrors() {
		return cty.NilVal, false
	}
	v, _ = v.UnmarkDeep()
	return v, true
}

// warnOfNames warns of variables that are named like secrets but hold none.
func (c *compiler) warnOfNames() {
	warn := func(at hashihcl.Range, name string) {
		c.l.warnf(at, "Secret in plain text?", "%s is named like a secret, but its value is not sensitive, so that it will be in keys, plans and logs. Put it into a variable with sensitive = true.", name)
	}
	if o, ok := c.a.expr.(*hclsyntax.ObjectConsExpr); ok {
		for _, item := range o.Items {
			if overRows(item.KeyExpr) {
				continue
			}
			k, diags := item.KeyExpr.Value(c.l.ctx)
			k, _ = k.UnmarkDeep()
			if !diags.HasErrors() && k.IsKnown() && !k.IsNull() && k.Type() == cty.String && likeSecret(k.AsString()) && !c.l.mentionsSecret(item.ValueExpr) {
				warn(item.KeyExpr.Range(), k.AsString())
			}
		}
		return
	}
	if overRows(c.a.expr) || c.l.mentionsSecret(c.a.expr) {
		return
	}
	v, _ := c.a.expr.Value(c.l.ctx)
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() || v.IsNull() || !v.Type().IsMapType() && !v.Type().IsObjectType() {
		return
	}
	for _, name := range sortedKeys(v.AsValueMap()) {
		if likeSecret(name) {
			warn(c.a.expr.Range(), name)
		}
	}
}

func likeSecret(name string) bool {
	name = strings.ToUpper(name)
	return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") || strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD")
}
