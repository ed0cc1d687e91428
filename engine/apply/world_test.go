package apply

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

var (
	testKind   = &task.Kind{Name: "test", Version: 1}
	pureKind   = &task.Kind{Name: "pure", Version: 1, Pure: true}
	stateKind  = &task.Kind{Name: "state", Version: 1, Opaque: true}
	frozenKind = &task.Kind{Name: "frozen", Version: 1, Frozen: true}
	filesKind  = &task.Kind{Name: "files", Version: 1, Files: true}
)

// spec is the spec of every test task.
type spec struct {
	kind   *task.Kind
	name   string
	value  int
	coarse int    // the output takes only so many values, so that different inputs may come out equal; 0: all
	do     string // how it ends: "", "fail", "fact" (a failure that is recorded)
}

func (s *spec) Kind() *task.Kind { return s.kind }
func (s *spec) Encode(e *digest.Encoder) {
	e.String("name", s.name)
	e.Int("value", int64(s.value))
	e.Int("coarse", int64(s.coarse))
	e.String("do", s.do)
}

// compute is the pure function that test tasks are: of the spec and of what the inputs came out as.
func compute(a *task.Attempt) task.Outcome {
	s := a.Task.Spec.(*spec)
	var e digest.Encoder
	s.Encode(&e)
	for _, in := range a.Inputs {
		if in.Use != task.UseOrder {
			e.Digest(in.Role, in.Digest)
		}
	}
	sum := e.Sum()
	n := binary.LittleEndian.Uint64(sum[:])
	if s.coarse > 0 {
		n %= uint64(s.coarse)
	}
	out := digest.Of(binary.LittleEndian.AppendUint64(nil, n))
	o := task.Outcome{Status: task.OK, Verdict: task.Pass, Outputs: []task.Output{{Role: "out", Digest: out}}}
	if n%2 == 0 {
		o.Facts = []string{"even"}
	}
	switch s.do {
	case "fail":
		o = task.Outcome{Status: task.Failed, Reason: s.name + " failed"}
	case "fact":
		o = task.Outcome{Status: task.Failed, Reason: s.name + " failed", Record: true}
	}
	return o
}

// journal is a store in memory. It accepts limit batches, then fails; a limit below 0 is none.
type journal struct {
	mu      sync.Mutex
	byKey   map[task.Key]*task.Record
	byAddr  map[string]*task.Record
	limit   int
	refuse  func([]*task.Record) bool // batches that it does not take; nil: none
	batches [][]*task.Record
	applies int
}

var errFull = errors.New("store: append: no space left on device")

func newJournal() *journal {
	return &journal{byKey: map[task.Key]*task.Record{}, byAddr: map[string]*task.Record{}, limit: -1}
}

func (j *journal) Lookup(k task.Key) *task.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.byKey[k]
}

func (j *journal) Latest(address string) *task.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.byAddr[address]
}

func (j *journal) Append(rs []*task.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.limit == 0 || j.refuse != nil && j.refuse(rs) {
		return errFull
	}
	j.limit--
	j.batches = append(j.batches, rs)
	for _, r := range rs {
		j.byKey[r.Key] = r
		j.byAddr[r.Address] = r
	}
	return nil
}

func (j *journal) len() int { return len(j.byKey) }

// disk is a workspace in memory.
type disk map[string]task.FileInput

func (d disk) Input(path string) (task.FileInput, bool, error) {
	in, ok := d[path]
	return in, ok, nil
}

func (d disk) put(path, content string) {
	d[path] = task.FileInput{Path: path, Mode: 0o644, Digest: digest.Of([]byte(content))}
}

// reporter is what a test and a property have in common.
type reporter interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

// world is a graph with a journal and a disk, to be planned and applied.
type world struct {
	t       reporter
	g       task.Graph
	j       *journal
	disk    disk
	runs    map[string]int // by address: how often it ran in the last apply
	mu      sync.Mutex
	run     func(ctx context.Context, a *task.Attempt) (task.Outcome, error) // nil: compute
	now     int64
	options func(*Options)
	inputs  func(*plan.Inputs)
}

func newWorld(t reporter) *world { return &world{t: t, j: newJournal(), disk: disk{}} }

// add adds a task under the address task.NAME.
func (w *world) add(s *spec, deps ...task.Dep) task.ID {
	return w.addTask(s.name, task.Task{Spec: s, Deps: deps})
}

func (w *world) addTask(name string, t task.Task) task.ID {
	id := w.g.Add(t)
	w.g.Objects = append(w.g.Objects, task.Object{Class: task.ClassTask, Block: "task." + name, Steps: []task.Step{{Task: id}}})
	return id
}

// on is a dependency on the output of another task.
func on(id task.ID) task.Dep {
	return task.Dep{On: id, Role: fmt.Sprint("in", id), Output: "out"}
}

func tolerant(id task.ID, tol task.Tolerance) task.Dep {
	d := on(id)
	d.Tolerate = tol
	return d
}

func (w *world) plan(want ...task.ID) *plan.Plan {
	w.t.Helper()
	in := plan.Inputs{Graph: &w.g, Lookup: w.j.Lookup, Latest: w.j.Latest, Files: w.disk, Want: want, Now: w.now}
	if w.inputs != nil {
		w.inputs(&in)
	}
	p, err := plan.Decide(in)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) executors() task.Executors {
	f := task.ExecutorFunc(func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		w.mu.Lock()
		w.runs[a.Address]++
		w.mu.Unlock()
		if w.run != nil {
			return w.run(ctx, a)
		}
		return compute(a), nil
	})
	return task.Executors{"test": f, "pure": f, "state": f, "frozen": f, "files": f}
}

func (w *world) try(ctx context.Context, want ...task.ID) (*Summary, error) {
	w.t.Helper()
	w.runs = map[string]int{}
	w.j.applies++
	o := Options{Plan: w.plan(want...), Executors: w.executors(), Journal: w.j, Slots: 3, Retries: 3, Run: fmt.Sprint("run", w.j.applies)}
	o.Clock = func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now++
		return time.Unix(0, w.now)
	}
	if w.options != nil {
		w.options(&o)
	}
	return Apply(ctx, o)
}

func (w *world) apply(want ...task.ID) *Summary {
	w.t.Helper()
	s, err := w.try(context.Background(), want...)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// ran demands that exactly the named tasks ran, each once.
func (w *world) ran(names ...string) {
	w.t.Helper()
	want := map[string]int{}
	for _, n := range names {
		want["task."+n] = 1
	}
	if fmt.Sprint(w.runs) != fmt.Sprint(want) {
		w.t.Errorf("ran %v, want %v", w.runs, want)
	}
}
