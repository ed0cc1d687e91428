package lower

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// ponyeval is a published benchmark's shape: 291 instances of 289 base commits, 72 images, five nodes, one agent, five models.
func ponyeval() (*decl.Workspace, *host) {
	var rows strings.Builder
	for i := range 291 {
		base := i
		if i == 7 || i == 99 {
			base--
		}
		fmt.Fprintf(&rows, "{\"id\":\"p-%d\",\"base\":\"%s\",\"patch\":\"gold %d\",\"test_patch\":\"test %d\",\"text\":\"issue %d\",\"runtime\":\"ponyc_%02d\"}\n",
			i, digest.Of([]byte{byte(base), byte(base >> 8)}).Hex()[:40], i, i, i, i%72)
	}
	var images []string
	for i := range 72 {
		images = append(images, fmt.Sprintf("ponyc_%02d", i))
	}
	key := ofEach(func(e *decl.Each) any { return e.Key })
	amd, arm := "linux/amd64", "linux/arm64"
	return workspace(map[string]string{"v6": rows.String()},
		overSet(block("runtime", "ponyc", attrs{"platforms": []string{amd}, "probe": []string{"ponyc", "--version"}},
			block("build", "", attrs{"context": "images/ponyc", "args": ofEach(func(e *decl.Each) any { return map[string]string{"INDEX": e.Key} })})), images...),
		block("node", "v100", attrs{"docker": "ssh://v100", "platform": amd}),
		block("node", "huawei", attrs{"oci": "ssh://huawei", "platform": arm, "emulate": []string{amd}, "overlay": map[string]string{"glibc": "compat/glibc-2.27"}}),
		overSet(block("node", "spark", attrs{"docker": key, "platform": arm, "emulate": []string{amd}}), "spark1", "spark2", "spark3"),
		block("handshake", "all", attrs{"runtimes": refs("runtime.ponyc"), "nodes": refs("node.v100", "node.huawei", "node.spark")}),
		over("v6", block("instance", "pony", attrs{"gold_patch": raw("patch"), "test_patch": raw("test_patch"), "problem_statement": raw("text"),
			"runtime": ofEach(func(e *decl.Each) any {
				return decl.Ref{Type: "runtime", Name: "ponyc", Key: e.Row.Value("runtime").(string), One: true}
			})},
			block("source", "", nil, block("git", "", attrs{"url": "u", "commit": column("base")})),
			command("build", "make", "build"), command("test", "make", "test-issue"))),
		block("gate", "two_state", attrs{"instances": refs("instance.pony")}),
		block("agent", "mini", attrs{"kind": "mini-swe-agent", "version": "2.4.6", "step_limit": int64(120), "wall_limit": time.Hour, "workers": int64(10)}),
		overSet(block("model", "repair", attrs{"provider": "p", "id": key, "max_concurrent": int64(4)}), "a", "b", "c", "d", "e"),
		block("matrix", "main", attrs{"instances": refs("gate.two_state"), "agents": refs("agent.mini"), "models": refs("model.repair")}),
		block("report", "table4", attrs{"of": refs("matrix.main"), "formats": []string{"md", "csv", "latex", "html"}}),
		block("report", "nodes", attrs{"handshake": ref("handshake.all"), "path": "out/nodes"}),
	), &host{files: map[string]string{"/w/images/ponyc/Dockerfile": "FROM x", "/w/images/ponyc/.dockerignore": "# no\n*.o\n"}}
}

