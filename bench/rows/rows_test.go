package rows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pbuild/bench/decl"

	"pgregory.net/rapid"
)

func parse(t *testing.T, name, text string, o Options) *Set {
	t.Helper()
	o.Name = name
	s, diags := Parse(text, o)
	if diags.HasErrors() {
		t.Fatalf("%s: %v", name, diags)
	}
	return s
}

// listing is every row with its values, one line each.
func listing(s *Set) string {
	var b strings.Builder
	for i := range s.Len() {
		_, line := s.Row(i).Pos()
		fmt.Fprintf(&b, "%d %s", line, s.Key(i))
		for _, c := range s.Columns() {
			fmt.Fprintf(&b, " %s=%#v", c, s.Row(i).Value(c))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ name, file, text, key, format, want string }{
		{"lines", "a.jsonl", `{"id": "x", "n": 1.5}` + "\n" + `{"id":"y","l":[1,"two",null,{"k":true}],"n":null}`, "id", "",
			"1 x id=\"x\" l=<nil> n=1.5\n2 y id=\"y\" l=[]interface {}{1, \"two\", interface {}(nil), map[string]interface {}{\"k\":true}} n=<nil>\n"},
		{"BOM, CRLF and blank lines", "a.jsonl", "\ufeff{\"id\":\"x\"}\r\n\r\n   \n{\"id\":\"y\"}\r\n", "id", "",
			"1 x id=\"x\"\n4 y id=\"y\"\n"},
		{"numbers as identities keep their form", "a.jsonl", `{"id":1.50}` + "\n" + `{"id":12345678901234567890}`, "id", "",
			"1 1.50 id=1.5\n2 12345678901234567890 id=1.234567890123456789e+19\n"},
		{"types need not agree", "a.jsonl", `{"id":"x","v":"1"}` + "\n" + `{"id":"y","v":false}`, "id", "",
			"1 x id=\"x\" v=\"1\"\n2 y id=\"y\" v=false\n"},
		{"escaped keys", "a.jsonl", `{"\u0069d":"x","a\"b":"\ud83d\ude00\n\/"}`, "id", "", "1 x a\"b=\"😀\\n/\" id=\"x\"\n"},
		{"array", "a.json", "[\n {\"id\":\"x\"},\n {\"id\":\"y\",\n \"v\":{}}\n]\n", "id", "",
			"2 x id=\"x\" v=<nil>\n3 y id=\"y\" v=map[string]interface {}{}\n"},
		{"empty array", "a.json", "[]", "id", "", ""},
		{"empty file", "a.jsonl", "", "id", "", ""},
		{"object by identity", "a.json", "{\"x\": {\"v\": 1},\n\"y\": {\"v\": 2}}", "", "", "1 x v=1\n2 y v=2\n"},
		{"object by identity, with a key", "a.json", `{"x": {"v": 1}, "y": {"v": 2, "id": "y"}}`, "id", "",
			"1 x id=\"x\" v=1\n1 y id=\"y\" v=2\n"},
		{"csv", "a.csv", "id,v\r\nx,1\r\n\r\ny,\"a, \"\"b\"\"\r\nc\"\r\nz,", "id", "",
			"2 x id=\"x\" v=\"1\"\n4 y id=\"y\" v=\"a, \\\"b\\\"\\r\\nc\"\n6 z id=\"z\" v=\"\"\n"},
		{"csv with the key last", "a.csv", "v,id\n1,x\n2,\"y\"", "id", "", "2 x id=\"x\" v=\"1\"\n3 y id=\"y\" v=\"2\"\n"},
		{"format beats extension", "a.txt", `{"id":"x"}`, "id", "jsonl", "1 x id=\"x\"\n"},
		{"swe-bench", "a.jsonl", `{"instance_id":"x","FAIL_TO_PASS":"[\"a\", \"b\"]","PASS_TO_PASS":"['c\\'d', \"e'f\", 'g\\x41',]"}` + "\n" +
			`{"instance_id":"y","FAIL_TO_PASS":["a"],"PASS_TO_PASS":""}`, "", "swe-bench",
			"1 x FAIL_TO_PASS=[]interface {}{\"a\", \"b\"} PASS_TO_PASS=[]interface {}{\"c'd\", \"e'f\", \"gA\"} instance_id=\"x\"\n" +
				"2 y FAIL_TO_PASS=[]interface {}{\"a\"} PASS_TO_PASS=[]interface {}{} instance_id=\"y\"\n"},
		{"swe-bench as csv", "a.csv", "instance_id,FAIL_TO_PASS\nx,\"['a', 'b']\"\n", "", "swe-bench",
			"2 x FAIL_TO_PASS=[]interface {}{\"a\", \"b\"} instance_id=\"x\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := listing(parse(t, c.file, c.text, Options{Key: c.key, Format: c.format})); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, text, key, format, want string }{
		{"no key", "a.jsonl", `{}`, "", "", "h.hcl:3:1: Dataset without a key"},
		{"no key of an array", "a.json", `[]`, "", "", "h.hcl:3:1: Dataset without a key"},
		{"unknown format", "a.yaml", ``, "id", "", "h.hcl:3:1: Unknown dataset format"},
		{"row lacks it", "a.jsonl", "{\"id\":\"x\"}\n{\"v\":1}", "id", "", "a.jsonl:2:1: Row without identity"},
		{"null identity", "a.jsonl", `{"id":null}`, "id", "", "a.jsonl:1:7: Invalid row identity"},
		{"empty identity", "a.jsonl", `{"id":""}`, "id", "", "a.jsonl:1:1: Empty row identity"},
		{"duplicate identity", "a.jsonl", "{\"id\":\"x\"}\n\n{\"id\":\"x\"}", "id", "", "a.jsonl:3:1: Duplicate row identity: a.jsonl:1 and a.jsonl:3 are both \"x\""},
		{"duplicate column", "a.jsonl", `{"id":"x","v":1,"v":2}`, "id", "", "a.jsonl:1:1: Duplicate column: The row has the column \"v\" twice"},
		{"duplicate nested key", "a.jsonl", `{"id":"x","v":{"a":1,"a":2}}`, "id", "", "a.jsonl:1:28: Invalid JSON: an object has the key \"a\" twice"},
		{"not an object", "a.jsonl", `["id"]`, "id", "", "a.jsonl:1:1: Row is not an object"},
		{"pretty-printed", "a.jsonl", "{\n\"id\": 1}", "id", "", "a.jsonl:1:2: Invalid JSON: a key in double quotes was expected, not the end"},
		{"two on a line", "a.jsonl", `{"id":"x"} {"id":"y"}`, "id", "", "a.jsonl:1:12: Invalid JSON: One object a line"},
		{"NaN", "a.jsonl", `{"id":"x","v":NaN}`, "id", "", "a.jsonl:1:15: Invalid JSON: a value was expected, not 'N'"},
		{"too large", "a.jsonl", `{"id":"x","v":[1e999]}`, "id", "", "a.jsonl:1:16: Invalid JSON: a number is too large"},
		{"leading zero", "a.jsonl", `{"id":"x","v":01}`, "id", "", "a.jsonl:1:16: Invalid JSON"},
		{"half a character", "a.jsonl", `{"id":"x","v":"\ud800"}`, "id", "", "a.jsonl:1:16: Invalid JSON"},
		{"control character", "a.jsonl", "{\"id\":\"x\ty\"}", "id", "", "a.jsonl:1:9: Invalid JSON: the control character 0x09"},
		{"not closed", "a.jsonl", `{"id":"x`, "id", "", "a.jsonl:1:7: Invalid JSON: a string is not closed"},
		{"too deep", "a.jsonl", `{"id":` + strings.Repeat("[", 1000), "id", "", "a.jsonl:1:506: Invalid JSON: values are nested"},
		{"UTF-8", "a.jsonl", "{\"id\":\"x\"}\n{\"id\":\"\xff\"}", "id", "", "a.jsonl:2:8: Dataset is not UTF-8: The byte 0xff"},
		{"lines as json", "a.json", "[{\"id\":1}]\n[{\"id\":2}]", "id", "", "a.json:2:1: Invalid JSON: The file ends with its first value"},
		{"scalar json", "a.json", "3", "id", "", "a.json:1:1: Invalid JSON: An array of rows"},
		{"row of an object is none", "a.json", `{"x": "patch"}`, "", "", "a.json:1:7: Row is not an object"},
		{"two identities", "a.json", `{"x": {"id": "y"}}`, "id", "", "a.json:1:1: Two identities"},
		{"object twice", "a.json", `{"x": {}, "x": {}}`, "", "", "a.json:1:1: Duplicate row identity"},
		{"csv fields", "a.csv", "id,v\nx\n", "id", "", "a.csv:2:1: Wrong number of fields: The row has 1 fields"},
		{"csv quote", "a.csv", "id,v\nx,\"a\"b\n", "id", "", "a.csv:2:3: Invalid CSV"},
		{"csv open quote", "a.csv", "id,v\nx,\"a\n", "id", "", "a.csv:2:3: Invalid CSV"},
		{"csv header", "a.csv", "id,v,v\n", "id", "", "a.csv:1:1: Duplicate column"},
		{"csv key", "a.csv", "v\n1\n", "id", "", "a.csv:1:1: Row without identity"},
		{"list", "a.jsonl", `{"instance_id":"x","FAIL_TO_PASS":"['a'"}`, "", "swe-bench", "a.jsonl:1:1: Invalid list"},
		{"list of numbers", "a.jsonl", `{"instance_id":"x","FAIL_TO_PASS":"[1]"}`, "", "swe-bench", "a.jsonl:1:1: Invalid list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, diags := Parse(c.text, Options{Name: c.file, Key: c.key, Format: c.format, At: decl.Range{File: "h.hcl", Line: 3, Col: 1}})
			if s != nil || len(diags) == 0 || !strings.HasPrefix(diags[0].Error(), c.want) {
				t.Errorf("got %v, %v; want %s", s, diags, c.want)
			}
		})
	}
}

func TestAllMistakesUpToALimit(t *testing.T) {
	_, diags := Parse("{\"v\":1}\n{]\n{\"id\":\"x\"}\n3\n", Options{Name: "a.jsonl", Key: "id"})
	if len(diags) != 3 {
		t.Errorf("got %d diagnostics, want one for each of lines 1, 2 and 4: %v", len(diags), diags)
	}
	for format, want := range map[string]string{"": "Declare `format = \"json\"`", sweBench: "Give it a name that ends in .json"} {
		_, diags = Parse(" [\n"+strings.Repeat("{\n\"instance_id\": 1\n},\n", 100)+"]", Options{Name: "a.jsonl", Key: "instance_id", Format: format})
		if len(diags) != 1 || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("a list of the format %q: got %v, want one that says %s", format, diags, want)
		}
	}
	_, diags = Parse(strings.Repeat("3\n", 1000), Options{Name: "a.jsonl", Key: "id"})
	if len(diags) != maxDiagnostics+1 {
		t.Errorf("got %d diagnostics, want %d and a last that says so", len(diags), maxDiagnostics)
	}
}

