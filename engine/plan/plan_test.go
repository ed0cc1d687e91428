package plan

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

var (
	testKind  = &task.Kind{Name: "test", Version: 1}
	stateKind = &task.Kind{Name: "state", Version: 1, Opaque: true}
	iceKind   = &task.Kind{Name: "ice", Version: 1, Frozen: true}
	filesKind = &task.Kind{Name: "files", Version: 1, Files: true}
)

type spec struct {
	kind    *task.Kind
	name    string
	command string
	draw    int
}

func (s *spec) Kind() *task.Kind { return s.kind }
func (s *spec) Encode(e *digest.Encoder) {
	e.String("name", s.name)
	e.String("command", s.command)
	e.Int("draw", int64(s.draw))
}

// bed is a graph with what is remembered of it.
type bed struct {
	t       *testing.T
	in      Inputs
	g       *task.Graph
	byKey   map[task.Key]*task.Record
	byAddr  map[string]*task.Record
	disk    map[string]task.FileInput
	lookups int
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, g: &task.Graph{}, byKey: map[task.Key]*task.Record{}, byAddr: map[string]*task.Record{}, disk: map[string]task.FileInput{}}
	b.in = Inputs{
		Graph:  b.g,
		Lookup: func(k task.Key) *task.Record { b.lookups++; return b.byKey[k] },
		Latest: func(a string) *task.Record { return b.byAddr[a] },
		Files:  b,
	}
	return b
}

// Many tasks are decided in several goroutines, and no otherwise than each alone; mistakes come in the order of tasks.
func TestManyLeaves(t *testing.T) {
	b := newBed(t)
	var lookups sync.Mutex
	b.in.Lookup = func(k task.Key) *task.Record {
		lookups.Lock()
		defer lookups.Unlock()
		return b.byKey[k]
	}
	const n = 3*leafSpan + 7
	for i := range n {
		name := fmt.Sprint(i)
		b.write("in/"+name, name)
		b.addTask(name, task.Task{Spec: &spec{kind: filesKind, name: name}, Inputs: []string{"in/" + name}})
		if i%10 == 0 {
			b.add(&spec{kind: testKind, name: "after" + name}, task.Dep{On: task.ID(len(b.g.Tasks) - 1), Role: "in"})
		}
	}
	p := b.decide()
	for id := range b.g.Tasks {
		if len(b.g.Tasks[id].Deps) == 0 && id%3 != 0 {
			b.record(p, task.ID(id), ok("x"))
		}
	}
	p = b.decide()
	for id := range b.g.Tasks {
		leaf := len(b.g.Tasks[id].Deps) == 0
		want := Run
		if leaf && id%3 != 0 {
			want = Reuse
		}
		if it := &p.Items[id]; it.Decision != want || it.Known != (leaf || p.Items[id-1].Decision == Reuse) {
			t.Fatalf("task %d is decided %+v, want %v", id, it, want)
		}
	}
	var missing []string
	for i := range n {
		if i%600 == 5 {
			delete(b.disk, fmt.Sprintf("in/%d", i))
			missing = append(missing, fmt.Sprintf("in/%d", i))
		}
	}
	_, err := Decide(b.in)
	var m MissingInputs
	if !errors.As(err, &m) || len(m) != len(missing) {
		t.Fatalf("the error is %v, want %v", err, missing)
	}
	for i := range m {
		if m[i].Path != missing[i] {
			t.Errorf("missing input %d is %s, want %s", i, m[i].Path, missing[i])
		}
	}
}

func (b *bed) Input(path string) (task.FileInput, bool, error) {
	in, ok := b.disk[path]
	return in, ok, nil
}

func (b *bed) write(path, content string) {
	b.disk[path] = task.FileInput{Mode: 0o644, Digest: digest.Of([]byte(content))}
}

func (b *bed) add(s *spec, deps ...task.Dep) task.ID {
	return b.addTask(s.name, task.Task{Spec: s, Deps: deps})
}

