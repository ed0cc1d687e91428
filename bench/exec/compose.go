package exec

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Compose lays the hidden tests over a candidate, and makes every protected path what it is in base_test. A candidate that had changed one of them from what it is
// in base is flagged.
func Compose(repo *tree.Repo, blobs task.Blobs) task.Executor {
	return task.ExecutorFunc(func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		c := &composer{repo: repo, tests: map[string]bool{}, golds: map[string]bool{}}
		if err := c.read(ctx, blobs, a); err != nil {
			return task.Outcome{}, err
		}
		patterns := a.Task.Spec.(*kind.ComposeSpec).Protect
		if err := c.protect(patterns); err != nil {
			return task.Outcome{Status: task.Failed, Reason: "protect: " + err.Error()}, nil
		}
		edits, did := c.compose()
		id, err := repo.Edit(ctx, a.Input("candidate").Digest, edits)
		if err != nil {
			return task.Outcome{}, err
		}
		out := task.Outcome{Status: task.OK, Outputs: []task.Output{{Role: kind.Tree, Digest: id}}}
		// What was done is an output, for a cell's outcome tells of it though the tree be the same.
		if err := put(blobs, &out, kind.Composed, did); err != nil {
			return out, err
		}
		if c.touched() {
			out.Flags = []string{verdict.FlagResetProtected}
		}
		return out, nil
	})
}

// composed is what a compose did: paths made what they are in base_test, and protected paths that were not, for gold changes them.
type composed struct {
	Reset  []string `json:"reset"`
	Exempt []string `json:"exempt"`
}

type composer struct {
	repo                      *tree.Repo
	base, baseTest, candidate map[string]tree.Entry
	tests, golds              map[string]bool
	globs                     run.Globs
}

func (c *composer) read(ctx context.Context, blobs task.Blobs, a *task.Attempt) (err error) {
	list := func(id digest.Digest) map[string]tree.Entry {
		m := map[string]tree.Entry{}
		var entries []tree.Entry
		if err == nil {
			entries, err = c.repo.Entries(ctx, id)
		}
		for _, e := range entries {
			m[e.Path] = e
		}
		return m
	}
	c.base, c.baseTest, c.candidate = list(a.Input("base").Digest), list(a.Input(kind.BaseTestTree).Digest), list(a.Input("candidate").Digest)
	if err != nil {
		return err
	}
	var tests []string
	if err := get(blobs, a.Input(kind.TestPaths).Digest, &tests); err != nil {
		return err
	}
	var gold goldPaths
	if err := get(blobs, a.Input(kind.GoldPaths).Digest, &gold); err != nil {
		return err
	}
	for _, p := range tests {
		c.tests[p] = true
	}
	for _, p := range gold.All {
		c.golds[p] = true
	}
	return nil
}

// protect takes the globs that hold for base_test. What a patch has is put back whether or not what a build has would be.
func (c *composer) protect(globs []string) error {
	for _, g := range globs {
		if _, err := newGlobs([]string{run.ParseReset(g).Pattern}); err != nil {
			return err
		}
	}
	c.globs, _ = run.Resets(globs, func(pattern string) bool {
		for have := range c.baseTest {
			if doublestar.MatchUnvalidated(pattern, have) {
				return true
			}
		}
		return false
	})
	return nil
}

// protected says whether a path is, or is what Python would load in the place of one that is.
func (c *composer) protected(p string) bool {
	if c.named(p) {
		return true
	}
	source, _ := run.Shadowed(p, c.candidate[p].Mode == task.ModeLink)
	return c.baseTest[source].Mode != 0 && c.named(source)
}

func (c *composer) named(p string) bool { return c.tests[p] || c.globs.Match(p) }

// exempt says that gold itself changes the path, so that a candidate may.
func (c *composer) exempt(p string) bool { return c.golds[p] && !c.tests[p] }

// compose says what to change in the candidate.
func (c *composer) compose() ([]tree.Edit, composed) {
	did := composed{Reset: []string{}, Exempt: []string{}}
	var edits []tree.Edit
	reset := map[string]bool{}
	change := func(p string, to tree.Entry) {
		if !reset[p] {
			reset[p] = true
			edits = append(edits, tree.Edit{Path: p, Mode: to.Mode, Blob: to.Blob})
		}
	}
	for _, p := range c.paths() {
		same := c.candidate[p] == c.baseTest[p]
		switch {
		case same && !c.golds[p] || !c.protected(p): // most of a tree is the same, and need not be matched
		case c.exempt(p):
			did.Exempt = append(did.Exempt, p)
		case !same:
			if c.baseTest[p].Mode != 0 {
				// A file or link that the candidate put in the place of a directory above goes.
				for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
					if c.candidate[dir].Mode != 0 {
						change(dir, tree.Entry{})
					}
				}
			}
			change(p, c.baseTest[p])
		}
	}
	did.Reset = append(did.Reset, slices.Sorted(maps.Keys(reset))...)
	return edits, did
}

// paths are those of both trees, sorted.
func (c *composer) paths() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(c.candidate)), maps.Keys(c.baseTest))
	slices.Sort(all)
	return slices.Compact(all)
}

// touched says whether the candidate had changed a protected path.
func (c *composer) touched() bool {
	return slices.ContainsFunc(c.paths(), func(p string) bool { return c.candidate[p] != c.base[p] && c.protected(p) && !c.exempt(p) })
}
