package exec

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// newTasks runs tasks whose command is what do does in the workspace.
func newTasks(t *testing.T, do func(dir string, env []string) int) *Tasks {
	t.Helper()
	dir := t.TempDir()
	return &Tasks{
		Dir: dir, Home: filepath.Join(dir, "home"), Blobs: new(memory), Environ: testEnviron(nil),
		InPlace: func(_ context.Context, c *run.Command, dir string, env []string) (*run.Result, error) {
			return &run.Result{Exit: do(dir, env), Log: run.AppendLog(nil, run.Stderr, []byte("said\n"))}, nil
		},
	}
}

func taskAttempt(store bool, outputs ...string) *task.Attempt {
	return &task.Attempt{Task: &task.Task{Spec: &kind.TaskSpec{Argv: []string{"make"}, Outputs: outputs}, Outputs: outputs, Store: store}}
}

func TestTaskOutputs(t *testing.T) {
	big := strings.Repeat("x", maxStored+1)
	tasks := newTasks(t, func(dir string, _ []string) int {
		if _, err := os.Lstat(filepath.Join(dir, "out/plain")); err == nil {
			t.Error("an old output was still there when the command began")
		}
		for name, content := range map[string]string{"out/plain": "p", "out/tool": "t", "out/big": big, "out/empty": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "out/tool"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("plain", filepath.Join(dir, "out/link")); err != nil {
			t.Fatal(err)
		}
		return 0
	})
	names := []string{"out/big", "out/empty", "out/link", "out/plain", "out/tool"}
	for range 2 {
		out, err := tasks.Run(t.Context(), taskAttempt(false, names...))
		if err != nil || out.Status != task.OK {
			t.Fatalf("%+v, %v", out, err)
		}
		var modes []uint32
		for i, o := range out.Outputs {
			modes = append(modes, o.Mode)
			if o.Role != names[i] {
				t.Errorf("output %d is %s", i, o.Role)
			}
			_, err := tasks.Blobs.Get(o.Digest)
			if stored := err == nil; stored != (o.Role != "out/big") {
				t.Errorf("%s stored: %v", o.Role, stored)
			}
		}
		if want := []uint32{0o644, 0o644, 0o120000, 0o644, 0o755}; !slices.Equal(modes, want) {
			t.Errorf("modes %o, want %o", modes, want)
		}
		// What is stored comes back as it was, over whatever stands there.
		for _, o := range out.Outputs[1:] {
			if err := tasks.Restore(o); err != nil {
				t.Fatal(err)
			}
			got, _, err := tasks.readOutput(o.Role, false)
			if err != nil || got.Digest != o.Digest || got.Mode != o.Mode {
				t.Errorf("restored %s as %+v, %v", o.Role, got, err)
			}
		}
	}
	out, err := tasks.Run(t.Context(), taskAttempt(true, names...))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := tasks.Blobs.Get(out.Outputs[0].Digest); err != nil || string(b) != big {
		t.Errorf("a large output with cache = true is not stored: %v", err)
	}
}

// A task may remove the directory that another is about to write to.
func TestTaskAfterItsDirectoryWasRemoved(t *testing.T) {
	tasks := newTasks(t, func(dir string, _ []string) int {
		if err := os.WriteFile(filepath.Join(dir, "out/deep/x"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		return 0
	})
	for range 2 {
		if out, err := tasks.Run(t.Context(), taskAttempt(false, "out/deep/x")); err != nil || out.Status != task.OK {
			t.Fatalf("%+v, %v", out, err)
		}
		if err := os.RemoveAll(filepath.Join(tasks.Dir, "out")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTaskThatDoesNotMakeItsOutput(t *testing.T) {
	tasks := newTasks(t, func(string, []string) int { return 0 })
	out, err := tasks.Run(t.Context(), taskAttempt(false, "out/x"))
	if err != nil || out.Status != task.Failed || !strings.Contains(out.Reason, "out/x") {
		t.Errorf("%+v, %v", out, err)
	}
}

// What stands in an output's place and is no file is the user's to mend: running again would not.
func TestTaskOutputThatIsADirectory(t *testing.T) {
	ran := 0
	tasks := newTasks(t, func(dir string, _ []string) int {
		ran++
		if err := os.MkdirAll(filepath.Join(dir, "out/sub"), 0o777); err != nil {
			t.Fatal(err)
		}
		return 0
	})
	for range 2 { // the second finds it there
		out, err := tasks.Run(t.Context(), taskAttempt(false, "out"))
		if err != nil || out.Status != task.Failed || !strings.Contains(out.Reason, "output out is a directory") {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if ran != 1 {
		t.Errorf("the command ran %d times", ran)
	}
}

func TestTaskThatFails(t *testing.T) {
	tasks := newTasks(t, func(string, []string) int { return 3 })
	out, err := tasks.Run(t.Context(), taskAttempt(false, "out/x"))
	if err != nil || out.Status != task.Failed || out.Exit != 3 || string(out.Tail) != "said\n" || out.Record {
		t.Errorf("%+v, %v", out, err)
	}
}

// A task in place has the fixed environment and a HOME of pbuild's, not the user's.
func TestTaskEnvironment(t *testing.T) {
	var got []string
	tasks := newTasks(t, func(_ string, env []string) int { got = env; return 0 })
	a := taskAttempt(false)
	a.Task.Spec.(*kind.TaskSpec).Env = map[string]string{"MODE": "fast", "TZ": "CET"}
	if _, err := tasks.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOME=" + tasks.Home, "TMPDIR=/tmp", "LANG=C.UTF-8", "TZ=UTC", "MODE=fast", "GOSUMDB=sums", "GOPROXY=mirror"} {
		if !slices.Contains(got, want) {
			t.Errorf("environment %q lacks %s", got, want)
		}
	}
}

// A task in a sandbox has no network, and so none of the variables that are for it.
func TestSandboxedTaskEnvironment(t *testing.T) {
	b := newBench(t)
	runner := &scripted{}
	tasks := newTasks(t, nil)
	tasks.Runner, tasks.Trees = runner, b.repo
	a := taskAttempt(false)
	a.Task.Spec.(*kind.TaskSpec).Sandbox = true
	if _, err := tasks.Run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if c := runner.ran[0]; c.Network || c.Env["GOSUMDB"] != "sums" || c.Env["GOPROXY"] != "" || len(c.Forward) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestTaskWhoseLogIsCut(t *testing.T) {
	tasks := newTasks(t, nil)
	tasks.InPlace = func(context.Context, *run.Command, string, []string) (*run.Result, error) {
		return &run.Result{Truncated: true}, nil
	}
	out, err := tasks.Run(t.Context(), taskAttempt(false))
	if err != nil || !slices.Equal(out.Flags, []string{verdict.FlagOutputTruncated}) {
		t.Errorf("%+v, %v", out, err)
	}
}

// What a task that is no longer needed has left would be seen in place, and is in no key.
func TestTaskBesideAStaleInput(t *testing.T) {
	ran := 0
	tasks := newTasks(t, func(string, []string) int { ran++; return 0 })
	a := taskAttempt(false)
	a.Inputs = []task.Input{{Dep: task.Dep{Role: "in", Output: "in"}}} // unneeded
	name := filepath.Join(tasks.Dir, "in")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := tasks.Run(t.Context(), a); err != nil || out.Status != task.Failed || !strings.Contains(out.Reason, "its input in is there") || ran != 0 {
		t.Errorf("%+v, %v; the command ran %d times", out, err, ran)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if out, err := tasks.Run(t.Context(), a); err != nil || out.Status != task.OK || ran != 1 {
		t.Errorf("%+v, %v; the command ran %d times", out, err, ran)
	}
}
