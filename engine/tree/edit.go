package tree

import (
	"context"
	"fmt"
	"strings"

	"pbuild/engine/digest"
)

// Edit returns base with edits applied; of several edits of one path the last counts. A directory at an edited path goes, with what was in it.
// A path that is empty, absolute, leaves the tree, enters .git or passes a file or link that stays is a *Bad.
func (r *Repo) Edit(ctx context.Context, base digest.Digest, edits []Edit) (digest.Digest, error) {
	id, err := r.edit(ctx, base, edits)
	if err != nil {
		return digest.Digest{}, fmt.Errorf("tree: edit %s: %w", base, err)
	}
	return id, nil
}

func (r *Repo) edit(ctx context.Context, base digest.Digest, edits []Edit) (digest.Digest, error) {
	var none digest.Digest
	last := make(map[string]int, len(edits))
	var given []digest.Digest
	for i, e := range edits {
		if err := checkEdit(e); err != nil {
			return none, err
		}
		last[e.Path] = i
		if e.Mode != 0 && !e.Blob.IsZero() {
			given = append(given, e.Blob)
		}
	}
	if absent, err := r.absent(ctx, given); err != nil {
		return none, err
	} else if len(absent) > 0 {
		return none, fmt.Errorf("blob %s is not there", absent[0])
	}
	var entries []Entry
	var blobs []rawObject
	for i, e := range edits {
		if last[e.Path] != i {
			continue
		}
		if e.Mode != 0 && e.Blob.IsZero() {
			blob := newObject("blob", e.Content)
			blobs = append(blobs, blob)
			e.Blob = blob.id
		}
		entries = append(entries, Entry{e.Path, e.Mode, e.Blob})
	}
	if err := r.put(ctx, blobs...); err != nil {
		return none, err
	}
	return r.change(ctx, base, entries)
}

func checkEdit(e Edit) error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	switch e.Mode {
	case 0, modeFile, modeExecutable:
	case modeLink:
		if e.Blob.IsZero() {
			return checkLink(e.Path, e.Content)
		}
	default:
		return badf("path %q has mode %o", e.Path, e.Mode)
	}
	return nil
}

// change returns base with entries put in (Mode 0: taken out). Paths are checked, blobs are there. An entry of modeDir grafts a whole tree.
func (r *Repo) change(ctx context.Context, base digest.Digest, entries []Entry) (digest.Digest, error) {
	root := &node{item: item{mode: modeDir, id: base}}
	// What goes makes room for what comes: a link may become a directory, and a directory a file.
	for _, e := range entries {
		if e.Mode == 0 {
			if err := r.take(ctx, root, e.Path); err != nil {
				return digest.Digest{}, err
			}
		}
	}
	for _, e := range entries {
		if e.Mode != 0 {
			if err := r.lay(ctx, root, e); err != nil {
				return digest.Digest{}, err
			}
		}
	}
	if !root.changed {
		return base, nil
	}
	trees := root.trees(nil)
	if err := r.put(ctx, trees...); err != nil {
		return digest.Digest{}, err
	}
	id := trees[len(trees)-1].id
	r.from(base, id)
	return id, nil
}

// A node is a file, or a directory of which only what is needed was read.
type node struct {
	item
	kids    map[string]*node // nil until it is read
	changed bool
	laid    bool // put here by this edit
}

// open reads a directory's content.
func (r *Repo) open(ctx context.Context, n *node) error {
	if n.kids != nil {
		return nil
	}
	n.kids = make(map[string]*node)
	if n.id.IsZero() {
		return nil
	}
	read, err := r.items(ctx, []digest.Digest{n.id})
	if err != nil {
		return err
	}
	for _, it := range read[0] {
		n.kids[it.name] = &node{item: it}
	}
	return nil
}

// take removes what stands at path, if anything does.
func (r *Repo) take(ctx context.Context, n *node, path string) error {
	var passed []*node
	for {
		first, rest, more := strings.Cut(path, "/")
		if err := r.open(ctx, n); err != nil {
			return err
		}
		passed = append(passed, n)
		kid := n.kids[first]
		if kid == nil || more && kid.mode != modeDir {
			return nil
		}
		if !more {
			delete(n.kids, first)
			for _, p := range passed {
				p.changed = true
			}
			return nil
		}
		n, path = kid, rest
	}
}

// lay puts e at its path, making the directories above it.
func (r *Repo) lay(ctx context.Context, n *node, e Entry) error {
	path := e.Path
	for {
		if err := r.open(ctx, n); err != nil {
			return err
		}
		n.changed = true
		first, rest, more := strings.Cut(path, "/")
		kid := n.kids[first]
		if !more {
			if kid != nil && kid.mode == modeDir && e.Mode != modeDir && kid.anyLaid() {
				return badf("path %q is both a file and a directory", e.Path)
			}
			n.kids[first] = &node{item: item{first, e.Mode, e.Blob}, laid: true}
			return nil
		}
		if kid == nil {
			kid = &node{item: item{name: first, mode: modeDir}}
			n.kids[first] = kid
		}
		if kid.mode != modeDir {
			what := "file"
			if kid.mode == modeLink {
				what = "link"
			}
			return badf("path %q passes the %s %q", e.Path, what, strings.TrimSuffix(e.Path, "/"+rest))
		}
		n, path = kid, rest
	}
}

func (n *node) anyLaid() bool {
	if n.laid {
		return true
	}
	for _, kid := range n.kids {
		if kid.anyLaid() {
			return true
		}
	}
	return false
}

// trees adds the directories that changed, the innermost first, so that a tree is stored only after all that it names. n's own comes last.
func (n *node) trees(out []rawObject) []rawObject {
	items := make([]item, 0, len(n.kids))
	for _, kid := range n.kids {
		if kid.mode == modeDir && kid.changed {
			before := len(out)
			out = kid.trees(out)
			if kid.id = out[len(out)-1].id; kid.id == emptyTree {
				out = out[:before]
				continue
			}
		}
		items = append(items, kid.item)
	}
	return append(out, newObject("tree", formatTree(items)))
}