func TestAPublishedShape(t *testing.T) {
	ws, h := ponyeval()
	g, _ := lowered1(t, ws, h)
	counts := map[task.Class]int{}
	for _, o := range g.Objects {
		counts[o.Class]++
	}
	want := map[task.Class]int{task.ClassInstance: 291, task.ClassGate: 291, task.ClassCandidate: 1455, task.ClassHandshake: 360, task.ClassImage: 72, task.ClassReport: 5}
	for class, n := range want {
		if counts[class] != n {
			t.Errorf("%d objects of class %s, want %d", counts[class], class, n)
		}
	}
	sources := map[task.ID]bool{}
	for _, o := range g.Objects {
		if o.Class == task.ClassInstance {
			sources[o.Steps[0].Task] = true
		}
	}
	if len(sources) != 289 {
		t.Errorf("%d sources, want 289", len(sources))
	}

	// What one cell needs, whole: its own image and source, and no other.
	need := map[task.ID]bool{}
	var visit func(task.ID)
	visit = func(id task.ID) {
		if !need[id] {
			need[id] = true
			for _, d := range g.Tasks[id].Deps {
				visit(d.On)
			}
		}
	}
	visit(lookup(t, g, `matrix.main["p-3","mini","c",0]/outcome`))
	var kinds []string
	for id := range need {
		kinds = append(kinds, g.Tasks[id].Spec.Kind().Name)
		switch s := g.Tasks[id].Spec.(type) {
		case *kind.ImageSpec:
			if s.Args["INDEX"] != "ponyc_03" {
				t.Errorf("the cell needs the image %v", s.Args)
			}
		case *kind.SampleSpec:
			if s.Model.ID != "c" || g.Tasks[id].Pool != `model.repair["c"]` || s.Command.Timeout != time.Hour {
				t.Errorf("the sample is %+v in the pool %q", s, g.Tasks[id].Pool)
			}
		}
	}
	slices.Sort(kinds)
	if got, want := strings.Join(kinds, " "), "build build build compose extract image outcome patches sample score score score source test test test verdict"; got != want {
		t.Errorf("the cell needs\n%s, want\n%s", got, want)
	}
	if g.Pools["agent.mini"] != 10 || g.Pools[`model.repair["c"]`] != 4 {
		t.Errorf("pools: %v", g.Pools)
	}
}

func TestHandshake(t *testing.T) {
	ws, h := ponyeval()
	g, _ := lowered1(t, ws, h)
	for node, want := range map[string][]string{"v100": nil, "huawei": {"qemu", "glibc-2.27"}, "spark2": {"qemu"}} {
		tk := g.Tasks[lookup(t, g, `handshake.all["ponyc_05","`+node+`"]`)]
		s := tk.Spec.(*kind.HandshakeSpec)
		if !slices.Equal(s.Adaptation, want) || s.Node != node || tk.MaxAge != 24*time.Hour {
			t.Errorf("%s: %+v, max_age %v", node, s, tk.MaxAge)
		}
	}
	nodes := g.Tasks[lookup(t, g, "report.nodes/md")].Spec.(*kind.ReportSpec)
	if len(nodes.Cells) != 360 || nodes.Cells[0].Instance != "ponyc_00" || nodes.Cells[0].Agent != "huawei" || nodes.File != "out/nodes.md" || nodes.Of != "handshake.all" {
		t.Errorf("the report of a handshake: %d cells, first %+v, file %s", len(nodes.Cells), nodes.Cells[0], nodes.File)
	}
	build := g.Tasks[lookup(t, g, `runtime.ponyc["ponyc_05"]/image`)].Spec.(*kind.ImageSpec)
	if len(build.Context) != 1 || build.Context[0].Path != "/w/images/ponyc*.o" || build.Dockerfile != digest.Of([]byte("FROM x")) {
		t.Error("the image is not keyed by its Dockerfile and its context after .dockerignore")
	}
	ws.Find("node", "v100").Attrs["platform"] = &decl.Attr{Expr: value{"linux/riscv64"}}
	mistake(t, "node.v100 offers none of the platforms", ws, h)
}

func TestReportCellsInOrder(t *testing.T) {
	ws, h := ponyeval()
	g, _ := lowered1(t, ws, h)
	s := g.Tasks[lookup(t, g, "report.table4/latex")].Spec.(*kind.ReportSpec)
	if s.File != "reports/table4.tex" || !s.Gated || len(s.Cells) != 1455 {
		t.Errorf("file %s, gated %t, %d cells", s.File, s.Gated, len(s.Cells))
	}
	for i := 1; i < len(s.Cells); i++ {
		a, b := s.Cells[i-1], s.Cells[i]
		if strings.Compare(a.Instance, b.Instance) > 0 || a.Instance == b.Instance && strings.Compare(a.Model, b.Model) >= 0 {
			t.Fatalf("%+v stands before %+v", a, b)
		}
	}
}
