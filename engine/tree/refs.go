package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"pbuild/engine/digest"
)

// refPrefix is where trees have their refs, each named by the id that it holds.
const refPrefix = "refs/pbuild/trees/"

// isWhole says whether a tree is there with all that it names. One with a ref is, for Keep makes refs after all that they need and Drop takes them before
// anything else goes; another is looked through.
func (r *Repo) isWhole(ctx context.Context, tree digest.Digest) bool {
	return r.isMade(tree) || r.kept(tree) || r.whole(ctx, tree)
}

// whole reads every directory of a tree from the disk and asks for every file.
func (r *Repo) whole(ctx context.Context, tree digest.Digest) bool {
	seen := map[digest.Digest]bool{}
	var files []digest.Digest
	err := r.eachDir(ctx, tree, func(items []item, _ bool) {
		for _, it := range items {
			if it.mode != modeDir && !seen[it.id] {
				seen[it.id] = true
				files = append(files, it.id)
			}
		}
	})
	if err != nil {
		return false
	}
	absent, err := r.absent(ctx, files)
	return err == nil && len(absent) == 0
}

// Keep makes trees durable and gives each a ref, so that no collection takes it.
func (r *Repo) Keep(ctx context.Context, trees ...digest.Digest) error {
	var want strings.Builder
	seen := map[digest.Digest]bool{} // git takes no ref twice
	for _, t := range trees {
		if seen[t] || r.kept(t) {
			continue
		}
		seen[t] = true
		id, ok := t.Git()
		if !ok || !r.isWhole(ctx, t) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fmt.Errorf("tree: keep %s: it is not there, or not whole", t)
		}
		fmt.Fprintf(&want, "update %s%s %s\n", refPrefix, id, id)
	}
	if want.Len() == 0 {
		return nil
	}
	err := r.sync()
	if err == nil {
		err = r.updateRefs(ctx, want.String())
	}
	if err == nil {
		err = r.sync()
	}
	if err != nil {
		return fmt.Errorf("tree: keep %d trees: %w", len(trees), err)
	}
	return nil
}

// Drop takes the refs of all trees but those that live says away, and prunes. Trees without a ref go too, so nobody else, in this process or
// another, may be making trees meanwhile: the caller holds the workspace's lock.
func (r *Repo) Drop(ctx context.Context, live func(digest.Digest) bool) error {
	if err := r.drop(ctx, live); err != nil {
		return fmt.Errorf("tree: drop: %w", remedied(err))
	}
	return nil
}

// remedied adds to what git says what helps where it cannot read an object.
func remedied(err error) error {
	if _, ok := errors.AsType[*gitError](err); ok {
		return fmt.Errorf("%w; if an object is missing or damaged, `pbuild cache verify` drops what needs it, and the next apply makes that again", err)
	}
	return err
}

func (r *Repo) drop(ctx context.Context, live func(digest.Digest) bool) error {
	_, refs, err := r.divide(ctx, live)
	if err != nil {
		return err
	}
	// git leaves the old packs where there is nothing at all to put in a new one.
	if err := r.put(ctx, newObject("tree", nil)); err != nil {
		return err
	}
	var dead strings.Builder
	fmt.Fprintf(&dead, "update refs/pbuild/empty %s\n", name(emptyTree))
	for _, ref := range refs {
		fmt.Fprintf(&dead, "delete %s\n", ref)
	}
	if err := r.updateRefs(ctx, dead.String()); err != nil {
		return err
	}
	r.dirs.clear()
	r.indexes.clear()
	r.made.clear()
	if err := r.sweep(); err != nil {
		return err
	}
	for _, args := range [][]string{{"pack-refs", "--all"}, {"repack", "-a", "-d", "-q", "-n"}, {"prune", "--expire=now"}} {
		if _, err := r.run(ctx, call{}, args...); err != nil {
			return err
		}
	}
	r.objects.forget()
	r.infos.forget()
	return nil
}

// updateRefs changes refs: a command of git update-ref a line. Only who holds the workspace's lock does that, so that a lock of git's which stays was left by
// one that was killed, and is broken.
func (r *Repo) updateRefs(ctx context.Context, commands string) error {
	_, err := r.run(ctx, call{stdin: strings.NewReader(commands)}, "update-ref", "--stdin")
	if err != nil && r.breakLocks(commands) {
		_, err = r.run(ctx, call{stdin: strings.NewReader(commands)}, "update-ref", "--stdin")
	}
	return err
}

// lockAge is how long a git that is still at work may hold a lock.
const lockAge = 2 * time.Second

// breakLocks removes what a killed git left that keeps commands from being done, and says whether there was any.
func (r *Repo) breakLocks(commands string) (broken bool) {
	locks := []string{"packed-refs.lock"}
	for line := range strings.Lines(commands) {
		if f := strings.Fields(line); len(f) > 1 {
			locks = append(locks, f[1]+".lock")
		}
	}
	for _, l := range locks {
		path := filepath.Join(r.dir, filepath.FromSlash(l))
		fi, err := os.Stat(path)
		if err != nil {
			continue
		}
		time.Sleep(min(lockAge-time.Since(fi.ModTime()), lockAge))
		if err := os.Remove(path); err == nil || os.IsNotExist(err) {
			broken = true
		}
	}
	return broken
}