func TestParseTakesAHugeLine(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	s, diags := Parse(`{"id":"a","v":"`+huge+`"}`, Options{Key: "id", Name: "r.jsonl"})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if v := s.Row(0).Value("v"); v != huge {
		t.Error("a huge line does not come out as it went in")
	}
	if file, _ := s.Row(0).Pos(); file != "r.jsonl" {
		t.Errorf("the row is in %q", file)
	}
}

func TestBytesOutAreBytesIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x7f]*`),
			rapid.SampledFrom([]string{"e\u0301", "\u212b", "\x00", "\u2028", "\U0001f600"})).Draw(t, "in")
		if !utf8.ValidString(in) {
			t.Skip("JSON cannot carry it")
		}
		key := rapid.String().Filter(func(s string) bool { return s != "id" && utf8.ValidString(s) }).Draw(t, "column")
		line, err := json.Marshal(map[string]string{"id": "x", key: in})
		if err != nil {
			t.Fatal(err)
		}
		s, diags := Parse(string(line), Options{Name: "a.jsonl", Key: "id"})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if out, ok := s.Row(0).Bytes(key); !ok || string(out) != in {
			t.Fatalf("%q became %q, %t", in, out, ok)
		}
		quoted := "id,v\nx,\"" + strings.ReplaceAll(in, `"`, `""`) + "\"\n"
		s, diags = Parse(quoted, Options{Name: "a.csv", Key: "id"})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if out, ok := s.Row(0).Bytes("v"); !ok || string(out) != in {
			t.Fatalf("csv: %q became %q, %t", in, out, ok)
		}
	})
}

