package hcl

import (
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
)

// How an expression is evaluated. One that does not name each or row is a constant: its value is found once, here, with its mistakes.
// Over rows, the common forms become closures over plain Go values (fast.go): a row through cty costs some twenty times as much.
// Everything else goes through cty with a row of only the columns that it names (slow.go). Both give values of the same Go types, and typed
// makes the attribute's type of them. The forms of fast.go keep a string as the row has it; what passes through cty is in Unicode normal form C.

// A compiler compiles one attribute.
type compiler struct {
	l       *loader
	a       *attribute
	def     *decl.AttrDef
	scope   *scope
	address string // of the block
	failed  bool   // a mistake was reported
}

// constant is the value of an expression that names no row.
type constant struct{ value any }

func (c constant) Eval(*decl.Each) (any, *decl.Diagnostic) { return c.value, nil }
func (c constant) Const() bool                             { return true }

// A node is a part of an expression over rows. Its diagnostics lack row and address, which the whole expression adds.
type node func(*decl.Each) (any, *decl.Diagnostic)

// perRow is an expression over rows.
type perRow struct {
	c    *compiler
	eval node
}

func (p *perRow) Const() bool { return false }

func (p *perRow) Eval(each *decl.Each) (any, *decl.Diagnostic) {
	if each == nil {
		panic("pbuild bug: " + p.c.address + "." + p.c.a.name + " is evaluated without a member")
	}
	v, d := p.eval(each)
	if d == nil {
		return v, nil
	}
	out := *d
	out.Detail = p.c.l.secrets.redact(out.Detail)
	out.Address, out.Row = each.Address(p.c.address), each.Place()
	return nil, &out
}

// compile compiles an attribute; it returns nil if that reported a mistake.
func (l *loader) compile(a *attribute, def *decl.AttrDef, s *scope, address string) decl.Expr {
	c := &compiler{l: l, a: a, def: def, scope: s, address: address}
	if def.Type == decl.RefType || def.Type == decl.Refs {
		return c.references()
	}
	if !l.checkNames(a.expr, s) {
		return nil
	}
	if def.Type == decl.Env || def.Type == decl.Secret {
		c.warnOfPlain()
	}
	if !overRows(a.expr) {
		v, d := c.constant()
		if d != nil {
			l.diags.Add(*d)
			return nil
		}
		return constant{v}
	}
	eval := c.rowForm()
	if c.failed {
		return nil
	}
	p := &perRow{c, eval}
	if callsFiles(a.expr) || l.mentionsSecret(a.expr) || s.each != nil && s.each.dataset == "" {
		// Files are to be read, secrets to be known and a few members to be checked before loading ends.
		return c.early(p)
	}
	return p
}

// early evaluates p for all members now.
func (c *compiler) early(p *perRow) decl.Expr {
	if c.scope.each == nil {
		return p
	}
	t := &tally{l: c.l}
	for i := range c.scope.each.len() {
		_, d := p.Eval(c.scope.each.member(i))
		t.add(d)
	}
	t.finish(c.a.at)
	if t.n > 0 {
		return nil
	}
	return p
}

// overRows says whether the value of e depends on the member or row.
func overRows(e hclsyntax.Expression) bool {
	return slices.ContainsFunc(e.Variables(), func(t hashihcl.Traversal) bool { return t.RootName() == "each" || t.RootName() == "row" })
}

// mentionsSecret says whether e names a sensitive variable, or a local that holds one.
func (l *loader) mentionsSecret(e hclsyntax.Expression) bool {
	return slices.ContainsFunc(e.Variables(), func(t hashihcl.Traversal) bool {
		name, _ := step(t, 1)
		var v cty.Value
		switch {
		case t.RootName() == "var" && l.variables[name] != nil:
			v = l.variables[name].value
		case t.RootName() == "local" && l.locals[name] != nil:
			v = l.locals[name].value
		default:
			return false
		}
		_, found, _ := split(v)
		return len(found) > 0
	})
}

