//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds what must come by itself.
const patience = time.Minute

// A workspace is a directory that pbuild is run in, as a process of its own.
type workspace struct {
	*testing.T
	dir       string
	isolation string // no higher than this; "" for the highest that there is
}

func newWorkspace(t *testing.T, files map[string]string) workspace {
	t.Helper()
	if testing.Short() {
		t.Skip("runs many processes")
	}
	// What loses its parent becomes a child of this process, and is seen.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	w := workspace{T: t, dir: t.TempDir()}
	for name, text := range files {
		w.write(name, text)
	}
	return w
}

func (w workspace) write(name, text string) {
	w.Helper()
	name = filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		w.Fatal(err)
	}
}

func (w workspace) read(name string) string {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

// command makes a run of this program as pbuild.
func (w workspace) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	env := append(os.Environ(), "NO_COLOR=1", "PBUILD_SCRATCH="+filepath.Join(w.dir, "..", "scratch"))
	if w.isolation != "" {
		env = append(env, "PBUILD_ISOLATION="+w.isolation)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"pbuild"}, args...), Dir: w.dir, Env: env}
}

// pbuild runs it to its end, which must come with the given exit code, and returns stdout and stderr.
func (w workspace) pbuild(code int, args ...string) (string, string) {
	w.Helper()
	cmd := w.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != code {
		w.Fatalf("pbuild %s: exit %d, not %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// An event is what the tests read of a line of `apply --json`.
type event struct{ Type, Address, Status, Phase string }

// An applying is an apply under way.
type applying struct {
	workspace
	cmd    *exec.Cmd
	events chan event // closed at the end of the stream
	notes  *bufio.Reader
}

func (w workspace) apply(args ...string) *applying {
	w.Helper()
	a := &applying{workspace: w, cmd: w.command(append([]string{"apply", "--json"}, args...)...), events: make(chan event, 1<<16)}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	notes, err := a.cmd.StderrPipe()
	if err != nil {
		w.Fatal(err)
	}
	a.notes = bufio.NewReader(notes)
	if err := a.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		defer close(a.events)
		for lines := json.NewDecoder(out); ; {
			var e event
			if lines.Decode(&e) != nil {
				return // the end, or the cut line of a killed apply
			}
			a.events <- e
		}
	}()
	return a
}

// await returns once an event of the type and address has come.
func (a *applying) await(typ, address string) {
	a.Helper()
	late := time.After(patience)
	for {
		select {
		case e, ok := <-a.events:
			if !ok {
				a.Fatalf("the apply ended before %s of %s", typ, address)
			}
			if e.Type == typ && e.Address == address {
				return
			}
		case <-late:
			a.Fatalf("no %s of %s", typ, address)
		}
	}
}

// said returns once the apply has written a line with the text to stderr.
func (a *applying) said(text string) {
	a.Helper()
	for {
		line, err := a.notes.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			a.Fatalf("the apply ended before it said %q", text)
		}
	}
}

// end waits for the apply, and returns its exit code, -1 if a signal ended it, and the events that had not been awaited.
func (a *applying) end() (code int, rest []event) {
	a.Helper()
	go io.Copy(io.Discard, a.notes)
	for e := range a.events {
		rest = append(rest, e)
	}
	a.cmd.Wait()
	return a.cmd.ProcessState.ExitCode(), rest
}

// alone fails unless everything that descends from this process soon is gone.
func (w workspace) alone() {
	w.Helper()
	for deadline := time.Now().Add(patience); ; {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err == syscall.ECHILD {
				return
			}
			if pid <= 0 {
				break
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("these outlived their apply: %s", strings.Join(children(), "; "))
		}
		time.Sleep(time.Millisecond) // nothing tells when another's process is gone
	}
}

// children are the command lines of what descends from this process.
func children() []string {
	var out []string
	below := map[int]bool{os.Getpid(): true}
	for range 8 { // generations, in whatever order numbers were given
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, name := range stats {
			b, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
			if up, _ := strconv.Atoi(fields[1]); below[up] && !below[pid] {
				below[pid] = true
				line, _ := os.ReadFile(filepath.Dir(name) + "/cmdline")
				out = append(out, fmt.Sprintf("%d: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
			}
		}
	}
	return out
}

// long is a script that leaves a process for long if it does not come to its end.
const long = `sleep 1000 & p=$!; sleep 0.02; kill $p`

// crashWorkspace has 200 tasks, most in place, some of which leave their process group, and six instances with a gate, a matrix and reports. Their commands
// have children that would live for long.
func crashWorkspace() map[string]string {
	files := map[string]string{"benchmarks.hcl": `
task "plain" {
  for_each = toset(split(" ", "` + numbers(0, 150) + `"))
  command  = ["sh", "-c", "sleep 1000 & sleep 0.005; echo $0 > $1", each.key, "out/plain/${each.key}"]
  outputs  = ["out/plain/${each.key}"]
}

task "grouped" {
  for_each = toset(split(" ", "` + numbers(0, 30) + `"))
  command  = ["sh", "-c", "timeout 1000 sh -c '` + long + `'; setsid -w sh -c '` + long + `'; cat out/plain/$0 > $1", each.key, "out/grouped/${each.key}"]
  outputs  = ["out/grouped/${each.key}"]
  depends_on = [task.plain[each.key]]
}

task "boxed" {
  for_each = toset(split(" ", "` + numbers(0, 20) + `"))
  command  = ["sh", "-c", "sleep 1000 & sleep 0.02; mkdir -p out/boxed; cat in/$0 > $1", each.key, "out/boxed/${each.key}"]
  inputs   = ["in/${each.key}"]
  outputs  = ["out/boxed/${each.key}"]
  sandbox  = true
}

dataset "rows" {
  file = "rows.jsonl"
  key  = "id"
}

runtime "sh" {
  host {}
  probe = ["sh", "-c", "echo a shell"]
  prepare {
    command = ["sh", "-c", "echo warm > ~/warm"]
  }
}

instance "fix" {
  for_each = dataset.rows
  source {
    dir { path = "src/${each.value.base}" }
  }
  gold_patch = each.value.gold
  test_patch = each.value.test
  runtime    = runtime.sh
  fetch {
    command = ["sh", "-c", "cp lib ~/fetched"]
  }
  prepare {
    command = ["sh", "-c", "setsid sleep 1000 & sleep 0.02; cp ~/fetched prepared"]
  }
  build {
    command = ["sh", "-c", "cat prepared value > built"]
  }
  test {
    command = ["sh", "-c", "sleep 1000 & sleep 0.02; sh check"]
    format  = "exit"
  }
}

gate "all" {
  instances = instance.fix
}

agent "oracle" { kind = "oracle" }
agent "nop" { kind = "nop" }
agent "writer" {
  kind           = "command"
  command        = ["sh", "-c", "sleep 0.02; echo 7 > value"]
  allow_unsealed = true
}

matrix "main" {
  instances = gate.all
  agents    = [agent.oracle, agent.nop, agent.writer]
}

report "table" {
  matrix  = matrix.main
  formats = ["md", "json", "csv"]
}
`}
	for i := range 20 {
		files[fmt.Sprintf("in/%d", i)] = fmt.Sprintf("input %d\n", i)
	}
	var rows strings.Builder
	for i := range 6 {
		base := fmt.Sprintf("b%d", i%2)
		files["src/"+base+"/lib"] = base + "\n"
		files["src/"+base+"/value"] = "0\n"
		files["src/"+base+"/check"] = "exit 0\n"
		json.NewEncoder(&rows).Encode(map[string]string{"id": fmt.Sprint("i", i), "base": base,
			"gold": fmt.Sprintf("--- a/value\n+++ b/value\n@@ -1 +1 @@\n-0\n+%d\n", i+5),
			"test": fmt.Sprintf("--- a/check\n+++ b/check\n@@ -1 +1 @@\n-exit 0\n+grep -q '^%d$' built\n", i+5)})
	}
	files["rows.jsonl"] = rows.String()
	return files
}

func numbers(from, to int) string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, strconv.Itoa(i))
	}
	return strings.Join(list, " ")
}

