package hcl

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"pbuild/bench/decl"
)

// opened is what Open says of a workspace.
func opened(dir string, o Options) (*decl.Workspace, decl.Diagnostics) {
	c := Open(dir, o)
	return c.Workspace, c.Diagnostics
}

// load loads files given as "NAME", "TEXT" pairs, and fails on errors.
func load(t testing.TB, o Options, files ...string) *Config {
	t.Helper()
	a := &txtar.Archive{}
	for pair := range slices.Chunk(files, 2) {
		a.Files = append(a.Files, txtar.File{Name: pair[0], Data: []byte(pair[1])})
	}
	dir, _ := unpack(t, a)
	c := Open(dir, o)
	if c.Diagnostics.HasErrors() {
		t.Fatalf("unexpected errors:\n%s", listing(c.Diagnostics))
	}
	return c
}

// render is all that a workspace declares, without positions.
func render(t testing.TB, w *decl.Workspace) string {
	t.Helper()
	var b strings.Builder
	for _, name := range sortedKeys(w.Datasets) {
		d := w.Datasets[name]
		fmt.Fprintf(&b, "dataset %s: %d rows of %v\n", name, d.Len(), d.Columns())
		for i := range d.Len() {
			fmt.Fprintf(&b, "  %s: %s\n", d.Key(i), d.Row(i).Digest())
		}
	}
	members(w, func(owner, n *decl.Block, each *decl.Each) {
		fmt.Fprintf(&b, "%s %s %s:", each.Address(owner.Address()), n.Type, n.Name)
		for _, name := range sortedKeys(n.Attrs) {
			a := n.Attrs[name]
			if a.Name == "condition" || a.Name == "where" {
				continue
			}
			v, d := a.Expr.Eval(each)
			if d != nil {
				t.Fatalf("%s: %v", each.Address(owner.Address()), d)
			}
			if bytes, ok := v.(decl.Bytes); ok {
				v = string(bytes.Data)
			}
			fmt.Fprintf(&b, " %s=%T %q", name, v, v)
		}
		b.WriteString("\n")
	})
	for _, name := range sortedKeys(w.Secrets) {
		fmt.Fprintf(&b, "secret %s=%s\n", name, w.Secrets[name])
	}
	return b.String()
}

// attr is the value of an attribute of a block, which must be there.
func attr(t testing.TB, w *decl.Workspace, typ, name, path string, each *decl.Each) any {
	t.Helper()
	b := w.Find(typ, name)
	if b == nil {
		t.Fatalf("no %s.%s", typ, name)
	}
	steps := strings.Split(path, ".")
	for _, s := range steps[:len(steps)-1] {
		b = b.Nested(s)
	}
	a := b.Attrs[steps[len(steps)-1]]
	if a == nil {
		t.Fatalf("%s.%s has no %s", typ, name, path)
	}
	v, d := a.Expr.Eval(each)
	if d != nil {
		t.Fatal(d)
	}
	return v
}

// member is one of a dataset.
func member(w *decl.Workspace, dataset string, i int) *decl.Each {
	d := w.Datasets[dataset]
	return &decl.Each{Key: d.Key(i), Row: d.Row(i)}
}

const kinds = `
variable "n" {
  type    = number
  default = 3
}
locals {
  pair  = ["a", local.one]
  one   = "b-${var.n}"
}
pbuild {
  slots       = 4
  disk_budget = "1.5GiB"
  keep        = "1h30m"
  salt        = 7
}
runtime "host" {
  host { paths = ["/opt"] }
  probe    = concat(["go"], local.pair)
  env      = { B = true, A = 1.5, C = local.one }
  pass_env = toset(["Z", "A"])
  cpus     = "1.5"
  memory   = 1024
}
runtime "many" {
  for_each = { x = { v = "1" }, a = { v = "2" } }
  host {}
  probe = ["echo", each.key, each.value.v]
}
agent "mini" {
  kind      = "command"
  command   = ["run"]
  config    = { steps = [1, null, { deep = true }] }
  prompt    = file("prompt.md")
  workers   = 2
}
task "t" {
  command    = [for s in local.pair : upper(s)]
  inputs     = fileset(".", "*.md")
  runtime    = runtime.many["a"]
  depends_on = [runtime.many, task.u]
  sandbox    = var.n == 3
}
task "u" {
  command = ["u"]
  runtime = var.n > 5 ? runtime.many["x"] : runtime.host
  cache   = null
}
`

