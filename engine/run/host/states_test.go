//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/run/runtest"
	"pbuild/engine/task"
)

func shell(script string) *run.Command {
	return &run.Command{Argv: []string{"sh", "-c", script}, Env: map[string]string{"PATH": os.Getenv("PATH")}}
}

// stdout runs a command that must succeed.
func stdout(t *testing.T, r *Runner, c *run.Command) string {
	t.Helper()
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	out, _, both, err := run.ParseLog(res.Log)
	if err != nil || res.Exit != 0 {
		t.Fatalf("exit %d, %v\n%s", res.Exit, err, both)
	}
	return string(out)
}

// after is a command that starts from a state (zero: none) and leaves another.
func after(below, state task.Key, script string) *run.Command {
	c := shell(script)
	c.Start.State = below
	c.Keep = &run.Keep{State: state, Workspace: run.FromCommand, Home: run.FromCommand}
	return c
}

// ticking is a clock that is a minute later at each look.
func ticking() func() time.Time {
	now := time.Now()
	return func() time.Time { now = now.Add(time.Minute); return now }
}

func TestTrimTakesTheLeastRecentlyUsed(t *testing.T) {
	r := runner(t, runtest.NewTrees(), func(o *Options) { o.Clock = ticking() })
	a, b, c := task.Key{1}, task.Key{2}, task.Key{3}
	for _, k := range []task.Key{a, b, c} {
		stdout(t, r, after(task.Key{}, k, "head -c 100000 /dev/zero >f"))
	}
	use := shell("true")
	use.Start.State = a
	stdout(t, r, use)
	would, err := r.Excess(250000)
	if err != nil || !r.Has(b) {
		t.Errorf("Excess: %v; b is still there: %v", err, r.Has(b))
	}
	freed, err := r.Trim(250000)
	if freed != would {
		t.Errorf("%d bytes were to be freed, and %d were", would, freed)
	}
	if err != nil || freed < 100000 {
		t.Errorf("freed %d, %v", freed, err)
	}
	if !r.Has(a) || r.Has(b) || !r.Has(c) {
		t.Errorf("a %v, b %v, c %v", r.Has(a), r.Has(b), r.Has(c))
	}
	if left := diskUse(r.states.path("layers")); left < 200000 || left > 220000 {
		t.Errorf("%d bytes are left", left)
	}
	if _, err := r.Trim(0); err != nil || r.Has(a) || r.Has(c) {
		t.Errorf("after Trim(0): %v", err)
	}
	for _, dir := range []string{"layers", "tmp"} {
		if left, _ := os.ReadDir(r.states.path(dir)); len(left) != 0 {
			t.Errorf("%s has %v", dir, left)
		}
	}
}

func TestDiskUseOfSparseFiles(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(5 << 30); err != nil {
		t.Fatal(err)
	}
	if n := diskUse(dir); n > 1<<20 {
		t.Errorf("a file of nothing uses %d bytes", n)
	}
}

