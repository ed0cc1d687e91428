package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"

	"github.com/bmatcuk/doublestar/v4"
)

// Patches parts a fix into gold and test patch, or applies the two that are given, and makes the trees of the instance's states.
func Patches(repo *tree.Repo, blobs task.Blobs) task.Executor {
	return task.ExecutorFunc(func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		p := &patches{repo: repo, blobs: blobs, base: a.Input("base").Digest, spec: a.Task.Spec.(*kind.PatchesSpec)}
		var err error
		if fix := a.Input("fix"); fix != nil {
			err = p.derive(ctx, fix.Digest)
		} else {
			err = p.apply(ctx)
		}
		if err == nil {
			err = p.check(ctx)
		}
		var unfit *unfit
		if errors.As(err, &unfit) {
			// A fact of the data: what would test these trees is skipped, and a gate makes its outcome of it.
			return task.Outcome{Status: task.Failed, Record: true, Outcome: string(verdict.PatchFailed), Reason: unfit.reason}, nil
		}
		if err != nil {
			return task.Outcome{}, err
		}
		return p.outcome()
	})
}

// An unfit is why an instance's patches are of no use.
type unfit struct{ reason string }

func (e *unfit) Error() string { return e.reason }

// unfitIf turns what is wrong with a patch into an *unfit, and passes on what is wrong with the world.
func unfitIf(what string, err error) error {
	var rejected *tree.Rejection
	var bad *tree.Bad
	if errors.As(err, &rejected) || errors.As(err, &bad) {
		return &unfit{what + ": " + err.Error()}
	}
	return err
}

type patches struct {
	repo  *tree.Repo
	blobs task.Blobs
	spec  *kind.PatchesSpec

	base, baseTest, gold, goldTest digest.Digest
	goldPatch, testPatch           []byte
	goldPaths, testPaths           []string
}

// derive parts the difference from base to fix by path.
func (p *patches) derive(ctx context.Context, fix digest.Digest) error {
	isTest, err := newGlobs(slices.Concat(p.spec.TestFiles, p.spec.TestData))
	if err != nil {
		return &unfit{"test_files, test_data: " + err.Error()}
	}
	changed, err := p.repo.Diff(ctx, p.base, fix)
	if err != nil {
		return err
	}
	var test, gold []tree.Edit
	var paths []string
	for _, e := range changed {
		paths = append(paths, e.Path)
		edit := tree.Edit{Path: e.Path, Mode: e.Mode, Blob: e.Blob}
		if isTest.match(e.Path) {
			test = append(test, edit)
		} else {
			gold = append(gold, edit)
		}
	}
	switch {
	case len(changed) == 0:
		return &unfit{"base and fix do not differ"}
	case len(test) == 0:
		return &unfit{fmt.Sprintf("test_files matches nothing of what differs between base and fix (%s); name the hidden tests", some(paths))}
	case len(gold) == 0:
		return &unfit{fmt.Sprintf("test_files matches all that differs between base and fix (%s), so that nothing is left to be the fix", some(paths))}
	}
	if p.baseTest, err = p.repo.Edit(ctx, p.base, test); err != nil {
		return unfitIf("the test patch alone", err)
	}
	if p.gold, err = p.repo.Edit(ctx, p.base, gold); err != nil {
		return unfitIf("the gold patch alone", err)
	}
	p.goldTest = fix
	if p.testPatch, err = p.repo.Patch(ctx, p.base, p.baseTest, nil); err != nil {
		return err
	}
	p.goldPatch, err = p.repo.Patch(ctx, p.base, p.gold, nil)
	return err
}

// some names the first few of a list.
func some(list []string) string {
	const few = 5
	if n := len(list) - few; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), n)
	}
	return strings.Join(list, ", ")
}

// apply lays the given patches over base.
func (p *patches) apply(ctx context.Context) (err error) {
	p.goldPatch, p.testPatch = p.spec.Gold.Bytes, p.spec.Test.Bytes
	if blank(p.goldPatch) {
		return errEmptyGold
	}
	if blank(p.testPatch) {
		return errEmptyTest
	}
	if p.gold, err = p.repo.Apply(ctx, p.base, p.goldPatch); err != nil {
		return unfitIf("the gold patch does not apply to base", err)
	}
	if p.baseTest, err = p.repo.Apply(ctx, p.base, p.testPatch); err != nil {
		return unfitIf("the test patch does not apply to base", err)
	}
	if p.goldTest, err = p.repo.Apply(ctx, p.gold, p.testPatch); err != nil {
		return unfitIf("the test patch does not apply over the gold patch", err)
	}
	return nil
}

