package runtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// A Setup is what a test gives the runner that it wants.
type Setup struct {
	Trees *Trees
	Hide  []string // directories of the machine that no command may see
}

// Suite demands of the runners that make returns all that package run promises. What a level of isolation does not promise is not demanded of it.
func Suite(t *testing.T, make func(t *testing.T, s Setup) run.Runner) {
	for _, group := range []struct {
		name string
		f    func(h *harness)
	}{
		{"command", commands}, {"output", output}, {"death", death}, {"limits", limits}, {"isolation", isolation},
		{"states", states}, {"lay", lay}, {"reset", reset}, {"watch", watch}, {"reports", reports}, {"changes", changed},
	} {
		t.Run(group.name, func(t *testing.T) { group.f(&harness{T: t, make: make}) })
	}
}

// A harness is a test and the runner that it is about.
type harness struct {
	*testing.T
	make   func(t *testing.T, s Setup) run.Runner
	trees  *Trees
	runner run.Runner
}

// sub runs a subtest with a runner of its own.
func (h *harness) sub(name string, f func(h *harness)) {
	h.Helper()
	h.Run(name, func(t *testing.T) { f(h.with(t, nil)) })
}

// waits is sub for what waits more than it computes, beside others of the kind.
func (h *harness) waits(name string, f func(h *harness)) {
	h.Helper()
	h.Run(name, func(t *testing.T) {
		t.Parallel()
		f(h.with(t, nil))
	})
}

func (h *harness) with(t *testing.T, hide []string) *harness {
	trees := NewTrees()
	return &harness{T: t, make: h.make, trees: trees, runner: h.make(t, Setup{Trees: trees, Hide: hide})}
}

// sealed skips what only a sealed command, or one in a container, is promised.
func (h *harness) sealed() {
	h.Helper()
	if h.runner.Isolation() < run.IsolationSealed {
		h.Skipf("isolation %s does not promise this", h.runner.Isolation())
	}
}

// sh is a command for the shell.
func sh(script string) *run.Command {
	return &run.Command{Argv: []string{"sh", "-c", script}, Env: map[string]string{"PATH": os.Getenv("PATH")}}
}

// deadline bounds what must end by itself: a test that waits longer has found a runner that hangs.
const deadline = time.Minute

func (h *harness) try(c *run.Command) (*run.Result, error) {
	ctx, cancel := context.WithTimeout(h.Context(), deadline)
	defer cancel()
	return h.runner.Run(ctx, c)
}

// run runs what can be started.
func (h *harness) run(c *run.Command) *run.Result {
	h.Helper()
	res, err := h.try(c)
	if err != nil {
		h.Fatalf("run %q: %v", c.Argv, err)
	}
	return res
}

// ok runs what must exit with 0, and returns its stdout.
func (h *harness) ok(c *run.Command) string {
	h.Helper()
	res := h.run(c)
	out, _, both := h.parse(res)
	if res.Exit != 0 || res.TimedOut != "" {
		h.Fatalf("run %q: exit %d %s\n%s", c.Argv, res.Exit, res.TimedOut, both)
	}
	return out
}

func (h *harness) parse(res *run.Result) (stdout, stderr, both string) {
	h.Helper()
	o, e, b, err := run.ParseLog(res.Log)
	if err != nil {
		h.Fatal(err)
	}
	return string(o), string(e), string(b)
}

func (h *harness) want(got, want string) {
	h.Helper()
	if got != want {
		h.Errorf("got  %q\nwant %q", got, want)
	}
}

// key is a state's key.
func key(name string) task.Key { return sha256.Sum256([]byte(name)) }

// keep makes a command leave a state with the workspace and HOME that it left.
func keep(name string, c *run.Command) *run.Command {
	c.Keep = &run.Keep{State: key(name), Workspace: run.FromCommand, Home: run.FromCommand}
	return c
}

// from makes a command start from a state and a tree.
func from(state string, tree digest.Digest, c *run.Command) *run.Command {
	if state != "" {
		c.Start.State = key(state)
	}
	c.Start.Tree = tree
	return c
}