func TestBytesOnlyOfStrings(t *testing.T) {
	s := parse(t, "a.jsonl", `{"id":"x","n":1,"l":[],"z":null}`, Options{Key: "id"})
	for _, c := range []string{"n", "l", "z", "absent"} {
		if b, ok := s.Row(0).Bytes(c); ok {
			t.Errorf("%s has the bytes %q", c, b)
		}
	}
}

func TestDigests(t *testing.T) {
	x := parse(t, "a.jsonl", "{\"id\":1,\"v\":0}\n{\"id\":2,\"v\":0}\n", Options{Key: "id"})
	y := parse(t, "b.jsonl", "  {\"id\":1,\"v\":0}\r\n{\"id\":2,\"v\":1}\r\n", Options{Key: "id"})
	if x.Row(0).Digest() != y.Row(0).Digest() {
		t.Error("white space around a row, or another file, changes its digest")
	}
	if x.Row(1).Digest() == y.Row(1).Digest() {
		t.Error("an edited row has the digest that it had")
	}
}

func TestUnion(t *testing.T) {
	a := parse(t, "a.jsonl", "{\"id\":\"x\",\"v\":\"1\"}\n{\"id\":\"y\",\"v\":\"2\"}", Options{Key: "id"})
	b := parse(t, "b.csv", "v,id,w\n2,y,\n3,z,\n", Options{Key: "id"})
	c := parse(t, "c.csv", "v,id\n2,y\n3,z\n", Options{Key: "id"})
	u, diags := Union(decl.Range{}, a, c)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got, want := listing(u), "1 x id=\"x\" v=\"1\"\n2 y id=\"y\" v=\"2\"\n3 z id=\"z\" v=\"3\"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	_, diags = Union(decl.Range{File: "h.hcl", Line: 1, Col: 1}, a, b)
	if want := `h.hcl:1:1: Conflicting rows: a.jsonl:2 and b.csv:2 are both "y", but differ in the column "w"`; len(diags) != 1 || !strings.HasPrefix(diags[0].Error(), want) {
		t.Errorf("got %v, want %s", diags, want)
	}
}

