//go:build unix

package host

import (
	"os"
	"testing"

	"pbuild/engine/run"
	"pbuild/engine/run/runtest"
)

func TestMain(m *testing.M) {
	Init()
	os.Exit(m.Run())
}

// runner makes a Runner for one test.
func runner(t testing.TB, trees *runtest.Trees, change func(*Options)) *Runner {
	t.Helper()
	dir := t.TempDir()
	o := Options{States: dir + "/states", Scratch: dir + "/scratch", Trees: trees, MaxIsolation: run.IsolationSealed}
	if change != nil {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(dir) })
	return r
}

// TestSuite holds the runner to its contract at every level that this machine gives.
func TestSuite(t *testing.T) {
	for _, way := range []struct {
		name  string
		level run.Isolation
		copy  bool
	}{
		{"sealed", run.IsolationSealed, false}, {"sealed with copies", run.IsolationSealed, true},
		{"process", run.IsolationProcess, false}, {"none", run.IsolationNone, false},
	} {
		t.Run(way.name, func(t *testing.T) {
			runtest.Suite(t, func(t *testing.T, s runtest.Setup) run.Runner {
				r := runner(t, s.Trees, func(o *Options) {
					o.MaxIsolation, o.NoOverlay, o.HidePaths = way.level, way.copy, s.Hide
				})
				if got := r.Isolation(); got != way.level {
					t.Skipf("this machine gives %s: %q", got, r.Status())
				}
				return r
			})
		})
	}
}
