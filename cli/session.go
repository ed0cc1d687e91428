package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/lower"
	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/run"
	"pbuild/engine/store"
	"pbuild/engine/task"
	"pbuild/engine/tree"
	"pbuild/hcl"
)

// stateDir is what pbuild remembers, beside the workspace.
const stateDir = ".pbuild"

// A session is a loaded workspace: its declarations, the graph that they make, and a reader of what is remembered.
type session struct {
	app   *app
	dir   string // absolute
	ws    *decl.Workspace
	graph *task.Graph
	store *store.Store
	diags decl.Diagnostics
	host  *lowerHost
	named *plan.Plan // undecided: it knows addresses

	began    time.Time       // before anything was read
	previous *store.Snapshot // the stat cache of the last plan; nil where there is none
	files    *store.Files
}

// workDir is the workspace's directory, absolute.
func (a *app) workDir() (string, error) {
	dir, err := filepath.Abs(a.flags.dir)
	if err != nil {
		return "", exitWith(ExitWorld, err)
	}
	return dir, nil
}

// path is a file that the command line names: as with `make -C`, relative to the workspace's directory.
func (a *app) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.flags.dir, name)
}

func (a *app) hclOptions() hcl.Options {
	// What stands for --var-file is no variable of the workspace, though it reads like one.
	environ := slices.DeleteFunc(slices.Clone(a.cfg.Environ), func(kv string) bool { return strings.HasPrefix(kv, flagVariable("var-file")+"=") })
	return hcl.Options{Vars: a.flags.vars, VarFiles: a.flags.varFiles, Environ: environ, Version: a.cfg.Version}
}

// loadOptions say how a workspace is to be looked at.
type loadOptions struct {
	noProbe bool        // a runtime's identity is what its probe printed last
	keep    bool        // diagnostics are the caller's to show: with errors among them the session comes without a graph
	warn    bool        // warnings are shown too: whoever only looks around has been told by plan
	all     bool        // the whole workspace will be looked at, as it is now
	replace replacement // what --replace names, so that rows which it makes anew do not count as known
}

// load reads the workspace and makes its graph. Diagnostics are shown; with an error among them nothing has been started.
func (a *app) load(ctx context.Context, o loadOptions) (*session, error) {
	dir, err := a.workDir()
	if err != nil {
		return nil, err
	}
	s := &session{app: a, dir: dir, began: a.cfg.Clock()}
	collectLate()
	if s.previous, err = store.OpenSnapshot(s.stateDir()); err != nil {
		s.previous = nil // every file is read
	}
	s.files = store.NewFiles(s.dir, s.previous)
	if o.all {
		defer s.lookAhead()()
	}
	if s.store, err = store.Open(s.stateDir()); err != nil {
		s.close()
		return nil, exitWith(ExitWorld, err)
	}
	made := map[string]bool{}
	for more := true; more; {
		s.declare(ctx, o, made)
		more = !s.diags.HasErrors() && s.learn(made, o.replace)
	}
	if !o.keep && (o.warn || s.diags.HasErrors()) {
		a.view.showDiagnostics(dir, s.diags)
	}
	if s.diags.HasErrors() {
		return s, said(ExitUsage)
	}
	if o.warn && !a.view.json {
		s.noteUnknown()
	}
	return s, nil
}

// declare reads the declarations and makes the graph. made names the datasets whose files are what the tasks that make them will leave.
func (s *session) declare(ctx context.Context, o loadOptions, made map[string]bool) {
	a := s.app
	options := a.hclOptions()
	options.Made = made
	config := hcl.Open(s.dir, options)
	a.view.source = config.Snippet
	s.ws, s.diags = config.Workspace, config.Diagnostics
	if !s.diags.HasErrors() {
		s.host = newLowerHost(ctx, a, s.ws, o.noProbe)
		var more decl.Diagnostics
		s.graph, more = lower.Lower(s.ws, s.host)
		s.named = &plan.Plan{Graph: s.graph}
		s.diags.Add(more...)
		if err := s.host.save(); err != nil {
			a.view.notef("note: %v\n", err) // the probe runs again next time
		}
	}
	s.diags = s.diags.Sort()
}

