package hcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
)

func archive(files ...string) *txtar.Archive {
	a := &txtar.Archive{}
	for i := 0; i < len(files); i += 2 {
		a.Files = append(a.Files, txtar.File{Name: files[i], Data: []byte(files[i+1])})
	}
	return a
}

// topBlocks are the blocks of kinds, as text.
func topBlocks(t testing.TB) []string {
	f, diags := hclsyntax.ParseConfig([]byte(kinds), "kinds", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var out []string
	for _, b := range f.Body.(*hclsyntax.Body).Blocks {
		out = append(out, string(b.Range().SliceBytes([]byte(kinds))))
	}
	return out
}

func TestLayoutChangesNothing(t *testing.T) {
	blocks := topBlocks(t)
	want := render(t, load(t, Options{}, "b.hcl", kinds, "prompt.md", "p").Workspace)
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		files := map[string]string{"prompt.md": "p"}
		for _, b := range rapid.Permutation(blocks).Draw(rt, "order") {
			lines := strings.Split(b, "\n")
			for i := range lines {
				switch rapid.IntRange(0, 4).Draw(rt, "edit") {
				case 0:
					lines[i] = "  " + lines[i]
				case 1:
					lines[i] += " # why\n"
				case 2:
					lines[i] = "/* é */ " + strings.ReplaceAll(lines[i], " = ", "   =  ")
				}
			}
			name := rapid.SampledFrom([]string{"a.hcl", "b.hcl", "z.hcl"}).Draw(rt, "file")
			files[name] += strings.Join(lines, "\n") + "\n"
		}
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		for name, text := range files {
			if formatted, diags := Format([]byte(text), name); strings.HasSuffix(name, ".hcl") && rapid.Bool().Draw(rt, "format") {
				if diags.HasErrors() {
					rt.Fatal(listing(diags))
				}
				text = string(formatted)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		w, diags := opened(dir, Options{})
		if diags.HasErrors() {
			rt.Fatal(listing(diags))
		}
		if diff := cmp.Diff(want, render(t, w)); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// awkward draws strings that normalisation is likely to change.
func awkward() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("eE a\u0301\u0300é\n\r\t\"\\$%{}\u1100\u1161\u212b\u0344"))))
}

func TestBytesOutAreBytesIn(t *testing.T) {
	const rules = `
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
source "s" {
  dir { path = "." }
}
runtime "r" {
  host {}
  probe = ["true"]
}
instance "i" {
  for_each          = dataset.d
  source            = source.s
  gold_patch        = each.value.patch
  test_patch        = "${each.value["patch"]}"
  problem_statement = file("statement")
  hints             = file("${each.key}.bin")
  runtime           = runtime.r
  test {
    command      = ["run", each.value.patch, "<${each.value.patch}>"]
    fail_to_pass = each.value.ids
  }
}
agent "a" {
  kind   = "nop"
  prompt = file("statement")
}
`
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		patch, ids := awkward().Draw(rt, "patch"), rapid.SliceOf(awkward()).Draw(rt, "ids")
		raw := rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")
		row, err := json.Marshal(map[string]any{"id": "x", "patch": patch, "ids": ids})
		if err != nil {
			rt.Fatal(err)
		}
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		for name, data := range map[string][]byte{"b.hcl": []byte(rules), "d.jsonl": row, "statement": raw, "x.bin": raw} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				rt.Fatal(err)
			}
		}
		w, diags := opened(dir, Options{})
		if diags.HasErrors() {
			rt.Fatal(listing(diags))
		}
		x := member(w, "d", 0)
		for name, want := range map[string][]byte{"gold_patch": []byte(patch), "test_patch": []byte(patch), "problem_statement": raw, "hints": raw} {
			got := attr(t, w, "instance", "i", name, x).(decl.Bytes)
			if !bytes.Equal(got.Data, want) || got.Digest != bytesOf(want).Digest {
				rt.Errorf("%s: %q came out as %q", name, want, got.Data)
			}
		}
		// What stands in these forms is not altered either: a test's id must equal what the test prints.
		if got := attr(t, w, "instance", "i", "test.fail_to_pass", x).([]string); strings.Join(got, "\x00") != strings.Join(ids, "\x00") {
			rt.Errorf("ids %q came out as %q", ids, got)
		}
		if got := attr(t, w, "instance", "i", "test.command", x).([]string); got[1] != patch || got[2] != "<"+patch+">" {
			rt.Errorf("%q came out as %q", patch, got)
		}
	})
}

