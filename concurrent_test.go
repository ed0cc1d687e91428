//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fedWorkspace has a task that ends when it is fed, one before it, and one after it.
func fedWorkspace(t *testing.T) workspace {
	w := newWorkspace(t, map[string]string{"benchmarks.hcl": `
task "before" {
  command = ["sh", "-c", "echo said before; echo 1 > before"]
  outputs = ["before"]
}
task "fed" {
  command    = ["sh", "-c", "echo waiting; sleep 1000 & read x < fifo; echo $x > fed"]
  outputs    = ["fed"]
  depends_on = [task.before]
}
task "after" {
  command    = ["sh", "-c", "echo 1 > after"]
  outputs    = ["after"]
  depends_on = [task.fed]
}
`})
	if err := syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// feed ends the fed task.
func (w workspace) feed() {
	w.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		w.Fatal(err)
	}
	fmt.Fprintln(f, "food")
	f.Close()
}

// TestReadersDuringAnApply asks everything that reads while an apply cannot go on: what waited for the apply would never come back.
func TestReadersDuringAnApply(t *testing.T) {
	w := fedWorkspace(t)
	a := w.apply("-j1")
	a.await("log", "task.fed")
	for _, q := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "-v"}, "task.after"},
		{[]string{"status"}, fmt.Sprintf("process %d", a.cmd.Process.Pid)},
		{[]string{"log", "task.before"}, "said before"},
		{[]string{"why", "task.fed"}, "task.fed"},
		{[]string{"show", "task.before"}, "decision  reuse"},
		{[]string{"list"}, "task.after"},
		{[]string{"cache", "stats"}, ""},
	} {
		if out, _ := w.pbuild(0, q.args...); !strings.Contains(out, q.want) {
			t.Errorf("pbuild %s does not say %q:\n%s", strings.Join(q.args, " "), q.want, out)
		}
	}

	// What runs is told within a tenth of a second.
	for deadline := time.Now().Add(patience); ; {
		if out, _ := w.pbuild(0, "status", "-v"); strings.Contains(out, "begun: task.fed") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("status does not say that task.fed has begun")
		}
	}

	// A second apply does not wait, and says for whom it would have to.
	_, errs := w.pbuild(3, "apply")
	if !strings.Contains(errs, fmt.Sprintf("process %d", a.cmd.Process.Pid)) || !strings.Contains(errs, "apply --json -j1") {
		t.Errorf("the second apply does not name the first: %s", errs)
	}
	w.feed()
	if code, _ := a.end(); code != 0 {
		t.Errorf("the apply exits with %d", code)
	}
	w.pbuild(0, "apply")
	w.alone()
}

// An interrupt lets what runs come to its end, and starts nothing more.
func TestInterruptedOnce(t *testing.T) {
	w := fedWorkspace(t)
	a := w.apply()
	a.await("start", "task.fed")
	a.cmd.Process.Signal(os.Interrupt)
	a.said("interrupted")
	w.feed()
	code, rest := a.end()
	if code != 130 {
		t.Errorf("exit %d", code)
	}
	for _, e := range rest {
		if e.Type == "start" || e.Address == "task.fed" && e.Type == "end" && e.Phase != "done" {
			t.Errorf("after the interrupt: %+v", e)
		}
	}
	if got := w.read("fed"); got != "food\n" {
		t.Errorf("the fed task made %q", got)
	}
	if out, _ := w.pbuild(0, "apply"); !strings.Contains(out, "1 ran, 2 reused") {
		t.Errorf("the next apply: %s", out)
	}
	w.alone()
}

// A second interrupt kills what runs, with all that it started.
func TestInterruptedTwice(t *testing.T) {
	w := fedWorkspace(t)
	a := w.apply()
	a.await("start", "task.fed")
	a.cmd.Process.Signal(os.Interrupt)
	a.said("interrupted")
	a.cmd.Process.Signal(os.Interrupt)
	code, rest := a.end()
	w.alone()
	if code != 130 {
		t.Errorf("exit %d", code)
	}
	for _, e := range rest {
		if e.Type == "end" && e.Phase == "done" {
			t.Errorf("%+v was killed", e)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "after")); err == nil {
		t.Error("a task ran after the kill")
	}
	next := w.apply()
	next.await("start", "task.fed")
	w.feed()
	if code, _ := next.end(); code != 0 {
		t.Errorf("the next apply exits with %d", code)
	}
}

// What runs no tasks ends at the first interrupt, with what it has started: here the probe of a plan.
func TestInterruptedPlan(t *testing.T) {
	w := newWorkspace(t, nil)
	fifo := filepath.Join(w.dir, "fifo")
	w.write("benchmarks.hcl", `
runtime "slow" {
  host {}
  probe = ["sh", "-c", "echo up > `+fifo+`; exec sleep 1000"]
}
task "a" {
  command = ["true"]
  runtime = runtime.slow
}
`)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"plan"}, {"apply"}} {
		cmd := w.command(command...)
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if got := w.read("fifo"); got != "up\n" {
			t.Fatalf("the probe said %q", got)
		}
		cmd.Process.Signal(os.Interrupt)
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String(), "pbuild: interrupted") {
			t.Errorf("%v: exit %d: %s", command, code, errs.String())
		}
		w.alone()
	}
}
