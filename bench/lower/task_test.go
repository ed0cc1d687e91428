package lower

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"

	"github.com/google/go-cmp/cmp"
)

func copyRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\": \"%d\", \"src\": \"in/%d.txt\", \"dst\": \"out/%d.txt\"}\n", i, i, i)
	}
	return b.String()
}

func shell() *decl.Block {
	return block("runtime", "sh", attrs{"probe": []string{"true"}, "env": []decl.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}}, block("host", "", nil))
}

func copyTask() *decl.Block {
	argv := func(e *decl.Each) any {
		return []string{"cp", e.Row.Value("src").(string), e.Row.Value("dst").(string)}
	}
	return over("rows", block("task", "copy", attrs{"runtime": ref("runtime.sh"), "command": ofEach(argv), "inputs": columns("src"), "outputs": columns("dst")}))
}

func TestTaskFiles(t *testing.T) {
	h := &host{files: map[string]string{"x/1.txt": "", "out/stale.txt": "", "x/2.md": ""}}
	ws := workspace(map[string]string{"rows": copyRows(2)}, shell(), copyTask(),
		// Declared before what makes its inputs, and reading a pattern that these do not match on the disk yet.
		block("task", "all", attrs{"command": []string{"cat"}, "inputs": []string{"out/*.txt", "./x//1.txt", "absent.txt", "reports/r.csv"}, "outputs": []string{"all.txt"}}),
		block("task", "after", attrs{"command": []string{"wc"}, "inputs": []string{"x/*"}, "depends_on": refs("task.all", `task.copy["1"]`, "task.quiet", "gate.g")}),
		block("task", "quiet", attrs{"command": []string{"true"}}),
		block("gate", "g", attrs{"instances": []decl.Ref(nil)}),
		block("agent", "nop", attrs{"kind": "nop"}),
		block("matrix", "m", attrs{"instances": refs("gate.g"), "agents": refs("agent.nop")}),
		block("report", "r", attrs{"matrix": ref("matrix.m"), "formats": []string{"csv"}}),
	)
	g, _ := lowered1(t, ws, h)
	got := listing(g)
	want := `task.after (task)
    out/1.txt = task.copy["1"] "out/1.txt"
    all.txt = task.all "all.txt"
    after.2 = task.quiet "" order
    files [x/1.txt x/2.md] -> []
task.all (task)
    out/0.txt = task.copy["0"] "out/0.txt"
    out/1.txt = task.copy["1"] "out/1.txt"
    reports/r.csv = report.r/csv "reports/r.csv"
    files [absent.txt out/stale.txt x/1.txt] -> [all.txt]
task.copy["0"] (task)
    files [in/0.txt] -> [out/0.txt]
task.copy["1"] (task)
    files [in/1.txt] -> [out/1.txt]
task.quiet (task)
report.r/csv (report)
    files [] -> [reports/r.csv]
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTaskEnvironment(t *testing.T) {
	rt := shell()
	rt.Attrs["pass_env"] = &decl.Attr{Expr: value{[]string{"C", "D"}}}
	ws := workspace(nil, rt, block("task", "t", attrs{"command": []string{"x"}, "runtime": ref("runtime.sh"), "outputs": []string{"b", "a"},
		"env": []decl.EnvVar{{Name: "B", Secret: "key"}, {Name: "C", Value: "3"}, {Name: "E", Value: "4"}}}))
	g, _ := lowered1(t, ws, &host{})
	s := g.Tasks[0].Spec.(*kind.TaskSpec)
	if diff := cmp.Diff(map[string]string{"A": "1", "C": "3", "E": "4"}, s.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"B": "key"}, s.SecretEnv); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(s.PassEnv, []string{"D"}) || !slices.Equal(g.Tasks[0].Outputs, []string{"a", "b"}) || s.Secrets("key") != "s3cret" {
		t.Errorf("pass_env %v, outputs %v", s.PassEnv, g.Tasks[0].Outputs)
	}
}

func TestOneProbeAndOneGlobForManyTasks(t *testing.T) {
	h := &host{}
	ws := workspace(map[string]string{"rows": copyRows(100)}, shell(), copyTask())
	g, _ := lowered1(t, ws, h)
	if len(g.Objects) != 100 || h.probes != 1 || h.globs != 0 {
		t.Errorf("%d objects, %d probes, %d globs", len(g.Objects), h.probes, h.globs)
	}
	if a := g.Objects[42].Address(0).String(); a != `task.copy["42"]` {
		t.Errorf("address %s", a)
	}
}

func mistake(t *testing.T, want string, ws *decl.Workspace, h *host) {
	t.Helper()
	g, diags := Lower(ws, h)
	if g != nil || !strings.Contains(fmt.Sprint(diags), want) {
		t.Errorf("got %v\nwant %s", diags, want)
	}
}

func TestTaskMistakes(t *testing.T) {
	one := func(as attrs) *decl.Block { return block("task", "t", as) }
	cmd := []string{"x"}
	for _, c := range []struct {
		name, want string
		blocks     []*decl.Block
	}{
		{"absolute input", "Path outside the workspace", []*decl.Block{one(attrs{"command": cmd, "inputs": []string{"/etc/passwd"}})}},
		{"output above", `"a/../../b" leaves the workspace`, []*decl.Block{one(attrs{"command": cmd, "outputs": []string{"a/../../b"}})}},
		{"own state", "Path of pbuild's own", []*decl.Block{one(attrs{"command": cmd, "outputs": []string{"./.pbuild/x"}})}},
		{"the workspace itself", "names no file", []*decl.Block{one(attrs{"command": cmd, "outputs": []string{"."}})}},
		{"pattern", "Output is a pattern", []*decl.Block{one(attrs{"command": cmd, "outputs": []string{"out/*"}})}},
		{"reads what it writes", "Input is an output", []*decl.Block{one(attrs{"command": cmd, "inputs": []string{"a"}, "outputs": []string{"./a"}})}},
		{"no program", "Empty command", []*decl.Block{one(attrs{"command": []string{}})}},
		{"no runtime", "There is no runtime.none", []*decl.Block{one(attrs{"command": cmd, "runtime": ref("runtime.none")})}},
		{"cycle of files", "task.a needs task.b needs task.a", []*decl.Block{
			block("task", "a", attrs{"command": cmd, "inputs": []string{"y"}, "outputs": []string{"x"}}),
			block("task", "b", attrs{"command": cmd, "inputs": []string{"x"}, "outputs": []string{"y"}})}},
		{"cycle by order", "task.a needs task.a", []*decl.Block{block("task", "a", attrs{"command": cmd, "depends_on": refs("task.a")})}},
		{"unknown member", `task.a has no member "z"`, []*decl.Block{
			overSet(block("task", "a", attrs{"command": cmd}), "x"), block("task", "b", attrs{"command": cmd, "depends_on": refs(`task.a["z"]`)})}},
		{"report's file", "both write reports/m.md", []*decl.Block{
			block("task", "a", attrs{"command": cmd, "outputs": []string{"reports/m.md"}}), block("report", "m", attrs{"of": []decl.Ref(nil)})}},
	} {
		t.Run(c.name, func(t *testing.T) { mistake(t, c.want, workspace(nil, c.blocks...), &host{}) })
	}
}

// A directory is read before any task runs: what one writes there is a mistake, unless it is left out. Reports leave themselves out.
func TestOutputsInADirectory(t *testing.T) {
	with := func(dir string, ignore, outputs []string) *decl.Workspace {
		ws, _ := small()
		ws.Find("instance", "go").Nested("source").Blocks[0] = block("dir", "", attrs{"path": dir, "ignore": ignore})
		ws.Blocks = append(ws.Blocks, block("task", "t", attrs{"command": []string{"x"}, "outputs": outputs}))
		return ws
	}
	for _, c := range []struct{ dir, output string }{{"src", "src/made"}, {".", "made"}, {"src", "src/deep/made"}, {"..", "made"}, {"/", "made"}} {
		_, h := small()
		mistake(t, "task.t writes "+c.output+", which lies in this directory", with(c.dir, nil, []string{c.output}), h)
	}
	for _, ws := range []*decl.Workspace{with("src", nil, []string{"srcs/made", "made"}), with("src", []string{"made"}, []string{"src/made"}), with("/elsewhere", nil, []string{"made"})} {
		_, h := small()
		lowered1(t, ws, h)
	}
	_, h := small()
	g, _ := lowered1(t, with(".", []string{"out"}, []string{"out"}), h)
	s := g.Tasks[lookup(t, g, `instance.go["a"]/source`)].Spec.(*kind.SourceDir)
	if want := []string{"out", "/reports/all.json", "/reports/all.md"}; !slices.Equal(s.Ignore, want) {
		t.Errorf("left out are %q, not %q", s.Ignore, want)
	}
}

func TestTwoMakersOfOneFileShowBoth(t *testing.T) {
	a := block("task", "a", attrs{"command": []string{"x"}, "outputs": []string{"o"}})
	b := block("task", "b", attrs{"command": []string{"x"}, "outputs": []string{"./o"}})
	mistake(t, fmt.Sprintf("task.a (w.hcl:%d:3) and task.b (w.hcl:%d:3) both write o", a.Range.Line, b.Range.Line), workspace(nil, a, b), &host{})
}

func TestTooManyEdges(t *testing.T) {
	a, b := copyTask(), copyTask()
	b.Name = "more"
	b.Attrs["outputs"] = &decl.Attr{Expr: value{[]string(nil)}}
	b.Attrs["depends_on"] = &decl.Attr{Expr: value{refs("task.copy")}}
	mistake(t, "Too many dependencies", workspace(map[string]string{"rows": copyRows(3000)}, shell(), a, b), &host{})
}

func TestALongChain(t *testing.T) {
	const n = 20_000
	var b strings.Builder
	for i := range n { // each reads what the next writes, so that the first needs all
		fmt.Fprintf(&b, "{\"id\": \"%d\", \"src\": \"f%d\", \"dst\": \"f%d\"}\n", i, i+1, i)
	}
	g, _ := lowered1(t, workspace(map[string]string{"rows": b.String()}, shell(), copyTask()), &host{})
	if first := g.Objects[0].Steps[0].Task; first != task.ID(n-1) {
		t.Errorf("the task that needs all others is number %d of %d", first, n)
	}
}

func BenchmarkTasks(b *testing.B) {
	ws := workspace(map[string]string{"rows": copyRows(100_000)}, shell(), copyTask())
	b.ReportAllocs()
	for b.Loop() {
		if _, diags := Lower(ws, &host{}); diags.HasErrors() {
			b.Fatal(diags)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/row")
}