// memory is a row of values.
type memory map[string]any

func parsed(number string) any {
	v, _ := decl.ParseNumber(number)
	return v
}

// TestFastEqualsSlow compares the closures with cty on the same rows.
func TestFastEqualsSlow(t *testing.T) {
	forms := map[decl.Type][]string{
		decl.Strings:   {`["a", each.value.s]`, `each.value.l`, `concat(["x"], each.value.l, [each.key, "${each.value.n}-${each.value.b}"])`, `[each.value.o.x, each.value.l[0]]`, `[each.value["s"]]`},
		decl.String:    {`each.value.s`, `"${each.value.s}"`, `"a${each.value.n}b${true}${1.5}"`, `each.key`, `(each.value.b)`, `"${each.value.l}"`},
		decl.StringMap: {`{ A = each.value.s, "B" = each.value.n }`, `each.value.o`},
		decl.Any:       {`[each.value.l, { k = each.value.o }, null, each.value.n]`, `{ a = each.value }`},
		decl.Int:       {`each.value.n`},
		decl.Number:    {`"${each.value.n}"`},
		decl.Bool: {`each.value.s == "b"`, `each.value.n != 1`, `each.value.n < 2 || each.value.b`, `!each.value.b && each.value.s == each.key`, `each.value.l == ["a"]`,
			`contains(["a", "b"], each.value.s)`, `each.value.n >= 1`, `each.value.n > 1`, `each.value.n <= 1`, `each.value.s == null`, `each.value.b`, `each.value.n == 0.1`, `each.value.n <= 0.1`, `each.value.n == each.value.s`, `each.value.n < log(3, 2)`},
	}
	c := load(t, Options{}, "b.hcl", "dataset \"d\" {\n  file = \"d.jsonl\"\n  key  = \"id\"\n}\ntask \"t\" {\n  for_each = dataset.d\n  command  = [\"x\"]\n}\n",
		"d.jsonl", `{"id": "1", "s": "", "n": 1, "b": true, "l": [], "o": {}}`)
	l := c.l
	value := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("a"), rapid.Just[any]("b"), rapid.Just[any]("1"), rapid.Just[any]("true"), rapid.Just[any](true), rapid.Just[any](false),
		rapid.Just[any](1.0), rapid.Just(parsed("-2.5")), rapid.Just(parsed("0.1")), rapid.Just(parsed("1e21")), rapid.Just[any]([]any{}), rapid.Just[any]([]any{"a"}), rapid.Just[any]([]any{"a", 1.0, nil}),
		rapid.Just[any](map[string]any{"x": "y"}), rapid.Just[any](map[string]any{}))
	rapid.Check(t, func(rt *rapid.T) {
		row := memory{}
		for _, column := range []string{"s", "n", "b", "l", "o"} {
			row[column] = value.Draw(rt, column)
		}
		each := &decl.Each{Key: "b", Row: row}
		for typ, exprs := range forms {
			for _, text := range exprs {
				e, diags := hclsyntax.ParseExpression([]byte(text), "x", hcl.InitialPos)
				if diags.HasErrors() {
					rt.Fatal(diags)
				}
				cc := &compiler{l: l, a: &attribute{name: "x", expr: e}, def: &decl.AttrDef{Name: "x", Type: typ}, scope: &scope{each: l.eachs["task.t"]}, address: "task.t"}
				fast, fastD := cc.rowForm()(each)
				slow, slowD := any(nil), (*decl.Diagnostic)(nil)
				if v, d := cc.through(e)(each, l.ctx); d != nil {
					slowD = d
				} else {
					slow, slowD = cc.finish(v, each)
				}
				if (fastD == nil) != (slowD == nil) || fastD == nil && !reflect.DeepEqual(fast, slow) {
					rt.Fatalf("%s over %v: fast %#v (%v), slow %#v (%v)", text, row, fast, fastD, slow, slowD)
				}
			}
		}
	})
}

func (m memory) Value(column string) any { return m[column] }
func (m memory) Bytes(column string) ([]byte, bool) {
	s, ok := m[column].(string)
	return []byte(s), ok
}
func (m memory) Pos() (string, int)    { return "memory", 1 }
func (m memory) Digest() digest.Digest { return digest.Digest{} }
