package sched

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

var (
	slotKind = &task.Kind{Name: "slot", Version: 1}
	pureKind = &task.Kind{Name: "pure", Version: 1, Pure: true}
)

type spec struct {
	kind *task.Kind
	n    int
}

func (s spec) Kind() *task.Kind         { return s.kind }
func (s spec) Encode(e *digest.Encoder) { e.Int("n", int64(s.n)) }

// model drives a State with random events, and knows by itself what must hold.
type model struct {
	t       *rapid.T
	g       *task.Graph
	c       Config
	s       *State
	events  []Event // that may come next, in any order
	running map[task.ID]bool
	alone   task.ID
	stopped bool
	failing bool // a failure that stops is being committed
	ended   map[task.ID]bool
	inRun   map[task.Key]task.ID
	keys    int
}

func drawGraph(t *rapid.T) *task.Graph {
	g := &task.Graph{Pools: map[string]int{"one": 1, "two": 2, "free": 0}}
	n := rapid.IntRange(1, 25).Draw(t, "tasks")
	for i := range n {
		tk := task.Task{Spec: spec{rapid.SampledFrom([]*task.Kind{slotKind, slotKind, pureKind}).Draw(t, "kind"), i}}
		tk.Pool = rapid.SampledFrom([]string{"", "", "one", "two", "free", "undeclared"}).Draw(t, "pool")
		for j := range rapid.IntRange(0, min(3, i)).Draw(t, "deps") {
			d := task.Dep{On: task.ID(rapid.IntRange(0, i-1).Draw(t, "on")), Role: fmt.Sprint(j)}
			d.Tolerate = task.Tolerance(rapid.IntRange(0, 3).Draw(t, "tolerate"))
			tk.Deps = append(tk.Deps, d)
			if rapid.IntRange(0, 5).Draw(t, "when") == 0 {
				tk.When = append(tk.When, task.Condition{On: d.On, Fact: "f", Not: rapid.Bool().Draw(t, "not")})
			}
		}
		g.Add(tk)
	}
	return g
}

func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, g: drawGraph(t), running: map[task.ID]bool{}, alone: task.None, ended: map[task.ID]bool{}, inRun: map[task.Key]task.ID{}}
		m.keys = rapid.IntRange(1, 40).Draw(t, "keys") // few keys make equal ones
		m.c = Config{
			Graph: m.g, Slots: rapid.IntRange(1, 4).Draw(t, "slots"), Pure: rapid.IntRange(1, 3).Draw(t, "pure"),
			Retries: rapid.IntRange(0, 2).Draw(t, "retries"), Backoff: time.Second, FailFast: rapid.IntRange(0, 3).Draw(t, "failfast") == 0,
		}
		m.s = New(m.c)
		m.step(Event{Type: Begin})
		for steps := 0; m.s.Left() > 0; steps++ {
			if steps > 100*len(m.g.Tasks) {
				t.Fatal("it does not end")
			}
			if rapid.IntRange(0, 60).Draw(t, "interrupt") == 0 {
				m.stopped = true
				m.step(Event{Type: rapid.SampledFrom([]EventType{Stop, Kill}).Draw(t, "how")})
				continue
			}
			if len(m.events) == 0 {
				t.Fatalf("%d tasks are left, and nothing can happen", m.s.Left())
			}
			i := rapid.IntRange(0, len(m.events)-1).Draw(t, "event")
			e := m.events[i]
			m.events = append(m.events[:i:i], m.events[i+1:]...)
			m.happen(e)
		}
		for id := range m.g.Tasks {
			if !m.ended[task.ID(id)] {
				t.Fatalf("task %d was lost", id)
			}
		}
	})
}

