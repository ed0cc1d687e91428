package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// A scripted runner keeps states by name and does with a command what its script says. It stands for the machine, not for what is tested.
type scripted struct {
	states map[task.Key]bool
	ran    []*run.Command
	script func(*run.Command) *run.Result
	level  run.Isolation
}

func (s *scripted) Has(k task.Key) bool { return s.states[k] }

func (s *scripted) Isolation() run.Isolation { return s.level }

func (s *scripted) Run(_ context.Context, c *run.Command) (*run.Result, error) {
	if c.Start.State != (task.Key{}) && !s.states[c.Start.State] {
		return nil, &run.LostState{State: c.Start.State}
	}
	s.ran = append(s.ran, c)
	res := &run.Result{Isolation: s.level, Elapsed: time.Second, Log: run.AppendLog(nil, run.Stdout, []byte(strings.Join(c.Argv, " ")+"\n"))}
	if s.script != nil {
		res = s.script(c)
	}
	if c.Keep != nil && res.Exit == 0 && res.TimedOut == "" {
		s.states[c.Keep.State] = true
	}
	return res, nil
}

// said lists the commands that ran.
func (s *scripted) said() string {
	var out []string
	for _, c := range s.ran {
		out = append(out, strings.Join(c.Argv, " "))
	}
	return strings.Join(out, "; ")
}

func newCommands(s *scripted) *Commands {
	s.states = map[task.Key]bool{}
	return &Commands{Runner: s, Blobs: new(memory), Environ: &Environ{Getenv: func(string) string { return "" }}, Node: "here"}
}

func key(name string) task.Key { return task.Key(digest.Of([]byte(name))) }

// stateAttempt is an attempt of a command that leaves a state, over the one below (nil: none).
func stateAttempt(of *task.Kind, name string, below *task.Attempt) *task.Attempt {
	a := &task.Attempt{
		Address: name, Key: key(name), Number: 1,
		Task: &task.Task{Spec: &kind.StateSpec{Of: of, Command: kind.Command{Argv: []string{name}, Timeout: time.Minute}}},
	}
	if of != kind.RuntimePrepare {
		a.Inputs = append(a.Inputs, input(kind.Tree, digest.Of([]byte("tree of "+name))))
	}
	if below != nil {
		in := input(kind.Below, digest.Digest(below.Key))
		in.Attempt = func() *task.Attempt { return below }
		a.Inputs = append(a.Inputs, in)
	}
	return a
}

// chain is the five states of an instance, the last first.
func chain() (build, fetchGold, prepare, fetch, runtime *task.Attempt) {
	runtime = stateAttempt(kind.RuntimePrepare, "runtime", nil)
	fetch = stateAttempt(kind.Fetch, "fetch", runtime)
	prepare = stateAttempt(kind.Prepare, "prepare", fetch)
	fetchGold = stateAttempt(kind.FetchGold, "fetch.gold", prepare)
	build = stateAttempt(kind.Build, "build", fetchGold)
	return build, fetchGold, prepare, fetch, runtime
}

func TestWhatEachStateIsMadeOf(t *testing.T) {
	build, fetchGold, prepare, fetch, runtime := chain()
	for _, c := range []struct {
		attempt         *task.Attempt
		fresh           bool
		workspace, home run.From
	}{
		{runtime, false, run.FromNowhere, run.FromCommand},
		{fetch, true, run.FromNowhere, run.FromCommand},
		{prepare, true, run.FromCommand, run.FromCommand},
		{fetchGold, true, run.FromStart, run.FromCommand},
		{build, false, run.FromCommand, run.FromStart},
	} {
		s := &scripted{}
		cmds := newCommands(s)
		if in := c.attempt.Input(kind.Below); in != nil {
			s.states[task.Key(in.Digest)] = true
		}
		out, err := cmds.State(t.Context(), c.attempt)
		if err != nil || out.Status != task.OK {
			t.Fatalf("%s: %+v, %v", c.attempt.Address, out, err)
		}
		got := s.ran[0]
		if got.Start.Fresh != c.fresh || got.Keep.Workspace != c.workspace || got.Keep.Home != c.home || got.Keep.State != c.attempt.Key {
			t.Errorf("%s starts %+v and keeps %+v", c.attempt.Address, got.Start, got.Keep)
		}
	}
}

