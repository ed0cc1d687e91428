package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// A flight is a Run that makes a state. Others that want the same state made wait for it: an equal key is equal work.
type flight struct {
	done chan struct{}
	res  *run.Result // nil unless the state was made
}

// Run runs one command.
func (r *Runner) Run(ctx context.Context, c *run.Command) (*run.Result, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	r.found()
	if c.Keep == nil {
		return r.run(ctx, c)
	}
	name := c.Keep.State.String()
	for {
		r.mu.Lock()
		f := r.flights[name]
		if f == nil {
			f = &flight{done: make(chan struct{})}
			r.flights[name] = f
			r.mu.Unlock()
			res, err := r.run(ctx, c)
			if err == nil && kept(c, res) {
				f.res = res
			}
			r.mu.Lock()
			delete(r.flights, name)
			r.mu.Unlock()
			close(f.done)
			return res, err
		}
		r.mu.Unlock()
		select {
		case <-f.done:
			if f.res != nil {
				return f.res, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func kept(c *run.Command, res *run.Result) bool {
	return c.Keep != nil && (c.Keep.Always || res.Exit == 0 && res.TimedOut == "")
}

var errNoCommand = errors.New("host: no command")

// check refuses what would leave the workspace. Whoever makes commands has checked what users wrote.
func check(c *run.Command) error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errNoCommand
	}
	paths := slices.Clone(c.Reports)
	for f := range c.Start.Files {
		paths = append(paths, strings.TrimPrefix(f, "~/"))
	}
	for _, p := range paths { // what stands there is removed
		if filepath.Clean(p) == "." {
			return fmt.Errorf("host: the path %q is a directory's own", p)
		}
	}
	if c.Cwd != "" {
		paths = append(paths, c.Cwd)
	}
	if c.Keep != nil {
		paths = append(paths, c.Keep.HomePaths...)
	}
	for _, p := range paths {
		if !filepath.IsLocal(p) {
			return fmt.Errorf("host: the path %q leaves its directory", p)
		}
	}
	for _, g := range c.Start.Reset {
		if !doublestar.ValidatePattern(run.ParseReset(g).Pattern) {
			return fmt.Errorf("host: %q is no pattern", g)
		}
	}
	return nil
}

// A session is one Run on its way.
type session struct {
	r *Runner
	c *run.Command

	start *meta // the state below; nil for none
	base  *meta // the checkout that the workspace begins with; nil for none
	from  digest.Digest

	workspace, home chain // what they begin with, uppermost first
	overlay         bool
	scratch         *scratch
	path            string // where workspace and home lie, without a mount namespace
	unlocks         []func()
}

func (r *Runner) run(ctx context.Context, c *run.Command) (_ *run.Result, err error) {
	s := &session{r: r, c: c}
	defer func() {
		if cerr := s.close(); err == nil {
			err = cerr
		}
	}()
	if err := s.find(ctx); err != nil {
		return nil, err
	}
	if err := s.makeRoom(ctx); err != nil {
		return nil, err
	}
	sp, err := s.spec(ctx)
	if err != nil {
		return nil, err
	}
	res, err := s.execute(ctx, sp)
	if err != nil {
		return nil, err
	}
	if kept(c, res) {
		if err := s.keep(res); err != nil {
			return nil, fmt.Errorf("host: keep state %s: %w", c.Keep.State.Short(), err)
		}
	}
	return res, nil
}

// find pins what the command starts from.
func (s *session) find(ctx context.Context) error {
	st := &s.c.Start
	if st.State != (task.Key{}) {
		var ok bool
		if s.start, ok = s.r.states.pin(st.State.String()); !ok {
			return &run.LostState{State: st.State}
		}
		s.home = s.start.Home.layers()
		if s.start.Workspace != nil && !st.Fresh {
			s.workspace, s.from = s.start.Workspace.layers(), s.start.Tree
			return nil
		}
	}
	if st.Tree.IsZero() {
		return nil
	}
	var newer time.Time
	if s.start != nil && s.start.Home != nil && s.start.Tree != st.Tree {
		// What was built in HOME from another tree must be older than this one's files.
		newer = s.start.Made
	}
	base, err := s.r.checkout(ctx, st.Tree, newer)
	if err != nil {
		return err
	}
	s.base, s.workspace, s.from = base, base.Workspace.layers(), st.Tree
	return nil
}

// checkout pins a checkout of a tree that was made after newer, and makes it if there is none.
func (r *Runner) checkout(ctx context.Context, tree digest.Digest, newer time.Time) (*meta, error) {
	name := treeName(tree)
	unlock, err := r.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m, ok := r.states.pin(name); ok {
		if m.Made.After(newer) {
			return m, nil
		}
		r.states.unpin(m)
	}
	sc, err := newScratch(r.states.path("tmp"))
	if err != nil {
		return nil, err
	}
	defer sc.close()
	dir, id := filepath.Join(sc.dir, "w"), newID()
	if err := r.opt.Trees.Checkout(ctx, tree, dir); err != nil {
		return nil, fmt.Errorf("host: check out %s: %w", tree, err)
	}
	if err := makeDir(dir); err != nil { // an empty tree has no files to make it
		return nil, err
	}
	m := &meta{Name: name, Tree: tree, Workspace: &chain{id}}
	if err := r.states.publish(m, map[string]string{id: dir}, ""); err != nil {
		return nil, fmt.Errorf("host: keep the checkout of %s: %w", tree, err)
	}
	if m, ok := r.states.pin(name); ok {
		return m, nil
	}
	return nil, fmt.Errorf("host: the checkout of %s vanished", tree)
}

// lock holds a name for one run at a time in this process.
func (r *Runner) lock(ctx context.Context, name string) (unlock func(), err error) {
	r.mu.Lock()
	l := r.paths[name]
	if l == nil {
		l = make(chan struct{}, 1)
		r.paths[name] = l
	}
	r.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// spec says to the init what to do.
func (s *session) spec(ctx context.Context) (*spec, error) {
	c := s.c
	sp := &spec{
		Isolation: s.r.level, Network: c.Network, Workspace: run.Workspace, Home: run.Home,
		Argv: c.Argv, Cwd: c.Cwd, Exempt: c.Start.Exempt, Reports: c.Reports, Files: c.Start.Files,
		Manifest: c.Keep != nil && c.Keep.Workspace == run.FromCommand, Changes: c.Changes,
	}
	if s.start != nil && s.base == nil {
		sp.Watch = c.Watch
	}
	if s.start != nil {
		sp.Stamp = s.start.Made.Add(time.Millisecond).UnixNano()
	}
	if s.r.level < run.IsolationSealed {
		sp.Workspace, sp.Home = filepath.Join(s.path, "w"), filepath.Join(s.path, "h")
	} else {
		v := s.r.see(c.Argv[0], c.Env["PATH"], append(slices.Clone(c.Paths), certificates(c)...), c.Network)
		sp.Sandbox = sandbox{
			Root: filepath.Join(s.scratch.dir, "root"), Layers: s.r.states.path("layers"), Scratch: s.scratch.dir,
			Binds: v.binds, Masks: v.masks, MaskFiles: v.maskFiles, MaskProc: os.Geteuid() == 0,
			Workspace: s.layers("w", s.workspace), Home: s.layers("h", s.home),
		}
	}
	if c.Network {
		sp.Forward = forwards(c.Forward)
	}
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	for name, value := range env {
		if _, ok := c.Start.Files[value]; ok {
			env[name] = sp.place(value)
		}
	}
	maps.Copy(env, run.Fixed(sp.Home, s.temp()))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		sp.Env = append(sp.Env, k+"="+env[k])
	}
	return sp, s.plan(ctx, sp)
}

// plan works out what is laid and what is reset.
func (s *session) plan(ctx context.Context, sp *spec) error {
	st := &s.c.Start
	if !st.Tree.IsZero() && st.Tree != s.from {
		var diff []tree.Entry
		var err error
		if s.from.IsZero() {
			diff, err = s.r.opt.Trees.Entries(ctx, st.Tree)
		} else {
			diff, err = s.r.opt.Trees.Diff(ctx, s.from, st.Tree)
		}
		if err != nil {
			return fmt.Errorf("host: compare trees: %w", err)
		}
		for _, e := range diff {
			sp.Lay = append(sp.Lay, entry{e.Path, e.Mode, e.Blob})
		}
	}
	if len(st.Reset) == 0 {
		return nil
	}
	var all []tree.Entry
	if now := s.tree(); !now.IsZero() {
		var err error
		if all, err = s.r.opt.Trees.Entries(ctx, now); err != nil {
			return fmt.Errorf("host: list the tree: %w", err)
		}
	}
	restored, removed := run.Resets(st.Reset, func(pattern string) bool {
		return slices.ContainsFunc(all, func(e tree.Entry) bool { return doublestar.MatchUnvalidated(pattern, e.Path) })
	})
	sp.Reset = removed
	for _, e := range all {
		source, _ := run.Shadowed(e.Path, e.Mode == task.ModeLink)
		if restored.Match(e.Path) || source != "" && restored.Match(source) {
			sp.Wanted = append(sp.Wanted, entry{e.Path, e.Mode, e.Blob})
		}
	}
	slices.SortFunc(sp.Wanted, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	return s.planLaid(ctx, sp, &restored)
}

// planLaid lists what the state is to have where a protected path is laid: writing it hides what the state has.
func (s *session) planLaid(ctx context.Context, sp *spec, restored *run.Globs) error {
	if s.start == nil || s.base != nil || s.from.IsZero() {
		return nil
	}
	for _, e := range sp.Lay {
		if restored.Match(e.Path) {
			sp.Laid = append(sp.Laid, entry{Path: e.Path})
		}
	}
	if len(sp.Laid) == 0 {
		return nil
	}
	all, err := s.r.opt.Trees.Entries(ctx, s.from)
	if err != nil {
		return fmt.Errorf("host: list the tree: %w", err)
	}
	had := map[string]tree.Entry{}
	for _, e := range all {
		had[e.Path] = e
	}
	for i, e := range sp.Laid {
		sp.Laid[i].Mode, sp.Laid[i].Blob = had[e.Path].Mode, had[e.Path].Blob
	}
	return nil
}

// leftBehind are those of the paths that a command left, and that were not in the tree that it saw.
func (s *session) leftBehind(ctx context.Context, paths []string) ([]string, error) {
	if len(paths) == 0 || s.from.IsZero() {
		return paths, nil
	}
	all, err := s.r.opt.Trees.Entries(ctx, s.from)
	if err != nil {
		return nil, fmt.Errorf("host: list the tree: %w", err)
	}
	seen := map[string]bool{}
	for _, e := range all {
		seen[e.Path] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool { return seen[p] }), nil
}

// tree is what the workspace shows once it is laid.
func (s *session) tree() digest.Digest {
	if s.c.Start.Tree.IsZero() {
		return s.from
	}
	return s.c.Start.Tree
}

// certificates are the files of trusted certificates that the environment of a command with network names.
func certificates(c *run.Command) []string {
	var out []string
	if !c.Network {
		return nil
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"} {
		if p := c.Env[name]; p != "" {
			out = append(out, p)
		}
	}
	return out
}

// forwards says where the user's configuration files are shown: at the same place below HOME, or where they are.
func forwards(paths []string) []bind {
	home, _ := os.UserHomeDir()
	var out []bind
	for _, p := range paths {
		to := p
		if rel, err := filepath.Rel(home, p); home != "" && err == nil && filepath.IsLocal(rel) {
			to = rel
		}
		out = append(out, bind{p, to})
	}
	return out
}