// happen completes an event that was foreseen, and steps.
func (m *model) happen(e Event) {
	switch e.Type {
	case Run: // the answer to Resolve
		if !m.s.Resolving(e.Task) {
			return // a stop came between
		}
		switch rapid.IntRange(0, 5).Draw(m.t, "resolve") {
		case 0:
			e.Type, e.Record = Reuse, m.record(task.OK)
		case 1:
			e.Type, e.Record = Reuse, m.record(task.Failed)
			e.Record.Outcome.Record = true
		case 2:
			e.Type, e.Status, e.Record = Fail, task.Failed, m.record(task.Failed)
		default:
			e.Key = task.Key{1, byte(rapid.IntRange(0, m.keys).Draw(m.t, "key"))}
		}
	case Ended:
		delete(m.running, e.Task)
		delete(m.inRun, m.s.Key(e.Task))
		if m.alone == e.Task {
			m.alone = task.None
		}
		e.Record = m.record(rapid.SampledFrom([]task.Status{task.OK, task.OK, task.OK, task.Failed, task.Infra, task.Provider, task.Cancelled}).Draw(m.t, "status"))
		e.Record.Confirm = rapid.IntRange(0, 4).Draw(m.t, "confirm") == 0
		e.Record.Outcome.Record = rapid.Bool().Draw(m.t, "record")
	case Committed:
		if rapid.IntRange(0, 20).Draw(m.t, "lost") == 0 {
			e.Type, e.Cause = Lost, "disk full"
		}
	}
	m.step(e)
}

func (m *model) record(st task.Status) *task.Record {
	r := &task.Record{Outcome: task.Outcome{Status: st}}
	if rapid.Bool().Draw(m.t, "fact") {
		r.Facts = []string{"f"}
	}
	return r
}

func (m *model) step(e Event) {
	for _, a := range m.s.Step(e) {
		switch a.Type {
		case Resolve:
			m.dependenciesEnded(a.Task)
			m.events = append(m.events, Event{Type: Run, Task: a.Task})
		case Start:
			m.started(a)
			m.events = append(m.events, Event{Type: Ended, Task: a.Task})
		case Commit:
			m.failing = m.failing || m.stops(a.Task)
			m.events = append(m.events, Event{Type: Committed, Task: a.Task})
		case Retry:
			if a.After < time.Second || a.After > 2*time.Second {
				m.t.Fatalf("backs off for %s", a.After)
			}
			m.events = append(m.events, Event{Type: Wake, Task: a.Task})
		case Finish:
			m.finished(a.Task)
		}
	}
	m.bounds()
}

func (m *model) dependenciesEnded(id task.ID) {
	for _, d := range m.g.Tasks[id].Deps {
		if !m.ended[d.On] {
			m.t.Fatalf("task %d goes on before its dependency %d has ended", id, d.On)
		}
		if !d.Accepts(&m.s.Ends()[d.On]) {
			m.t.Fatalf("task %d does not accept how %d ended", id, d.On)
		}
	}
}

func (m *model) started(a Action) {
	m.dependenciesEnded(a.Task)
	if m.stopped || m.failing {
		m.t.Fatalf("task %d starts after a stop", a.Task)
	}
	if m.running[a.Task] || m.ended[a.Task] {
		m.t.Fatalf("task %d starts again", a.Task)
	}
	if other, ok := m.inRun[m.s.Key(a.Task)]; ok {
		m.t.Fatalf("tasks %d and %d run at once with one key", other, a.Task)
	}
	m.running[a.Task] = true
	m.inRun[m.s.Key(a.Task)] = a.Task
	if a.Alone {
		m.alone = a.Task
	}
	if a.Attempt != m.s.Runs(a.Task) {
		m.t.Fatalf("attempt %d of %d", a.Attempt, m.s.Runs(a.Task))
	}
}