// A row keeps the gates that are to admit it, through filters and unions; what one of two datasets has in any case is there in any case.
func TestAdmit(t *testing.T) {
	s := parse(t, "a.jsonl", "{\"id\":\"x\"}\n{\"id\":\"y\"}", Options{Key: "id"})
	all := func(string) bool { return true }
	union := func(sets ...decl.Dataset) *Set {
		out, diags := Union(decl.Range{}, sets...)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return out
	}
	one := Admit(s, "one", all)
	both := Admit(one, "two", func(key string) bool { return key == "y" })
	filtered, _ := Filter(one, func(r decl.Row) (bool, *decl.Diagnostic) { return r.Value("id") == "y", nil })
	for _, c := range []struct {
		name string
		set  *Set
		want string
	}{
		{"no gate", s, "x[] y[]"},
		{"one", one, "x[one] y[one]"},
		{"another", both, "y[one two]"},
		{"filter", filtered, "y[one]"},
		{"union with all", union(one, s), "x[] y[]"},
		{"all and union", union(s, one), "x[] y[]"},
		{"union with more gates", union(both, one), "y[one] x[one]"},
		{"and with less", union(one, both), "x[one] y[one]"},
		{"with itself", union(one, one), "x[one] y[one]"},
	} {
		var got []string
		for i := range c.set.Len() {
			got = append(got, fmt.Sprint(c.set.Key(i), decl.Gates(c.set.Row(i))))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	_, diags := Union(decl.Range{File: "h.hcl", Line: 1, Col: 1}, both, one, Admit(s, "other", all))
	if len(diags) != 1 || !strings.HasPrefix(diags[0].Error(), `h.hcl:1:1: Row of two gates: "x" is here if gate.one admits it, and also if gate.other does (2 in all).`) {
		t.Errorf("got %v", diags)
	}
}

func TestFilter(t *testing.T) {
	s := parse(t, "a.jsonl", "{\"id\":\"x\",\"v\":1}\n{\"id\":\"y\",\"v\":2}", Options{Key: "id"})
	f, diags := Filter(s, func(r decl.Row) (bool, *decl.Diagnostic) { return r.Value("v") == 2.0, nil })
	if diags.HasErrors() || f.Len() != 1 || f.Key(0) != "y" || !reflect.DeepEqual(f.Columns(), []string{"id", "v"}) {
		t.Errorf("got %v, %v", listing(f), diags)
	}
	f, diags = Filter(s, func(r decl.Row) (bool, *decl.Diagnostic) {
		return false, &decl.Diagnostic{Severity: decl.Error, Summary: "bad", Row: decl.Place(r)}
	})
	if f != nil || len(diags) != 2 || diags[1].Row != "a.jsonl:2" {
		t.Errorf("got %v, %v", f, diags)
	}
}