// collectLate keeps the collector away until a gibibyte is in use: a graph is made once and stays, so that what a collection would find while it grows is
// little. The first collection brings back what is usual, and so does apply, which lasts. Where GOGC or GOMEMLIMIT is set, that holds.
func collectLate() {
	if collectorIsSet() {
		return
	}
	debug.SetMemoryLimit(1 << 30)
	debug.SetGCPercent(-1)
	runtime.AddCleanup(new([64]byte), func(struct{}) { collectAsUsual() }, struct{}{})
}

func collectAsUsual() {
	if !collectorIsSet() {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	}
}

func collectorIsSet() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }

// lookAhead begins to look at the files that the last plan knew, while the declarations are read: mostly they are those that this one asks for. The
// returned function waits for its end.
func (s *session) lookAhead() (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.files.PrefetchKnown()
	}()
	return func() { <-done }
}

func (s *session) stateExists() bool {
	_, err := os.Stat(s.stateDir())
	return err == nil
}

func (s *session) stateDir() string { return filepath.Join(s.dir, stateDir) }

// close ends the reader of the store.
func (s *session) close() {
	if s == nil {
		return
	}
	s.previous.Close()
	if s.store != nil {
		s.store.Close() // a reader has nothing to lose
	}
}

// address is a task's first address.
func (s *session) address(id task.ID) string { return s.named.Address(id) }

// loadChoice loads the workspace and applies selectors.
func (a *app) loadChoice(cmd *cobra.Command, args []string) (*session, *choice, error) {
	sel, err := a.parseSelectors(args)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.load(cmd.Context(), loadOptions{})
	if err != nil {
		return nil, nil, err
	}
	c, err := s.choose(sel)
	if err != nil {
		s.close()
		return nil, nil, err
	}
	return s, c, nil
}

// loadTask loads the workspace and finds one address.
func (a *app) loadTask(cmd *cobra.Command, addr string) (*session, *task.Object, int, error) {
	s, err := a.load(cmd.Context(), loadOptions{})
	if err != nil {
		return nil, nil, 0, err
	}
	o, step, err := resolve(s.graph, addr)
	if err != nil {
		err = exitWith(ExitUsage, fmt.Errorf("%w%s", err, s.unknownHint()))
		s.close()
		return nil, nil, 0, err
	}
	return s, o, step, nil
}

// decide makes the plan of what want needs (nil: everything) against a store.
func (s *session) decide(st *store.Store, want []task.ID, replace map[task.ID]bool) (*plan.Plan, error) {
	s.prefetch(want)
	p, err := plan.Decide(s.inputs(st, want, replace))
	var missing plan.MissingInputs
	if errors.As(err, &missing) && len(s.ws.Held) > 0 {
		return p, nil // what is not in the graph yet may make them
	}
	if errors.As(err, &missing) {
		var ds decl.Diagnostics
		for _, m := range missing {
			ds.Add(s.missingInput(m))
		}
		s.diags.Add(ds...)
		s.app.view.showDiagnostics(s.dir, ds)
		return nil, said(ExitUsage)
	}
	var lost plan.LostSamples
	if errors.As(err, &lost) {
		return nil, exitWith(ExitFailed, fmt.Errorf("%s: %w. Bring .pbuild/blobs and .pbuild/trees.git back from a copy; "+
			"or change the agent's version, which makes it another sample", s.address(lost[0].Task), lost))
	}
	if err != nil {
		return nil, exitWith(ExitWorld, err)
	}
	return p, nil
}