func (m *model) finished(id task.ID) {
	if m.ended[id] {
		m.t.Fatalf("task %d ended twice", id)
	}
	if m.running[id] {
		m.t.Fatalf("task %d ended while it ran", id)
	}
	m.ended[id] = true
	e := m.s.Ends()[id]
	switch p := m.s.Phase(id); {
	case p == Done && e.Status != task.OK && e.Status != "",
		p == Failed && (e.Status == task.OK || e.Status == "" || e.Record == nil),
		p == Skipped && (e.Record != nil || e.Status == task.OK),
		p < Done:
		m.t.Fatalf("task %d is %s with %+v", id, p, e)
	case p == Skipped && e.Root != task.None:
		if root := m.s.Phase(e.Root); root != Failed {
			m.t.Fatalf("the root of %d is %s", id, root)
		}
	case p == Skipped && !m.stopped:
		m.t.Fatalf("task %d was cancelled, and nothing has stopped", id)
	}
	if m.s.Phase(id) == Failed && m.stops(id) {
		m.stopped = true
	}
}

// stops says whether nothing may start once a task has ended as it did.
func (m *model) stops(id task.ID) bool {
	st := m.s.Ends()[id].Status
	return m.c.FailFast && st != task.OK && !(st == task.Failed && m.tolerated(id))
}

// tolerated says whether what has not ended tolerates the failure of a task, or of what waits for that.
func (m *model) tolerated(id task.ID) bool {
	for up := range m.g.Tasks {
		for _, d := range m.g.Tasks[up].Deps {
			if d.On != id || m.ended[task.ID(up)] {
				continue
			}
			if d.Tolerate == task.TolerateFailed || d.Tolerate < task.TolerateFailed && m.tolerated(task.ID(up)) {
				return true
			}
		}
	}
	return false
}

func (m *model) bounds() {
	slots, pure, pools := 0, 0, map[string]int{}
	for id := range m.running {
		t := &m.g.Tasks[id]
		if t.Spec.Kind().Pure {
			pure++
		} else {
			slots++
			pools[t.Pool]++
		}
	}
	if slots > m.c.Slots || pure > m.c.Pure || pools["one"] > 1 || pools["two"] > 2 {
		m.t.Fatalf("%d slots, %d pure, pools %v", slots, pure, pools)
	}
	if m.alone != task.None && slots != 1 {
		m.t.Fatalf("task %d runs alone with %d others", m.alone, slots-1)
	}
	if m.s.slots+m.s.pure != slots+pure {
		m.t.Fatalf("it counts %d running of %d", m.s.slots+m.s.pure, slots+pure)
	}
}

// begin makes a state of slot tasks and resolves everything that asks for it, each with a key of its own.
func begin(c Config) (*State, []Action) {
	s := New(c)
	return s, settle(s, s.Step(Event{Type: Begin}))
}

