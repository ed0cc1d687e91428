package lower

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

const fixes = `{"id":"a","base":"v1","fix":"v2","f2p":["TestA"],"text":"broken"}
{"id":"b","base":"v1","fix":"v3","f2p":[],"text":"also broken"}`

func command(typ string, argv ...string) *decl.Block { return block(typ, "", attrs{"command": argv}) }

func gomod(typ, version string) *decl.Block {
	return block(typ, "", nil, block("gomod", "", attrs{"path": "example.org/m", "version": column(version)}))
}

func goRuntime() *decl.Block {
	return block("runtime", "go", attrs{"probe": []string{"go", "version"}, "env": []decl.EnvVar{{Name: "GOFLAGS", Value: "-mod=mod"}}},
		block("host", "", nil), command("prepare", "go", "build", "std"))
}

func goInstance() *decl.Block {
	return over("fixes", block("instance", "go", attrs{
		"runtime": ref("runtime.go"), "test_files": []string{"**/*_test.go"}, "problem_statement": raw("text"), "tags": []string{"real"},
	}, gomod("source", "base"), gomod("fix", "fix"), command("fetch", "go", "mod", "download"), command("prepare", "go", "build", "./..."),
		command("build", "go", "build", "./..."),
		block("test", "", attrs{"command": []string{"go", "test", "-json", "."}, "format": "gotest", "fail_to_pass": ofEach(func(e *decl.Each) any {
			var ids []string
			for _, v := range e.Row.Value("f2p").([]any) {
				ids = append(ids, v.(string))
			}
			return ids
		})})))
}

func small() (*decl.Workspace, *host) {
	return workspace(map[string]string{"fixes": fixes},
		goRuntime(), goInstance(),
		block("gate", "go", attrs{"instances": refs("instance.go"), "attempts": int64(2)}),
		block("agent", "oracle", attrs{"kind": "oracle"}),
		block("agent", "file", attrs{"kind": "predictions", "file": "p.jsonl"}),
		block("agent", "fixer", attrs{"kind": "command", "command": []string{"fix-it"}, "wall_limit": time.Hour, "workers": int64(3)}),
		overSet(block("model", "m", attrs{"provider": "p", "id": ofEach(func(e *decl.Each) any { return e.Key })}), "x", "y"),
		block("matrix", "main", attrs{"instances": refs("gate.go"), "agents": refs("agent.oracle", "agent.file", "agent.fixer"), "models": refs("model.m"),
			"exclude": []any{map[string]any{"instance": "b", "agent": "fixer"}, map[string]any{"agent": "fixer", "model": []any{"y"}}}}),
		block("report", "all", attrs{"matrix": ref("matrix.main"), "formats": []string{"md", "json"}}),
	), &host{predictions: map[string]kind.Data{"a": {Digest: digest.Of([]byte("patch a"))}}}
}

func TestGoldenListing(t *testing.T) {
	ws, h := small()
	g, diags := lowered1(t, ws, h)
	if len(diags) != 0 {
		t.Errorf("diagnostics: %v", diags)
	}
	got := listing(g)
	const file = "testdata/small.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the tasks differ from %s (-update writes it anew):\n%s", file, diff)
	}
	if g.Pools["agent.fixer"] != 3 {
		t.Errorf("pools: %v", g.Pools)
	}
}

