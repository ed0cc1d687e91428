// Package tree keeps source trees and patched trees in a bare git repository, so that a tree is named by its content, patches apply without a working tree, and
// checkouts have no history. Every id that the package returns is a git object id as a digest.Digest.
//
// It promises that a tree which was kept is whole, whatever was killed; that content is never converted, whatever attributes a tree declares and
// whatever the user's git is told; and that no path in a tree is absolute, leaves the tree, enters .git or passes a link. It knows nothing of tasks or benchmarks.
//
// Not represented: empty directories, modes other than 0644, 0755 and link, submodule entries.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pbuild/engine/digest"
)

// A Repo is trees.git. Its methods, but for Close, may be called from many goroutines and processes at once.
type Repo struct {
	dir string // absolute
	tmp string // this Repo's own scratch directory, below dir

	objects *pool // cat-file --batch
	infos   *pool // cat-file --batch-check
	indexes indexCache
	dirs    memo[[]item] // parsed tree objects, which never change
	made    memo[bool]   // trees that this Repo made out of what is whole
	refs    packedRefs

	packs struct {
		sync.Mutex
		fresh int // packs made since they were last indexed together
	}
	limit int64         // bytes that an archive may unpack to
	stall time.Duration // how long a server may send no byte of one
}

// An Entry is one file of a tree.
type Entry struct {
	Path string
	Mode uint32 // 0644, 0755 or 0120000
	Blob digest.Digest
}

// An Edit changes one path of a tree. Mode 0 removes it. Content is used where Blob is zero.
type Edit struct {
	Path    string
	Mode    uint32
	Blob    digest.Digest
	Content []byte
}

// Modes of entries. A submodule stands in no tree that the package returns.
const (
	modeFile       = 0o644
	modeExecutable = 0o755
	modeLink       = 0o120000
	modeSubmodule  = 0o160000
)

// A Rejection says why a patch does not apply: git's own words, one for each hunk or file.
type Rejection struct{ Reasons []string }

func (r *Rejection) Error() string { return strings.Join(r.Reasons, "; ") }

// A Bad is an error that trying again cannot mend: wrong content, not a failed download.
type Bad struct{ Reason string }

func (e *Bad) Error() string { return e.Reason }

func badf(format string, args ...any) error { return &Bad{fmt.Sprintf(format, args...)} }

// Where pbuild's own files are inside the repository. git ignores names that it does not know.
const (
	ownDir  = "pbuild"
	ownHome = "pbuild/home"
	ownTemp = "pbuild/tmp"
)

// Open opens the repository in dir, and makes it if it is not there. Close ends the git processes that it keeps.
func Open(ctx context.Context, dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("tree: open %s: %w", dir, err)
	}
	if err := ensure(dir); err != nil {
		return nil, fmt.Errorf("tree: open %s: %w", dir, err)
	}
	r := &Repo{dir: dir, limit: archiveLimit, stall: stall, dirs: memo[[]item]{limit: 8192}, made: memo[bool]{limit: 1 << 16}}
	if r.tmp, err = os.MkdirTemp(filepath.Join(dir, ownTemp), "repo-"); err != nil {
		return nil, fmt.Errorf("tree: open %s: %w", dir, err)
	}
	r.objects = newPool(r, "cat-file", "--batch")
	r.infos = newPool(r, "cat-file", "--batch-check")
	if _, err := r.run(ctx, call{}, "rev-parse", "--git-dir"); err != nil {
		os.RemoveAll(r.tmp)
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New("git is not found on PATH; install it: pbuild keeps source trees with it")
		}
		return nil, fmt.Errorf("tree: open %s: %w", dir, err)
	}
	return r, nil
}

// Close ends the processes of the Repo and removes its scratch files. The Repo is of no use afterwards.
func (r *Repo) Close() error {
	r.objects.close()
	r.infos.close()
	return os.RemoveAll(r.tmp)
}

// ensure makes a repository aside and renames it, so that two processes that make the same one cannot see half of it.
func ensure(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return write(dir) // what it lacks was taken away
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), ".trees-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	if err := write(aside); err != nil {
		return err
	}
	if err := os.Chmod(aside, 0o755); err != nil {
		return err
	}
	if err := os.Rename(aside, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// write makes the files of a repository that are not there as they should be. It does what `git init` does, with no template and nothing of the user's.
func write(dir string) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", ownHome, ownTemp} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	for _, f := range []struct{ name, content string }{
		{"config", repoConfig},
		{"info/attributes", attributes},
		{ownHome + "/.gitconfig", homeConfig},
		{"HEAD", "ref: refs/heads/none\n"}, // last: it says that the rest is there
	} {
		name := filepath.Join(dir, f.name)
		if have, err := os.ReadFile(name); err == nil && string(have) == f.content {
			continue
		}
		if err := replace(name, []byte(f.content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file aside and renames it.
func replace(name string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "tmp_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}

// scratch makes a fresh directory; the caller removes it.
func (r *Repo) scratch() (string, error) { return os.MkdirTemp(r.tmp, "") }
