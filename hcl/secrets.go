package hcl

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// secrets are the sensitive values by name. A name is a variable's, an element's of one (`keys["a"]`), or, for a value made with
// variables, the text with their names in their places (`Bearer ${var.token}`). Names may enter keys, values may not.
type secrets struct {
	mu     sync.Mutex
	values map[string]string
}

// add remembers a value, and returns the name under which it is known: the given one, unless that means another value already.
func (s *secrets) add(name, otherwise, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.values[name]; ok && old != value {
		name = otherwise
	}
	s.values[name] = value
	return name
}

func (s *secrets) snapshot() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// shortestSecret is the least number of bytes that is replaced in text: shorter ones occur by chance.
const shortestSecret = 6

// redact takes sensitive values out of a message, longer ones first: one may be part of another.
func (s *secrets) redact(text string) string {
	s.mu.Lock()
	values := slices.Collect(maps.Values(s.values))
	s.mu.Unlock()
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, v := range values {
		if len(v) >= shortestSecret {
			text = strings.ReplaceAll(text, v, "(sensitive value)")
		}
	}
	return text
}

// redactAll takes sensitive values out of diagnostics, which become sorted.
func (s *secrets) redactAll(ds decl.Diagnostics) decl.Diagnostics {
	for i := range ds {
		ds[i].Detail = s.redact(ds[i].Detail)
	}
	return ds.Sort()
}

// addVariable remembers the strings, numbers and bools of a sensitive variable.
func (s *secrets) addVariable(name string, v cty.Value) {
	leaves(v, "", func(path string, leaf cty.Value) {
		value, m := text(fromCty(leaf))
		if m == nil {
			s.add(name+path, name+path, value)
		}
	})
}

// placeholders are the variables with each sensitive value replaced by its own name, and the locals over them: evaluated with these, an expression
// tells how its secret value is made without telling the value.
func (l *loader) placeholders() *hashihcl.EvalContext {
	l.shadowOnce.Do(func() {
		vars := map[string]cty.Value{}
		for name, v := range l.variables {
			vars[name] = v.value
			if v.sensitive {
				plain, _ := v.value.UnmarkDeep()
				vars[name] = replaceLeaves(plain, "", func(path string) cty.Value { return cty.StringVal("${var." + name + path + "}") })
			}
		}
		l.shadow = l.context(cty.ObjectVal(vars), func(lo *local, ctx *hashihcl.EvalContext) cty.Value {
			v, diags := valueOf(lo.attr.expr, ctx)
			if diags.HasErrors() {
				return cty.DynamicVal
			}
			return v
		})
	})
	return l.shadow
}

// secretName is the name for a value that, with placeholders, reads shown.
func secretName(shown string) string {
	if inner, ok := strings.CutPrefix(shown, "${var."); ok {
		if name, ok := strings.CutSuffix(inner, "}"); ok && !strings.Contains(name, "${") {
			return name
		}
	}
	return shown
}
