package plan

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pbuild/engine/task"
)

func savedBed(t *testing.T) (*bed, *spec) {
	b := newBed(t)
	b.write("x.txt", "1")
	s := &spec{kind: iceKind, name: "a"}
	a := b.add(s)
	b.addTask("b", task.Task{Spec: &spec{kind: testKind, name: "b"}, Deps: []task.Dep{on(a)}, Inputs: []string{"x.txt"}, Timeout: time.Minute})
	b.add(&spec{kind: testKind, name: "c"})
	b.record(b.decide(), 2, ok("c"))
	return b, s
}

func save(t *testing.T, p *Plan) *Saved {
	t.Helper()
	var buf bytes.Buffer
	if err := Save(&buf, p, Meta{Pbuild: "0.1.0", Selectors: []string{"task.*"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(buf.String(), Magic) {
		t.Error("it does not begin with the magic")
	}
	s, err := Load(&buf)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSavedPlan(t *testing.T) {
	b, _ := savedBed(t)
	s := save(t, b.decide())
	if s.Samples != 1 || len(s.Tasks) != 2 || s.Pbuild != "0.1.0" || s.Counts.Run != 2 || s.Counts.Reuse != 1 {
		t.Errorf("%+v", s)
	}
	second := s.Tasks[1]
	second.Digest = [32]byte{}
	want := SavedTask{ID: 1, Address: "task.b", Kind: "test", Decision: "run", Reasons: []Reason{{Code: New}}, Seconds: 60}
	if !reflect.DeepEqual(second, want) {
		t.Errorf("%+v", second)
	}
	if err := Check(s, b.decide()); err != nil {
		t.Error(err)
	}
	b.record(b.decide(), 0, ok("a")) // less is to be done than was
	if err := Check(s, b.decide()); err != nil {
		t.Error(err)
	}
}

func TestStalePlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *bed, a *spec)
		want   string
	}{
		"spec":   {func(_ *bed, a *spec) { a.command = "new" }, "task.a has changed"},
		"file":   {func(b *bed, _ *spec) { b.write("x.txt", "2") }, "task.b has changed"},
		"gone":   {func(b *bed, _ *spec) { b.g.Objects[0].Block = "task.renamed" }, "task.a is gone"},
		"edge":   {func(b *bed, _ *spec) { b.g.Tasks[1].Deps[0].Use = task.UseOrder }, "the graph was"},
		"object": {func(b *bed, _ *spec) { b.g.Objects = append(b.g.Objects, b.g.Objects[0]) }, "the graph was"},
		"salt":   {func(b *bed, _ *spec) { b.g.Salt = "s" }, "task.c would run"},
		"chosen": {func(b *bed, _ *spec) { b.in.Want = []task.ID{1} }, "the graph was"},
		"lost":   {func(b *bed, _ *spec) { clear(b.byKey) }, "task.c would run"},
	} {
		b, a := savedBed(t)
		s := save(t, b.decide())
		c.change(b, a)
		var stale *Stale
		if err := Check(s, b.decide()); !errors.As(err, &stale) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	if _, err := Load(strings.NewReader("task \"a\" {}\n")); !errors.Is(err, ErrNoPlan) {
		t.Error(err)
	}
	for _, s := range []string{"", "{", `{"novel":1}`, "{}\n{}"} {
		if _, err := Load(strings.NewReader(Magic + s)); err == nil || errors.Is(err, ErrNoPlan) {
			t.Errorf("%q: %v", s, err)
		}
	}
}