// A lost state is made again with everything below it that is lost too, and with nothing else.
func TestLostStates(t *testing.T) {
	build, _, prepare, fetch, runtime := chain()
	s := &scripted{}
	cmds := newCommands(s)
	if _, err := cmds.State(t.Context(), build); err != nil {
		t.Fatal(err)
	}
	if want := "runtime; fetch; prepare; fetch.gold; build"; s.said() != want {
		t.Errorf("ran %s, want %s", s.said(), want)
	}
	s.ran, s.states = nil, map[task.Key]bool{runtime.Key: true, fetch.Key: true, prepare.Key: true}
	if _, err := cmds.State(t.Context(), build); err != nil {
		t.Fatal(err)
	}
	if want := "fetch.gold; build"; s.said() != want {
		t.Errorf("ran %s, want %s", s.said(), want)
	}
}

func TestStateDrift(t *testing.T) {
	_, _, prepare, _, _ := chain()
	evidence, err := json.Marshal(runEvidence{Manifest: digest.Of([]byte("first"))})
	if err != nil {
		t.Fatal(err)
	}
	prepare.Record = &task.Record{Outcome: task.Outcome{Evidence: evidence}}
	for manifest, drifts := range map[string]bool{"first": false, "second": true} {
		var notes []string
		prepare.Note = func(code, detail string) { notes = append(notes, code) }
		s := &scripted{script: func(*run.Command) *run.Result { return &run.Result{Manifest: digest.Of([]byte(manifest))} }}
		found, err := newCommands(s).remake(t.Context(), prepare)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(notes, "state_drift"); got != drifts || len(found) > 0 != drifts {
			t.Errorf("made again as %s: drift %v, %v", manifest, got, found)
		}
	}
}

// A lost state whose command no longer exits with 0 is the world's failure, and says so.
func TestLostStateThatFails(t *testing.T) {
	build, _, _, _, _ := chain()
	s := &scripted{script: func(c *run.Command) *run.Result { return &run.Result{Exit: len(c.Argv[0]) - len("build")} }}
	_, err := newCommands(s).State(t.Context(), build)
	if err == nil || !strings.Contains(err.Error(), "runtime could not be made again") {
		t.Errorf("err = %v", err)
	}
}

func TestHowCommandsEnd(t *testing.T) {
	for _, c := range []struct {
		of      *task.Kind
		network bool
		res     run.Result
		alone   bool
		status  task.Status
		verdict task.Verdict
		record  bool
		confirm bool
		flags   string
		final   bool
	}{
		{of: kind.Build, status: task.OK, verdict: task.Pass},
		{of: kind.Build, res: run.Result{Exit: 2}, status: task.OK, verdict: task.Fail},
		{of: kind.Build, res: run.Result{TimedOut: "wall"}, status: task.OK, verdict: task.Timeout, confirm: true},
		{of: kind.Build, res: run.Result{TimedOut: "idle"}, alone: true, status: task.OK, verdict: task.Timeout},
		{of: kind.Build, res: run.Result{Elapsed: 49 * time.Second}, status: task.OK, verdict: task.Pass, flags: "near_limit"},
		{of: kind.Build, res: run.Result{Elapsed: 48 * time.Second}, status: task.OK, verdict: task.Pass},
		{of: kind.Build, res: run.Result{Exit: 137, OutOfMem: true, Truncated: true}, status: task.OK, verdict: task.Fail, flags: "out_of_memory output_truncated"},
		{of: kind.Build, res: run.Result{OutOfMem: true}, status: task.OK, verdict: task.Pass, flags: "out_of_memory"},
		{of: kind.Prepare, res: run.Result{Exit: 1}, status: task.Failed, record: true},
		{of: kind.Prepare, network: true, res: run.Result{Exit: 1}, status: task.Infra},
		{of: kind.Prepare, res: run.Result{TimedOut: "wall"}, status: task.Infra, final: true},
		{of: kind.Fetch, network: true, res: run.Result{TimedOut: "wall"}, status: task.Infra, final: true},
		{of: kind.Fetch, network: true, res: run.Result{TimedOut: "idle"}, status: task.Infra},
		{of: kind.Fetch, network: true, status: task.OK, verdict: task.Pass},
	} {
		s := &scripted{script: func(*run.Command) *run.Result { return &c.res }}
		a := stateAttempt(c.of, "x", nil)
		a.Alone = c.alone
		a.Task.Spec.(*kind.StateSpec).Command.Network = c.network
		out, err := newCommands(s).State(t.Context(), a)
		if (err != nil) != c.final || task.IsFinal(err) != c.final {
			t.Fatal(err)
		}
		if out.Status != c.status || out.Verdict != c.verdict || out.Record != c.record || out.Confirm != c.confirm && c.status == task.OK || strings.Join(out.Flags, " ") != c.flags {
			t.Errorf("%s %+v: %+v", c.of.Name, c.res, out)
		}
		if strings.HasPrefix(out.Reason, ",") {
			t.Errorf("%+v: the reason is %q", c.res, out.Reason)
		}
		_, has := out.Find(kind.Result)
		if has != (c.of == kind.Build) {
			t.Errorf("%s: outputs %v", c.of.Name, out.Outputs)
		}
	}
}