// constant is the value of an expression without rows.
func (c *compiler) constant() (any, *decl.Diagnostic) {
	if c.def.Type == decl.BytesType {
		if arg := fileCall(c.a.expr); arg != nil {
			v, diags := arg.Value(c.l.ctx)
			if d := firstError(diags, arg.Range()); d != nil {
				return nil, d
			}
			v, found, _ := split(v)
			if len(found) == 0 && v.Type() == cty.String && v.IsWhollyKnown() && !v.IsNull() {
				return c.fileBytes(v.AsString())
			}
		}
	}
	v, diags := valueOf(c.a.expr, c.l.ctx)
	if d := firstError(diags, c.a.expr.Range()); d != nil {
		return nil, d
	}
	if plain, _ := v.UnmarkDeep(); !plain.IsWhollyKnown() {
		return nil, nil // made of something that was reported
	}
	if c.def.Type == decl.BytesType {
		v = c.l.markAltered(v, c.a.at)
	}
	return c.finish(v, nil)
}

// fileCall is the argument of an expression that is exactly file(...).
func fileCall(e hclsyntax.Expression) hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.TemplateWrapExpr:
		return fileCall(e.Wrapped)
	case *hclsyntax.FunctionCallExpr:
		if e.Name == "file" && len(e.Args) == 1 && !e.ExpandFinal {
			return e.Args[0]
		}
	}
	return nil
}

func (c *compiler) fileBytes(path string) (any, *decl.Diagnostic) {
	f := c.l.reader.read(path)
	if f.err != nil {
		return nil, c.error("File cannot be read", "%v.", f.err)
	}
	return decl.Bytes{Data: f.bytes, Digest: f.digest}, nil
}

// error is a mistake in the attribute's expression.
func (c *compiler) error(summary, format string, args ...any) *decl.Diagnostic {
	return errorAt(c.a.expr.Range(), summary, format, args...)
}

// finish makes the attribute's type of a cty value.
func (c *compiler) finish(v cty.Value, each *decl.Each) (any, *decl.Diagnostic) {
	switch c.def.Type {
	case decl.Env:
		return c.environment(v, each)
	case decl.Secret:
		return c.secretAttr(v, each)
	}
	plain, found, alterations := split(v)
	if len(found) > 0 && !c.scope.secrets {
		return nil, c.error("Sensitive value not allowed here", "%s is not kept out of what is stored and shown, but its value comes from the sensitive %s. Only api_key, env and secrets may hold one.",
			c.a.name, variables(found))
	}
	if c.def.Type == decl.BytesType && len(alterations) > 0 {
		return nil, c.wouldChange(alterations[0])
	}
	return c.finishGo(fromCty(plain))
}

func (c *compiler) wouldChange(source string) *decl.Diagnostic {
	return c.error("Bytes would change", "%s is kept byte for byte, but this expression turns text into Unicode normal form C, which is not what %s holds. "+
		"Only an expression that is exactly each.value.COLUMN or file(...) keeps the bytes.", c.a.name, source)
}

// finishGo makes the attribute's type of a Go value.
func (c *compiler) finishGo(v any) (any, *decl.Diagnostic) {
	if v == nil {
		if c.def.Required {
			return nil, c.error("Missing value", "%s is required, but this is null.", c.a.name)
		}
		return nil, nil
	}
	switch c.def.Type {
	case decl.BytesType:
		s, ok := v.(string)
		if !ok {
			return nil, c.error("Wrong type", "%s: %s", c.a.name, wrong("a string", v))
		}
		if !norm.NFC.IsNormalString(s) {
			return nil, c.wouldChange("it")
		}
		return decl.Bytes{Data: []byte(s), Digest: digest.Of([]byte(s))}, nil
	case decl.Env:
		vars, m := textMap(v)
		if m != nil {
			return nil, c.error("Wrong type", "%s: %s", c.a.name, m)
		}
		out := make([]decl.EnvVar, 0, len(vars))
		for _, name := range sortedKeys(vars) {
			if d := c.checkEnv(name, vars[name]); d != nil {
				return nil, d
			}
			out = append(out, decl.EnvVar{Name: name, Value: vars[name]})
		}
		return out, nil
	case decl.Secret:
		s, m := text(v)
		if m != nil {
			return nil, c.error("Wrong type", "%s: %s", c.a.name, m)
		}
		return decl.EnvVar{Name: c.a.name, Value: s}, nil
	}
	out, m := typed(v, c.def)
	if m != nil {
		return nil, c.error("Wrong type", "%s: %s", c.a.name, m)
	}
	return out, nil
}

// isNormal says whether the source text at r is in normal form C, escapes read.
func (l *loader) isNormal(r hashihcl.Range) bool {
	src := l.sources[r.Filename]
	if !r.CanSliceBytes(src) {
		return true
	}
	return normalText(r.SliceBytes(src))
}