var (
	errEmptyGold = &unfit{"the gold patch is empty: nothing but test files changes"}
	errEmptyTest = &unfit{"the test patch is empty: no test file changes"}
)

// check demands two patches that change something, and no path in both: hidden tests are laid over a candidate file by file.
func (p *patches) check(ctx context.Context) error {
	for _, of := range []struct {
		tree  digest.Digest
		paths *[]string
	}{{p.gold, &p.goldPaths}, {p.baseTest, &p.testPaths}} {
		changed, err := p.repo.Diff(ctx, p.base, of.tree)
		if err != nil {
			return err
		}
		*of.paths = []string{}
		for _, e := range changed {
			*of.paths = append(*of.paths, e.Path)
		}
	}
	switch {
	case len(p.goldPaths) == 0:
		return errEmptyGold
	case len(p.testPaths) == 0:
		return errEmptyTest
	}
	for _, path := range p.testPaths {
		if _, both := slices.BinarySearch(p.goldPaths, path); both {
			return &unfit{fmt.Sprintf("%s is in both patches: the hidden tests cannot be laid over a candidate that changes it", path)}
		}
	}
	return nil
}

// goldPaths is the JSON of kind.GoldPaths.
type goldPaths struct {
	Production []string `json:"production"`
	All        []string `json:"all"`
}

// besides lists what a fix changes along with production files: metadata, what is made of them, lock files and documents. A candidate need not touch them to be in the right place.
var besides = globs{
	"**/PKG-INFO", "**/*.egg-info/**", "**/*.pyc", "dist/**", "**/*.min.{js,css}",
	"**/go.sum", "**/Cargo.lock", "**/package-lock.json", "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.yaml", "**/poetry.lock", "**/Pipfile.lock", "**/uv.lock", "**/pdm.lock",
	"**/*.md", "**/*.rst", "**/*.adoc", "doc/**", "docs/**", "**/{README,CHANGELOG,CHANGES,HISTORY,NEWS,AUTHORS,LICENSE,COPYING}{,.*}",
}

// production is what of the gold patch a candidate is to find: all of it, where nothing else is left.
func (p *patches) production() []string {
	isTest, err := newGlobs(slices.Concat(p.spec.TestFiles, p.spec.TestData))
	out := slices.DeleteFunc(slices.Clone(p.goldPaths), func(path string) bool {
		return besides.match(path) || err == nil && isTest.match(path)
	})
	if len(out) == 0 {
		return p.goldPaths
	}
	return out
}

func (p *patches) outcome() (task.Outcome, error) {
	gold, err := json.Marshal(goldPaths{Production: p.production(), All: p.goldPaths})
	if err != nil {
		return task.Outcome{}, err
	}
	test, err := json.Marshal(p.testPaths)
	if err != nil {
		return task.Outcome{}, err
	}
	out := task.Outcome{Status: task.OK, Facts: []string{kind.Patched}}
	for _, t := range []struct {
		role string
		id   digest.Digest
	}{{kind.BaseTestTree, p.baseTest}, {kind.GoldTree, p.gold}, {kind.GoldTestTree, p.goldTest}} {
		out.Outputs = append(out.Outputs, task.Output{Role: t.role, Digest: t.id})
	}
	for _, b := range []struct {
		role    string
		content []byte
	}{{kind.GoldPatch, p.goldPatch}, {kind.TestPatch, p.testPatch}, {kind.GoldPaths, gold}, {kind.TestPaths, test}} {
		o, err := stored(p.blobs, b.role, b.content)
		if err != nil {
			return task.Outcome{}, err
		}
		out.Outputs = append(out.Outputs, o)
	}
	return out, nil
}

// globs are patterns in doublestar's syntax over slash-separated paths.
type globs []string

func newGlobs(patterns []string) (globs, error) {
	for _, g := range patterns {
		if !doublestar.ValidatePattern(g) {
			return nil, fmt.Errorf("%q is not a glob", g)
		}
	}
	return patterns, nil
}

func (g globs) match(path string) bool {
	return slices.ContainsFunc(g, func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, path) })
}

// blank says whether a patch says nothing.
func blank(patch []byte) bool { return strings.TrimSpace(string(patch)) == "" }