// keys computes the key of every task as if each had run: an output's digest is made from the task's key and the output's role, but for the trees that
// applying the gold patch gives again.
func keys(g *task.Graph) []task.Key {
	out := make([]task.Key, len(g.Tasks))
	var enc digest.Encoder
	var output func(id task.ID, role string) digest.Digest
	output = func(id task.ID, role string) digest.Digest {
		tk := &g.Tasks[id]
		switch s := tk.Spec.(type) {
		case *kind.ExtractSpec:
			sample := g.Tasks[dep(tk, "sample")]
			if sample.Spec.(*kind.SampleSpec).Agent == "oracle" && role == kind.Tree {
				return output(dep(&sample, "gold"), kind.GoldTree)
			}
		case *kind.ComposeSpec:
			_ = s
			if gold := output(dep(tk, "base_test"), kind.GoldTree); output(dep(tk, "candidate"), kind.Tree) == gold && role == kind.Tree {
				return output(dep(tk, "base_test"), kind.GoldTestTree)
			}
		}
		return digest.Of([]byte(out[id].String() + role))
	}
	for id := range g.Tasks {
		var in []task.InputDigest
		for _, d := range g.Tasks[id].Deps {
			switch d.Use {
			case task.UseOutput:
				in = append(in, task.InputDigest{Role: d.Role, Digest: output(d.On, d.Output)})
			case task.UseKey:
				in = append(in, task.InputDigest{Role: d.Role, Digest: digest.Digest(out[d.On])})
			}
		}
		var files []task.FileInput
		for _, f := range g.Tasks[id].Inputs {
			files = append(files, task.FileInput{Path: f})
		}
		out[id] = task.EncodeKey(&enc, g.Tasks[id].Spec, g.Salt, files, in)
	}
	return out
}

func dep(t *task.Task, role string) task.ID {
	for _, d := range t.Deps {
		if d.Role == role {
			return d.On
		}
	}
	return task.None
}

func lookup(t *testing.T, g *task.Graph, address string) task.ID {
	t.Helper()
	for i := range g.Objects {
		for j, s := range g.Objects[i].Steps {
			if g.Objects[i].Address(j).String() == address {
				return s.Task
			}
		}
	}
	t.Fatalf("there is no %s in\n%s", address, listing(g))
	return task.None
}

func TestTheOracleIsTheGold(t *testing.T) {
	ws, h := small()
	g, _ := lowered1(t, ws, h)
	k := keys(g)
	for _, id := range []string{"a", "b"} {
		cell := `matrix.main["` + id + `","oracle","-",0]`
		gate := `gate.go["` + id + `"]`
		for _, pair := range [][2]string{{"/build", "/build.gold"}, {"/test.0", "/test.gold.0"}} {
			if c, o := lookup(t, g, cell+pair[0]), lookup(t, g, gate+pair[1]); k[c] != k[o] {
				t.Errorf("%s is not the task %s", cell+pair[0], gate+pair[1])
			}
		}
		if other := lookup(t, g, `matrix.main["`+id+`","file","-",0]/build`); k[other] == k[lookup(t, g, gate+"/build.gold")] {
			t.Error("a prediction is built as the gold patch")
		}
	}
	// Where ids are given the score is shared too; where the gate derives them it is not.
	if k[lookup(t, g, `matrix.main["a","oracle","-",0]/score.0`)] != k[lookup(t, g, `gate.go["a"]/score.gold.0`)] {
		t.Error("an equal run is scored twice")
	}
	if k[lookup(t, g, `matrix.main["b","oracle","-",0]/score.0`)] == k[lookup(t, g, `gate.go["b"]/score.gold.0`)] {
		t.Error("a candidate is scored without the ids that the gate derived")
	}
}

func TestNamesAreInNoKey(t *testing.T) {
	ws, h := small()
	g, _ := lowered1(t, ws, h)
	ws2, _ := small()
	for _, b := range ws2.Blocks {
		switch b.Type {
		case "runtime", "instance", "gate", "matrix":
			b.Name += "2"
		}
		for _, a := range b.Attrs {
			switch v := a.Expr.(type) {
			case value:
				switch r := v.v.(type) {
				case decl.Ref:
					r.Name += "2"
					a.Expr = value{r}
				case []decl.Ref:
					r = slices.Clone(r)
					for i := range r {
						if r[i].Type == "instance" || r[i].Type == "gate" {
							r[i].Name += "2"
						}
					}
					a.Expr = value{r}
				}
			}
		}
	}
	g2, _ := lowered1(t, ws2, h)
	work, shown := apart(g)
	work2, shown2 := apart(g2)
	if diff := cmp.Diff(work, work2); diff != "" {
		t.Errorf("renaming blocks changes keys:\n%s", diff)
	}
	for i := range shown {
		if shown[i] == shown2[i] {
			t.Error("a report that shows the new name has the old key")
		}
	}
}