func (b *bed) addTask(name string, t task.Task) task.ID {
	id := b.g.Add(t)
	b.g.Objects = append(b.g.Objects, task.Object{Class: task.ClassTask, Block: "task." + name, Steps: []task.Step{{Task: id}}})
	return id
}

func (b *bed) decide() *Plan {
	b.t.Helper()
	p, err := Decide(b.in)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// record remembers a run of a task whose key the plan knows.
func (b *bed) record(p *Plan, id task.ID, o task.Outcome) *task.Record {
	b.t.Helper()
	k := p.Keyer()
	key, known, err := k.key(id, p.decider.contribution)
	if err != nil || !known {
		b.t.Fatalf("the key of %d is not known", id)
	}
	r := &task.Record{Key: key, Kind: b.g.Tasks[id].Spec.Kind().Name, Address: p.Address(id), Preimage: bytes.Clone(k.Preimage()), Outcome: o}
	b.byKey[key], b.byAddr[r.Address] = r, r
	return r
}

func ok(content string, facts ...string) task.Outcome {
	return task.Outcome{Status: task.OK, Facts: facts, Outputs: []task.Output{{Role: "out", Digest: digest.Of([]byte(content))}}}
}

// run records every wanted task as ok, in order, its output being its name and command.
func (b *bed) run() {
	b.t.Helper()
	for id := range b.g.Tasks {
		s := b.g.Tasks[id].Spec.(*spec)
		b.record(b.decide(), task.ID(id), ok(s.name+s.command))
	}
}

func (b *bed) decisions(p *Plan) string {
	var out []string
	for id := range p.Items {
		if p.Wanted[id] {
			out = append(out, p.Items[id].Decision.String())
		}
	}
	return strings.Join(out, " ")
}

func (b *bed) expect(want string) *Plan {
	b.t.Helper()
	p := b.decide()
	if got := b.decisions(p); got != want {
		b.t.Errorf("decided %s, want %s", got, want)
	}
	return p
}

func codes(rs []Reason) string {
	var out []string
	for _, r := range rs {
		out = append(out, string(r.Code)+" "+r.Detail)
	}
	return strings.Join(out, ", ")
}

func on(id task.ID) task.Dep { return task.Dep{On: id, Role: fmt.Sprint("in", id), Output: "out"} }

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *bed)
		want   string // of task b, which reads a's output and x.txt
	}{
		{"spec", func(b *bed) { b.g.Tasks[1].Spec.(*spec).command = "new" }, "spec_changed spec.command"},
		{"file", func(b *bed) { b.write("x.txt", "new") }, "input_changed files.x.txt.content"},
		{"mode", func(b *bed) {
			in := b.disk["x.txt"]
			in.Mode = 0o755
			b.disk["x.txt"] = in
		}, "input_changed files.x.txt.mode"},
		{"file added", func(b *bed) {
			b.write("y.txt", "new")
			b.g.Tasks[1].Inputs = []string{"x.txt", "y.txt"}
		}, "input_changed files.y.txt.content"},
		{"file gone", func(b *bed) { b.g.Tasks[1].Inputs = nil }, "input_changed files.x.txt.content"},
		{"upstream", func(b *bed) {
			b.g.Tasks[0].Spec.(*spec).command = "new"
			b.record(b.decide(), 0, ok("other"))
		}, "upstream_changed inputs.in0"},
		{"upstream runs", func(b *bed) {
			b.g.Tasks[0].Spec.(*spec).command = "new"
			delete(b.byAddr, "task.a")
		}, "upstream_unknown task.a"},
		{"both", func(b *bed) {
			b.g.Tasks[0].Spec.(*spec).command = "new"
			b.g.Tasks[1].Spec.(*spec).command = "new"
		}, "spec_changed spec.command, upstream_unknown task.a"},
		{"salt", func(b *bed) { b.g.Salt = "s" }, "salt salt, upstream_unknown task.a"},
		{"replaced", func(b *bed) { b.in.Replace = map[task.ID]bool{1: true} }, "replaced "},
		{"expired", func(b *bed) {
			b.g.Tasks[1].MaxAge = time.Hour
			b.in.Now = int64(2 * time.Hour)
		}, "expired max_age"},
		{"isolation", func(b *bed) {
			b.byAddr["task.b"].Isolation = "none"
			b.in.MinIsolation = func(*task.Task, string) bool { return false }
		}, "isolation none"},
		{"lost record", func(b *bed) { delete(b.byKey, b.byAddr["task.b"].Key) }, "new its record is gone"},
		{"new", func(b *bed) {
			delete(b.byKey, b.byAddr["task.b"].Key)
			delete(b.byAddr, "task.b")
		}, "new "},
		{"never finished", func(b *bed) {
			delete(b.byKey, b.byAddr["task.b"].Key)
			delete(b.byAddr, "task.b")
			b.in.Started = func(a string) (string, bool) { return "", a == "task.b" }
		}, "never_finished "},
		{"failed", func(b *bed) {
			delete(b.byKey, b.byAddr["task.b"].Key)
			delete(b.byAddr, "task.b")
			b.in.Started = func(a string) (string, bool) { return "exit 4", a == "task.b" }
		}, "never_finished exit 4"},
	} {
		b := newBed(t)
		b.write("x.txt", "1")
		a := b.add(&spec{kind: testKind, name: "a"})
		b.addTask("b", task.Task{Spec: &spec{kind: testKind, name: "b"}, Deps: []task.Dep{on(a)}, Inputs: []string{"x.txt"}})
		b.run()
		b.expect("reuse reuse")
		c.change(b)
		p := b.decide()
		if d := p.Items[1].Decision; d != Run {
			t.Errorf("%s: decided %s", c.name, d)
		}
		if got := codes(p.Reasons(1)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestReasonsShowOldAndNew(t *testing.T) {
	b := newBed(t)
	s := &spec{kind: testKind, name: "a", command: "old"}
	b.add(s)
	b.run()
	s.command = "new"
	p := b.decide()
	want := []Reason{{Code: SpecChanged, Detail: "spec.command", Old: `"old"`, New: `"new"`}}
	if got := p.Reasons(0); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for _, c := range p.Why(0) {
		if c.Same() == (c.Name == "spec.command") {
			t.Errorf("%s: same is %v", c.Name, c.Same())
		}
	}
}

func TestResampledAndKindVersion(t *testing.T) {
	b := newBed(t)
	s := &spec{kind: iceKind, name: "a"}
	b.add(s)
	b.run()
	s.draw = 1
	if got := codes(b.decide().Reasons(0)); got != "resampled spec.draw" {
		t.Error(got)
	}
	s.draw = 0
	iceKind.Version++
	defer func() { iceKind.Version-- }()
	if got := codes(b.decide().Reasons(0)); got != "kind_version kind_version" {
		t.Error(got)
	}
}

func TestMaybe(t *testing.T) {
	b := newBed(t)
	s := &spec{kind: testKind, name: "a"}
	a := b.add(s)
	c := b.add(&spec{kind: testKind, name: "b"}, on(a))
	b.add(&spec{kind: testKind, name: "c"}, on(c))
	b.expect("run run run")
	b.run()
	b.expect("reuse reuse reuse")
	s.command = "edited"
	p := b.expect("run maybe maybe")
	if got := codes(p.Reasons(2)); got != "upstream_unknown task.b" {
		t.Error(got)
	}
	if p.Items[2].Record != b.byAddr["task.c"] || p.Items[2].Key != p.Items[2].Record.Key || p.Items[2].Known {
		t.Errorf("%+v", p.Items[2])
	}
}

func TestOpaque(t *testing.T) {
	b := newBed(t)
	s := &spec{kind: stateKind, name: "state"}
	st := b.add(s)
	below := task.Dep{On: st, Role: "below", Use: task.UseKey}
	b.add(&spec{kind: testKind, name: "test"}, below)
	tolerant := below
	tolerant.Tolerate = task.TolerateFailed
	b.add(&spec{kind: testKind, name: "verdict"}, tolerant)
	p := b.expect("run run run")
	if !p.Items[1].Known || p.Items[2].Known {
		t.Error("the key of what needs the state is known, that of what tolerates its failure is not")
	}
	b.run()
	delete(b.byKey, b.byAddr["task.state"].Key) // collected
	b.expect("run reuse maybe")
	s.command = "edited"
	b.expect("run run maybe")
}

// A record of what waits for a task that runs stands only if that does not fail; what tolerates the failure must not build on it.
func TestShakyEnds(t *testing.T) {
	b := newBed(t)
	a := b.add(&spec{kind: testKind, name: "a"})
	c := b.add(&spec{kind: testKind, name: "b"}, task.Dep{On: a, Role: "after", Use: task.UseOrder})
	b.add(&spec{kind: testKind, name: "strict"}, on(c))
	d := on(c)
	d.Tolerate = task.TolerateFailed
	b.add(&spec{kind: testKind, name: "tolerant"}, d)
	b.run()
	delete(b.byKey, b.byAddr["task.a"].Key)
	p := b.expect("run reuse reuse maybe")
	if p.Items[3].Known {
		t.Error("its key is known")
	}
}

func TestConditions(t *testing.T) {
	b := newBed(t)
	gate := b.add(&spec{kind: testKind, name: "gate"})
	after := task.Dep{On: gate, Role: "gate", Use: task.UseOrder}
	cell := b.addTask("cell", task.Task{
		Spec: &spec{kind: testKind, name: "cell"}, Deps: []task.Dep{after}, When: []task.Condition{{On: gate, Fact: "admitted"}},
	})
	b.add(&spec{kind: testKind, name: "below"}, on(cell))
	unmet := on(cell)
	unmet.Tolerate = task.TolerateUnmet
	b.add(&spec{kind: testKind, name: "report"}, unmet)
	b.expect("run run run run")
	b.record(b.decide(), gate, ok("no"))
	p := b.expect("reuse unneeded unneeded run")
	if !p.Items[3].Known || p.decider.ends[1].Status != "" {
		t.Errorf("%+v", p.Items)
	}
	b.record(p, gate, ok("yes", "admitted"))
	b.expect("reuse run run run")
	b.run() // the gate's outcome has no fact
	b.record(b.decide(), gate, ok("yes", "admitted"))
	for id := range 3 {
		b.record(b.decide(), task.ID(id+1), ok("x"))
	}
	b.expect("reuse reuse reuse reuse")
	delete(b.byKey, b.byAddr["task.gate"].Key)
	p = b.expect("run maybe maybe maybe") // it may come out otherwise
	if got := codes(p.Reasons(cell)); got != "upstream_unknown task.gate" {
		t.Error(got)
	}
}

func TestRecordedFailure(t *testing.T) {
	b := newBed(t)
	a := b.add(&spec{kind: testKind, name: "a"})
	c := b.add(&spec{kind: testKind, name: "b"}, on(a))
	d := on(c)
	d.Tolerate = task.TolerateFailed
	b.add(&spec{kind: testKind, name: "verdict"}, d)
	r := b.record(b.decide(), a, task.Outcome{Status: task.Failed, Record: true})
	p := b.expect("reuse unneeded run")
	if !p.Items[2].Known || p.decider.ends[1].Root != a {
		t.Errorf("%+v", p.Items)
	}
	var components []string
	for _, c := range p.Why(2) {
		if c.Name == "inputs.in1" {
			components = append(components, c.New.Digest.String())
		}
	}
	if want := []string{r.Digest("").String()}; !slices.Equal(components, want) {
		t.Errorf("the verdict keys on %v, want the failure %v", components, want)
	}
}

func TestOutputsOnDisk(t *testing.T) {
	b := newBed(t)
	b.write("in", "1")
	b.addTask("a", task.Task{Spec: &spec{kind: filesKind, name: "a"}, Inputs: []string{"in"}, Outputs: []string{"o1", "o2"}})
	o := task.Outcome{Status: task.OK}
	for _, path := range []string{"o1", "o2"} {
		b.write(path, path)
		o.Outputs = append(o.Outputs, task.Output{Role: path, Mode: 0o644, Digest: digest.Of([]byte(path))})
	}
	b.record(b.decide(), 0, o)
	b.expect("reuse")
	b.write("o2", "spoilt")
	if got := codes(b.expect("run").Reasons(0)); got != "output_missing o2" {
		t.Error(got)
	}
	b.in.Stored = func(o task.Output) bool { return o.Role == "o2" }
	p := b.expect("reuse")
	if got := codes(p.Reasons(0)); got != "restore o2" || !slices.Equal(p.Items[0].Restore, []int{1}) {
		t.Error(got)
	}
	delete(b.disk, "o1")
	if got := codes(b.expect("run").Reasons(0)); got != "output_missing o1" {
		t.Error(got)
	}
}

func TestMissingInputs(t *testing.T) {
	b := newBed(t)
	made := b.addTask("maker", task.Task{Spec: &spec{kind: filesKind, name: "maker"}, Outputs: []string{"made"}})
	b.addTask("a", task.Task{
		Spec: &spec{kind: filesKind, name: "a"}, Inputs: []string{"gone", "here", "made"}, Deps: []task.Dep{{On: made, Role: "made", Output: "made"}},
	})
	b.addTask("b", task.Task{Spec: &spec{kind: filesKind, name: "b"}, Inputs: []string{"also gone"}})
	b.write("here", "1")
	_, err := Decide(b.in)
	var m MissingInputs
	if !errors.As(err, &m) || len(m) != 2 || *m[0] != (MissingInput{1, "gone"}) || *m[1] != (MissingInput{2, "also gone"}) {
		t.Errorf("%v", err)
	}
	b.in.Want = []task.ID{made}
	if _, err := Decide(b.in); err != nil {
		t.Errorf("what is not wanted needs no input: %v", err)
	}
}

func TestCountsAndSelection(t *testing.T) {
	b := newBed(t)
	source := b.add(&spec{kind: testKind, name: "source"})
	test := b.add(&spec{kind: testKind, name: "test"}, on(source))
	other := b.add(&spec{kind: testKind, name: "other"})
	b.g.Objects = []task.Object{
		{Class: task.ClassInstance, Block: "instance.i", Index: []string{"x"}, Steps: []task.Step{{Name: "source", Task: source}}},
		{Class: task.ClassGate, Block: "gate.g", Index: []string{"x"}, Steps: []task.Step{{Name: "test", Task: test}, {Name: "again", Task: source}}},
		{Class: task.ClassRuntime, Block: "runtime.r", Steps: []task.Step{{Task: other}}},
	}
	b.record(b.decide(), source, ok("1"))
	c := b.decide().Counts()
	if c.Tally != (Tally{Run: 2, Reuse: 1}) || c.ByClass[task.ClassInstance] != (Tally{Reuse: 1}) || c.ByClass[task.ClassGate] != (Tally{Run: 1}) || len(c.ByClass) != 7 {
		t.Errorf("%+v", c)
	}
	b.in.Want = []task.ID{source}
	if c := b.decide().Counts(); c.Tally != (Tally{Reuse: 1}) || c.ByClass[task.ClassGate] != (Tally{Reuse: 1}) {
		t.Errorf("%+v", c)
	}
	if got := Closure(b.g, []task.ID{test}); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("%v", got)
	}
	p := b.decide()
	if got := p.Addresses(source); !slices.Equal(got, []string{`instance.i["x"]/source`, `gate.g["x"]/again`}) || p.Address(other) != "runtime.r" {
		t.Errorf("%q", got)
	}
}

func TestNewTasksAskForLittle(t *testing.T) {
	b := newBed(t)
	last := b.add(&spec{kind: testKind, name: "0"})
	for i := range 99 {
		last = b.add(&spec{kind: testKind, name: fmt.Sprint(i + 1)}, on(last))
	}
	b.in.Latest = nil
	b.decide()
	if b.lookups != 1 {
		t.Errorf("%d look-ups for a chain of which only the first key is known", b.lookups)
	}
}
