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
func runner(t *testing.T, trees *runtest.Trees, change func(*Options)) *Runner {
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

func TestSmoke(t *testing.T) {
	for _, l := range []run.Isolation{2} {
		r := runner(t, runtest.NewTrees(), func(o *Options) { o.MaxIsolation = l })
		t.Log(r.Status())
		res, err := r.Run(t.Context(), &run.Command{Argv: []string{"sh", "-c", "id; pwd; echo $HOME; ls -la / /dev; touch /x; mount | head -40; cat /etc/passwd | head -3; echo $$; cat /proc/1/environ; ip a; exit 3"}, Env: map[string]string{"PATH": os.Getenv("PATH")}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, both, _ := run.ParseLog(res.Log)
		t.Logf("%+v\n%s", res.Exit, both)
	}
}
