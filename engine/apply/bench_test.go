package apply

import (
	"context"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// nothing is the executor of the benchmarks.
func nothing(context.Context, *task.Attempt) (task.Outcome, error) {
	return task.Outcome{Status: task.OK}, nil
}

// sink is a journal that forgets.
type sink struct{}

func (sink) Lookup(task.Key) *task.Record { return nil }
func (sink) Append([]*task.Record) error  { return nil }

// chains makes n tasks in chains of ten, as instances are.
func chains(n int, kind *task.Kind) *task.Graph {
	g := &task.Graph{}
	for i := range n {
		t := task.Task{Spec: &spec{kind: kind, name: strconv.Itoa(i)}}
		if i%10 > 0 {
			t.Deps = []task.Dep{{On: task.ID(i - 1), Role: "in", Output: "out"}}
		}
		id := g.Add(t)
		g.Objects = append(g.Objects, task.Object{Class: task.ClassTask, Block: "task.t", Index: []string{strconv.Itoa(i)}, Steps: []task.Step{{Task: id}}})
	}
	return g
}

func bench(b *testing.B, f func(b *testing.B, g *task.Graph, n int)) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			g := chains(n, testKind)
			b.ReportAllocs()
			b.ResetTimer()
			f(b, g, n)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
		})
	}
}

func BenchmarkDecideFresh(b *testing.B) {
	bench(b, func(b *testing.B, g *task.Graph, n int) {
		for range b.N {
			if _, err := plan.Decide(plan.Inputs{Graph: g}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkApplyFresh(b *testing.B) {
	bench(b, func(b *testing.B, g *task.Graph, n int) {
		for range b.N {
			p, _ := plan.Decide(plan.Inputs{Graph: g})
			s, err := Apply(context.Background(), Options{Plan: p, Executors: task.Executors{"test": task.ExecutorFunc(nothing)}, Journal: sink{}, Slots: 2, Run: "r"})
			if err != nil || s.Run != n {
				b.Fatalf("%+v, %v", s.Run, err)
			}
		}
	})
}

func BenchmarkDecideAndApplyNull(b *testing.B) {
	bench(b, func(b *testing.B, g *task.Graph, n int) {
		j := newJournal()
		p, _ := plan.Decide(plan.Inputs{Graph: g})
		if _, err := Apply(context.Background(), Options{Plan: p, Executors: task.Executors{"test": task.ExecutorFunc(nothing)}, Journal: j, Slots: 2, Run: "r"}); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for range b.N {
			p, _ := plan.Decide(plan.Inputs{Graph: g, Lookup: j.Lookup, Latest: j.Latest})
			s, err := Apply(context.Background(), Options{Plan: p, Journal: j, Slots: 2, Run: "r2"})
			if err != nil || s.Reuse != n {
				b.Fatalf("%+v, %v", s.Reuse, err)
			}
		}
	})
}

// BenchmarkProcesses starts one process a task, and for comparison starts as many from two plain loops.
func BenchmarkProcesses(b *testing.B) {
	const n = 500
	start := func() error { return exec.Command("/bin/true").Run() }
	b.Run("plain", func(b *testing.B) {
		for range b.N {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for range n / 2 {
						if err := start(); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		}
	})
	b.Run("apply", func(b *testing.B) {
		g := chains(n, testKind)
		run := task.ExecutorFunc(func(context.Context, *task.Attempt) (task.Outcome, error) {
			return task.Outcome{Status: task.OK}, start()
		})
		for range b.N {
			p, _ := plan.Decide(plan.Inputs{Graph: g})
			if _, err := Apply(context.Background(), Options{Plan: p, Executors: task.Executors{"test": run}, Journal: sink{}, Slots: 2}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