// A layer counts whoever brought it, and a state that others are made of is not given up for nothing.
func TestTrimCountsWhatLiesBelow(t *testing.T) {
	r := runner(t, runtest.NewTrees(), func(o *Options) { o.Clock = ticking() })
	if r.found(); !r.overlay {
		t.Skip("states share no layers here")
	}
	below, a, b := task.Key{1}, task.Key{2}, task.Key{3}
	stdout(t, r, after(task.Key{}, below, "head -c 100000 /dev/zero >f"))
	stdout(t, r, after(below, a, "head -c 100000 /dev/zero >g"))
	stdout(t, r, after(below, b, "head -c 100000 /dev/zero >g"))
	if _, err := r.Trim(250000); err != nil || !r.Has(below) || r.Has(a) || !r.Has(b) {
		t.Errorf("below %v, a %v, b %v, %v", r.Has(below), r.Has(a), r.Has(b), err)
	}
	if err := r.states.forget(below.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Trim(150000); err != nil || r.Has(b) {
		t.Errorf("b, whose layers hold 200000 bytes, is still there: %v", err)
	}
}

func TestALayerLivesAsLongAsAStateNeedsIt(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	a, b := task.Key{1}, task.Key{2}
	stdout(t, r, after(task.Key{}, a, "echo below >f"))
	stdout(t, r, after(a, b, "echo above >g"))
	if err := r.states.forget(a.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Trim(1 << 40); err != nil {
		t.Fatal(err)
	}
	if r.Has(a) || !r.Has(b) {
		t.Fatalf("a %v, b %v", r.Has(a), r.Has(b))
	}
	use := shell("cat f g")
	use.Start.State = b
	if got := stdout(t, r, use); got != "below\nabove\n" {
		t.Errorf("got %q", got)
	}
	stdout(t, r, after(task.Key{}, a, "echo again >f")) // and may be made again beside it
	if got := stdout(t, r, use); got != "below\nabove\n" {
		t.Errorf("got %q", got)
	}
}

func TestAStateInUseStays(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	k := task.Key{1}
	stdout(t, r, after(task.Key{}, k, "echo x >f"))
	c := shell("echo up; while [ ! -e $HOME/go ] && [ $((i=i+1)) -lt 20 ]; do sleep 0.05; done; cat f")
	c.Start.State = k
	c.Log = func(_ string, b []byte) {
		if string(b) != "up\n" {
			return
		}
		if _, err := r.Trim(0); err != nil || !r.Has(k) {
			t.Errorf("it was trimmed: %v", err)
		}
	}
	if got := stdout(t, r, c); got != "up\nx\n" {
		t.Errorf("got %q", got)
	}
	if _, err := r.Trim(0); err != nil || r.Has(k) {
		t.Errorf("it is still in use: %v", err)
	}
}

func TestWhatIsMissingIsALostState(t *testing.T) {
	k := task.Key{1}
	tree := map[string]string{"a": "x"}
	for name, harm := range map[string]func(r *Runner) error{
		"everything":    func(r *Runner) error { return os.RemoveAll(r.opt.States) },
		"layers":        func(r *Runner) error { return os.RemoveAll(r.states.path("layers")) },
		"the meta":      func(r *Runner) error { return os.Remove(r.states.path(k.String(), "meta")) },
		"half the meta": func(r *Runner) error { return os.Truncate(r.states.path(k.String(), "meta"), 40) },
		"another's meta": func(r *Runner) error {
			return os.WriteFile(r.states.path(k.String(), "meta"), []byte(`{"name":"x"}`), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			trees := runtest.NewTrees()
			r := runner(t, trees, nil)
			c := after(task.Key{}, k, "echo made >f")
			c.Start.Tree = trees.Add(tree)
			stdout(t, r, c)
			if err := harm(r); err != nil {
				t.Fatal(err)
			}
			if r.Has(k) {
				t.Error("it claims to have it")
			}
			use := shell("cat a f")
			use.Start.State = k
			var lost *run.LostState
			if _, err := r.Run(t.Context(), use); !errors.As(err, &lost) || lost.State != k {
				t.Errorf("got %v", err)
			}
			stdout(t, r, c)
			if got := stdout(t, r, use); got != "xmade\n" {
				t.Errorf("made again: %q", got)
			}
		})
	}
}

// Of a power cut only the order is seen here: what a state is made of is on the disk before the state can be found.
func TestAStateIsSyncedBeforeItCounts(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	k := task.Key{1}
	full := errors.New("no space left on device")
	synced := 0
	r.states.syncFS = func(dir string) error {
		synced++
		written, _ := filepath.Glob(filepath.Join(dir, "tmp", "*", "w", "f"))
		published, _ := filepath.Glob(filepath.Join(dir, "layers", "*"))
		if len(written) != 1 || len(published) != 0 || r.Has(k) {
			t.Errorf("at the sync %v is written and %v published", written, published)
		}
		return full
	}
	if _, err := r.Run(t.Context(), after(task.Key{}, k, "echo x >f")); !errors.Is(err, full) || synced != 1 || r.Has(k) {
		t.Errorf("synced %d times, then %v and the state is there: %v", synced, err, r.Has(k))
	}
}

func TestOneSyncServesAllThatWaitForIt(t *testing.T) {
	began, release := make(chan bool), make(chan bool)
	s := &store{syncFS: func(string) error { began <- true; <-release; return nil }}
	var group sync.WaitGroup
	group.Go(func() { s.sync() })
	<-began
	for range 5 { // what these have written may be too late for the one that has begun
		group.Go(func() { s.sync() })
	}
	for s.asked.Load() < 6 {
		runtime.Gosched()
	}
	release <- true
	<-began
	release <- true
	group.Wait() // a third would never be released
}

func TestALostIndexIsOnlySlower(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	a, b, c := task.Key{1}, task.Key{2}, task.Key{3}
	stdout(t, r, after(task.Key{}, a, "echo x >f; echo y >g"))
	res, err := r.Run(t.Context(), after(a, b, "echo z >g"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.states.path(a.String(), "index"), []byte("rubbish"), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := r.Run(t.Context(), after(a, c, "echo z >g"))
	if err != nil || again.Manifest != res.Manifest || res.Manifest.IsZero() {
		t.Errorf("%v: %s, then %s", err, res.Manifest, again.Manifest)
	}
}

func TestKilledRunsAreSwept(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	tmp := r.states.path("tmp")
	live, err := newScratch(tmp)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newScratch(tmp)
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as the death of its process would
	if _, err := r.Trim(1 << 40); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead.dir); err == nil {
		t.Error("the dead one is there")
	}
	if _, err := os.Stat(live.dir); err != nil {
		t.Error("the live one is gone")
	}
	if err := live.close(); err != nil {
		t.Error(err)
	}
}

func TestCheckoutsAreSharedUnlessTheyWouldBeTooOld(t *testing.T) {
	trees := runtest.NewTrees()
	r := runner(t, trees, nil)
	x, y := trees.Add(map[string]string{"src": "1"}), trees.Add(map[string]string{"src": "2"})
	at := func(tree digest.Digest, c *run.Command) *run.Command { c.Start.Tree = tree; return c }
	stdout(t, r, at(y, shell("cat src")))
	k := task.Key{1}
	// An object in HOME, built from x, after y was checked out.
	stdout(t, r, at(x, after(task.Key{}, k, "cp src $HOME/object")))
	c := at(y, shell("cat src; test src -nt $HOME/object && echo newer"))
	c.Start.State, c.Start.Fresh = k, true
	if got := stdout(t, r, c); got != "2newer\n" {
		t.Errorf("got %q", got)
	}
	before, err := os.ReadDir(r.states.path("layers"))
	if err != nil {
		t.Fatal(err)
	}
	stdout(t, r, c)
	stdout(t, r, at(y, shell("true")))
	if now, _ := os.ReadDir(r.states.path("layers")); len(now) != len(before) {
		t.Errorf("%d layers, then %d", len(before), len(now))
	}
}

// An overlay and a copy of the same layers must show the same.
func TestOverlayAndCopyShowTheSame(t *testing.T) {
	trees := runtest.NewTrees()
	r := runner(t, trees, nil)
	if r.found(); !r.overlay {
		t.Skipf("no overlay here: %q", r.Status())
	}
	copies, err := New(Options{States: r.opt.States, Scratch: r.opt.Scratch, Trees: trees, MaxIsolation: run.IsolationSealed, NoOverlay: true})
	if err != nil {
		t.Fatal(err)
	}
	tree := trees.Add(map[string]string{"a/b/c": "1", "a/d": "2", "e": "3", "l": "link:a", "x/y": "4", "z/z": "5", "ro/f": "6"})
	look := `find . ! -name . ! -type l -printf '%p %M %T@\n' | sed 's/\.[0-9]*$//' | sort; find . -type l -printf '%p %l\n' | sort; find . -type f | sort | xargs cat`
	var below task.Key
	for i, script := range []string{
		"echo 1 >$HOME/f",
		"rm -r a; mkdir a; echo new >a/d; rm e; mkdir e; echo in >e/f; rm l; echo file >l",
		"mv x y; ln -s y x; rm -r e; echo e >e; chmod 600 a/d; chmod 500 ro; mkdir -p deep/er",
		"rm x; mkdir -p x/q; rm -r a; rm z/z; chmod 700 ro; rm ro/f; rmdir deep/er; mkfifo deep/p",
		"mkdir -p a/b; echo back >a/b/c; rm deep/p; mkdir z/z; ln a/b/c a/hard; touch -d 2001-01-01 y/y",
	} {
		k := task.Key{byte(i + 1)}
		c := after(below, k, script)
		c.Start.Tree = tree
		stdout(t, r, c)
		below = k
		one, two := shell(look), shell(look)
		one.Start.State, two.Start.State = k, k
		over, copied := stdout(t, r, one), stdout(t, copies, two)
		drop := func(s string) string { // a copy leaves pipes out
			return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "\n")
		}
		if i == 3 {
			over = strings.Replace(over, lineWith(over, "./deep/p "), "", 1)
		}
		if drop(over) != drop(copied) {
			t.Fatalf("after %q\noverlay:\n%s\ncopy:\n%s", script, over, copied)
		}
	}
}

func lineWith(s, part string) string {
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, part) {
			return line
		}
	}
	return ""
}

