package tree

import (
	"context"
	"path"

	"pbuild/engine/digest"
)

// Holdable parts edits into those that a tree can hold, and the paths of those that none can, each with the reason: Edit refuses all of a candidate for one
// of these, and it is not for a candidate to choose that it cannot be judged.
func Holdable(edits []Edit) (kept []Edit, refused map[string]string) {
	refused = map[string]string{}
	for _, e := range edits {
		if err := checkEdit(e); err != nil {
			refused[e.Path] = err.Error()
			continue
		}
		kept = append(kept, e)
	}
	return kept, refused
}

// Unignored returns the edits without those that add files which the .gitignore files of base leave out of commits: what a build or an editor dropped there.
// ignored are the paths of these, in the order of the edits.
func (r *Repo) Unignored(ctx context.Context, base digest.Digest, edits []Edit) (kept []Edit, ignored []string, err error) {
	entries, err := r.Entries(ctx, base)
	if err != nil {
		return nil, nil, err
	}
	tracked := make(map[string]bool, len(entries))
	rules := map[string]*ignoreFile{} // by directory
	for _, e := range entries {
		tracked[e.Path] = true
		if path.Base(e.Path) != ".gitignore" {
			continue
		}
		content, err := r.Read(ctx, e.Blob)
		if err != nil {
			return nil, nil, err
		}
		f := parseIgnore(parent(e.Path), content)
		rules[f.dir] = &f
	}
	for _, e := range edits {
		if tracked[e.Path] || e.Mode == 0 || !leftOut(rules, e.Path) {
			kept = append(kept, e)
		} else {
			ignored = append(ignored, e.Path)
		}
	}
	return kept, ignored, nil
}

// leftOut says whether the rules leave out a file: by itself or by a directory above it.
func leftOut(rules map[string]*ignoreFile, file string) bool {
	for i := range file {
		if file[i] == '/' && ignoredBy(&ignoreFile{}, rules, file[:i], true) {
			return true
		}
	}
	return ignoredBy(&ignoreFile{}, rules, file, false)
}
