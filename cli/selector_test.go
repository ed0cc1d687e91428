package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// testGraph has two instances with a gate each, three cells, and two tasks; the second gate shares its test with a cell.
func testGraph() *task.Graph {
	g := &task.Graph{}
	add := func(k *task.Kind, label string) task.ID {
		if k == kind.Task {
			return g.Add(task.Task{Spec: &kind.TaskSpec{Argv: []string{label}}})
		}
		if k == kind.Test {
			return g.Add(task.Task{Spec: &kind.TestSpec{Command: kind.Command{Argv: []string{label}}}})
		}
		return g.Add(task.Task{Spec: &kind.SourceDir{Files: []task.FileInput{{Path: label}}}})
	}
	for _, id := range []string{"a.b/1", "c,2"} {
		g.Objects = append(g.Objects, task.Object{Class: task.ClassInstance, Block: "instance.go", Index: []string{id},
			Steps: []task.Step{{Name: "source", Task: add(kind.Source, "source"+id)}, {Name: "fix", Task: add(kind.Source, "fix"+id)}}})
	}
	for _, id := range []string{"a.b/1", "c,2"} {
		g.Objects = append(g.Objects, task.Object{Class: task.ClassGate, Block: "gate.go", Index: []string{id}, Tags: []string{"gates"},
			Steps: []task.Step{{Name: "test.base.0", Task: add(kind.Test, "base"+id)}, {Name: "test.gold.0", Task: add(kind.Test, "gold"+id)}}})
	}
	for _, c := range [][]string{{"a.b/1", "nop", "-", "0"}, {"c,2", "nop", "-", "0"}, {"c,2", "oracle", "-", "0"}} {
		label := "cell" + c[0] + c[1]
		if c[1] == "oracle" {
			label = "gold" + c[0]
		}
		g.Objects = append(g.Objects, task.Object{Class: task.ClassCandidate, Block: "matrix.main", Index: c,
			Steps: []task.Step{{Name: "test.0", Task: add(kind.Test, label)}}})
	}
	g.Objects = append(g.Objects,
		task.Object{Class: task.ClassTask, Block: "task.copy", Index: []string{"17"}, Steps: []task.Step{{Task: add(kind.Task, "17")}}},
		task.Object{Class: task.ClassTask, Block: "task.all", Steps: []task.Step{{Task: add(kind.Task, "all")}}})
	return g
}

func chooseNames(t *testing.T, args ...string) []string {
	t.Helper()
	g := testGraph()
	sel, err := (&app{}).parseSelectors(args)
	if err != nil {
		t.Fatal(err)
	}
	c, err := choose(g, sel)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range listedSteps(g, c) {
		out = append(out, address(l.object, l.step))
	}
	return out
}

func TestSelectorsChoose(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{`task.all`, []string{`task.all`}},
		{`task.*`, []string{`task.copy["17"]`, `task.all`}},
		{`task.copy`, []string{`task.copy["17"]`}},
		{`task.copy[...]`, []string{`task.copy["17"]`}},
		{`task.copy[1*]`, []string{`task.copy["17"]`}},
		{`instance.go["a.b/1"]`, []string{`instance.go["a.b/1"]/source`, `instance.go["a.b/1"]/fix`}},
		{`instance.go[a.b/1]/fix`, []string{`instance.go["a.b/1"]/fix`}},
		{`instance.go["c,2"]/*`, []string{`instance.go["c,2"]/source`, `instance.go["c,2"]/fix`}},
		{`*.go/test.gold.0`, []string{`gate.go["a.b/1"]/test.gold.0`, `gate.go["c,2"]/test.gold.0`}},
		{`**/test.*.0`, []string{`gate.go["a.b/1"]/test.base.0`, `gate.go["a.b/1"]/test.gold.0`, `gate.go["c,2"]/test.base.0`, `gate.go["c,2"]/test.gold.0`}},
		{`matrix.main["c,2"]`, []string{`matrix.main["c,2","nop","-",0]/test.0`, `matrix.main["c,2","oracle","-",0]/test.0`}},
		{`matrix.main["c,2",oracle,-,0]`, []string{`matrix.main["c,2","oracle","-",0]/test.0`}},
		{`matrix.main["*",nop,-,0]/test.0`, []string{`matrix.main["a.b/1","nop","-",0]/test.0`, `matrix.main["c,2","nop","-",0]/test.0`}},
		{`matrix.main[**,0] !matrix.main["c,2"]`, []string{`matrix.main["a.b/1","nop","-",0]/test.0`}},
		{`tag:gates !*.*/test.base.0`, []string{`gate.go["a.b/1"]/test.gold.0`, `gate.go["c,2"]/test.gold.0`}},
		{`kind:task`, []string{`task.copy["17"]`, `task.all`}},
		{`kind:gate !gate.go["a.b/1"]`, []string{`gate.go["c,2"]/test.base.0`, `gate.go["c,2"]/test.gold.0`}},
		{`kind:source !**/fix`, []string{`instance.go["a.b/1"]/source`, `instance.go["c,2"]/source`}},
		{`!kind:test !kind:source`, []string{`task.copy["17"]`, `task.all`}},
	} {
		if got := chooseNames(t, strings.Fields(c.args)...); !cmp.Equal(got, c.want) {
			t.Errorf("%s chooses %q, not %q", c.args, got, c.want)
		}
	}
}

