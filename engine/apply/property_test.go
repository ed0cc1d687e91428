package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// A blueprint is a random graph that can be edited and built anew, as lowering does.
type blueprint struct {
	specs []spec
	deps  [][]task.Dep
	when  [][]task.Condition
	reads []string // an input file of the workspace, or ""
}

func drawBlueprint(t *rapid.T) *blueprint {
	b := &blueprint{}
	kinds := []*task.Kind{testKind, testKind, pureKind, stateKind, frozenKind}
	for i := range rapid.IntRange(1, 18).Draw(t, "tasks") {
		s := spec{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), name: fmt.Sprint("t", i)}
		if rapid.IntRange(0, 4).Draw(t, "same") == 0 {
			s.name = "same" // equal keys become possible
		}
		drawSpec(t, &s)
		var deps []task.Dep
		var when []task.Condition
		for j := range rapid.IntRange(0, min(i, 3)).Draw(t, "deps") {
			d := task.Dep{On: task.ID(rapid.IntRange(0, i-1).Draw(t, "on")), Role: fmt.Sprint("r", j), Output: "out"}
			d.Tolerate = task.Tolerance(rapid.IntRange(0, 3).Draw(t, "tolerate"))
			switch {
			case b.specs[d.On].kind.Opaque:
				d.Use = task.UseKey
			case rapid.IntRange(0, 4).Draw(t, "order") == 0:
				d.Use = task.UseOrder
			case rapid.IntRange(0, 3).Draw(t, "all") == 0:
				d.Output = ""
			}
			deps = append(deps, d)
			if rapid.IntRange(0, 3).Draw(t, "when") == 0 {
				when = append(when, task.Condition{On: d.On, Fact: "even", Not: rapid.Bool().Draw(t, "not")})
			}
		}
		file := ""
		if rapid.IntRange(0, 4).Draw(t, "reads") == 0 {
			file = rapid.SampledFrom(paths).Draw(t, "file")
		}
		b.specs, b.deps, b.when, b.reads = append(b.specs, s), append(b.deps, deps), append(b.when, when), append(b.reads, file)
	}
	return b
}

var paths = []string{"x.txt", "y.txt"}

func drawSpec(t *rapid.T, s *spec) {
	s.value = rapid.IntRange(0, 2).Draw(t, "value")
	s.coarse = rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "coarse")
	s.do = rapid.SampledFrom([]string{"", "", "", "", "", "fact", "fail"}).Draw(t, "do")
}

// world builds the blueprint's graph over a journal and a disk. Random tasks have no output files, so the kind of those that read files is an ordinary one.
func (b *blueprint) world(t *rapid.T, j *journal, d disk) *world {
	w := &world{t: t, j: j, disk: d}
	ids := make([]task.ID, len(b.specs)) // the graph merges equal tasks
	for i := range b.specs {
		s := b.specs[i]
		tk := task.Task{Spec: &s, Deps: slices.Clone(b.deps[i]), When: slices.Clone(b.when[i])}
		for j := range tk.Deps {
			tk.Deps[j].On = ids[tk.Deps[j].On]
		}
		for j := range tk.When {
			tk.When[j].On = ids[tk.When[j].On]
		}
		if b.reads[i] != "" {
			tk.Inputs = []string{b.reads[i]}
			s.name += b.reads[i] // files are not part of what Graph.Add compares
		}
		ids[i] = w.addTask(fmt.Sprint(i), tk)
	}
	return w
}

