package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"pbuild/engine/digest"
)

// A Git is where a commit comes from.
type Git struct {
	URL        string
	Dir        string // what a relative path in URL is relative to
	Commit     string // 40 hexadecimal digits
	Subdir     string
	Submodules bool
}

// Local is the path of a repository on this machine; "" for another's.
func (g *Git) Local() string {
	switch {
	case g.URL == "" || !isLocal(g.URL):
		return ""
	case strings.HasPrefix(g.URL, "file://"):
		if u, err := url.Parse(g.URL); err == nil && u.Host == "" {
			return u.Path
		}
		return ""
	case filepath.IsAbs(g.URL):
		return g.URL
	}
	return filepath.Join(g.Dir, g.URL)
}

// FetchGit brings the tree of a commit: shallow by commit where the server allows it, else the branches and tags. Submodules are grafted in at their paths,
// or left out like the empty directories that they are without. A commit that is not there, or is not given in full, and a tree that cannot be
// represented (an LFS pointer, a name that enters .git) are *Bad; a server that cannot be reached is another error.
func (r *Repo) FetchGit(ctx context.Context, g Git) (digest.Digest, error) {
	id, err := r.fetchGit(ctx, g)
	if err != nil {
		return digest.Digest{}, fmt.Errorf("tree: fetch commit %s of %s: %w", g.Commit, redact(g.URL), err)
	}
	return id, nil
}

func (r *Repo) fetchGit(ctx context.Context, g Git) (digest.Digest, error) {
	var none digest.Digest
	subdir, err := cleanSubdir(g.Subdir)
	if err != nil {
		return none, err
	}
	from := g.URL
	if at := g.Local(); at != "" && !strings.Contains(from, "://") {
		from = at
	}
	f := &gitFetch{repo: r, submodules: g.Submodules, under: subdir, local: isLocal(g.URL)}
	root, err := f.tree(ctx, from, g.Commit, "", 0)
	if err != nil {
		return none, err
	}
	at, err := r.find(ctx, root, subdir)
	if err != nil {
		return none, err
	}
	if at.mode != modeDir {
		return none, badf("the commit has no directory %q (subdir)", g.Subdir)
	}
	if err := r.checkLFS(ctx, root, at.id); err != nil {
		return none, err
	}
	if !r.whole(ctx, at.id) {
		return none, fmt.Errorf("the server did not send the whole tree")
	}
	r.made.put(at.id, true)
	return at.id, nil
}

func cleanSubdir(s string) (string, error) {
	s = strings.Trim(strings.TrimPrefix(s, "./"), "/")
	if s == "" || s == "." {
		return "", nil
	}
	return s, checkPath(s)
}

// redact takes a password out of a URL, for messages.
func redact(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.User != nil {
		return u.Redacted()
	}
	return raw
}

// isLocal says whether a URL names a directory of this machine.
func isLocal(raw string) bool {
	if rest, ok := strings.CutPrefix(raw, "file://"); ok {
		return rest != ""
	}
	if strings.Contains(raw, "://") {
		return false
	}
	colon, slash := strings.IndexByte(raw, ':'), strings.IndexByte(raw, '/')
	return colon < 0 || slash >= 0 && slash < colon || filepath.IsAbs(raw) // else host:path
}

// A gitFetch is one FetchGit with the submodules below it.
type gitFetch struct {
	repo       *Repo
	submodules bool
	under      string // only submodules in or above this directory are wanted
	local      bool   // the user named a local repository, so submodules may be local too
}

const maxSubmoduleDepth = 10

// tree brings the tree of a commit in a form that today's git would write, with submodules grafted in. prefix is its path in the whole.
func (f *gitFetch) tree(ctx context.Context, from, commit, prefix string, depth int) (digest.Digest, error) {
	var none digest.Digest
	if depth > maxSubmoduleDepth {
		return none, badf("submodules are nested more than %d deep, at %q", maxSubmoduleDepth, prefix)
	}
	tree, err := f.commitTree(ctx, from, commit)
	if err != nil {
		return none, err
	}
	entries, err := f.repo.entries(ctx, tree)
	if err != nil {
		return none, err
	}
	strange := false
	if err := f.repo.eachDir(ctx, tree, func(_ []item, odd bool) { strange = strange || odd }); err != nil {
		return none, err
	}
	var subs []Entry
	var files []Entry
	for _, e := range entries {
		if err := checkPath(e.Path); err != nil {
			return none, err
		}
		if e.Mode == modeSubmodule {
			subs = append(subs, e)
		} else {
			files = append(files, e)
		}
	}
	if strange { // modes of old versions of git: written anew
		if tree, err = f.repo.change(ctx, emptyTree, files); err != nil {
			return none, err
		}
	}
	if len(subs) == 0 {
		return tree, nil
	}
	return f.graft(ctx, tree, subs, from, prefix, depth)
}

// graft replaces submodule entries by their trees, or drops them.
func (f *gitFetch) graft(ctx context.Context, tree digest.Digest, subs []Entry, from, prefix string, depth int) (digest.Digest, error) {
	var modules map[string]string
	var changes []Entry
	for _, sub := range subs {
		changes = append(changes, Entry{Path: sub.Path})
		whole := path.Join(prefix, sub.Path)
		if !f.submodules || !f.wanted(whole) {
			continue
		}
		if modules == nil {
			var err error
			if modules, err = f.repo.modules(ctx, tree); err != nil {
				return tree, err
			}
		}
		where, ok := modules[sub.Path]
		if !ok {
			return tree, badf("submodule %q has no URL in .gitmodules", whole)
		}
		where = resolveURL(from, where)
		if isLocal(where) && !f.local {
			return tree, badf("submodule %q comes from %s, a path of this machine", whole, where)
		}
		grafted, err := f.tree(ctx, where, name(sub.Blob), whole, depth+1)
		if err != nil {
			return tree, fmt.Errorf("submodule %q from %s: %w", whole, redact(where), err)
		}
		if grafted != emptyTree {
			changes = append(changes, Entry{sub.Path, modeDir, grafted})
		}
	}
	return f.repo.change(ctx, tree, changes)
}