// An address that another object names too is left out only where its own address is.
func TestExclusionIsByAddress(t *testing.T) {
	g := testGraph()
	sel, err := (&app{}).parseSelectors([]string{"!matrix.main"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := choose(g, sel)
	if err != nil {
		t.Fatal(err)
	}
	_, step, err := resolve(g, `gate.go["c,2"]/test.gold.0`)
	if err != nil {
		t.Fatal(err)
	}
	shared := g.Objects[3].Steps[step].Task
	for _, id := range c.tasks {
		if id == shared {
			return
		}
	}
	t.Error("a test that the gate also asks for was left out with the cell that shares it")
}

func TestSelectorsFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "selectors")
	if err := os.WriteFile(file, []byte("# the tasks\ntask.*\n\n  !task.all\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, want := chooseNames(t, "@"+file), []string{`task.copy["17"]`}; !cmp.Equal(got, want) {
		t.Errorf("@FILE chooses %q, not %q", got, want)
	}
}

func TestNoSelectorsInFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# only", "# only\n\n  # comments\n"} {
		file := filepath.Join(t.TempDir(), "selectors")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := (&app{}).parseSelectors([]string{"@" + file}); err == nil || codeOf(err) != ExitUsage {
			t.Errorf("a file of %q gives the error %v", text, err)
		}
	}
}

// An escape within quotes is what it stands for, and any other character after a backslash itself.
func TestEscapesInSelectors(t *testing.T) {
	g := &task.Graph{}
	for _, id := range []string{"a\nb", "a*b", "a\x01b", "a\u2028b", "a'b", "anb"} {
		g.Objects = append(g.Objects, task.Object{Block: "task.a", Index: []string{id}, Steps: []task.Step{{Task: g.Add(task.Task{Spec: &kind.TaskSpec{Argv: []string{id}}})}}})
	}
	for text, want := range map[string]string{
		`task.a["a\nb"]`: "a\nb", `task.a["a\*b"]`: "a*b", `task.a["a\x01b"]`: "a\x01b", `task.a["a\u2028b"]`: "a\u2028b", `task.a["a\'b"]`: "a'b",
		`task.a[a\nb]`: "anb", "task.a[a\nb]": "a\nb",
	} {
		o, _, err := resolve(g, text)
		if err != nil || o.Index[0] != want {
			t.Errorf("%s does not mean %q: %v", text, want, err)
		}
	}
}

func TestSelectorMistakes(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{`gate.og`, `did you mean gate.go?`},
		{`task.copy[18]`, `did you mean task.copy["17"]?`},
		{`gate.go[c/2]`, `gate.go["c,2"]`},
		{`instance.go["c,2"]/sorce`, `did you mean instance.go["c,2"]/source?`},
		{`tag:gate`, `did you mean tag:gates?`},
		{`kind:tests`, `did you mean kind:test?`},
		{`task.*[`, `not closed`},
		{`task.copy["17]`, `quote is not closed`},
		{`task.copy[17]x`, `stands after the index`},
		{`!`, `empty`},
		{`zzz.yyyyyyyy`, "`pbuild list`"},
		{`@/no/such/file`, `no such file`},
	} {
		sel, err := (&app{}).parseSelectors([]string{c.arg})
		if err == nil {
			_, err = choose(testGraph(), sel)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.arg, err, c.want)
		} else if codeOf(err) != ExitUsage {
			t.Errorf("%s exits with %d", c.arg, codeOf(err))
		}
	}
}