func TestLongChainsAreCopied(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	var below task.Key
	for i := range maxLayers + 3 {
		k := task.Key{1, byte(i)}
		stdout(t, r, after(below, k, fmt.Sprintf("echo %d >>f; echo x >$HOME/%d", i, i)))
		below = k
	}
	c := shell("wc -l <f; ls $HOME | wc -l")
	c.Start.State = below
	if got := stdout(t, r, c); got != "63\n63\n" {
		t.Errorf("got %q", got)
	}
	m, ok := r.states.load(below.String())
	if !ok || len(m.Workspace.layers()) > maxLayers {
		t.Errorf("%d layers", len(m.Workspace.layers()))
	}
}

func TestWorkspacesLieOutsideProjects(t *testing.T) {
	r := runner(t, runtest.NewTrees(), func(o *Options) { o.MaxIsolation = run.IsolationNone })
	project := filepath.Dir(r.opt.Scratch)
	for _, marker := range []string{".git", "go.work", "package.json"} {
		path := filepath.Join(project, marker)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.clear(r.opt.Scratch); err == nil || !strings.Contains(err.Error(), marker) {
			t.Errorf("%s: %v", marker, err)
		}
		if got := stdout(t, r, shell("pwd")); strings.HasPrefix(got, project) {
			t.Errorf("%s: the workspace is %s", marker, got)
		}
		os.Remove(path)
	}
	if got := stdout(t, r, shell("pwd")); !strings.HasPrefix(got, r.opt.Scratch) {
		t.Errorf("the workspace is %s", got)
	}
}

