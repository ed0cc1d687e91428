//go:build unix

package host

import (
	"os"
	"testing"
	"time"

	"pbuild/engine/run"
	"pbuild/engine/run/runtest"
	"pbuild/engine/task"
)

// What a command may not write to or read again is kept all the same, and used. To root, nothing is closed.
func TestWhatIsClosedIsKept(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"sealed":             nil,
		"sealed with copies": func(o *Options) { o.NoOverlay = true },
		"process":            func(o *Options) { o.MaxIsolation = run.IsolationProcess },
	} {
		t.Run(name, func(t *testing.T) {
			r := runner(t, runtest.NewTrees(), change)
			if r.Isolation() == run.IsolationNone {
				t.Skipf("this machine gives %q", r.Status())
			}
			below, above := task.Key{1}, task.Key{2}
			stdout(t, r, after(task.Key{}, below, `mkdir d; echo x >d/f; echo y >g; chmod 000 d g; chmod 555 .`))
			c := after(below, above, `ls -ld d g | cut -c 1-10; mkdir -p $HOME/a/b/c; echo z >$HOME/a/b/c/f; chmod 555 $HOME/a/b/c; chmod 000 $HOME/a`)
			c.Keep.Home, c.Keep.HomePaths = run.FromStart, []string{"a/b/c"}
			if got := stdout(t, r, c); got != "d---------\n----------\n" {
				t.Errorf("got %q", got)
			}
			c = shell(`chmod -R u+rwX . $HOME; cat d/f g $HOME/a/b/c/f`)
			c.Start.State = above
			if got := stdout(t, r, c); got != "x\ny\nz\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A report that its maker closed is refused.
func TestAClosedReportIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read it")
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/r.xml", nil, 0o000); err != nil {
		t.Fatal(err)
	}
	got, refused, err := collect(dir, []string{"r.xml"}, time.Now())
	if err != nil || len(got) != 0 || refused["r.xml"] != "it may not be read" {
		t.Errorf("got %q, refused %q, %v", got, refused, err)
	}
}
