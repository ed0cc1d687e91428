package lower

import (
	"fmt"
	"slices"
	"testing"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/rows"
	"pbuild/engine/task"

	"github.com/google/go-cmp/cmp"
)

// admitting is the small workspace with a second instance block over what gate.go admits, a second gate over that, and tasks over what each of them admits.
// With plain they are all over the same rows, ungated.
func admitting(plain bool, more ...*decl.Block) (*decl.Workspace, *host) {
	again := goInstance()
	again.Name, again.ForEach.Dataset = "again", "good"
	reads := ofEach(func(e *decl.Each) any { return []string{"out/" + e.Key} })
	blocks := []*decl.Block{again,
		block("gate", "again", attrs{"instances": refs("instance.again"), "strict": true}),
		block("matrix", "again", attrs{"instances": refs("gate.again"), "agents": refs("agent.fixer")}),
		block("report", "again", attrs{"matrix": ref("matrix.again")}),
		over("good", block("task", "copy", attrs{"command": []string{"cp"}, "outputs": reads})),
		over("best", block("task", "best", attrs{"command": []string{"use"}, "inputs": reads})),
		block("task", "pack", attrs{"command": []string{"tar"}, "inputs": []string{"out/*"}}),
		block("task", "one", attrs{"command": []string{"cat"}, "inputs": []string{"out/a"}, "depends_on": refs("task.copy")}),
		block("task", "end", attrs{"command": []string{"true"}, "depends_on": refs("matrix.again", "task.best", "gate.go")}),
	}
	ws, h := with(nil, append(blocks, more...)...)
	ws.Datasets["good"], ws.Datasets["best"] = ws.Datasets["fixes"], ws.Datasets["fixes"]
	if !plain {
		all := func(string) bool { return true }
		ws.Datasets["good"] = rows.Admit(ws.Datasets["fixes"], "go", all)
		ws.Datasets["best"] = rows.Admit(ws.Datasets["good"], "again", all)
	}
	return ws, h
}

// awaits are the gates' verdicts that a task waits for on conditions, each of which has an edge in no key.
func awaits(t *testing.T, g *task.Graph, address string) []task.ID {
	t.Helper()
	tk := g.Tasks[lookup(t, g, address)]
	var out []task.ID
	for _, c := range tk.When {
		if c.Fact != kind.Admitted {
			continue
		}
		if c.Not || !slices.ContainsFunc(tk.Deps, func(d task.Dep) bool {
			return d.On == c.On && d.Use == task.UseOrder && d.Tolerate == task.TolerateNone
		}) {
			t.Errorf("%s: the condition %+v is among no edges", address, c)
		}
		out = append(out, c.On)
	}
	return out
}

func TestWhatIsMadeOfAdmittedRows(t *testing.T) {
	ws, h := admitting(false)
	g, _ := lowered1(t, ws, h)
	for _, id := range []string{"a", "b"} {
		first, second := lookup(t, g, fmt.Sprintf("gate.go[%q]/verdict", id)), lookup(t, g, fmt.Sprintf("gate.again[%q]/verdict", id))
		waits := map[string][]task.ID{"gate.again[%q]/verdict": {first}, "task.copy[%q]": {first}, "task.best[%q]": {first, second},
			"instance.go[%q]/source": nil, "gate.go[%q]/verdict": nil}
		for _, step := range []string{"source", "fix", "patches", "fetch", "prepare", "fetch.gold"} {
			waits["instance.again[%q]/"+step] = []task.ID{first}
		}
		for format, want := range waits {
			address := fmt.Sprintf(format, id)
			if diff := cmp.Diff(want, awaits(t, g, address)); diff != "" {
				t.Errorf("%s waits for:\n%s", address, diff)
			}
		}
		if got, want := awaits(t, g, fmt.Sprintf(`matrix.again[%q,"fixer","-",0]/sample`, id)), []task.ID{second}; !slices.Equal(got, want) {
			t.Errorf("the sample of %s waits for %v, want %v", id, got, want)
		}
	}

	// Whether a row is to be admitted is in no key, but in those of reports, which show it.
	ws, h = admitting(true)
	plain, _ := lowered1(t, ws, h)
	if diff := cmp.Diff(byAddress(plain), byAddress(g)); diff != "" {
		t.Errorf("gates over rows change keys:\n%s", diff)
	}
}

