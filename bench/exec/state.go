package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// Commands runs the kinds that are one command over a state: runtime.prepare, fetch, prepare, fetch.gold, build and test.
type Commands struct {
	Runner  run.Runner
	Blobs   task.Blobs
	Environ *Environ
	Node    string // the name of the machine, for records

	remaking singleflight.Group
}

// runEvidence is what a command's record says beside its outcome.
type runEvidence struct {
	Manifest digest.Digest `json:"manifest"`              // of the workspace of a state, so that one made again can be compared
	TimedOut *firstRun     `json:"timed_out,omitempty"`   // the run that this one confirms
	Drifts   []drift       `json:"state_drift,omitempty"` // states that were made again for it and came out different
	Ignored  *ignored      `json:"ignored,omitempty"`     // of an agent
}

// A firstRun ran into a time limit before this one did.
type firstRun struct {
	Seconds float64       `json:"seconds"`
	Reason  string        `json:"reason"`
	Log     digest.Digest `json:"log"`
}

// A drift is a state that was lost, and is another since it was made again.
type drift struct {
	State string        `json:"state"` // its address
	Was   digest.Digest `json:"was"`
	Is    digest.Digest `json:"is"`
}

// ignored are new files that the base tree's .gitignore leaves out of a candidate.
type ignored struct {
	Count int      `json:"count"`
	Paths []string `json:"paths"` // the first of them
}

// State runs a command that leaves a state.
func (c *Commands) State(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.StateSpec)
	cmd, err := c.stateCommand(spec, a)
	if err != nil {
		return task.Outcome{}, err
	}
	out, res, err := c.execute(ctx, cmd, a)
	if err != nil {
		return out, err
	}
	if spec.Of == kind.Build {
		err = c.keepResult(&out, res)
		return out, err
	}
	if out.Verdict != task.Pass {
		out.Status = failedStatus(spec, res)
		out.Record = out.Status == task.Failed
		out.Verdict = task.NoVerdict
	}
	if res.TimedOut == "wall" {
		return out, spent{errors.New(out.Reason)}
	}
	return out, nil
}

// failedStatus is what a setup command that did not exit with 0 ends in: a fact if nothing outside could have caused it.
func failedStatus(spec *kind.StateSpec, res *run.Result) task.Status {
	if spec.Command.Network || res.TimedOut != "" {
		return task.Infra
	}
	return task.Failed
}

// stateCommand is the command of a state's spec with where it starts and what it keeps, the one place that says what each kind's state is made of.
func (c *Commands) stateCommand(spec *kind.StateSpec, a *task.Attempt) (*run.Command, error) {
	cmd, err := c.command(&spec.Command, &spec.Runtime, a)
	if err != nil {
		return nil, err
	}
	cmd.Keep = &run.Keep{State: a.Key, Home: run.FromCommand}
	switch spec.Of {
	case kind.RuntimePrepare:
	case kind.Fetch:
		cmd.Start.Fresh = true
	case kind.Prepare:
		cmd.Start.Fresh = true
		cmd.Keep.Workspace = run.FromCommand
	case kind.FetchGold: // no workspace in which gold was is ever kept
		cmd.Start.Fresh = true
		cmd.Keep.Workspace = run.FromStart
	case kind.Build:
		cmd.Keep.Workspace = run.FromCommand
		cmd.Keep.Home = run.FromStart
		cmd.Keep.HomePaths = spec.Keep
		cmd.Watch = spec.Watch
	default:
		panic("pbuild bug: " + spec.Of.Name + " leaves no state")
	}
	return cmd, nil
}

// command is a declared command of an attempt, begun over the state below it, with the tree that it is to see.
func (c *Commands) command(declared *kind.Command, in *kind.Runtime, a *task.Attempt) (*run.Command, error) {
	cmd, err := c.Environ.command(declared, in)
	if err != nil {
		return nil, err
	}
	cmd.Log = a.Log
	if below := a.Input(kind.Below); below != nil {
		cmd.Start.State = task.Key(below.Digest)
	}
	if tree := a.Input(kind.Tree); tree != nil {
		cmd.Start.Tree = tree.Digest
	}
	return cmd, nil
}

