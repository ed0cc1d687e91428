package hcl

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// fromCty is v in Go: nil, bool, float64, decl.Decimal, string, []any or map[string]any. v is known and unmarked.
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
		return decl.NumberOf(v.AsBigFloat())
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

// valueOf is the value of e. A number in it that is infinite, or of a size that no text should have, is an error.
func valueOf(e hclsyntax.Expression, ctx *hashihcl.EvalContext) (cty.Value, hashihcl.Diagnostics) {
	v, diags := e.Value(ctx)
	if diags.HasErrors() || inRange(v) {
		return v, diags
	}
	at := e.Range()
	return cty.DynamicVal, append(diags, &hashihcl.Diagnostic{Severity: hashihcl.DiagError, Summary: "Number out of range", Subject: &at,
		Detail: "This comes to a number that is infinite, as one divided by zero is, or beyond about 1e308, or nearer to zero than 5e-324."})
}

func inRange(v cty.Value) bool {
	v, _ = v.Unmark()
	switch {
	case v.IsNull() || !v.IsKnown():
	case v.Type() == cty.Number:
		return decl.InRange(v.AsBigFloat())
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			if _, e := it.Element(); !inRange(e) {
				return false
			}
		}
	}
	return true
}

// toCty is the reverse of fromCty.
func toCty(v any) cty.Value {
	switch v := v.(type) {
	case bool:
		return cty.BoolVal(v)
	case float64:
		// With the precision of a literal, lest what is computed of two rows' numbers be rounded.
		return cty.NumberVal(new(big.Float).SetPrec(decl.Precision).SetFloat64(v))
	case decl.Decimal:
		return cty.NumberVal(v.Float)
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
	case float64, decl.Decimal:
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
	case decl.Decimal:
		return v.String(), nil
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

// number is a float64 or a decl.Decimal; a string that is one becomes it.
func number(v any) (any, *mismatch) {
	switch v := v.(type) {
	case float64, decl.Decimal:
		return v, nil
	case string:
		if n, ok := decl.ParseNumber(v); ok {
			return n, nil
		}
		return nil, wrongly("a number", strconv.Quote(v))
	}
	return nil, wrong("a number", v)
}

// float is a number of 0 or more, to the nearest that there is.
func float(v any) (float64, *mismatch) {
	n, m := number(v)
	if m != nil {
		return 0, m
	}
	f, ok := n.(float64)
	if !ok {
		f, _ = n.(decl.Decimal).Float64()
	}
	if f < 0 {
		got, _ := text(n)
		return 0, wrongly("a number of 0 or more", got)
	}
	return f, nil
}

func whole(v any, least int64) (int64, *mismatch) {
	n, m := number(v)
	if m != nil {
		return 0, m
	}
	if f, ok := n.(float64); ok && f >= float64(least) {
		return int64(f), nil
	}
	got, _ := text(n)
	if d, ok := n.(decl.Decimal); ok && d.IsInt() && d.Sign() > 0 {
		return 0, wrongly("a whole number below 2^53", got)
	}
	return 0, wrongly(fmt.Sprintf("a whole number of %d or more", least), got)
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
	s, _ := v.(string)
	switch v.(type) {
	case string:
	case float64, decl.Decimal:
		n, m := whole(v, 1)
		if m != nil {
			return 0, wrongly(want, m.got)
		}
		return n, nil
	default:
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
		out, m = float(v)
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
