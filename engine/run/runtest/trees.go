// Package runtest is the contract of runners as tests: every runner passes Suite, in the very form in which it is used. It also has Trees, source
// trees in memory for those tests.
package runtest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Trees holds trees in memory, under the object ids that git gives their blobs. Ids of trees are not git's. It has the methods of *tree.Repo that runners use.
type Trees struct {
	mu    sync.Mutex
	trees map[digest.Digest][]tree.Entry
	blobs map[digest.Digest][]byte
}

// NewTrees returns an empty one.
func NewTrees() *Trees {
	return &Trees{trees: map[digest.Digest][]tree.Entry{}, blobs: map[digest.Digest][]byte{}}
}

// A link as a file's content makes it a link; a program makes it executable.
const (
	link    = "link:"
	program = "#!"
)

// Add makes a tree. Content that begins with "link:" is a link's target, and content that begins with "#!" is executable.
func (t *Trees) Add(files map[string]string) digest.Digest {
	t.mu.Lock()
	defer t.mu.Unlock()
	var entries []tree.Entry
	var sum strings.Builder
	for p, content := range files {
		e := tree.Entry{Path: p, Mode: 0o644}
		if target, ok := strings.CutPrefix(content, link); ok {
			e.Mode, content = task.ModeLink, target
		} else if strings.HasPrefix(content, program) {
			e.Mode = 0o755
		}
		e.Blob = digest.OfObject("blob", []byte(content))
		t.blobs[e.Blob] = []byte(content)
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	for _, e := range entries {
		fmt.Fprintf(&sum, "%s %o %s\n", e.Path, e.Mode, e.Blob)
	}
	id := digest.OfObject("list", []byte(sum.String()))
	t.trees[id] = entries
	return id
}

// Entries lists a tree.
func (t *Trees) Entries(_ context.Context, id digest.Digest) ([]tree.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.trees[id]
	if !ok {
		return nil, fmt.Errorf("no tree %s", id)
	}
	return e, nil
}

// Diff lists the paths that differ, each as it is in b.
func (t *Trees) Diff(ctx context.Context, a, b digest.Digest) ([]tree.Entry, error) {
	old, err := t.Entries(ctx, a)
	if err != nil {
		return nil, err
	}
	now, err := t.Entries(ctx, b)
	if err != nil {
		return nil, err
	}
	var out []tree.Entry
	for _, e := range old {
		if !slices.ContainsFunc(now, func(n tree.Entry) bool { return n.Path == e.Path }) {
			out = append(out, tree.Entry{Path: e.Path})
		}
	}
	for _, n := range now {
		if !slices.Contains(old, n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// Read returns a blob.
func (t *Trees) Read(_ context.Context, blob digest.Digest) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.blobs[blob]
	if !ok {
		return nil, fmt.Errorf("no blob %s", blob)
	}
	return b, nil
}

// Checkout writes a tree below dir.
func (t *Trees) Checkout(ctx context.Context, id digest.Digest, dir string) error {
	entries, err := t.Entries(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := filepath.Join(dir, e.Path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		content, err := t.Read(ctx, e.Blob)
		if err != nil {
			return err
		}
		if e.Mode == task.ModeLink {
			err = os.Symlink(string(content), p)
		} else {
			err = os.WriteFile(p, content, fs.FileMode(e.Mode))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