func TestResolve(t *testing.T) {
	g := testGraph()
	for _, format := range []string{"md", "csv"} {
		g.Objects = append(g.Objects, task.Object{Class: task.ClassReport, Block: "report.r", Steps: []task.Step{{Name: format, Task: 0}}})
	}
	for addr, want := range map[string]string{
		`gate.go["a.b/1"]`:           `gate.go["a.b/1"]/test.gold.0`, // the last step
		`gate.go[a.b/1]/test.base.0`: `gate.go["a.b/1"]/test.base.0`,
		`task.all`:                   `task.all`,
		`task.copy`:                  `task.copy["17"]`, // its only member
		`report.r`:                   `report.r/csv`,
	} {
		o, step, err := resolve(g, addr)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
		} else if got := address(o, step); got != want {
			t.Errorf("%s means %s, not %s", addr, got, want)
		}
	}
	for _, addr := range []string{"gate.go", "task.nothing", "tag:gates", "report.*/*"} {
		if _, _, err := resolve(g, addr); err == nil {
			t.Errorf("%s is no address of one task", addr)
		}
	}
}

// Every address selects exactly itself, whatever stands in its parts.
func TestAddressSelectsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.StringMatching(`[a-z0-9./,\]\[_-]{1,8}`),
			rapid.Custom(func(t *rapid.T) string { // a star is a wildcard, within quotes too
				return strings.ToValidUTF8(strings.ReplaceAll(rapid.String().Draw(t, "any"), "*", "\\"), "")
			}))
		g := &task.Graph{}
		for range rapid.IntRange(1, 6).Draw(t, "objects") {
			g.Objects = append(g.Objects, task.Object{Block: "task." + rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "name"),
				Index: []string{part.Draw(t, "key")}, Steps: []task.Step{{Name: "x"}, {Name: "y.0"}}})
		}
		for i := range g.Objects {
			text := address(&g.Objects[i], 1)
			p, err := parsePattern(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			for j := range g.Objects {
				var hits []int
				p.matches(&g.Objects[j], nil, func(step int) { hits = append(hits, step) })
				same := address(&g.Objects[j], 1) == text
				if same != (len(hits) == 1 && hits[0] == 1) {
					t.Fatalf("%s matches steps %v of %s", text, hits, address(&g.Objects[j], 0))
				}
			}
		}
	})
}

// A pattern may mean something of a block whose members and steps are not known.
func TestPatternMeansBlock(t *testing.T) {
	for _, c := range []struct {
		pattern string
		want    bool
	}{
		{`task.copy`, true}, {`task.copy["17"]`, true}, {`task.copy/step`, true}, {`task.copy[a.b/1]/step`, true}, {`task.c*["1"]`, true}, {`**/step`, true},
		{`**`, true}, {`*.copy`, true}, {`task.cop`, false}, {`task.copyy["17"]`, false}, {`copy`, false}, {`*`, false}, {`gate.copy/step`, false},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.means("task.copy"); got != c.want {
			t.Errorf("%s means task.copy: %v", c.pattern, got)
		}
	}
}

// Many selectors are matched as each of them is alone.
func TestSelectorsMatchTogetherAsAlone(t *testing.T) {
	g := testGraph()
	all := []string{"task.*", "task.copy", "task.copy[17]", "task.copy[...]", `gate.go["c,2"]`, "gate.go/test.gold.0", "gate.go[a.b/1]/test.base.0", "*.go/fix", "instance.go[**]/fix",
		`matrix.main["c,2"]`, `matrix.main["c,2",nop]/test.0`, `matrix.main["c,2",oracle,-,0]`, "tag:gates", "kind:test", "nothing.here", "task.all", "!task.all"}
	rapid.Check(t, func(t *rapid.T) {
		sel, err := (&app{}).parseSelectors(rapid.SliceOfN(rapid.SampledFrom(all), 1, 8).Draw(t, "selectors"))
		if err != nil {
			t.Fatal(err)
		}
		type hit struct{ object, selector, step int }
		together, alone := map[hit]int{}, map[hit]int{}
		m := newMatcher(g, sel)
		for i := range g.Objects {
			m.each(&g.Objects[i], func(j, step int) { together[hit{i, j, step}]++ })
			for j := range sel {
				sel[j].each(g, &g.Objects[i], nil, func(step int) { alone[hit{i, j, step}]++ })
			}
		}
		if d := cmp.Diff(alone, together); d != "" {
			t.Fatal(d)
		}
	})
}