// execute runs an attempt's command and says how that ended.
func (c *Commands) execute(ctx context.Context, cmd *run.Command, a *task.Attempt) (task.Outcome, *run.Result, error) {
	res, drifts, err := c.run(ctx, cmd, a)
	if err != nil {
		out, err := unstarted(c.Blobs, err)
		return out, nil, err
	}
	out, err := c.outcome(res, cmd, a, drifts)
	return out, res, err
}

// run runs cmd, and makes the state below again as often as it turns out to be lost.
func (c *Commands) run(ctx context.Context, cmd *run.Command, a *task.Attempt) (res *run.Result, drifts []drift, err error) {
	for tries := 0; ; tries++ {
		res, err = c.Runner.Run(ctx, cmd)
		var lost *run.LostState
		if !errors.As(err, &lost) || tries == 3 {
			return res, drifts, err
		}
		below := a.Input(kind.Below)
		if below == nil || below.Attempt == nil {
			return nil, nil, fmt.Errorf("%w, and nothing says how it was made", err)
		}
		if drifts, err = c.remake(ctx, below.Attempt()); err != nil {
			return nil, nil, err
		}
	}
}

// unstarted is the outcome of a command that did not run. Of a program that is not found the error says what to do, and the log where it was looked for.
func unstarted(blobs task.Blobs, err error) (out task.Outcome, _ error) {
	var missing *run.NotFound
	if !errors.As(err, &missing) {
		return out, err
	}
	err = fmt.Errorf("%w; put it on the runtime's PATH (path, host { paths }) or correct the command", err)
	if missing.Path != "" {
		log := run.AppendLog(nil, run.Stderr, fmt.Appendf(nil, "pbuild: %s is not found on PATH=%s\n", missing.Program, missing.Path))
		var perr error
		if out.Log, perr = blobs.Put(log); perr != nil {
			return out, perr
		}
	}
	return out, err
}

// remake makes a lost state again, once for all that ask for it at the same time. It is part of the tasks that need the state, and has no record of its own.
func (c *Commands) remake(ctx context.Context, a *task.Attempt) ([]drift, error) {
	made, err, _ := c.remaking.Do(a.Key.String(), func() (any, error) {
		if c.Runner.Has(a.Key) {
			return []drift(nil), nil
		}
		spec := a.Task.Spec.(*kind.StateSpec)
		cmd, err := c.stateCommand(spec, a)
		if err != nil {
			return nil, err
		}
		res, drifts, err := c.run(ctx, cmd, a)
		if err != nil {
			return nil, err
		}
		if res.Exit != 0 || res.TimedOut != "" {
			return nil, fmt.Errorf("the lost state of %s could not be made again: its command, which once exited with 0, %s", a.Address, ended(res))
		}
		if was := recordedManifest(a); !was.IsZero() && was != res.Manifest {
			drifts = append(drifts, drift{a.Address, was, res.Manifest})
			if a.Note != nil {
				a.Note(verdict.FlagStateDrift, fmt.Sprintf("%s made again differs from what its record saw: %s, was %s", a.Address, res.Manifest.Short(), was.Short()))
			}
		}
		return drifts, nil
	})
	drifts, _ := made.([]drift)
	return drifts, err
}

// recordedManifest is the manifest of the workspace when the lost state was first made; zero if that is not known.
func recordedManifest(a *task.Attempt) digest.Digest {
	var e runEvidence
	if a.Record != nil {
		_ = json.Unmarshal(a.Record.Evidence, &e) // evidence of another form only means that nothing can be compared
	}
	return e.Manifest
}