// divide lists the refs of trees: of those that live says, and of the others.
func (r *Repo) divide(ctx context.Context, live func(digest.Digest) bool) (kept, dead []string, err error) {
	out, err := r.run(ctx, call{}, "for-each-ref", "--format=%(refname)", refPrefix)
	if err != nil {
		return nil, nil, err
	}
	for ref := range strings.Lines(string(out)) {
		ref = strings.TrimSpace(ref)
		if id, err := digest.OfGit(strings.TrimPrefix(ref, refPrefix)); err == nil && live(id) {
			kept = append(kept, ref)
		} else {
			dead = append(dead, ref)
		}
	}
	return kept, dead, nil
}

// A Share is some of the trees, and the bytes that they take on the disk.
type Share struct {
	Trees, Bytes int64
}

// Shares says what Drop would keep and what it would drop. What both have counts as kept. An object that is missing is an error.
func (r *Repo) Shares(ctx context.Context, live func(digest.Digest) bool) (kept, dropped Share, err error) {
	k, d, err := r.divide(ctx, live)
	if err == nil {
		kept, err = r.weigh(ctx, k, nil)
	}
	if err == nil {
		dropped, err = r.weigh(ctx, d, k)
	}
	if err != nil {
		return Share{}, Share{}, fmt.Errorf("tree: weigh trees: %w", remedied(err))
	}
	return kept, dropped, nil
}

// weigh is the share of refs, without the objects that they have in common with others.
func (r *Repo) weigh(ctx context.Context, refs, others []string) (Share, error) {
	if len(refs) == 0 {
		return Share{}, nil
	}
	var names strings.Builder
	for _, ref := range refs {
		fmt.Fprintln(&names, ref)
	}
	for _, ref := range others {
		fmt.Fprintln(&names, "^"+ref)
	}
	out, err := r.run(ctx, call{stdin: strings.NewReader(names.String())}, "rev-list", "--objects", "--disk-usage", "--stdin")
	if err != nil {
		return Share{}, err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return Share{int64(len(refs)), bytes}, err
}

// sweep removes the scratch directories of processes that were killed.
func (r *Repo) sweep() error {
	all, err := os.ReadDir(filepath.Dir(r.tmp))
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Name() == filepath.Base(r.tmp) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(r.tmp), d.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *indexCache) clear() {
	c.Lock()
	defer c.Unlock()
	c.slots = nil
}

// isMade says whether this Repo made a tree out of what is whole, so that Keep need not look through it.
func (r *Repo) isMade(tree digest.Digest) bool {
	made, _ := r.made.get(tree)
	return made
}

// from notes a tree that was made by changing base with content that is there.
func (r *Repo) from(base, tree digest.Digest) {
	if base.IsZero() || base == emptyTree || r.isMade(base) || r.kept(base) {
		r.made.put(tree, true)
	}
}

// packedRefs is what the packed-refs file held when it was last read.
type packedRefs struct {
	sync.Mutex
	stamp fileStamp
	ids   map[digest.Digest]bool
}

type fileStamp struct {
	size int64
	time time.Time
}

// kept says whether a tree has a ref. It reads the files that git writes, for a process a question would be too slow.
func (r *Repo) kept(tree digest.Digest) bool {
	id, ok := tree.Git()
	if !ok {
		return false
	}
	if b, err := os.ReadFile(filepath.Join(r.dir, refPrefix, id)); err == nil && string(bytes.TrimSpace(b)) == id {
		return true
	}
	r.refs.Lock()
	defer r.refs.Unlock()
	file := filepath.Join(r.dir, "packed-refs")
	info, err := os.Stat(file)
	if err != nil {
		return false
	}
	if stamp := (fileStamp{info.Size(), info.ModTime()}); stamp != r.refs.stamp {
		content, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		r.refs.ids = parsePackedRefs(content)
		r.refs.stamp = stamp
	}
	return r.refs.ids[tree]
}

// Kept lists the trees of the repository in dir that have a ref, as all have that a record names. Where there is no repository there are none.
func Kept(dir string) map[digest.Digest]bool {
	loose, _ := os.ReadDir(filepath.Join(dir, refPrefix)) // first: refs move from here to the packed ones
	packed, _ := os.ReadFile(filepath.Join(dir, "packed-refs"))
	kept := parsePackedRefs(packed)
	for _, f := range loose {
		if d, err := digest.OfGit(f.Name()); err == nil {
			kept[d] = true
		}
	}
	return kept
}

func parsePackedRefs(content []byte) map[digest.Digest]bool {
	ids := make(map[digest.Digest]bool)
	for line := range strings.Lines(string(content)) {
		id, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if ref != refPrefix+id {
			continue
		}
		if d, err := digest.OfGit(id); err == nil {
			ids[d] = true
		}
	}
	return ids
}