// ends is what an apply came to, for comparison: no times, no runs.
func ends(s *Summary) string {
	var b strings.Builder
	for id, e := range s.Ends {
		fmt.Fprintf(&b, "%d %q %q", id, e.Status, e.Cause)
		if e.Record != nil {
			fmt.Fprintf(&b, " %s %s", e.Record.Key.Short(), e.Record.Digest(""))
		} else if e.Status != "" {
			fmt.Fprintf(&b, " root %d", e.Root)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// After any edits, an apply over the old journal ends exactly as one over an empty journal; applied again it runs nothing that can be recorded; and
// it runs no task but those that its plan decided run or maybe, all of those decided run that are needed.
func TestIncrementalEqualsClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, j := drawBlueprint(t), disk{}, newJournal()
		for _, p := range paths {
			d.put(p, "0")
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			w := b.world(t, j, d)
			p := w.plan()
			s := w.apply()
			held(t, p, w, s)
			clean := b.world(t, newJournal(), d)
			if got, want := ends(s), ends(clean.apply()); got != want {
				t.Fatalf("incremental:\n%sclean:\n%s", got, want)
			}
			again := b.world(t, j, d)
			if got := ends(again.apply()); got != ends(s) {
				t.Fatalf("again:\n%sfirst:\n%s", got, ends(s))
			}
			for address := range again.runs {
				if r := j.Latest(address); r != nil && r.Run == fmt.Sprint("run", j.applies) {
					t.Fatalf("%s was recorded, and ran again", address)
				}
			}
			edit(t, b, d)
			forget(t, j)
		}
	})
}

func edit(t *rapid.T, b *blueprint, d disk) {
	for range rapid.IntRange(1, 3).Draw(t, "edits") {
		if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
			d.put(rapid.SampledFrom(paths).Draw(t, "path"), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "content")))
			continue
		}
		drawSpec(t, &b.specs[rapid.IntRange(0, len(b.specs)-1).Draw(t, "task")])
	}
}

// forget drops a record now and then, as a collection may: what it was of runs again, below it records may still stand.
func forget(t *rapid.T, j *journal) {
	keys := slices.SortedFunc(maps.Keys(j.byKey), func(a, b task.Key) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) > 0 && rapid.Bool().Draw(t, "forget") {
		delete(j.byKey, rapid.SampledFrom(keys).Draw(t, "key"))
	}
}

// held demands that a plan foretold what its apply did.
func held(t *rapid.T, p *plan.Plan, w *world, s *Summary) {
	for id := range p.Items {
		it, end := &p.Items[id], s.Ends[id]
		ran := w.runs[p.Address(task.ID(id))] > 0
		switch {
		case ran && it.Decision > plan.Maybe:
			t.Fatalf("task %d was planned %s, and ran", id, it.Decision)
		case it.Decision == plan.Reuse && end.Status != "" && end.Record != nil && end.Record.Key != it.Key:
			t.Fatalf("task %d ended with another record than planned", id)
		case it.Decision == plan.Unneeded && end.Record != nil: // it may be skipped, where something upstream failed
			t.Fatalf("task %d was planned unneeded, and ended %q", id, end.Status)
		case it.Known && end.Record != nil && end.Record.Key != it.Key:
			t.Fatalf("the key of task %d was known, and is another", id)
		case it.Decision <= plan.Maybe && len(p.Reasons(task.ID(id))) == 0:
			t.Fatalf("task %d is planned %s for no reason", id, it.Decision)
		}
	}
}

// A crash is a journal that takes no more after some batches. What is applied after it equals a clean apply, and loses no task that was done.
func TestCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, j := drawBlueprint(t), disk{}, newJournal()
		for _, p := range paths {
			d.put(p, "0")
		}
		j.limit = rapid.IntRange(0, 6).Draw(t, "batches")
		w := b.world(t, j, d)
		s, err := w.try(context.Background())
		kept := maps.Clone(j.byKey)
		for id, e := range s.Ends {
			if err != nil && e.Record != nil && e.Status == task.OK && kept[e.Record.Key] == nil && factual(w, s, task.ID(id)) {
				t.Fatalf("task %d was done before it was durable", id)
			}
		}
		j.limit = -1
		again := b.world(t, j, d)
		got := ends(again.apply())
		if want := ends(b.world(t, newJournal(), d).apply()); got != want {
			t.Fatalf("after a crash:\n%sclean:\n%s", got, want)
		}
		for k, r := range kept {
			if j.Lookup(k) != r {
				t.Fatalf("%s was durable, and ran again", r.Address)
			}
		}
	})
}

// factual says whether a task tolerates no failure that is not recorded.
func factual(w *world, s *Summary, id task.ID) bool {
	at := func(id task.ID) *task.End { return &s.Ends[id] }
	return !slices.ContainsFunc(w.g.Tasks[id].Deps, func(d task.Dep) bool { return !at(d.On).Fact(at) })
}
