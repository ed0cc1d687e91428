// Package host runs commands on this machine, in the highest isolation that its kernel allows.
//
// It promises what package run's contract does. It re-executes the program as the first process of each sandbox (Init), so that laying the workspace,
// starting the command, killing all of it and collecting what it made are one code at every level: sealed, where a user namespace gives the command
// its own mounts, network and users; process, where it has its own process numbers; none, where only its descendants are hunted.
//
// States are the upper directories of overlays, or plain copies where there is no overlay. The package knows no kinds and no keys but those it is given.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Trees is where the trees come from; *tree.Repo is one.
type Trees interface {
	Checkout(ctx context.Context, tree digest.Digest, dir string) error
	Diff(ctx context.Context, a, b digest.Digest) ([]tree.Entry, error)
	Entries(ctx context.Context, tree digest.Digest) ([]tree.Entry, error)
	Read(ctx context.Context, blob digest.Digest) ([]byte, error)
}

// Options is what a Runner needs.
type Options struct {
	States  string // the directory of states: disposable, on a file system that can hold an overlay's upper directory if there is to be one
	Scratch string // where runs that keep nothing work, and where workspaces lie without a mount namespace
	Trees   Trees

	MaxIsolation run.Isolation // no more than this; IsolationContainer or higher is what the kernel gives
	NoOverlay    bool          // copy states even where overlays work
	HidePaths    []string      // what no command may see: the workspace directory, .pbuild
	Clock        func() time.Time
}

// A Runner runs commands on this machine.
type Runner struct {
	opt    Options
	states *store

	detect   sync.Once
	level    run.Isolation
	overlay  bool
	why      []string // why the level is not higher, why states are copied
	controls *controls

	mu      sync.Mutex
	flights map[string]*flight
	paths   map[string]chan struct{} // held while a command uses the workspace path of that name
}

// New makes a Runner. It touches no disk; what the kernel allows is found out at the first use.
func New(o Options) (*Runner, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	for _, p := range []*string{&o.States, &o.Scratch} {
		if *p == "" {
			return nil, errors.New("host: no directory for states or scratch")
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return nil, fmt.Errorf("host: directory %s: %w", *p, err)
		}
		*p = abs
	}
	if o.Trees == nil {
		return nil, errors.New("host: no trees")
	}
	return &Runner{
		opt: o, states: &store{dir: o.States, clock: o.Clock, syncFS: syncFS, pinned: map[string]int{}},
		flights: map[string]*flight{}, paths: map[string]chan struct{}{},
	}, nil
}

// Isolation is the level that commands get.
func (r *Runner) Isolation() run.Isolation {
	r.found()
	return r.level
}

// Status describes the runner for people, a line each: the level, why it is not higher, which limits hold, how states are kept.
func (r *Runner) Status() []string {
	r.found()
	lines := []string{"isolation " + r.level.String()}
	lines = append(lines, r.why...)
	lines = append(lines, "limits "+r.controls.describe())
	if r.overlay {
		return append(lines, "states are overlay layers")
	}
	return append(lines, "states are copies")
}

// Has says whether a state is there, whole.
func (r *Runner) Has(state task.Key) bool {
	_, ok := r.states.load(state.String())
	return ok
}

// Trim removes states, least recently used first, until at most budget bytes are left, and whatever killed runs left behind. States in use stay. It
// returns the bytes freed. Only the process that holds the workspace's lock may call it.
func (r *Runner) Trim(budget int64) (int64, error) {
	freed, err := r.states.trim(budget, false)
	return freed, errors.Join(err, sweepScratch(r.runs()))
}

// Excess is the number of bytes that Trim would free. It removes nothing.
func (r *Runner) Excess(budget int64) (int64, error) { return r.states.trim(budget, true) }

// runs is where runs that keep nothing have their scratch directories.
func (r *Runner) runs() string { return filepath.Join(r.opt.Scratch, "run") }

// found finds out, once, by trying, what the kernel allows.
func (r *Runner) found() {
	r.detect.Do(func() {
		r.controls = findControls()
		for level := min(r.opt.MaxIsolation, run.IsolationSealed); level > run.IsolationNone; level-- {
			err := r.probe(level, true)
			if err != nil && level == run.IsolationSealed {
				if plain := r.probe(level, false); plain == nil {
					r.level = level
					r.why = append(r.why, "no overlay: "+err.Error())
					return
				}
			}
			if err == nil {
				r.level = level
				r.overlay = level == run.IsolationSealed && !r.opt.NoOverlay
				return
			}
			r.why = append(r.why, fmt.Sprintf("not %s: %v", level, err))
		}
	})
}

// probe sets a sandbox up and starts nothing in it.
func (r *Runner) probe(level run.Isolation, overlay bool) error {
	sc, err := newScratch(filepath.Join(r.opt.States, "tmp"))
	if err != nil {
		return err
	}
	defer sc.close()
	s := &spec{Isolation: level, Probe: true, Workspace: run.Workspace, Home: run.Home}
	s.Sandbox.Root, s.Sandbox.Layers, s.Sandbox.Scratch = filepath.Join(sc.dir, "root"), sc.dir, sc.dir
	for _, d := range []string{"root", "w", "w.work", "h", "lower"} {
		if err := os.Mkdir(filepath.Join(sc.dir, d), 0o755); err != nil {
			return err
		}
	}
	s.Sandbox.Binds = systemBinds()
	s.Sandbox.MaskProc = os.Geteuid() == 0
	s.Sandbox.Workspace = layers{Upper: "w", Work: "w.work"}
	s.Sandbox.Home = layers{Upper: "h"}
	if overlay {
		s.Sandbox.Workspace.Lower = []string{"lower"}
	}
	p, err := startInit(s, [2]*os.File{})
	if err != nil {
		return err
	}
	defer p.close()
	for {
		rep, err := p.reply()
		if err != nil {
			return err
		}
		if rep.End != nil {
			return nil
		}
	}
}

// outside returns a directory for workspaces that commands see under their real path: no tool that looks for its project
// upwards may find another one there.
func (r *Runner) outside() (string, error) {
	temp := filepath.Join(os.TempDir(), fmt.Sprintf("pbuild-%d", os.Getuid()))
	var why error
	for _, dir := range []string{r.opt.Scratch, temp} {
		if why = r.clear(dir); why == nil {
			// In a directory that everybody may write to, somebody else may have been first.
			if why = ownDir(dir); why == nil {
				return dir, nil
			}
		}
	}
	return "", fmt.Errorf("host: no directory for workspaces: %w", why)
}

func (r *Runner) clear(dir string) error {
	for _, h := range r.opt.HidePaths {
		if contains(h, dir) {
			return fmt.Errorf("%s is inside %s", dir, h)
		}
	}
	for p := dir; ; p = filepath.Dir(p) {
		for _, marker := range []string{".git", "go.work", "package.json"} {
			if _, err := os.Lstat(filepath.Join(p, marker)); err == nil {
				return fmt.Errorf("%s is below %s, which holds %s", dir, p, marker)
			}
		}
		if p == filepath.Dir(p) {
			return nil
		}
	}
}

// contains says whether path is dir or below it.
func contains(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
