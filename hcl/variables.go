package hcl

import (
	"errors"
	"io/fs"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"pbuild/bench/decl"
)

// A variable is one input of the workspace.
type variable struct {
	block     *block
	typ       cty.Type
	kind      string // without a type: what the default is, for people; "" for a string or none
	defaults  *typeexpr.Defaults
	sensitive bool
	given     bool // by default or from outside
	wrong     bool // the value that holds is not of the type
	value     cty.Value
}

func (l *loader) declareVariable(b *block) {
	name := b.labels[0]
	if first := l.variables[name]; first != nil {
		l.errorf(b.at, "Duplicate block", "variable.%s is already declared at %s. Names are unique among the blocks of a type.", name, rangeOf(first.block.at))
		return
	}
	l.variables[name] = &variable{block: b, typ: cty.DynamicPseudoType, value: cty.DynamicVal}
}

// evaluateVariables gives each variable its value: default, environment, pbuild.vars.hcl, --var-file in order, --var; the last wins.
func (l *loader) evaluateVariables() {
	for _, name := range sortedKeys(l.variables) {
		l.readVariable(l.variables[name])
	}
	const prefix = "PBUILD_VAR_"
	for _, pair := range l.o.Environ {
		name, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		at := hashihcl.Range{Filename: prefix + name}
		if v := l.variables[name]; v != nil {
			l.setText(v, value, at)
		} else {
			l.warnf(at, "Undefined variable", "The environment sets %s%s, but there is no variable %q.%s", prefix, name, name, didYouMean(name, sortedKeys(l.variables)))
		}
	}
	for _, name := range []string{varsFile, varsFile + ".json"} {
		if f := l.reader.read(name); !errors.Is(f.err, fs.ErrNotExist) {
			l.readVars(name)
		}
	}
	for _, path := range l.o.VarFiles {
		l.readVars(path)
	}
	for _, pair := range l.o.Vars {
		name, value, ok := strings.Cut(pair, "=")
		at := hashihcl.Range{Filename: "--var " + name}
		v := l.variables[name]
		switch {
		case !ok:
			l.errorf(at, "Malformed --var", "%q is not of the form name=value.", pair)
		case v == nil:
			l.errorf(at, "Undefined variable", "There is no variable %q.%s", name, didYouMean(name, sortedKeys(l.variables)))
		default:
			l.setText(v, value, at)
		}
	}
	for _, name := range sortedKeys(l.variables) {
		v := l.variables[name]
		if !v.given {
			l.errorf(v.block.at, "Variable without a value", "The variable %q has no default. Give it with --var %s=..., PBUILD_VAR_%s or in %s.", name, name, name, varsFile)
		}
		if v.sensitive {
			l.secrets.addVariable(name, v.value)
			v.value = v.value.Mark(secret{name})
		}
	}
}

// readVariable reads type, sensitive and default of a variable's block.
func (l *loader) readVariable(v *variable) {
	b := v.block.body
	def := decl.Find("variable")
	l.checkBody(v.block, def)
	if a := b.attr("type"); a != nil {
		t, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.reference())
		l.diags.Add(foreign(diags, a.at)...)
		if !diags.HasErrors() {
			v.typ, v.defaults = t, defaults
		}
	}
	if a := b.attr("sensitive"); a != nil {
		if s, ok := l.constant(a, def.Attr("sensitive")).(bool); ok {
			v.sensitive = s
		}
	}
	if a := b.attr("description"); a != nil {
		l.constant(a, def.Attr("description"))
	}
	if a := b.attr("default"); a != nil {
		if val, ok := l.plainValue(a.expr, a.at); ok {
			l.set(v, l.markAltered(val, a.at), a.at)
			if plain, _ := val.UnmarkDeep(); v.typ == cty.DynamicPseudoType && !plain.IsNull() && plain.Type() != cty.String {
				v.kind = typeName(fromCty(plain))
			}
		}
		v.given = true // a mistake in it is not also a missing value
	}
}

// constant evaluates an attribute of a variable, in which nothing may be named.
func (l *loader) constant(a *attribute, def *decl.AttrDef) any {
	val, ok := l.plainValue(a.expr, a.at)
	if !ok || val.IsNull() {
		return nil
	}
	out, m := typed(fromCty(val), def)
	if m != nil {
		l.errorf(a.expr.Range(), "Wrong type", "%s: %s", a.name, m)
		return nil
	}
	return out
}

// plainValue evaluates an expression in which nothing may be named.
func (l *loader) plainValue(e hclsyntax.Expression, at hashihcl.Range) (cty.Value, bool) {
	if !l.checkNames(e, &scope{plain: true}) {
		return cty.DynamicVal, false
	}
	val, diags := valueOf(e, &hashihcl.EvalContext{Functions: l.functions})
	l.diags.Add(foreign(diags, at)...)
	return val, !diags.HasErrors()
}