func TestValuesOfEveryType(t *testing.T) {
	w := load(t, Options{}, "b.hcl", kinds, "prompt.md", "solve\r\n\xff").Workspace
	for _, c := range []struct {
		typ, name, path string
		want            any
	}{
		{"pbuild", "", "slots", int64(4)},
		{"pbuild", "", "disk_budget", int64(3 << 29)},
		{"pbuild", "", "keep", 90 * time.Minute},
		{"pbuild", "", "salt", "7"},
		{"runtime", "host", "probe", []string{"go", "a", "b-3"}},
		{"runtime", "host", "env", []decl.EnvVar{{Name: "A", Value: "1.5"}, {Name: "B", Value: "true"}, {Name: "C", Value: "b-3"}}},
		{"runtime", "host", "pass_env", []string{"A", "Z"}},
		{"runtime", "host", "cpus", 1.5},
		{"runtime", "host", "memory", int64(1024)},
		{"runtime", "host", "host.paths", []string{"/opt"}},
		{"agent", "mini", "config", map[string]any{"steps": []any{1.0, nil, map[string]any{"deep": true}}}},
		{"agent", "mini", "prompt", bytesOf([]byte("solve\r\n\xff"))},
		{"task", "t", "command", []string{"A", "B-3"}},
		{"task", "t", "inputs", []string{"prompt.md"}},
		{"task", "t", "runtime", decl.Ref{Type: "runtime", Name: "many", Key: "a", One: true}},
		{"task", "t", "depends_on", []decl.Ref{{Type: "runtime", Name: "many"}, {Type: "task", Name: "u"}}},
		{"task", "t", "sandbox", true},
		{"task", "u", "runtime", decl.Ref{Type: "runtime", Name: "host"}},
		{"task", "u", "cache", nil},
	} {
		if diff := cmp.Diff(c.want, attr(t, w, c.typ, c.name, c.path, nil)); diff != "" {
			t.Errorf("%s.%s.%s: -want +got:\n%s", c.typ, c.name, c.path, diff)
		}
	}
	many := w.Find("runtime", "many").ForEach.Members
	if len(many) != 2 || many[0].Key != "a" || many[1].Key != "x" {
		t.Errorf("members are not sorted by key: %v", many)
	}
	if got := attr(t, w, "runtime", "many", "probe", &many[1]); !slices.Equal(got.([]string), []string{"echo", "x", "1"}) {
		t.Errorf("probe of a member is %q", got)
	}
	if w.Find("variable", "n") != nil {
		t.Error("a variable is no declaration")
	}
}