func settle(s *State, actions []Action) (out []Action) {
	todo := append([]Action(nil), actions...)
	for len(todo) > 0 {
		a := todo[0]
		todo = todo[1:]
		if a.Type == Resolve {
			todo = append(todo, s.Step(Event{Type: Run, Task: a.Task, Key: task.Key{byte(a.Task), 1}})...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

func TestLongestPathFirst(t *testing.T) {
	g := &task.Graph{}
	short := g.Add(task.Task{Spec: spec{slotKind, 0}})
	long := g.Add(task.Task{Spec: spec{slotKind, 1}})
	g.Add(task.Task{Spec: spec{slotKind, 2}, Deps: []task.Dep{{On: long, Role: "in"}}})
	_, acts := begin(Config{Graph: g, Slots: 1, Pure: 1})
	if len(acts) != 1 || acts[0].Task != long {
		t.Errorf("%+v", acts)
	}
	_, acts = begin(Config{Graph: g, Slots: 1, Pure: 1, Weight: func(id task.ID) time.Duration {
		if id == short {
			return time.Hour
		}
		return time.Second
	}})
	if len(acts) != 1 || acts[0].Task != short {
		t.Errorf("%+v", acts)
	}
}

// A full pool holds up nobody else.
func TestPoolDoesNotBlockOthers(t *testing.T) {
	g := &task.Graph{Pools: map[string]int{"p": 1}}
	for i := range 3 {
		g.Add(task.Task{Spec: spec{slotKind, i}, Pool: "p"})
	}
	g.Add(task.Task{Spec: spec{slotKind, 3}})
	_, acts := begin(Config{Graph: g, Slots: 4, Pure: 1})
	if len(acts) != 2 || acts[0].Task != 0 || acts[1].Task != 3 {
		t.Errorf("%+v", acts)
	}
}

func TestIllegalEventsPanic(t *testing.T) {
	g := &task.Graph{}
	g.Add(task.Task{Spec: spec{slotKind, 0}})
	for _, e := range []Event{{Type: Begin}, {Type: Reuse, Record: &task.Record{}}, {Type: Run}, {Type: Committed}, {Type: Lost}} {
		s, _ := begin(Config{Graph: g, Slots: 1, Pure: 1})
		func() {
			defer func() {
				if p := recover(); p == nil {
					t.Errorf("event %d is accepted while the task runs", e.Type)
				}
			}()
			s.Step(e)
		}()
	}
}

// Of several failures the root is one that is a fact, whichever came first: it may enter a key.
func TestRootPrefersFacts(t *testing.T) {
	g := &task.Graph{}
	infra := g.Add(task.Task{Spec: spec{slotKind, 0}})
	fact := g.Add(task.Task{Spec: spec{slotKind, 1}})
	below := g.Add(task.Task{Spec: spec{slotKind, 2}, Deps: []task.Dep{{On: infra, Role: "a"}, {On: fact, Role: "b"}}})
	s, _ := begin(Config{Graph: g, Slots: 2, Pure: 1})
	for id, o := range []task.Outcome{{Status: task.Infra}, {Status: task.Failed, Record: true}} {
		s.Step(Event{Type: Ended, Task: task.ID(id), Record: &task.Record{Outcome: o}})
		s.Step(Event{Type: Committed, Task: task.ID(id)})
	}
	if e := s.Ends()[below]; e.Root != fact || e.Status != task.Failed {
		t.Errorf("%+v", e)
	}
}

// With FailFast, a failure of which a gate makes an outcome stops nothing; a gate that rejects does, and so does a failure of which nobody makes anything.
func TestFailFastWaitsForWhoTolerates(t *testing.T) {
	for _, c := range []struct {
		name     string
		status   task.Status
		gated    bool
		rejected bool
		stopped  bool
	}{
		{name: "tolerated", status: task.Failed, gated: true},
		{name: "rejected", status: task.Failed, gated: true, rejected: true, stopped: true},
		{name: "not tolerated", status: task.Failed, stopped: true},
		{name: "the world's", status: task.Infra, gated: true, stopped: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &task.Graph{}
			setup := g.Add(task.Task{Spec: spec{slotKind, 0}})
			test := g.Add(task.Task{Spec: spec{slotKind, 1}, Deps: []task.Dep{{On: setup, Role: "state"}}})
			gate := task.None
			if c.gated {
				gate = g.Add(task.Task{Spec: spec{pureKind, 2}, Deps: []task.Dep{{On: test, Role: "test", Tolerate: task.TolerateFailed}}})
			}
			next := g.Add(task.Task{Spec: spec{slotKind, 3}})
			last := g.Add(task.Task{Spec: spec{slotKind, 4}})
			s, _ := begin(Config{Graph: g, Slots: 1, Pure: 1, FailFast: true})
			end := func(id task.ID, st task.Status, rejected bool) {
				settle(s, s.Step(Event{Type: Ended, Task: id, Rejected: rejected, Record: &task.Record{Outcome: task.Outcome{Status: st}}}))
				settle(s, s.Step(Event{Type: Committed, Task: id, Rejected: rejected}))
			}
			end(setup, c.status, false)
			if c.gated && s.Phase(gate) == Running {
				end(gate, task.OK, c.rejected)
			}
			if got := s.Phase(next); (got == Skipped) != (c.stopped && !c.rejected) {
				t.Errorf("what had the slot next is %s", got)
			}
			if got := s.Phase(last); (got == Skipped) != c.stopped {
				t.Errorf("what was last is %s", got)
			}
		})
	}
}