// outcome is the part of an outcome that all commands share: verdict, exit, log, flags and where it ran.
func (c *Commands) outcome(res *run.Result, cmd *run.Command, a *task.Attempt, drifts []drift) (task.Outcome, error) {
	out := task.Outcome{
		Status: task.OK, Verdict: task.Pass, Exit: res.Exit, Node: c.Node,
		Isolation: lowest(a, res.Isolation.String()), Limits: res.Limits, Environment: environmentOf(a.Task.Spec),
	}
	switch {
	case res.TimedOut != "":
		out.Verdict = task.Timeout
		out.Confirm = !a.Alone
		out.Reason = fmt.Sprintf("ran into its %s time limit", res.TimedOut)
	case res.Exit != 0:
		out.Verdict = task.Fail
		out.Reason = fmt.Sprintf("exit status %d", res.Exit)
	default:
		out.Facts = []string{kind.Passed}
	}
	if res.OutOfMem {
		out.Flags = append(out.Flags, verdict.FlagOutOfMemory)
		out.Reason = strings.TrimPrefix(out.Reason+", out of memory", ", ")
	}
	if res.Truncated {
		out.Flags = append(out.Flags, verdict.FlagOutputTruncated)
	}
	if out.Verdict == task.Pass && cmd.Limits.Wall > 0 && res.Elapsed > cmd.Limits.Wall*4/5 {
		out.Flags = append(out.Flags, verdict.FlagNearLimit)
	}
	if len(drifts) > 0 {
		out.Flags = append(out.Flags, verdict.FlagStateDrift)
	}
	if out.Verdict != task.Pass {
		out.Tail = tail(res.Log)
	}
	var err error
	if out.Log, err = c.Blobs.Put(res.Log); err != nil {
		return out, err
	}
	e := runEvidence{Manifest: res.Manifest, Drifts: drifts}
	if b := a.Before; b != nil {
		e.TimedOut = &firstRun{b.Elapsed.Seconds(), b.Reason, b.Log}
	}
	out.Evidence, err = json.Marshal(e)
	return out, err
}

// environmentOf says what the commands of a spec run in.
func environmentOf(s task.Spec) string {
	switch s := s.(type) {
	case *kind.StateSpec:
		return s.Runtime.Environment()
	case *kind.TestSpec:
		return s.Runtime.Environment()
	case *kind.SampleSpec:
		return s.Runtime.Environment()
	}
	return ""
}

// keepResult stores what scores and verdicts read of a build, or of a test that declares reports.
func (c *Commands) keepResult(out *task.Outcome, res *run.Result, declared ...string) error {
	r := kind.Run{
		Exit: res.Exit, TimedOut: res.TimedOut, Truncated: res.Truncated, OutOfMem: res.OutOfMem, Log: out.Log, Refused: res.Refused, Reset: res.Reset, Altered: res.Altered,
	}
	for path, content := range res.Reports {
		d, err := c.Blobs.Put(content)
		if err != nil {
			return err
		}
		if r.Reports == nil {
			r.Reports = map[string]digest.Digest{}
		}
		r.Reports[path] = d
	}
	for _, path := range declared {
		if _, made := res.Reports[path]; !made && res.Refused[path] == "" {
			r.Unwritten = append(r.Unwritten, path)
		}
	}
	return put(c.Blobs, out, kind.Result, r)
}

// put stores v as JSON and names it among out's outputs.
func put(blobs task.Blobs, out *task.Outcome, role string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	o, err := stored(blobs, role, b)
	if err != nil {
		return err
	}
	out.Outputs = append(out.Outputs, o)
	return nil
}

// stored is an output whose content it has put into blobs.
func stored(blobs task.Blobs, role string, content []byte) (task.Output, error) {
	d, err := blobs.Put(content)
	return task.Output{Role: role, Digest: d, Size: int64(len(content))}, err
}

// get reads a blob of JSON.
func get(blobs task.Blobs, d digest.Digest, v any) error {
	b, err := blobs.Get(d)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// ended says in words how a command ended.
func ended(res *run.Result) string {
	if res.TimedOut != "" {
		unit := time.Second
		if res.Elapsed < 10*time.Second {
			unit = 10 * time.Millisecond
		}
		return fmt.Sprintf("ran into its %s time limit after %s", res.TimedOut, res.Elapsed.Round(unit))
	}
	return fmt.Sprintf("exited with %d", res.Exit)
}

// tailSize bounds what a failure shows of its log.
const tailSize = 8 << 10

// tail is the end of a log, stdout and stderr together, from a line's beginning.
func tail(log []byte) []byte {
	_, _, both, err := run.ParseLog(log)
	if err != nil || len(both) <= tailSize {
		return both
	}
	both = both[len(both)-tailSize:]
	for i, b := range both {
		if b == '\n' {
			return both[i+1:]
		}
	}
	return both
}