// apart is the keys of all but reports, which show names, and those of reports.
func apart(g *task.Graph) (work, reports []task.Key) {
	for i, k := range keys(g) {
		if g.Tasks[i].Spec.Kind() == kind.Report {
			reports = append(reports, k)
		} else {
			work = append(work, k)
		}
	}
	return work, reports
}

func TestEqualSetUpIsShared(t *testing.T) {
	ws, h := small()
	g, _ := lowered1(t, ws, h)
	for _, step := range []string{"/source", "/fetch", "/prepare"} {
		if lookup(t, g, `instance.go["a"]`+step) != lookup(t, g, `instance.go["b"]`+step) {
			t.Errorf("two instances of one base have two tasks %s", step)
		}
	}
	if lookup(t, g, `instance.go["a"]/fetch.gold`) == lookup(t, g, `instance.go["b"]/fetch.gold`) {
		t.Error("two fixes share what their gold states need")
	}
	if h.probes != 1 {
		t.Errorf("the runtime was probed %d times", h.probes)
	}
}

func TestStatesBelow(t *testing.T) {
	has := func(list []string, s string) bool { return slices.Contains(list, s) }
	for _, c := range []struct {
		blocks             string
		base, test, sample string // what build.base, test and the agent's sample start from
	}{
		{"runtime fetch prepare build", "fetch.gold", "build.base", "prepare"},
		{"runtime fetch build", "fetch.gold", "build.base", "fetch"},
		{"runtime prepare build", "prepare", "build.base", "prepare"},
		{"runtime build", "runtime.prepare", "build.base", "runtime.prepare"},
		{"build", "", "build.base", ""},
		{"prepare", "", "prepare", "prepare"},
		{"", "", "", ""},
	} {
		t.Run(c.blocks, func(t *testing.T) {
			with := strings.Fields(c.blocks)
			rt, in := goRuntime(), goInstance()
			if !has(with, "runtime") {
				rt.Blocks = rt.Blocks[:1]
			}
			in.Blocks = slices.DeleteFunc(in.Blocks, func(b *decl.Block) bool {
				return slices.Contains([]string{"fetch", "prepare", "build"}, b.Type) && !has(with, b.Type)
			})
			ws := workspace(map[string]string{"fixes": fixes}, rt, in,
				block("gate", "go", attrs{"instances": refs("instance.go")}),
				block("agent", "fixer", attrs{"kind": "command", "command": []string{"fix-it"}}),
				block("matrix", "m", attrs{"instances": refs("gate.go"), "agents": refs("agent.fixer")}))
			g, _ := lowered1(t, ws, &host{})
			below := func(id task.ID) string {
				on := dep(&g.Tasks[id], kind.Below)
				if on == task.None {
					return ""
				}
				name := g.Tasks[on].Spec.Kind().Name
				if name == "build" {
					name = "build.base"
				}
				return name
			}
			if c.base != "" {
				if got := below(lookup(t, g, `gate.go["a"]/build.base`)); got != c.base {
					t.Errorf("the build starts from %q, want %q", got, c.base)
				}
			}
			if got := below(lookup(t, g, `gate.go["a"]/test.base.0`)); got != c.test {
				t.Errorf("the test starts from %q, want %q", got, c.test)
			}
			if got := below(lookup(t, g, `matrix.m["a","fixer","-",0]/sample`)); got != c.sample {
				t.Errorf("the agent starts from %q, want %q", got, c.sample)
			}
		})
	}
}
