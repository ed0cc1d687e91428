package tree

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// Entries lists a tree, sorted by path.
func (r *Repo) Entries(ctx context.Context, tree digest.Digest) ([]Entry, error) {
	out, err := r.entries(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("tree: list %s: %w", tree, err)
	}
	return out, nil
}

func (r *Repo) entries(ctx context.Context, tree digest.Digest) ([]Entry, error) {
	var out []Entry
	prefixes, ids := []string{""}, []digest.Digest{tree}
	for len(ids) > 0 {
		level, err := r.items(ctx, ids)
		if err != nil {
			return nil, err
		}
		var nextPrefixes []string
		var nextIDs []digest.Digest
		for i, items := range level {
			for _, it := range items {
				if it.mode == modeDir {
					nextPrefixes, nextIDs = append(nextPrefixes, prefixes[i]+it.name+"/"), append(nextIDs, it.id)
				} else {
					out = append(out, Entry{prefixes[i] + it.name, it.mode, it.id})
				}
			}
		}
		prefixes, ids = nextPrefixes, nextIDs
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// Diff lists the paths that differ between two trees, sorted, each as it is in b (Mode 0: it is not there). No rename detection.
func (r *Repo) Diff(ctx context.Context, a, b digest.Digest) ([]Entry, error) {
	out, err := r.diff(ctx, a, b)
	if err != nil {
		return nil, fmt.Errorf("tree: compare %s with %s: %w", a, b, err)
	}
	return out, nil
}

// A pair is a directory in both trees, or in one: then the other id is zero.
type pair struct {
	prefix string
	a, b   digest.Digest
}

func (r *Repo) diff(ctx context.Context, a, b digest.Digest) ([]Entry, error) {
	var out []Entry
	level := []pair{{"", a, b}}
	for len(level) > 0 {
		var ids []digest.Digest
		for _, p := range level {
			for _, id := range []digest.Digest{p.a, p.b} {
				if !id.IsZero() {
					ids = append(ids, id)
				}
			}
		}
		read, err := r.items(ctx, ids)
		if err != nil {
			return nil, err
		}
		take := func(id digest.Digest) (items []item) {
			if !id.IsZero() {
				items, read = read[0], read[1:]
			}
			return items
		}
		var next []pair
		for _, p := range level {
			inA, inB := take(p.a), take(p.b)
			if p.a != p.b {
				out, next = diffDirs(out, next, p.prefix, inA, inB)
			}
		}
		level = next
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Mode, b.Mode)) })
	return out, nil
}

// diffDirs compares one directory; subdirectories that differ are added to next.
func diffDirs(out []Entry, next []pair, prefix string, inA, inB []item) ([]Entry, []pair) {
	old := make(map[string]item, len(inA))
	for _, it := range inA {
		old[it.name] = it
	}
	seen := make(map[string]bool, len(inB))
	for _, b := range inB {
		seen[b.name] = true
		a := old[b.name]
		switch {
		case a == b:
		case b.mode == modeDir && a.mode == modeDir:
			next = append(next, pair{prefix + b.name + "/", a.id, b.id})
		case b.mode == modeDir:
			if a.mode != 0 {
				out = append(out, Entry{Path: prefix + b.name})
			}
			next = append(next, pair{prefix: prefix + b.name + "/", b: b.id})
		default:
			if a.mode == modeDir {
				next = append(next, pair{prefix: prefix + b.name + "/", a: a.id})
			}
			out = append(out, Entry{prefix + b.name, b.mode, b.id})
		}
	}
	for _, a := range inA {
		switch {
		case seen[a.name]:
		case a.mode == modeDir:
			next = append(next, pair{prefix: prefix + a.name + "/", a: a.id})
		default:
			out = append(out, Entry{Path: prefix + a.name})
		}
	}
	return out, next
}

// Read returns the content of a blob.
func (r *Repo) Read(ctx context.Context, blob digest.Digest) ([]byte, error) {
	content, err := r.readAll(ctx, []digest.Digest{blob})
	if err != nil {
		return nil, fmt.Errorf("tree: read %s: %w", blob, err)
	}
	return content[0], nil
}

// blobs are those of entries, in order.
func blobs(entries []Entry) []digest.Digest {
	out := make([]digest.Digest, len(entries))
	for i, e := range entries {
		out[i] = e.Blob
	}
	return out
}

// readAll returns the contents of blobs, in order.
func (r *Repo) readAll(ctx context.Context, blobs []digest.Digest) ([][]byte, error) {
	ask, err := names(blobs)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(blobs))
	err = r.objects.each(ctx, ask, func(i int, o object) error {
		if o.kind != "blob" {
			return fmt.Errorf("object %s is %s, not a blob", blobs[i], o.kind)
		}
		out[i] = make([]byte, o.size)
		_, err := io.ReadFull(o.body, out[i])
		return err
	})
	return out, err
}

// ReadFile returns the content of a path, or the target of a link, with ok false if the tree has none.
func (r *Repo) ReadFile(ctx context.Context, tree digest.Digest, path string) (content []byte, ok bool, err error) {
	it, err := r.find(ctx, tree, path)
	if err != nil {
		return nil, false, fmt.Errorf("tree: read %s of %s: %w", path, tree, err)
	}
	if it.mode == 0 || it.mode == modeDir || it.mode == modeSubmodule {
		return nil, false, nil
	}
	content, err = r.Read(ctx, it.id)
	return content, err == nil, err
}

// find returns what stands at a path, a directory too; mode 0 is nothing.
func (r *Repo) find(ctx context.Context, tree digest.Digest, name string) (item, error) {
	at := item{mode: modeDir, id: tree}
	if name == "" || path.Clean(name) == "." {
		return at, nil
	}
	for _, part := range strings.Split(path.Clean(name), "/") {
		if at.mode != modeDir {
			return item{}, nil
		}
		read, err := r.items(ctx, []digest.Digest{at.id})
		if err != nil {
			return item{}, err
		}
		i := slices.IndexFunc(read[0], func(it item) bool { return it.name == part })
		if i < 0 {
			return item{}, nil
		}
		at = read[0][i]
	}
	return at, nil
}
