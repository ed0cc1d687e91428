package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptSchema is `schema NAME FILE`: every document in FILE has the form that docs/schema/NAME.schema.json gives, and no member beyond it.
func scriptSchema(root string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) != 2 {
			ts.Fatalf("usage: schema NAME FILE")
		}
		b, err := os.ReadFile(filepath.Join(root, args[0]+".schema.json"))
		ts.Check(err)
		var s schema
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.DisallowUnknownFields() // a keyword that this checker does not know would check nothing
		ts.Check(d.Decode(&s))
		n := 0
		var mistakes []string
		for d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[1]))); d.More(); n++ {
			var doc any
			ts.Check(d.Decode(&doc))
			mistakes = append(mistakes, s.check(&s, fmt.Sprintf("document %d", n), doc)...)
		}
		if n == 0 {
			ts.Fatalf("%s holds no JSON", args[1])
		}
		if (len(mistakes) > 0) != neg {
			ts.Fatalf("%s: %s", args[0], strings.Join(mistakes, "\n"))
		}
	}
}

// A schema is as much of JSON Schema (draft 2020-12) as docs/schema uses.
type schema struct {
	Schema      string            `json:"$schema"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Type        any               `json:"type"` // a name or a list of them
	Const       any               `json:"const"`
	Enum        []any             `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Additional  *additional       `json:"additionalProperties"`
	Items       *schema           `json:"items"`
	OneOf       []schema          `json:"oneOf"`
	Ref         string            `json:"$ref"`
	Defs        map[string]schema `json:"$defs"`
}

// additional is false, or the schema of the members that properties do not name.
type additional struct{ schema *schema }

func (a *additional) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		return nil
	}
	a.schema = &schema{}
	return json.Unmarshal(b, a.schema)
}

// check lists what of v is not as s says, each with its place.
func (s *schema) check(root *schema, at string, v any) []string {
	if s.Ref != "" {
		def, ok := root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if !ok {
			return []string{at + ": the schema refers to " + s.Ref + ", which is not there"}
		}
		return def.check(root, at, v)
	}
	if s.OneOf != nil {
		return s.checkOneOf(root, at, v)
	}
	var out []string
	if s.Type != nil && !slices.ContainsFunc(types(s.Type), func(t string) bool { return isType(t, v) }) {
		return []string{fmt.Sprintf("%s is %T, not %v", at, v, s.Type)}
	}
	if s.Const != nil && s.Const != v {
		out = append(out, fmt.Sprintf("%s is %v, not %v", at, v, s.Const))
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		out = append(out, fmt.Sprintf("%s is %v, not one of %v", at, v, s.Enum))
	}
	switch x := v.(type) {
	case []any:
		for i, item := range x {
			if s.Items != nil {
				out = append(out, s.Items.check(root, fmt.Sprintf("%s[%d]", at, i), item)...)
			}
		}
	case map[string]any:
		out = append(out, s.checkMembers(root, at, x)...)
	}
	return out
}

func (s *schema) checkMembers(root *schema, at string, x map[string]any) []string {
	var out []string
	for _, name := range s.Required {
		if _, ok := x[name]; !ok {
			out = append(out, at+" lacks "+name)
		}
	}
	for name, member := range x {
		p, known := s.Properties[name]
		switch {
		case known:
			out = append(out, p.check(root, at+"."+name, member)...)
		case s.Additional != nil && s.Additional.schema == nil:
			out = append(out, at+" has a member "+name+" that the schema does not know")
		case s.Additional != nil:
			out = append(out, s.Additional.schema.check(root, at+"."+name, member)...)
		}
	}
	return out
}

func (s *schema) checkOneOf(root *schema, at string, v any) []string {
	fit := 0
	var all []string
	for _, one := range s.OneOf {
		mistakes := one.check(root, at, v)
		if len(mistakes) == 0 {
			fit++
		}
		all = append(all, mistakes...)
	}
	if fit == 1 {
		return nil
	}
	return append(all, fmt.Sprintf("%s has %d of the forms, not one", at, fit))
}

func types(t any) []string {
	if name, ok := t.(string); ok {
		return []string{name}
	}
	var out []string
	for _, name := range t.([]any) {
		out = append(out, name.(string))
	}
	return out
}

func isType(name string, v any) bool {
	switch x := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && x == float64(int64(x))
	case []any:
		return name == "array"
	}
	return name == "object"
}
