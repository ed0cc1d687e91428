package tree

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// A pointer is a few lines that stand where git-lfs would put a large file.
const (
	pointerStart   = "version https://git-lfs.github.com/spec/v1\n"
	maxPointerSize = 1024
)

// CheckLFS returns a *Bad that names the files of a tree which hold git-lfs pointers, not content. Only a tree whose attributes ask for the
// filter is looked at: pointers may well be what another's tests are about.
func (r *Repo) CheckLFS(ctx context.Context, tree digest.Digest) error {
	if err := r.checkLFS(ctx, tree, tree); err != nil {
		return fmt.Errorf("tree: look for LFS pointers in %s: %w", tree, err)
	}
	return nil
}

// checkLFS looks at sub, a directory of root: attributes above it count too.
func (r *Repo) checkLFS(ctx context.Context, root, sub digest.Digest) error {
	asked, err := r.asksForLFS(ctx, root)
	if err != nil || !asked {
		return err
	}
	entries, err := r.entries(ctx, sub)
	if err != nil {
		return err
	}
	var small []Entry
	ask, err := names(blobs(entries))
	if err != nil {
		return err
	}
	err = r.infos.each(ctx, ask, func(i int, o object) error {
		if o.size > int64(len(pointerStart)) && o.size < maxPointerSize && entries[i].Mode != modeLink {
			small = append(small, entries[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	contents, err := r.readAll(ctx, blobs(small))
	if err != nil {
		return err
	}
	var pointers []string
	for i, c := range contents {
		if bytes.HasPrefix(c, []byte(pointerStart)) {
			pointers = append(pointers, small[i].Path)
		}
	}
	if pointers == nil {
		return nil
	}
	more := ""
	if n := len(pointers) - 3; n > 0 {
		pointers, more = pointers[:3], fmt.Sprintf(" and %d more", n)
	}
	return badf("%s%s: a git-lfs pointer stands where the content should; pbuild does not fetch LFS content, so give a source that holds the files themselves", strings.Join(pointers, ", "), more)
}

func (r *Repo) asksForLFS(ctx context.Context, tree digest.Digest) (bool, error) {
	entries, err := r.entries(ctx, tree)
	if err != nil {
		return false, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return path.Base(e.Path) != ".gitattributes" })
	contents, err := r.readAll(ctx, blobs(entries))
	for _, c := range contents {
		if bytes.Contains(c, []byte("filter=lfs")) {
			return true, err
		}
	}
	return false, err
}