func (f *gitFetch) wanted(p string) bool {
	return f.under == "" || p == f.under || strings.HasPrefix(p, f.under+"/") || strings.HasPrefix(f.under, p+"/")
}

// modules reads .gitmodules: URLs by path.
func (r *Repo) modules(ctx context.Context, tree digest.Digest) (map[string]string, error) {
	text, ok, err := r.ReadFile(ctx, tree, ".gitmodules")
	if err != nil || !ok {
		return nil, err
	}
	out, err := r.run(ctx, call{stdin: bytes.NewReader(text)}, "config", "--file", "-", "--no-includes", "--null", "--list")
	if err != nil {
		return nil, badf(".gitmodules cannot be read: %v", err)
	}
	urls, paths := map[string]string{}, map[string]string{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		key, value, _ := strings.Cut(line, "\n")
		if name, ok := strings.CutPrefix(key, "submodule."); ok {
			if n, ok := strings.CutSuffix(name, ".url"); ok {
				urls[n] = value
			} else if n, ok := strings.CutSuffix(name, ".path"); ok {
				paths[n] = strings.TrimSuffix(value, "/")
			}
		}
	}
	byPath := map[string]string{}
	for n, p := range paths {
		if urls[n] != "" {
			byPath[p] = urls[n]
		}
	}
	return byPath, nil
}

// resolveURL makes a submodule's URL that begins with ./ or ../ relative to that of the repository which names it.
func resolveURL(base, sub string) string {
	if !strings.HasPrefix(sub, "./") && !strings.HasPrefix(sub, "../") {
		return sub
	}
	base = strings.TrimRight(base, "/")
	for {
		if rest, ok := strings.CutPrefix(sub, "./"); ok {
			sub = rest
			continue
		}
		rest, ok := strings.CutPrefix(sub, "../")
		if !ok {
			return base + "/" + sub
		}
		sub = rest
		cut := strings.LastIndexByte(base, '/')
		if cut < 0 { // host:path
			if cut = strings.LastIndexByte(base, ':'); cut < 0 {
				return sub
			}
			return base[:cut+1] + sub
		}
		base = base[:cut]
	}
}

// commitTree fetches a commit, without history if the server gives it so, and returns its tree.
func (f *gitFetch) commitTree(ctx context.Context, from, commit string) (digest.Digest, error) {
	var none digest.Digest
	commit = strings.ToLower(commit)
	if _, err := digest.OfGit(commit); err != nil {
		return none, badf("%q is not a commit of 40 hexadecimal digits: a branch, tag or short name can move, so give what `git rev-parse %s^{commit}` prints", commit, commit)
	}
	if from == "" || strings.HasPrefix(from, "-") {
		return none, badf("%q is not a URL or path of a git repository", from)
	}
	if isLocal(from) {
		if _, err := os.Stat(strings.TrimPrefix(from, "file://")); errors.Is(err, os.ErrNotExist) {
			return none, badf("there is no repository at %s", from)
		}
	}
	aside, err := f.repo.scratch()
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(aside)
	// Refs and shallow marks stay aside, where no other fetch locks them; objects go to where they are wanted.
	near := filepath.Join(aside, "near.git")
	if err := write(near); err != nil {
		return none, err
	}
	env := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(f.repo.dir, "objects")}
	if err := f.fetch(ctx, near, env, "--depth=1", "--", from, commit); err != nil {
		if ctx.Err() != nil {
			return none, ctx.Err()
		}
		// Not every server gives a commit by its id. Everything, then, into a repository that is thrown away, and from there just the commit.
		far := filepath.Join(aside, "far.git")
		if err := write(far); err != nil {
			return none, err
		}
		if err := f.fetch(ctx, far, nil, "--", from, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
			return none, err
		}
		if _, err := f.repo.run(ctx, call{dir: far}, "cat-file", "-e", commit+"^{commit}"); err != nil {
			if ctx.Err() != nil {
				return none, ctx.Err()
			}
			return none, badf("no branch or tag of the repository holds commit %s", commit)
		}
		if err := f.fetch(ctx, near, env, "--depth=1", "--", far, commit); err != nil {
			return none, err
		}
	}
	if err := f.repo.packed(ctx); err != nil {
		return none, err
	}
	return f.repo.treeOf(ctx, commit)
}

func (f *gitFetch) fetch(ctx context.Context, dir string, env []string, args ...string) error {
	args = append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc", "--update-shallow"}, args...)
	_, err := f.repo.run(ctx, call{dir: dir, env: env, network: true}, args...)
	return err
}

// treeOf returns a commit's tree.
func (r *Repo) treeOf(ctx context.Context, commit string) (id digest.Digest, err error) {
	err = r.infos.each(ctx, []string{commit}, func(_ int, o object) error {
		if o.kind != "commit" {
			return badf("%s is a %s, not a commit", commit, o.kind)
		}
		return nil
	})
	if err != nil {
		return id, err
	}
	out, err := r.run(ctx, call{}, "rev-parse", "--verify", commit+"^{tree}")
	if err != nil {
		return id, err
	}
	return parseID(out)
}
