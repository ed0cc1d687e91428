package hcl

import (
	"cmp"
	"path"
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
	v, outer := splitShallow(v)
	if v.IsNull() {
		return c.finishGo(nil)
	}
	t := v.Type()
	if !t.IsMapType() && !t.IsObjectType() {
		plain, _, _ := split(v)
		return nil, c.error("Wrong type", "%s: %s", c.a.name, wrong("a map of strings", fromCty(plain)))
	}
	if len(outer) > 0 && !c.namesAreOpen(v, each) {
		return nil, c.error("Sensitive value not allowed here", "A name in %s comes from the sensitive %s, and names are stored and shown. Only values of %s may be sensitive.",
			c.a.name, variables(outer), c.a.name)
	}
	var out []decl.EnvVar
	for name, e := range v.AsValueMap() {
		plain, found, _ := split(e)
		value, m := text(fromCty(plain))
		if m != nil {
			return nil, c.error("Wrong type", "%s: The value of %s: %s", c.a.name, name, m)
		}
		if d := c.checkEnv(name, value); d != nil {
			return nil, d
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

// namesAreOpen says whether v, a map that is sensitive as a whole, would have the same keys if all sensitive values were others: the keys of a sensitive
// variable that is a map are open, those that an expression makes of a sensitive value are not.
func (c *compiler) namesAreOpen(v cty.Value, each *decl.Each) bool {
	shown := c.shown(c.a.expr, each)
	if t := shown.Type(); !t.IsObjectType() && !t.IsMapType() || shown.IsNull() || !shown.IsKnown() {
		return false
	}
	return slices.Equal(sortedKeys(shown.AsValueMap()), sortedKeys(v.AsValueMap()))
}

// splitShallow takes the marks off v itself, and tells the secrets among them.
func splitShallow(v cty.Value) (plain cty.Value, secrets []string) {
	plain, marks := v.Unmark()
	for m := range marks {
		if s, ok := m.(secret); ok {
			secrets = append(secrets, s.variable)
		}
	}
	return plain, secrets
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
	otherwise := strings.Join(append(slices.Compact(from), each.Address(c.address), path.Join(c.scope.nested, c.a.name), part), " ")
	e, inside := c.a.expr, part != ""
	if o, ok := e.(*hclsyntax.ObjectConsExpr); ok && inside {
		if item := c.item(o, part); item != nil {
			e, inside = item, false // alone, so that no other element can fail
		}
	}
	shown := c.shown(e, each)
	if t := shown.Type(); inside && (t.IsObjectType() || t.IsMapType()) && !shown.IsNull() && shown.IsKnown() {
		shown = shown.AsValueMap()[part]
	}
	if shown == cty.NilVal || shown.IsNull() || !shown.IsKnown() || shown.Type() != cty.String {
		return c.l.secrets.add(otherwise, otherwise, value)
	}
	return c.l.secrets.add(secretName(shown.AsString()), otherwise, value)
}

// item is the expression of the element of o with the given key, if that is told without rows.
func (c *compiler) item(o *hclsyntax.ObjectConsExpr, key string) hclsyntax.Expression {
	for _, item := range o.Items {
		if name, ok := c.constantKey(item.KeyExpr); ok && name == key {
			return item.ValueExpr
		}
	}
	return nil
}

// constantKey is the key of an element, if it names no row.
func (c *compiler) constantKey(e hclsyntax.Expression) (string, bool) {
	if overRows(e) {
		return "", false
	}
	v, diags := e.Value(c.l.ctx)
	v, _ = v.UnmarkDeep()
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// shown evaluates e over placeholders; it is unknown if that fails.
func (c *compiler) shown(e hclsyntax.Expression, each *decl.Each) cty.Value {
	ctx := c.l.placeholders()
	var v cty.Value
	if overRows(e) {
		var d *decl.Diagnostic
		if v, d = c.through(e)(each, ctx); d != nil {
			return cty.DynamicVal
		}
	} else {
		var diags hashihcl.Diagnostics
		if v, diags = valueOf(e, ctx); diags.HasErrors() {
			return cty.DynamicVal
		}
	}
	v, _ = v.UnmarkDeep()
	return v
}

// checkEnv refuses what no process can be given, and what every process is given anyway.
func (c *compiler) checkEnv(name, value string) *decl.Diagnostic {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
		return c.error("Invalid environment variable", "%q cannot be passed to a process: a name is not empty and holds no equals sign, and neither name nor value holds a zero byte.", name)
	}
	if slices.Contains(c.def.NoneOf, name) {
		return c.error("Invalid environment variable", "%s cannot be set: every command has pbuild's own. A command that needs another sets it itself, as in [\"env\", \"%s=...\", \"PROGRAM\"].", name, name)
	}
	return nil
}

// warnOfPlain warns of values that by their names are secrets, but are not sensitive.
func (c *compiler) warnOfPlain() {
	warn := func(at hashihcl.Range, name string) {
		c.l.warnf(at, "Secret in plain text?", "%s is named like a secret, but its value is not sensitive, so that it will be in keys, plans and logs. Put it into a variable with sensitive = true.", name)
	}
	e := c.a.expr
	if o, ok := e.(*hclsyntax.ObjectConsExpr); ok && c.def.Type == decl.Env {
		for _, item := range o.Items {
			if name, ok := c.constantKey(item.KeyExpr); ok && likeSecret(name) && !c.l.mentionsSecret(item.ValueExpr) {
				warn(item.KeyExpr.Range(), name)
			}
		}
		return
	}
	if overRows(e) || c.l.mentionsSecret(e) {
		return
	}
	v, _ := e.Value(c.l.ctx)
	v, _ = v.UnmarkDeep()
	switch {
	case !v.IsWhollyKnown() || v.IsNull():
	case c.def.Type == decl.Secret:
		warn(e.Range(), c.a.name)
	case v.Type().IsMapType() || v.Type().IsObjectType():
		for _, name := range sortedKeys(v.AsValueMap()) {
			if likeSecret(name) {
				warn(e.Range(), name)
			}
		}
	}
}

func likeSecret(name string) bool {
	name = strings.ToUpper(name)
	return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") || strings.Contains(name, "SECRET") || strings.Contains(name, "PASSWORD")
}