func TestVariablesTakeTheLastValue(t *testing.T) {
	const text = "variable \"v\" {\n  type    = list(string)\n  default = [\"default\"]\n}\ntask \"t\" {\n  command = var.v\n}\n"
	files := []string{"b.hcl", text, "more.vars.hcl", `v = ["more"]`, "even.vars.json", `{"v": ["even"]}`}
	withDefaults := append(slices.Clone(files), "pbuild.vars.hcl", `v = ["vars"]`)
	env := []string{"PBUILD_VAR_v=[\"env\"]", "HOME=x"}
	for want, c := range map[string]struct {
		o     Options
		files []string
	}{
		"default": {Options{}, files},
		"env":     {Options{Environ: env}, files},
		"vars":    {Options{Environ: env}, withDefaults},
		"json":    {Options{Environ: env}, append(slices.Clone(withDefaults), "pbuild.vars.hcl.json", `{"v": ["json"]}`)},
		"more":    {Options{Environ: env, VarFiles: []string{"even.vars.json", "more.vars.hcl"}}, withDefaults},
		"even":    {Options{Environ: env, VarFiles: []string{"more.vars.hcl", "even.vars.json"}}, withDefaults},
		"flag":    {Options{Environ: env, VarFiles: []string{"more.vars.hcl"}, Vars: []string{`v=["early"]`, `v=["flag"]`}}, withDefaults},
	} {
		a := &txtar.Archive{}
		for pair := range slices.Chunk(c.files, 2) {
			a.Files = append(a.Files, txtar.File{Name: pair[0], Data: []byte(pair[1])})
		}
		dir, _ := unpack(t, a)
		w, diags := opened(dir, c.o)
		if diags.HasErrors() {
			t.Fatal(listing(diags))
		}
		if got := attr(t, w, "task", "t", "command", nil); !slices.Equal(got.([]string), []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTextOfStringVariablesIsTakenAsItIs(t *testing.T) {
	const text = "variable \"s\" {\n  type = string\n}\nvariable \"any\" {}\nvariable \"n\" {\n  type = number\n}\ntask \"t\" {\n  command = [var.s, var.any, var.n + 1]\n}\n"
	w := load(t, Options{Vars: []string{"s=[not an expression", "any=a=b", "n=1 + 1"}}, "b.hcl", text).Workspace
	if got := attr(t, w, "task", "t", "command", nil); !slices.Equal(got.([]string), []string{"[not an expression", "a=b", "3"}) {
		t.Errorf("command is %q", got)
	}
}

// Without a type a variable is what its default is.
func TestTextOfUntypedVariablesIsWhatTheDefaultIs(t *testing.T) {
	const text = `
variable "l" { default = ["a"] }
variable "n" { default = 1 }
variable "m" { default = { k = "a" } }
variable "b" { default = false }
variable "s" { default = "a" }
variable "null" { default = null }
task "t" { command = concat(var.l, [var.n + 1, var.m.k, !var.b, var.s, var.null]) }
`
	o := Options{Environ: []string{`PBUILD_VAR_l=["x", "y"]`, "PBUILD_VAR_b=true"}, Vars: []string{"n=2", `m={k = "z"}`, "s=[s]", "null=[n]"}}
	w := load(t, o, "b.hcl", text).Workspace
	if got := attr(t, w, "task", "t", "command", nil); !slices.Equal(got.([]string), []string{"x", "y", "3", "z", "false", "[s]", "[n]"}) {
		t.Errorf("command is %q", got)
	}
}

func TestEverythingReadIsRemembered(t *testing.T) {
	c := load(t, Options{}, "b.hcl", `
locals {
  all  = fileset(".", "a/**/*.txt")
  deep = fileset("a", "*")
}
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
task "t" {
  for_each = dataset.d
  command  = concat(["t"], [for f in local.all : f], [for f in local.deep : f], [file("f-${each.key}.txt")])
}
`, "d.jsonl", "{\"id\": \"1\"}\n", "f-1.txt", "one", "a/b/c.txt", "c", "a/d.txt", "d", "e/f.txt", "f", "pbuild.lock.hcl", "nonsense {{", "README", "x")
	var got []string
	for _, r := range c.Workspace.Read {
		rel, err := filepath.Rel(c.Workspace.Dir, r.Path)
		if err != nil {
			t.Fatal(err)
		}
		if r.Absent != r.Digest.IsZero() {
			t.Errorf("%s: absent is %v, but its digest is %s", rel, r.Absent, r.Digest)
		}
		got = append(got, fmt.Sprintf("%s dir=%v match=%v absent=%v", rel, r.Dir, r.Match, r.Absent))
	}
	want := []string{". dir=true match=[] absent=false", "a dir=true match=[] absent=false", "a/b dir=true match=[] absent=false", "b.hcl dir=false match=[] absent=false",
		"d.jsonl dir=false match=[] absent=false", "f-1.txt dir=false match=[] absent=false", "pbuild.vars.hcl dir=false match=[] absent=true", "pbuild.vars.hcl.json dir=false match=[] absent=true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := attr(t, c.Workspace, "task", "t", "command", member(c.Workspace, "d", 0)); !slices.Equal(got.([]string), []string{"t", "a/b/c.txt", "a/d.txt", "d.txt", "one"}) {
		t.Errorf("command is %q", got)
	}
}

func TestDatasetsOfDatasets(t *testing.T) {
	w := load(t, Options{}, "b.hcl", `
variable "langs" {
  default = ["go", "c"]
}
dataset "one" {
  file  = "one.jsonl"
  key   = "id"
  where = row.skip != true
}
dataset "two" {
  file = "two.csv"
  key  = "id"
}
dataset "all" { union = [dataset.one, dataset.two] }
dataset "some" {
  filter {
    from  = dataset.all
    where = contains(var.langs, row.lang) && !startswith(row.id, "x")
  }
}
dataset "good" {
  admit { gate = gate.g }
  where = row.lang == "go"
}
dataset "better" {
  admit { gate = gate.h }
}
instance "j" {
  for_each = dataset.good
  source {
    dir { path = "src" }
  }
  fix {
    dir { path = "fix" }
  }
  runtime = runtime.r
  test { command = ["true"] }
}
gate "h" { instances = instance.j["e"] }
runtime "r" {
  host {}
  probe = ["true"]
}
instance "i" {
  for_each = dataset.some
  source {
    dir { path = "src" }
  }
  fix {
    dir { path = "fix" }
  }
  runtime = runtime.r
  test { command = ["true"] }
}
gate "g" { instances = instance.i }
dataset "made" { file = "made.jsonl" }
dataset "mined" {
  mine { from = "somewhere" }
}
task "make" {
  command = ["make"]
  outputs = ["made.jsonl"]
}
task "over" {
  for_each = dataset.made
  command  = ["echo", each.value.anything]
}
`, "one.jsonl", `{"id": "a", "lang": "go"}
{"id": "b", "lang": "rust"}
{"id": "c", "lang": "c"}
{"id": "d", "lang": "go", "skip": true}
{"id": "xa", "lang": "go"}
`, "two.csv", "id,lang\ne,go\n").Workspace
	want := map[string]string{"one": "a b c xa", "two": "e", "all": "a b c xa e", "some": "a c e", "good": "a e", "better": "e"}
	got := map[string]string{}
	for name, d := range w.Datasets {
		var keys []string
		for i := range d.Len() {
			keys = append(keys, d.Key(i))
		}
		got[name] = strings.Join(keys, " ")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got (made and mined have unknown rows):\n%s", diff)
	}
	for name, want := range map[string][]string{"good": {"g"}, "better": {"g", "h"}, "some": nil} {
		if got := decl.Gates(w.Datasets[name].Row(0)); !slices.Equal(got, want) {
			t.Errorf("the first row of %s waits for the gates %q, want %q", name, got, want)
		}
	}
	if fe := w.Find("task", "over").ForEach; fe == nil || fe.Dataset != "made" {
		t.Error("a block over unknown rows has lost its dataset")
	}
}

func TestReferencesOverRows(t *testing.T) {
	w := load(t, Options{}, "b.hcl", `
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
runtime "r" {
  for_each = dataset.d
  host {}
  probe = ["echo", each.key]
}
task "t" {
  for_each   = dataset.d
  command    = ["x"]
  runtime    = runtime.r["${each.value.of}"]
  depends_on = [task.u[each.key], runtime.r]
}
task "u" {
  for_each = toset(["a", "b"])
  command  = ["u"]
  runtime  = each.key == "a" ? runtime.r["b"] : null
}
`, "d.jsonl", "{\"id\": \"a\", \"of\": \"b\"}\n{\"id\": \"b\", \"of\": \"a\"}\n").Workspace
	a, b := member(w, "d", 0), member(w, "d", 1)
	if got := attr(t, w, "task", "t", "runtime", a); got != (decl.Ref{Type: "runtime", Name: "r", Key: "b", One: true}) {
		t.Errorf("runtime is %v", got)
	}
	want := []decl.Ref{{Type: "task", Name: "u", Key: "b", One: true}, {Type: "runtime", Name: "r"}}
	if diff := cmp.Diff(want, attr(t, w, "task", "t", "depends_on", b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	members := w.Find("task", "u").ForEach.Members
	if got := attr(t, w, "task", "u", "runtime", &members[1]); got != nil {
		t.Errorf("runtime of b is %v", got)
	}
}

func TestAFileThatIsNoFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.hcl"), []byte("task \"t\" {\n  command = [file(\".\")]\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, diags := opened(dir, Options{})
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "not a regular file") {
		t.Error(listing(diags))
	}
}

func TestOnlyNamesOfTheWorkspaceCountInItsListing(t *testing.T) {
	dir, _ := unpack(t, archive("b.hcl", "pbuild {}\n", "README", "x"))
	listed := func() decl.Read {
		w, _ := opened(dir, Options{})
		return w.Read[0]
	}
	add := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := listed()
	if !before.Dir || !slices.Equal(before.Match, []string{"[^.]*.hcl", "[^.]*.hcl.json"}) {
		t.Errorf("the listing is %+v", before)
	}
	add("out.txt")
	add("._b.hcl")
	if err := os.Symlink("nobody@nowhere.1", filepath.Join(dir, ".#b.hcl")); err != nil {
		t.Fatal(err)
	}
	if _, diags := opened(dir, Options{}); len(diags) > 0 {
		t.Error(listing(diags))
	}
	if listed().Digest != before.Digest {
		t.Error("a file that is no part of the workspace changes its listing")
	}
	add("c.hcl")
	if listed().Digest == before.Digest {
		t.Error("a new file of the workspace does not change its listing")
	}
}

func TestEveryFunctionIsDocumented(t *testing.T) {
	text := decl.Markdown()
	for name := range functions(newReader(".")) {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/language.md does not name the function %s", name)
		}
	}
}

func TestKeysOfMembersAreFoundInEitherForm(t *testing.T) {
	w := load(t, Options{}, "b.hcl", "dataset \"d\" {\n  file = \"d.jsonl\"\n  key  = \"id\"\n}\nruntime \"r\" {\n  for_each = toset([\"caf\u00e9\"])\n  host {}\n  probe = [\"true\"]\n}\n"+
		"task \"t\" {\n  for_each = dataset.d\n  command  = [\"x\"]\n  runtime  = runtime.r[each.value.of]\n}\n", "d.jsonl", "{\"id\": \"a\", \"of\": \"cafe\u0301\"}\n").Workspace
	if got := attr(t, w, "task", "t", "runtime", member(w, "d", 0)).(decl.Ref); got.Key != "caf\u00e9" {
		t.Errorf("the key is %q", got.Key)
	}
}

// One report is the usual case: a string stands for the list of it, also where rows say which.
func TestAStringStandsForAListOfOne(t *testing.T) {
	for expr, want := range map[string][]string{`"r.xml"`: {"r.xml"}, `["r.xml", "s.xml"]`: {"r.xml", "s.xml"}, `each.value.r`: {"of row.xml"}, `"${each.key}.xml"`: {"a.xml"}} {
		w := load(t, Options{}, "b.hcl", `
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
instance "i" {
  for_each = dataset.d
  source {
    dir { path = "." }
  }
  gold_patch = ""
  test_patch = ""
  runtime    = runtime.r
  test {
    command = ["x"]
    format  = "junit"
    report  = `+expr+`
  }
}
runtime "r" {
  host {}
  probe = ["x"]
}
`, "d.jsonl", "{\"id\": \"a\", \"r\": \"of row.xml\"}\n").Workspace
		got := attr(t, w, "instance", "i", "test.report", member(w, "d", 0))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", expr, diff)
		}
	}
}

// A group of alternatives may hold whole directories.
func TestAlternativesHoldDirectories(t *testing.T) {
	c := load(t, Options{}, "b.hcl", `
task "t" {
  command = concat(["t"], [for f in fileset(".", "{b,a/x/y}/c/{d,e}.txt") : f])
}
`, "b/c/d.txt", "", "a/x/y/c/e.txt", "", "a/c/d.txt", "", "b/c/f.txt", "")
	if got := attr(t, c.Workspace, "task", "t", "command", nil); !slices.Equal(got.([]string), []string{"t", "a/x/y/c/e.txt", "b/c/d.txt"}) {
		t.Errorf("command is %q", got)
	}
}
