package hcl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// fromCty is v in Go: nil, bool, float64, string, []any or map[string]any. v is known and unmarked.
func fromCty(v cty.Value) any {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	t := v.Type()
	switch {
	case t == cty.String:
		return v.AsString()
	case t == cty.Bool:
		return v.True()
	case t == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f
	case t.IsMapType() || t.IsObjectType():
		out := make(map[string]any, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			out[k.AsString()] = fromCty(e)
		}
		return out
	case t.IsListType() || t.IsTupleType() || t.IsSetType():
		out := make([]any, 0, v.LengthInt())
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, fromCty(e))
		}
		return out
	}
	return nil // capsules: no function returns one
}

// toCty is the reverse of fromCty.
func toCty(v any) cty.Value {
	switch v := v.(type) {
	case bool:
		return cty.BoolVal(v)
	case float64:
		return cty.NumberFloatVal(v)
	case string:
		return cty.StringVal(v)
	case []any:
		out := make([]cty.Value, len(v))
		for i, e := range v {
			out[i] = toCty(e)
		}
		return cty.TupleVal(out)
	case map[string]any:
		out := make(map[string]cty.Value, len(v))
		for k, e := range v {
			out[k] = toCty(e)
		}
		return cty.ObjectVal(out)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// numberText is a cty number as a string, as cty converts it.
func numberText(v cty.Value) string { return v.AsBigFloat().Text('f', -1) }

// typeName is what a value is, for people.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "a map"
}

// A mismatch is why a value is not of the type that is required. It is made only when it is needed.
type mismatch struct{ want, got, hint string }

func (m *mismatch) String() string {
	return strings.ToUpper(m.want[:1]) + m.want[1:] + " is required here, not " + m.got + "." + m.hint
}

func wrong(want string, v any) *mismatch { return &mismatch{want: want, got: typeName(v)} }

func wrongly(want, got string) *mismatch { return &mismatch{want: want, got: got} }

// text is a string; numbers and bools become one, as cty's conversion has it.
func text(v any) (string, *mismatch) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", wrong("a string", v)
}

func boolean(v any) (bool, *mismatch) {
	switch v {
	case true, "true":
		return true, nil
	case false, "false":
		return false, nil
	}
	return false, wrong("true or false", v)
}

func number(v any) (float64, *mismatch) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
		return 0, wrongly("a number", strconv.Quote(v))
	}
	return 0, wrong("a number", v)
}

func whole(v any, least int64) (int64, *mismatch) {
	f, m := number(v)
	if m != nil {
		return 0, m
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 || f < float64(least) {
		return 0, wrongly(fmt.Sprintf("a whole number of %d or more", least), strconv.FormatFloat(f, 'f', -1, 64))
	}
	return int64(f), nil
}

func duration(v any) (time.Duration, *mismatch) {
	const want = `a duration such as "90s", "30m" or "1h30m", more than zero,`
	s, ok := v.(string)
	if !ok {
		return 0, wrong(want, v)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, wrongly(want, strconv.Quote(s))
	}
	return d, nil
}

// sizeUnits has the longer names first, since each ends in a shorter one.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func size(v any) (int64, *mismatch) {
	const want = `a size such as "512MiB" or "10GB", or a number of bytes,`
	if f, ok := v.(float64); ok {
		n, m := whole(f, 1)
		if m != nil {
			return 0, wrongly(want, m.got)
		}
		return n, nil
	}
	s, ok := v.(string)
	if !ok {
		return 0, wrong(want, v)
	}
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(s, u.name)
		if !found {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if n := f * u.bytes; err == nil && n >= 1 && n < 1<<62 && n == math.Trunc(n) {
			return int64(n), nil
		}
		break
	}
	return 0, wrongly(want, strconv.Quote(s))
}

func texts(v any) ([]string, *mismatch) {
	l, ok := v.([]any)
	if !ok {
		m := wrong("a list of strings", v)
		if _, ok := v.(string); ok { // which is not shown: it may be sensitive
			m.hint = ` Write a string for each element, as in ["sh", "test.sh"].`
		}
		return nil, m
	}
	out := make([]string, len(l))
	for i, e := range l {
		s, m := text(e)
		if m != nil {
			return nil, wrongly("a list of strings", fmt.Sprintf("a list whose element %d is %s", i, typeName(e)))
		}
		out[i] = s
	}
	return out, nil
}

func textMap(v any) (map[string]string, *mismatch) {
	in, ok := v.(map[string]any)
	if !ok {
		return nil, wrong("a map of strings", v)
	}
	out := make(map[string]string, len(in))
	for k, e := range in {
		s, m := text(e)
		if m != nil {
			return nil, wrongly("a map of strings", fmt.Sprintf("a map whose %q is %s", k, typeName(e)))
		}
		out[k] = s
	}
	return out, nil
}

// typed is v, which is not null, in the Go form of the attribute's type.
func typed(v any, def *decl.AttrDef) (any, *mismatch) {
	var out any
	var m *mismatch
	switch def.Type {
	case decl.String:
		var s string
		if s, m = text(v); m == nil {
			m = allowed(s, def)
		}
		out = s
	case decl.Bool, decl.Condition:
		out, m = boolean(v)
	case decl.Int:
		out, m = whole(v, def.Min)
	case decl.Number:
		var f float64
		if f, m = number(v); m == nil && f < 0 {
			m = wrongly("a number of 0 or more", strconv.FormatFloat(f, 'f', -1, 64))
		}
		out = f
	case decl.Duration:
		out, m = duration(v)
	case decl.Size:
		out, m = size(v)
	case decl.Strings:
		if s, ok := v.(string); ok && def.Alone {
			v = []any{s}
		}
		var l []string
		l, m = texts(v)
		for i := 0; m == nil && i < len(l); i++ {
			m = allowed(l[i], def)
		}
		out = l
	case decl.StringMap:
		out, m = textMap(v)
	case decl.Any:
		out = v
	default:
		panic("pbuild bug: the type of attribute " + def.Name + " is not converted here")
	}
	return out, m
}

func allowed(s string, def *decl.AttrDef) *mismatch {
	if slices.Contains(def.NoneOf, s) {
		return wrongly("a name that is none of "+list(def.NoneOf), strconv.Quote(s))
	}
	if len(def.OneOf) == 0 || slices.Contains(def.OneOf, s) {
		return nil
	}
	quoted := make([]string, len(def.OneOf))
	for i, o := range def.OneOf {
		quoted[i] = strconv.Quote(o)
	}
	return &mismatch{list(quoted), strconv.Quote(s), didYouMean(s, def.OneOf)}
}
