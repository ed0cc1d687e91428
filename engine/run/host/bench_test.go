//go:build unix

package host

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"pbuild/engine/run"
	"pbuild/engine/run/runtest"
	"pbuild/engine/task"
)

// The start of a command: as bare as it can be, in place, and sealed.
func BenchmarkTrueBare(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	defer processor(b)()
	for b.Loop() {
		pid, err := syscall.ForkExec(path, []string{"true"}, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
		if err != nil {
			b.Fatal(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// processor reports the processor time of each operation, all processes together: on a busy machine it says more than the wall does.
func processor(b *testing.B) func() {
	use := func() float64 {
		var sum float64
		for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
			var ru syscall.Rusage
			syscall.Getrusage(who, &ru)
			sum += float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e6
		}
		return sum
	}
	before := use()
	return func() { b.ReportMetric((use()-before)/float64(b.N), "cpu-ms/op") }
}

func BenchmarkTrueInPlace(b *testing.B) {
	dir, env := b.TempDir(), os.Environ()
	defer processor(b)()
	for b.Loop() {
		if _, err := here.Run(b.Context(), &run.Command{Argv: []string{"true"}}, dir, env); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkTrue(b *testing.B, change func(*Options)) {
	trees := runtest.NewTrees()
	r := runner(b, trees, change)
	c := &run.Command{Argv: []string{"true"}, Env: map[string]string{"PATH": os.Getenv("PATH")}}
	c.Start.Tree = trees.Add(map[string]string{"a": "x"})
	b.Log(r.Status())
	defer processor(b)()
	for b.Loop() {
		if _, err := r.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrueSealed(b *testing.B) { benchmarkTrue(b, nil) }
func BenchmarkTrueNone(b *testing.B) {
	benchmarkTrue(b, func(o *Options) { o.MaxIsolation = run.IsolationNone })
}

// A run that starts from a state whose HOME holds 200 MB in 2,000 files.
func benchmarkHome(b *testing.B, copies bool) {
	r := runner(b, runtest.NewTrees(), func(o *Options) { o.NoOverlay = copies })
	k := task.Key{1}
	c := &run.Command{
		Argv: []string{"sh", "-c", "cd; for d in $(seq 20); do mkdir $d; for f in $(seq 100); do head -c 100000 /dev/urandom >$d/$f; done; done"},
		Env:  map[string]string{"PATH": os.Getenv("PATH")}, Keep: &run.Keep{State: k, Home: run.FromCommand},
	}
	if _, err := r.Run(b.Context(), c); err != nil {
		b.Fatal(err)
	}
	c = &run.Command{Argv: []string{"true"}, Env: c.Env, Start: run.Start{State: k}}
	defer processor(b)()
	for b.Loop() {
		if _, err := r.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHomeOverlay(b *testing.B) { benchmarkHome(b, false) }
func BenchmarkHomeCopy(b *testing.B)    { benchmarkHome(b, true) }