// inputs is what a plan is decided by.
func (s *session) inputs(st *store.Store, want []task.ID, replace map[task.ID]bool) plan.Inputs {
	return plan.Inputs{
		Graph: s.graph, Lookup: st.Lookup, Latest: st.Latest, Started: s.unfinished(st), Files: s.files, Stored: stored(st, s.stateDir()),
		Now: s.app.cfg.Clock().UnixNano(), Want: want, Replace: replace, MinIsolation: s.minIsolation(),
	}
}

// stored tells whether an output's content can be had. Of a tree it asks only whether it has a ref: what was taken out of the repository by hand is for
// `cache verify`.
func stored(st *store.Store, state string) func(task.Output) bool {
	trees := sync.OnceValue(func() map[digest.Digest]bool { return tree.Kept(filepath.Join(state, treesDir)) })
	return func(o task.Output) bool {
		if _, isTree := o.Digest.Git(); isTree {
			return trees()[o.Digest]
		}
		return st.Has(o.Digest)
	}
}

// prefetch looks at the files of what want needs, many at once.
func (s *session) prefetch(want []task.ID) {
	var in, out []string
	wanted := plan.Closure(s.graph, want)
	for i := range s.graph.Tasks {
		if wanted[i] {
			in = append(in, s.graph.Tasks[i].Inputs...)
			out = append(out, s.graph.Tasks[i].Outputs...)
		}
	}
	s.files.PrefetchOutputs(out)
	s.files.Prefetch(in) // what is also an output is known by now
}

func (s *session) missingInput(m *plan.MissingInput) decl.Diagnostic {
	d := decl.Diagnostic{Severity: decl.Error, Summary: "Input file does not exist", Address: s.address(m.Task),
		Detail: "The file " + m.Path + " is an input, it is not there, and no task that this one depends on makes it. Correct the path, or name the task that makes it in depends_on."}
	addr, err := task.ParseAddress(d.Address)
	if err != nil {
		return d
	}
	typ, name, _ := strings.Cut(addr.Block, ".")
	if b := s.ws.Find(typ, name); b != nil {
		d.Range = b.Range
		if a := b.Attrs["inputs"]; a != nil {
			d.Range = a.Range
		}
	}
	return d
}

// setting reads an attribute of the pbuild block.
func setting[T any](s *session, name string, otherwise T) T {
	if t, ok := decl.Constant[T](s.ws.Find("pbuild", ""), name); ok {
		return t
	}
	return otherwise
}

// isolationFloor is the lowest isolation whose records count.
func (s *session) isolationFloor() run.Isolation {
	floor, _ := run.ParseIsolation(setting(s, "min_isolation", "none"))
	return floor
}

// minIsolation says whether a record's isolation is enough, or is nil where any will do.
func (s *session) minIsolation() func(*task.Task, string) bool {
	floor := s.isolationFloor()
	if floor == run.IsolationNone {
		return nil
	}
	return func(t *task.Task, have string) bool {
		level, ok := run.ParseIsolation(have)
		return ok && level >= floor || !isolated(t)
	}
}

// isolated says whether a task runs a command that is to be kept from the host. A task in place is not: the workspace is what it works on.
func isolated(t *task.Task) bool {
	switch s := t.Spec.(type) {
	case *kind.TaskSpec:
		return s.Sandbox
	case *kind.SampleSpec:
		return s.Runs()
	case *kind.StateSpec, *kind.TestSpec:
		return true
	}
	return false
}

// slots is how many tasks run at once: -j, else the workspace's setting, else the number of cores.
func (s *session) slots(flag int) int {
	if flag > 0 {
		return flag
	}
	return int(setting(s, "slots", int64(runtime.NumCPU())))
}

// holder says who this process is, for the lock.
func (a *app) holder() store.Holder {
	name, err := os.Hostname()
	if err != nil {
		name = "this machine"
	}
	return store.Holder{PID: os.Getpid(), Host: name, Command: "pbuild " + a.commandLine(), Since: a.cfg.Clock()}
}
