package digest

import (
	"io/fs"
	"path/filepath"
	"slices"
)

// OfListing is the digest of a directory's listing: the names that match one of patterns, all if there is none, and which of them are directories.
func OfListing(list []fs.DirEntry, patterns []string) Digest {
	kept := make([]string, 0, len(list))
	for _, entry := range list {
		name := entry.Name()
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := filepath.Match(p, name); return ok }) {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		kept = append(kept, name)
	}
	var e Encoder
	e.Set("names", kept)
	return e.Sum()
}