// A time-out that a second run confirms keeps what the first one was.
func TestConfirmedTimeOut(t *testing.T) {
	s := &scripted{script: func(*run.Command) *run.Result { return &run.Result{TimedOut: "wall"} }}
	a := stateAttempt(kind.Build, "x", nil)
	a.Alone, a.Before = true, &task.Record{Elapsed: 90 * time.Second, Outcome: task.Outcome{Reason: "ran into its wall time limit", Log: digest.Of([]byte("log"))}}
	out, err := newCommands(s).State(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var e runEvidence
	if err := json.Unmarshal(out.Evidence, &e); err != nil || e.TimedOut == nil || *e.TimedOut != (firstRun{90, "ran into its wall time limit", digest.Of([]byte("log"))}) {
		t.Errorf("%s, %v", out.Evidence, err)
	}
}

// The same run gives the same result digest, whatever it took.
func TestResultHoldsNoTime(t *testing.T) {
	var seen []digest.Digest
	for _, took := range []time.Duration{time.Second, time.Minute} {
		s := &scripted{script: func(*run.Command) *run.Result { return &run.Result{Exit: 1, Elapsed: took, CPU: took} }}
		out, err := newCommands(s).State(t.Context(), stateAttempt(kind.Build, "x", nil))
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, out.Digest(kind.Result))
	}
	if seen[0] != seen[1] {
		t.Errorf("results differ: %v", seen)
	}
}

func TestTestResetsWhatTheTestPatchTouches(t *testing.T) {
	s := &scripted{}
	cmds := newCommands(s)
	paths, err := cmds.Blobs.Put([]byte(`["a_test.go","odd[1]*.go"]`))
	if err != nil {
		t.Fatal(err)
	}
	a := &task.Attempt{Number: 1, Task: &task.Task{Spec: &kind.TestSpec{Command: kind.Command{Argv: []string{"go", "test"}}, Reports: []string{"r.xml"}, Protect: []string{"go.work*"}}},
		Inputs: []task.Input{input(kind.Tree, digest.Of(nil)), input("test_paths", paths)}}
	if _, err := cmds.Test(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got := s.ran[0]
	if want := `[go.work* a_test.go odd\[1\]\*.go]`; fmt.Sprint(got.Start.Reset) != want || got.Keep != nil || !slices.Equal(got.Reports, []string{"r.xml"}) {
		t.Errorf("resets %v, want %s; keeps %v", got.Start.Reset, want, got.Keep)
	}
}

// A record says what its command ran in, and the lowest isolation of all that it stands on.
func TestWhereCommandsRan(t *testing.T) {
	for below, want := range map[string]string{"": "sealed", "sealed": "sealed", "none": "none"} {
		s := &scripted{level: run.IsolationSealed}
		cmds := newCommands(s)
		a := stateAttempt(kind.Build, "build", stateAttempt(kind.Prepare, "prepare", nil))
		a.Task.Spec.(*kind.StateSpec).Runtime = kind.Runtime{Host: true, Identity: digest.Of(nil), Platform: "linux/amd64"}
		s.states[key("prepare")] = true
		if below != "" {
			a.Input(kind.Below).Record = &task.Record{Outcome: task.Outcome{Isolation: below}}
		}
		out, err := cmds.State(t.Context(), a)
		if err != nil || out.Isolation != want || out.Environment != "host "+digest.Of(nil).String()+" linux/amd64 native" {
			t.Errorf("below %q: %s, %q, %v", below, out.Isolation, out.Environment, err)
		}
	}
}

func TestEndedSaysHowSoon(t *testing.T) {
	for elapsed, want := range map[time.Duration]string{312 * time.Millisecond: "310ms", 61400 * time.Millisecond: "1m1s"} {
		if got := ended(&run.Result{TimedOut: "wall", Elapsed: elapsed}); got != "ran into its wall time limit after "+want {
			t.Error(got)
		}
	}
}
