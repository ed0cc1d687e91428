package hcl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"
)

// Two marks ride on cty values. A secret names the sensitive variable that a value comes from; an altered says where cty's Unicode
// normalisation changed a text, which a bytes attribute must then refuse.
type (
	secret  struct{ variable string }
	altered struct{ source string }
)

// textValue is s as a cty string, marked if that is not s any more.
func textValue(s, source string) cty.Value {
	v := cty.StringVal(s)
	if !norm.NFC.IsNormalString(s) {
		return v.Mark(altered{source})
	}
	return v
}

// split takes the marks off v and tells the secrets and alterations that were on it or in it.
func split(v cty.Value) (plain cty.Value, secrets, alterations []string) {
	if !v.ContainsMarked() {
		return v, nil, nil
	}
	plain, marks := v.UnmarkDeep()
	for m := range marks {
		switch m := m.(type) {
		case secret:
			secrets = append(secrets, m.variable)
		case altered:
			alterations = append(alterations, m.source)
		}
	}
	slices.Sort(secrets)
	slices.Sort(alterations)
	return plain, secrets, alterations
}

// variables is "var.a and var.b" of names.
func variables(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "var." + n
	}
	return strings.Join(out, " and ")
}

// leaves calls f for every string, number and bool in v, with the path to it: `["key"][0]`.
func leaves(v cty.Value, path string, f func(path string, leaf cty.Value)) {
	v, _ = v.Unmark()
	if v.IsNull() || !v.IsKnown() {
		return
	}
	if !v.CanIterateElements() {
		f(path, v)
		return
	}
	set := v.Type().IsSetType()
	for it, i := v.ElementIterator(), 0; it.Next(); i++ {
		k, e := it.Element()
		switch {
		case set:
			leaves(e, fmt.Sprintf("%s[%d]", path, i), f)
		case k.Type() == cty.String:
			leaves(e, fmt.Sprintf("%s[%q]", path, k.AsString()), f)
		default:
			leaves(e, fmt.Sprintf("%s[%s]", path, numberText(k)), f)
		}
	}
}

// replaceLeaves is v with every string, number and bool replaced.
func replaceLeaves(v cty.Value, path string, f func(path string) cty.Value) cty.Value {
	if v.IsNull() {
		return v
	}
	if !v.CanIterateElements() {
		return f(path)
	}
	t := v.Type()
	if t.IsMapType() || t.IsObjectType() {
		out := map[string]cty.Value{}
		for k, e := range v.AsValueMap() {
			out[k] = replaceLeaves(e, fmt.Sprintf("%s[%q]", path, k), f)
		}
		return cty.ObjectVal(out)
	}
	var out []cty.Value
	for it, i := v.ElementIterator(), 0; it.Next(); i++ {
		_, e := it.Element()
		out = append(out, replaceLeaves(e, fmt.Sprintf("%s[%d]", path, i), f))
	}
	return cty.TupleVal(out)
}

// sortedKeys are the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