// made is everything that a whole apply of crashWorkspace makes.
func (w workspace) made() map[string]string {
	out := map[string]string{}
	for _, dir := range []string{"out", "reports"} {
		filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(w.dir, path)
				out[rel] = w.read(rel)
			}
			return nil
		})
	}
	return out
}

func (w workspace) forget() {
	for _, dir := range []string{".pbuild", "out", "reports"} {
		if err := os.RemoveAll(filepath.Join(w.dir, dir)); err != nil {
			w.Fatal(err)
		}
	}
}

// TestKilledApplies kills an apply at random moments. What had ended is not lost, nothing is left of it, and the next goes on from there.
func TestKilledApplies(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("CRASH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("CRASH_SEED=%d", seed)
	for isolation, kills := range map[string]int{"sealed": 50, "process": 10, "none": 10} {
		t.Run(isolation, func(t *testing.T) {
			w := newWorkspace(t, crashWorkspace())
			w.isolation = isolation
			w.survives(kills, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func (w workspace) survives(kills int, random *rand.Rand) {
	w.pbuild(0, "apply", "-q")
	w.alone()
	want := w.made()
	if len(want) != 203 {
		w.Fatalf("a clean apply makes %d files", len(want))
	}
	w.forget()
	ended := map[string]bool{}
	for kills > 0 {
		a := w.apply()
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(400*time.Millisecond))), func() { a.cmd.Process.Kill() })
		code, events := a.end()
		timer.Stop()
		for _, e := range events {
			if e.Type == "end" && e.Phase == "done" && e.Status == "ok" {
				ended[e.Address] = true
			}
		}
		if code >= 0 {
			if code != 0 {
				w.Fatalf("%d kills before the end an apply exits with %d", kills, code)
			}
			w.same(want)
			w.forget()
			clear(ended)
			continue
		}
		kills--
		w.alone()
		w.recovered(ended)
	}
	w.pbuild(0, "apply", "-q")
	w.same(want)
	if out, _ := w.pbuild(0, "plan", "--json"); !strings.Contains(out, `"run":0,`) && !strings.Contains(out, `"run": 0,`) {
		w.Errorf("after an apply there is something to run: %s", out)
	}
	w.alone()
}

func (w workspace) same(want map[string]string) {
	w.Helper()
	got := w.made()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			w.Errorf("%s is %q, in a clean run it is %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		w.Errorf("%d files, in a clean run %d", len(got), len(want))
	}
}

// recovered fails unless nobody holds the workspace, and what has ended is known.
func (w workspace) recovered(ended map[string]bool) {
	w.Helper()
	var status struct{ Holder *struct{ PID int } }
	out, _ := w.pbuild(0, "status", "--json")
	if err := json.Unmarshal([]byte(out), &status); err != nil || status.Holder != nil {
		w.Fatalf("%v, or the workspace is still held: %s", err, out)
	}
	var plan struct {
		Tasks []struct{ Address, Decision string }
	}
	out, _ = w.pbuild(0, "plan", "--json", "--all")
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		w.Fatal(err)
	}
	decisions := map[string]string{}
	for _, t := range plan.Tasks {
		decisions[t.Address] = t.Decision
	}
	for _, address := range slices.Sorted(maps.Keys(ended)) {
		if d := decisions[address]; d != "reuse" {
			w.Fatalf("%s had ended, and is to %s", address, d)
		}
	}
}
