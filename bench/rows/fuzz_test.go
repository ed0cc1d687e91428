package rows

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pbuild/bench/decl"
)

// What loads must say the same as encoding/json does, line by line; and no text may make a reader panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"{\"id\":\"x\",\"v\":[1,{\"a\":null}],\"w\":\"\\ud83d\\ude00\"}\n", "\ufeff{\"id\":1}\r\n", "[{\"id\":\"x\"}]", `{"x":{"v":"\\"}}`,
		"id,v\nx,\"a\"\"b\r\n\"\n", "{\"id\":\"x\",\"FAIL_TO_PASS\":\"['a\\\\n', \\\"b\\\"]\"}", `{"id" : -0.1e+2 , "v":{} }`, `{"\"":"","id":"\\\""}`, `{"id": 9007199254740993, "l": [0.1, 1e-3, [], {}, "a\u0031", {"x" : true , "y":false}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.jsonl", "a.json", "a.csv"} {
			for _, format := range []string{"", sweBench} {
				s, diags := Parse(text, Options{Name: name, Key: "id", Format: format})
				if (s == nil) != diags.HasErrors() {
					t.Fatalf("%s: a set %t with %v", name, s != nil, diags)
				}
				if s == nil {
					continue
				}
				for i := range s.Len() {
					for _, c := range s.Columns() {
						s.Row(i).Value(c)
						s.Row(i).Bytes(c)
					}
					s.Row(i).Digest()
				}
				if name == "a.jsonl" && format == "" {
					sameAsJSON(t, text, s)
				}
			}
		}
	})
}

// exact puts numbers for their texts.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := decl.ParseNumber(v.String())
		return n
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

func sameAsJSON(t *testing.T, text string, s *Set) {
	i := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var want map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q was taken for a row: %v", line, err)
		}
		for _, c := range s.Columns() {
			if got := s.Row(i).Value(c); !reflect.DeepEqual(got, exact(want[c])) {
				t.Fatalf("%q: column %q is %#v, want %#v", line, c, got, want[c])
			}
		}
		i++
	}
	if i != s.Len() {
		t.Fatalf("%d rows of %d lines", s.Len(), i)
	}
}