// A command's files are the user's own outside: where it ran as root, one with a set-user-id bit must be out of everybody else's reach.
func TestNobodyElseReachesWhatCommandsLeave(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	r := runner(t, runtest.NewTrees(), func(o *Options) { o.Scratch, o.NoOverlay = scratch, true })
	stdout(t, r, after(task.Key{}, task.Key{1}, "cp /bin/sh . && chmod 4755 sh"))
	stdout(t, r, shell("true"))
	for _, dir := range []string{r.opt.States, filepath.Join(scratch, "run")} {
		fi, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", dir, fi.Mode())
		}
	}
}

// Who gives up waiting for a workspace path leaves what lies there to those who use it.
func TestAPathIsLeftToWhoUsesIt(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	none := func(o *Options) { o.Scratch, o.MaxIsolation = scratch, run.IsolationNone }
	a := runner(t, runtest.NewTrees(), none)
	for name, b := range map[string]*Runner{"the same process": a, "another process": runner(t, runtest.NewTrees(), none)} {
		t.Run(name, func(t *testing.T) {
			gone := filepath.Join(t.TempDir(), "gone")
			c := shell("echo x >f; echo up; while [ ! -e " + gone + " ] && [ $((i=i+1)) -lt 100 ]; do sleep 0.05; done; cat f")
			c.Log = func(_ string, out []byte) {
				if string(out) != "up\n" {
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := b.Run(ctx, shell("true")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if err := os.WriteFile(gone, nil, 0o644); err != nil {
					t.Error(err)
				}
			}
			if got := stdout(t, a, c); got != "up\nx\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What a command sees depends on no umask.
func TestModesDependOnNoUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for _, copies := range []bool{false, true} {
		trees := runtest.NewTrees()
		r := runner(t, trees, func(o *Options) { o.NoOverlay = copies })
		below, above := task.Key{1}, task.Key{2}
		c := after(task.Key{}, below, "mkdir -p $HOME/cache/deep; stat -c %a . $HOME $TMPDIR; umask")
		c.Start.Tree = trees.Add(map[string]string{"f": "x"})
		if got := stdout(t, r, c); got != "755\n755\n1777\n0022\n" && got != "755\n755\n755\n0022\n" {
			t.Errorf("copies %v: got %q", copies, got)
		}
		c = after(below, above, "echo x >$HOME/cache/deep/f; chmod 755 $HOME/cache $HOME/cache/deep")
		c.Keep.Home, c.Keep.HomePaths = run.FromStart, []string{"cache/deep/f"}
		stdout(t, r, c)
		c = shell("stat -c %a . $HOME $HOME/cache $HOME/cache/deep")
		c.Start.State = above
		if got := stdout(t, r, c); got != "755\n755\n755\n755\n" {
			t.Errorf("copies %v: kept paths: got %q", copies, got)
		}
	}
}

// A directory that moves to another file system keeps its mode and time, as one that stays does.
func TestMoveOverFileSystems(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "pbuild-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { removeAll(other) })
	from, to := filepath.Join(other, "cache"), filepath.Join(t.TempDir(), "cache")
	past := time.Unix(1e9, 0)
	if err := errors.Join(os.Mkdir(from, 0o700), os.Chmod(from, 0o500), os.Chtimes(from, past, past), move(to, from)); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(to)
	if err != nil || fi.Mode().Perm() != 0o500 || !fi.ModTime().Equal(past) {
		t.Errorf("%v %v, %v", fi.Mode(), fi.ModTime(), err)
	}
	os.Chmod(to, 0o700)
}

// A report or file removes what stands at its path: it must not be the workspace or HOME.
func TestTheWorkspaceIsNoReport(t *testing.T) {
	r := runner(t, runtest.NewTrees(), nil)
	for _, p := range []string{".", "a/..", "./"} {
		report, file, home := shell("true"), shell("true"), shell("true")
		report.Reports = []string{p}
		file.Start.Files, home.Start.Files = map[string][]byte{p: nil}, map[string][]byte{"~/" + p: nil}
		for _, c := range []*run.Command{report, file, home} {
			if _, err := r.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "directory's own") {
				t.Errorf("%q: %v", p, err)
			}
		}
	}
}

// Nothing of the user's configuration stays in a kept HOME, not even the directories that it lay in.
func TestForwardedFilesLeaveNoTrace(t *testing.T) {
	for _, level := range []run.Isolation{run.IsolationSealed, run.IsolationNone} {
		home := t.TempDir()
		t.Setenv("HOME", home)
		r := runner(t, runtest.NewTrees(), func(o *Options) { o.MaxIsolation = level })
		c := after(task.Key{}, task.Key{1}, "cat $HOME/.config/*/*")
		c.Network = true
		for _, name := range []string{"a/x", "b/y"} {
			path := filepath.Join(home, ".config", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)); err != nil {
				t.Fatal(err)
			}
			c.Forward = append(c.Forward, path)
		}
		if got := stdout(t, r, c); got != "a/xb/y" {
			t.Errorf("%s: got %q", level, got)
		}
		c = shell("ls -A $HOME")
		c.Start.State = task.Key{1}
		if got := stdout(t, r, c); got != "" {
			t.Errorf("%s: HOME has %q", level, got)
		}
	}
}