func commands(h *harness) {
	h.sub("exit statuses and signals", func(h *harness) {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "exit 126": 126, "exit 127": 127, "kill -TERM $$": 143, "kill -KILL $$": 137} {
			if res := h.run(sh(script)); res.Exit != want {
				h.Errorf("%s: exit %d, want %d", script, res.Exit, want)
			}
		}
	})
	h.sub("a program that is not there cannot be started", func(h *harness) {
		c := sh("")
		c.Argv = []string{"no-such-program-anywhere"}
		res, err := h.try(c)
		if err == nil {
			h.Fatalf("got %+v", res)
		}
		if missing, ok := errors.AsType[*run.NotFound](err); !ok || missing.Program != c.Argv[0] || missing.Path != c.Env["PATH"] {
			h.Errorf("the error is %v", err)
		}
		c.Argv = []string{"/no/such/program"}
		_, err = h.try(c)
		if missing, ok := errors.AsType[*run.NotFound](err); !ok || missing.Program != c.Argv[0] {
			h.Errorf("by its path: the error is %v", err)
		}
	})
	h.sub("a program that the workspace lacks is what the tree is like", func(h *harness) {
		c := from("", h.trees.Add(map[string]string{"plain": "x"}), sh(""))
		c.Argv = []string{"./missing"}
		if res := h.run(c); res.Exit != 127 {
			h.Errorf("missing: exit %d", res.Exit)
		}
		c.Argv = []string{"./plain"}
		if res := h.run(c); res.Exit != 126 {
			h.Errorf("not executable: exit %d", res.Exit)
		}
		// Whoever wrote the tree must not be able to make its failure look like the machine's.
		for why, interpreter := range map[string]string{"absent": "/no/such/program", "a directory": "/", "itself": "./program", "below a file": "/etc/passwd/sh"} {
			c := from("", h.trees.Add(map[string]string{"program": "#!" + interpreter + "\n"}), sh(""))
			c.Argv = []string{"./program"}
			if res := h.run(c); res.Exit != 126 {
				h.Errorf("its interpreter is %s: exit %d", why, res.Exit)
			}
		}
	})
	surroundings(h)
}

// surroundings demands what every command finds around it.
func surroundings(h *harness) {
	h.sub("the environment is what was given", func(h *harness) {
		h.Setenv("PBUILD_TEST_LEAK", "leaked")
		c := sh("env")
		c.Env["GIVEN"] = "a b\nc"
		out := h.ok(c)
		for _, want := range []string{"GIVEN=a b\nc\n", "LANG=C.UTF-8\n", "TZ=UTC\n", "HOME=", "TMPDIR="} {
			if !strings.Contains(out, want) {
				h.Errorf("no %q in %q", want, out)
			}
		}
		if strings.Contains(out, "leaked") {
			h.Errorf("inherited: %q", out)
		}
	})
	h.sub("HOME and TMPDIR are empty and can be written to", func(h *harness) {
		h.want(h.ok(sh(`ls -A "$HOME" "$TMPDIR" | grep -v : ; touch "$HOME/a" "$TMPDIR/b" here && ls "$HOME" "$TMPDIR" | grep -v : ; ls`)), "\na\n\nb\nhere\n")
	})
	h.sub("stdin is empty, there is no terminal", func(h *harness) {
		h.want(h.ok(sh(`cat; (: </dev/tty) 2>/dev/null || echo none`)), "none\n")
	})
	h.sub("cwd is below the workspace", func(h *harness) {
		c := from("", h.trees.Add(map[string]string{"a/b/c": "x"}), sh("ls; cat c"))
		c.Cwd = "a/b"
		h.want(h.ok(c), "c\nx")
		c.Cwd = "a/none"
		if res := h.run(c); res.Exit != 127 {
			h.Errorf("no such directory: exit %d", res.Exit)
		}
		for _, bad := range []string{"../x", "/etc"} {
			c.Cwd = bad
			if res, err := h.try(c); err == nil {
				h.Errorf("cwd %s: %+v", bad, res)
			}
		}
	})
	ends(h)
}

// ends demands that a command can be ended and measured.
func ends(h *harness) {
	h.sub("cancelling ends it with an error", func(h *harness) {
		ctx, cancel := context.WithCancel(h.Context())
		c := sh("echo up; sleep 1000")
		c.Log = func(string, []byte) { cancel() }
		began := time.Now()
		if res, err := h.runner.Run(ctx, c); !errors.Is(err, context.Canceled) {
			h.Errorf("got %+v, %v", res, err)
		}
		if d := time.Since(began); d > deadline/2 {
			h.Errorf("took %v", d)
		}
	})
	h.sub("resource use is measured", func(h *harness) {
		res := h.run(sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
		if res.CPU <= 0 || res.Elapsed <= 0 || res.MaxRSS < 100<<10 || res.MaxRSS > 1<<30 {
			h.Errorf("cpu %v, elapsed %v, rss %d", res.CPU, res.Elapsed, res.MaxRSS)
		}
		if res.Isolation != h.runner.Isolation() {
			h.Errorf("isolation %s", res.Isolation)
		}
	})
}

// needs skips a test on a machine without a program.
func (h *harness) needs(program string) {
	h.Helper()
	if _, err := exec.LookPath(program); err != nil {
		h.Skipf("no %s here", program)
	}
}