// byAddress is the keys of all steps but reports.
func byAddress(g *task.Graph) map[string]string {
	out := map[string]string{}
	all := keys(g)
	for i := range g.Objects {
		for k, s := range g.Objects[i].Steps {
			if g.Objects[i].Class != task.ClassReport {
				out[g.Objects[i].Address(k).String()] = all[s.Task].String()
			}
		}
	}
	return out
}

// Whoever asks for whatever there is does without what is not admitted; whoever names a file does not.
func TestBesideAdmittedRows(t *testing.T) {
	ws, h := admitting(false)
	g, _ := lowered1(t, ws, h)
	for address, want := range map[string]map[string]task.Tolerance{
		"task.pack":      {"out/a": task.TolerateUnmet, "out/b": task.TolerateUnmet},
		"task.one":       {"out/a": task.TolerateNone, "out/b": task.TolerateUnmet},
		`task.best["a"]`: {"out/a": task.TolerateNone, "admit.0": task.TolerateNone, "admit.1": task.TolerateNone},
		"task.end": {"after.0": task.TolerateNone, "after.1": task.TolerateNone, // the gate is run in any case
			"after.2": task.TolerateUnmet, "after.3": task.TolerateUnmet, "after.4": task.TolerateUnmet, "after.5": task.TolerateUnmet},
	} {
		got := map[string]task.Tolerance{}
		for _, d := range g.Tasks[lookup(t, g, address)].Deps {
			got[d.Role] = d.Tolerate
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", address, diff)
		}
	}
}

func TestCellsOfAdmittedRows(t *testing.T) {
	ws, h := admitting(false)
	g, _ := lowered1(t, ws, h)
	tk := g.Tasks[lookup(t, g, "report.again/md")]
	for i, c := range tk.Spec.(*kind.ReportSpec).Cells {
		if !slices.Equal(c.Admits, []string{"gate.go"}) {
			t.Errorf("%s is admitted by %v", c.Address, c.Admits)
		}
		if got, want := dep(&tk, fmt.Sprintf("admit %d gate.go", i)), lookup(t, g, fmt.Sprintf("gate.go[%q]/verdict", c.Instance)); got != want {
			t.Errorf("%s reads task %d for its admission, want %d", c.Address, got, want)
		}
	}
	tk = g.Tasks[lookup(t, g, "report.all/md")]
	for _, c := range tk.Spec.(*kind.ReportSpec).Cells {
		if c.Admits != nil {
			t.Errorf("%s is admitted by %v", c.Address, c.Admits)
		}
	}
}

func TestMistakesWithAdmittedRows(t *testing.T) {
	t.Run("runtime", func(t *testing.T) {
		ws, h := admitting(false, over("good", block("runtime", "each", attrs{"probe": []string{"true"}}, block("host", "", nil))))
		mistake(t, "runtime.each is made of dataset.good, whose rows gate.go is still to admit", ws, h)
	})
	t.Run("not looked at", func(t *testing.T) {
		ws, h := admitting(false)
		ws.Find("gate", "go").Attrs["instances"].Expr = value{refs(`instance.go["a"]`)}
		mistake(t, `gate.go is to admit "b", and looks at no instance of that name`, ws, h)
	})
	t.Run("cycle", func(t *testing.T) {
		ws, h := admitting(false)
		ws.Find("gate", "go").Attrs["depends_on"] = &decl.Attr{Name: "depends_on", Expr: value{refs(`task.copy["a"]`)}}
		mistake(t, "gate.go depends on itself", ws, h)
	})
}