// setText sets a variable from an environment variable or flag: text, or an HCL expression where the variable is no string.
func (l *loader) setText(v *variable, text string, at hashihcl.Range) {
	v.given = true
	if v.typ == cty.String || v.typ == cty.DynamicPseudoType && v.kind == "" {
		l.set(v, textValue(text, at.Filename), at)
		return
	}
	start := hashihcl.Pos{Line: 1, Column: 1}
	expr, diags := hclsyntax.ParseExpression([]byte(text), at.Filename, start)
	if diags.HasErrors() || len(expr.Variables()) > 0 { // a bare word is a reference to something
		// What upstream says may quote the value, which may be sensitive.
		l.notOfType(v, at)
		return
	}
	if val, ok := l.plainValue(expr, at); ok {
		if v.kind != "" && !val.IsNull() && typeName(fromCty(val)) != v.kind {
			l.notOfType(v, at)
			return
		}
		if !normalText([]byte(text)) {
			val = val.Mark(altered{at.Filename})
		}
		l.set(v, val, at)
	}
}

func (l *loader) notOfType(v *variable, at hashihcl.Range) {
	is := "of the type " + typeexpr.TypeString(v.typ)
	if v.kind != "" {
		is = v.kind + ", as its default is"
	}
	l.errorf(at, "Invalid value of a variable", "var.%s is %s: its value is to be an HCL expression of that type, such as [\"a\"], {k = \"v\"} or 3.", v.block.labels[0], is)
}

// set converts a value to the variable's type.
func (l *loader) set(v *variable, val cty.Value, at hashihcl.Range) {
	v.given = true
	if v.defaults != nil && !val.IsNull() {
		val = v.defaults.Apply(val)
	}
	out, err := convert.Convert(val, v.typ)
	if err != nil {
		l.errorf(at, "Invalid value of a variable", "var.%s is of the type %s: %v.", v.block.labels[0], typeexpr.TypeString(v.typ), err)
		v.value, v.wrong = cty.DynamicVal, true
		return
	}
	v.value, v.wrong = out, false
}

// readVars reads a file of NAME = VALUE lines.
func (l *loader) readVars(path string) {
	name := l.reader.short(l.reader.abs(path))
	f := l.reader.read(path)
	if f.err != nil {
		l.errorf(hashihcl.Range{Filename: name}, "File cannot be read", "%v.", f.err)
		return
	}
	l.sources[name] = f.bytes
	l.closed[name] = l.anySensitive()
	var b *body
	var diags decl.Diagnostics
	if strings.HasSuffix(name, ".json") {
		b, diags = parseJSON(f.bytes, name, nil)
	} else {
		b, diags = parseNative(f.bytes, name)
	}
	l.diags.Add(diags...)
	for _, n := range b.blocks {
		l.errorf(n.at, "Unknown block", "A file of variables holds lines NAME = VALUE, not blocks.")
	}
	for _, a := range b.attrs {
		v := l.variables[a.name]
		if v == nil {
			l.errorf(a.nameAt, "Undefined variable", "There is no variable %q.%s", a.name, didYouMean(a.name, sortedKeys(l.variables)))
			continue
		}
		v.given = true
		if v.sensitive && len(a.expr.Variables()) > 0 { // a value without its quotes is a reference, which the diagnostic would name
			l.notOfType(v, a.at)
			continue
		}
		if val, ok := l.plainValue(a.expr, a.at); ok {
			l.set(v, l.markAltered(val, a.at), a.at)
		}
	}
}

func (l *loader) anySensitive() bool {
	for _, v := range l.variables {
		if v.sensitive {
			return true
		}
	}
	return false
}

// variableValues is the object `var`.
func (l *loader) variableValues() cty.Value {
	vals := make(map[string]cty.Value, len(l.variables))
	for name, v := range l.variables {
		vals[name] = v.value
	}
	return cty.ObjectVal(vals)
}

// finishVariables checks the validations, which may name every variable and local.
func (l *loader) finishVariables() {
	def := decl.Find("variable").Block("validation")
	for _, name := range sortedKeys(l.variables) {
		if l.variables[name].wrong {
			continue // one mistake is enough
		}
		for _, n := range l.variables[name].block.body.blocks {
			if n.typ != "validation" || !l.checkBody(n, def) {
				continue
			}
			l.checkCondition(n, &scope{secrets: true}, def, "Invalid value of a variable", "var."+name)
		}
	}
}
