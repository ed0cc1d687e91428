package lower

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/rows"
	"pbuild/engine/digest"
	"pbuild/engine/task"

	"github.com/bmatcuk/doublestar/v4"
)

// The tests make declarations by hand, with two expressions: a value, and one that looks at the member.

type value struct{ v any }

func (e value) Eval(*decl.Each) (any, *decl.Diagnostic) { return e.v, nil }
func (e value) Const() bool                             { return true }

type ofEach func(*decl.Each) any

func (e ofEach) Eval(each *decl.Each) (any, *decl.Diagnostic) { return e(each), nil }
func (e ofEach) Const() bool                                  { return false }

// column is each.value.NAME.
func column(name string) ofEach { return func(e *decl.Each) any { return e.Row.Value(name) } }

// columns is a list of columns.
func columns(names ...string) ofEach {
	return func(e *decl.Each) any {
		list := make([]string, len(names))
		for i, n := range names {
			list[i], _ = e.Row.Value(n).(string)
		}
		return list
	}
}

// raw is a column in a bytes attribute.
func raw(name string) ofEach {
	return func(e *decl.Each) any {
		b, _ := e.Row.Bytes(name)
		return decl.Bytes{Data: b, Digest: digest.Of(b)}
	}
}

type attrs map[string]any

var lines int

// block makes a block; its attributes are values or expressions, its nested blocks follow.
func block(typ, name string, as attrs, nested ...*decl.Block) *decl.Block {
	lines++
	b := &decl.Block{Type: typ, Name: name, Range: decl.Range{File: "w.hcl", Line: lines, Col: 1}, Attrs: map[string]*decl.Attr{}, Blocks: nested}
	for n, v := range as {
		e, ok := v.(decl.Expr)
		if !ok {
			e = value{v}
		}
		b.Attrs[n] = &decl.Attr{Name: n, Range: decl.Range{File: "w.hcl", Line: b.Range.Line, Col: 3}, Expr: e}
	}
	return b
}

func over(dataset string, b *decl.Block) *decl.Block {
	b.ForEach = &decl.ForEach{Dataset: dataset, Range: b.Range}
	return b
}

func overSet(b *decl.Block, keys ...string) *decl.Block {
	b.ForEach = &decl.ForEach{Range: b.Range}
	for _, k := range keys {
		b.ForEach.Members = append(b.ForEach.Members, decl.Each{Key: k, Value: k})
	}
	return b
}

func ref(s string) decl.Ref {
	a, err := task.ParseAddress(s)
	if err != nil {
		panic(err)
	}
	r := decl.Ref{}
	r.Type, r.Name, _ = strings.Cut(a.Block, ".")
	if a.Index != nil {
		r.Key, r.One = a.Index[0], true
	}
	return r
}

func refs(list ...string) []decl.Ref {
	var out []decl.Ref
	for _, s := range list {
		out = append(out, ref(s))
	}
	return out
}

func text(s string) decl.Bytes { return decl.Bytes{Data: []byte(s), Digest: digest.Of([]byte(s))} }

// workspace sorts blocks as package hcl does.
func workspace(datasets map[string]string, blocks ...*decl.Block) *decl.Workspace {
	ws := &decl.Workspace{Dir: "/w", Datasets: map[string]decl.Dataset{}}
	for name, text := range datasets {
		set, diags := rows.Parse(text, rows.Options{Name: name + ".jsonl", Key: "id"})
		if diags.HasErrors() {
			panic(diags)
		}
		ws.Datasets[name] = set
	}
	ws.Blocks = slices.SortedFunc(slices.Values(blocks), func(a, b *decl.Block) int { return strings.Compare(a.Address(), b.Address()) })
	return ws
}

// host is a machine of files in memory.
type host struct {
	files       map[string]string
	predictions map[string]kind.Data
	probes      int
	globs       int
}

func (h *host) Probe(runtime string, argv []string, env map[string]string, path string) (digest.Digest, error) {
	h.probes++
	if argv[0] == "false" {
		return digest.Digest{}, fmt.Errorf("exit status 1")
	}
	return digest.Of([]byte(strings.Join(argv, " "))), nil
}

func (h *host) Dir(path string, ignore []string) ([]task.FileInput, error) {
	return []task.FileInput{{Path: path + strings.Join(ignore, " "), Mode: 0o644}}, nil
}

