package hcl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions are those of the language. None of them knows the time, the network, the machine or chance.
func functions(r *reader) map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "int": stdlib.IntFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "signum": stdlib.SignumFunc,

		"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc, "indent": stdlib.IndentFunc, "join": stdlib.JoinFunc,
		"lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "regexreplace": stdlib.RegexReplaceFunc,
		"replace": stdlib.ReplaceFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc,
		"title": stdlib.TitleFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,
		"startswith": textTest("prefix", strings.HasPrefix), "endswith": textTest("suffix", strings.HasSuffix),

		"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "hasindex": stdlib.HasIndexFunc, "index": stdlib.IndexFunc, "keys": stdlib.KeysFunc, "length": stdlib.LengthFunc,
		"lookup": lookup, "merge": stdlib.MergeFunc, "range": stdlib.RangeFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
		"setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc, "slice": stdlib.SliceFunc,
		"sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

		"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "sha256": textFunc("text", sha),
		"basename": textFunc("path", path.Base), "dirname": textFunc("path", path.Dir),
		"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,

		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tonumber": stdlib.MakeToFunc(cty.Number), "tostring": stdlib.MakeToFunc(cty.String),
		"tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)),

		"file": fileFunc(r), "fileset": filesetFunc(r),
	}
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func textFunc(param string, f func(string) string) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(f(args[0].AsString())), nil
		},
	})
}

func textTest(param string, f func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

// lookup is the standard library's, but takes null as default.
var lookup = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "map", Type: cty.DynamicPseudoType}, {Name: "key", Type: cty.String}},
	VarParam: &function.Parameter{Name: "default", Type: cty.DynamicPseudoType, AllowNull: true, AllowDynamicType: true},
	Type: func(args []cty.Value) (cty.Type, error) {
		v, err := lookedUp(args)
		return v.Type(), err
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return lookedUp(args) },
})

func lookedUp(args []cty.Value) (cty.Value, error) {
	m, key := args[0], args[1]
	t := m.Type()
	switch {
	case len(args) > 3:
		return cty.DynamicVal, fmt.Errorf("a map, a key and at most one default are required")
	case !m.IsKnown() || !key.IsKnown():
		return cty.DynamicVal, nil
	case !t.IsMapType() && !t.IsObjectType():
		return cty.DynamicVal, function.NewArgErrorf(0, "a map or object is required, not %s", t.FriendlyName())
	case t.IsObjectType() && t.HasAttribute(key.AsString()):
		return m.GetAttr(key.AsString()), nil
	case t.IsMapType() && m.HasIndex(key).True():
		return m.Index(key), nil
	case len(args) == 2:
		return cty.DynamicVal, function.NewArgErrorf(1, "the map has no key %q, and there is no default", key.AsString())
	case t.IsMapType():
		// The default is of the elements' type if it can be.
		if v, err := convert.Convert(args[2], t.ElementType()); err == nil {
			return v, nil
		}
	}
	return args[2], nil
}

// paths are arguments that name files: they are remembered as read, and so may not be sensitive.
func paths(args []cty.Value) ([]cty.Value, error) {
	out := make([]cty.Value, len(args))
	for i, a := range args {
		plain, found, _ := split(a)
		if len(found) > 0 {
			return nil, function.NewArgErrorf(i, "a path is stored, but this comes from the sensitive %s", variables(found))
		}
		out[i] = plain
	}
	return out, nil
}

// fileFunc is file(path): the text of a file, marked if cty's normalisation changed it.
func fileFunc(r *reader) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			args, err := paths(args)
			if err != nil {
				return cty.UnknownVal(cty.String), err
			}
			f := r.read(args[0].AsString())
			if f.err != nil {
				return cty.UnknownVal(cty.String), function.NewArgErrorf(0, "%v", f.err)
			}
			if !utf8.Valid(f.bytes) {
				return cty.UnknownVal(cty.String), function.NewArgErrorf(0, "%s is not UTF-8 text; only a bytes attribute that is exactly file(...) can hold it", args[0].AsString())
			}
			return textValue(string(f.bytes), "the file "+args[0].AsString()), nil
		},
	})
}

// filesetFunc is fileset(directory, pattern): the files that match, relative to the directory.
func filesetFunc(r *reader) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "directory", Type: cty.String, AllowMarked: true}, {Name: "pattern", Type: cty.String, AllowMarked: true}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			args, err := paths(args)
			if err != nil {
				return cty.UnknownVal(t), err
			}
			found, err := r.glob(args[0].AsString(), args[1].AsString())
			if err != nil {
				return cty.UnknownVal(t), err
			}
			if len(found) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			vals := make([]cty.Value, len(found))
			for i, f := range found {
				vals[i] = cty.StringVal(f)
			}
			return cty.SetVal(vals), nil
		},
	})
}