func (h *host) DirTakes(dir string, ignore []string, file string) (bool, error) {
	return !slices.Contains(ignore, file), nil
}

func (h *host) File(path string) ([]byte, error) {
	if s, ok := h.files[path]; ok {
		return []byte(s), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func (h *host) Glob(patterns []string) ([]string, error) {
	h.globs++
	var list []string
	for f := range h.files {
		for _, p := range patterns {
			if ok, _ := doublestar.Match(p, f); ok && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

func (h *host) Predictions(path string) (map[string]kind.Data, error) {
	if h.predictions == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return h.predictions, nil
}

func (h *host) Platform() string { return "linux/amd64" }
func (h *host) Repository(url string) string {
	if strings.Contains(url, "://") {
		return ""
	}
	return url
}
func (h *host) Exists(path string) bool   { return !strings.HasPrefix(path, "/nosuch") }
func (h *host) Secret(name string) string { return "s3cret" }

func lowered1(t *testing.T, ws *decl.Workspace, h *host) (*task.Graph, decl.Diagnostics) {
	t.Helper()
	g, diags := Lower(ws, h)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	check(t, g)
	return g, diags
}

// check holds for every graph: dependencies come first, roles are unique, conditions are on dependencies, steps exist.
func check(t *testing.T, g *task.Graph) {
	t.Helper()
	for id, tk := range g.Tasks {
		roles := map[string]bool{}
		on := map[task.ID]bool{}
		for _, d := range tk.Deps {
			if int(d.On) >= id || d.On < 0 {
				t.Errorf("task %d depends on %d", id, d.On)
			}
			if roles[d.Role] {
				t.Errorf("task %d of kind %s has the role %q twice", id, tk.Spec.Kind().Name, d.Role)
			}
			roles[d.Role], on[d.On] = true, true
			if g.Tasks[d.On].Spec.Kind().Opaque && d.Use == task.UseOutput && d.Output != kind.Result {
				t.Errorf("task %d of kind %s keys on the output of a state", id, tk.Spec.Kind().Name)
			}
		}
		for _, c := range tk.When {
			if !on[c.On] {
				t.Errorf("task %d has a condition on %d, which it does not depend on", id, c.On)
			}
		}
	}
	for _, o := range g.Objects {
		if len(o.Steps) == 0 {
			t.Errorf("%s %v has no steps", o.Block, o.Index)
		}
		for _, s := range o.Steps {
			if int(s.Task) >= len(g.Tasks) || s.Task < 0 {
				t.Errorf("%s %v has the task %d", o.Block, o.Index, s.Task)
			}
		}
	}
}

// listing is every step of every object, with its dependencies as the addresses that first name them.
func listing(g *task.Graph) string {
	names := map[task.ID]string{}
	for i := range g.Objects {
		for j, s := range g.Objects[i].Steps {
			if _, ok := names[s.Task]; !ok {
				names[s.Task] = g.Objects[i].Address(j).String()
			}
		}
	}
	var b strings.Builder
	for i := range g.Objects {
		o := &g.Objects[i]
		for j, s := range o.Steps {
			address := o.Address(j).String()
			fmt.Fprintf(&b, "%s (%s)\n", address, o.Class)
			if names[s.Task] != address {
				fmt.Fprintf(&b, "    is %s\n", names[s.Task])
				continue
			}
			tk := g.Tasks[s.Task]
			for _, d := range tk.Deps {
				use := [...]string{"", " key", " order"}[d.Use]
				tolerate := [...]string{"", " unmet", " failed", " any"}[d.Tolerate]
				fmt.Fprintf(&b, "    %s = %s %q%s%s\n", d.Role, names[d.On], d.Output, use, tolerate)
			}
			for _, c := range tk.When {
				fmt.Fprintf(&b, "    when %s %s\n", names[c.On], c.Fact)
			}
			if len(tk.Inputs)+len(tk.Outputs) > 0 {
				fmt.Fprintf(&b, "    files %v -> %v\n", tk.Inputs, tk.Outputs)
			}
			if tk.Pool != "" {
				fmt.Fprintf(&b, "    pool %s\n", tk.Pool)
			}
		}
	}
	return b.String()
}
