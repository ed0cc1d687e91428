package hcl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
)

// A reader reads files below the workspace's directory and remembers what it looked at. Each file is read once, so that an
// expression evaluated twice cannot see two contents. It is safe for concurrent use.
type reader struct {
	dir string

	mu    sync.Mutex
	files map[string]*file
	reads map[string]decl.Read
}

// A file is what was read of one file.
type file struct {
	bytes  []byte
	digest digest.Digest
	err    error
}

func newReader(dir string) *reader {
	return &reader{dir: dir, files: map[string]*file{}, reads: map[string]decl.Read{}}
}

// abs is a path of the language, which is relative to the workspace.
func (r *reader) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.dir, filepath.FromSlash(path))
}

// short is the path that diagnostics show: relative to the workspace if below it.
func (r *reader) short(path string) string {
	if rel, err := filepath.Rel(r.dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// read returns a file's content.
func (r *reader) read(path string) *file {
	path = r.abs(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.files[path]; f != nil {
		return f
	}
	f := &file{}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f.err = &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")} // a device might never end
	} else {
		f.bytes, f.err = os.ReadFile(path)
	}
	if f.err == nil {
		f.digest = digest.Of(f.bytes)
	} else if pathErr := (*fs.PathError)(nil); errors.As(f.err, &pathErr) {
		f.err = fmt.Errorf("%s: %w", r.short(path), pathErr.Err)
	}
	r.files[path] = f
	r.reads[path] = decl.Read{Path: path, Absent: errors.Is(f.err, fs.ErrNotExist), Digest: f.digest}
	return f
}

// forget drops the content of a large file that something else now holds.
func (r *reader) forget(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.files, r.abs(path))
}

// list returns the entries of a directory, sorted by name. Only names that match one of the patterns will count when it is asked whether the listing
// has changed; without patterns, all.
func (r *reader) list(path string, match ...string) ([]fs.DirEntry, error) {
	path = r.abs(path)
	entries, err := os.ReadDir(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.reads[path]; ok && before.Dir && before.Match == nil {
		match = nil
	}
	read := decl.Read{Path: path, Dir: true, Match: match, Absent: errors.Is(err, fs.ErrNotExist)}
	if err == nil {
		read.Digest = digest.OfListing(entries, match)
	}
	r.reads[path] = read
	return entries, err
}

// all is everything that was looked at, sorted by path.
func (r *reader) all() []decl.Read {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.reads), func(a, b decl.Read) int { return strings.Compare(a.Path, b.Path) })
}

// glob returns the regular files below base that match pattern, sorted, relative to base. It looks only into directories that can hold a match,
// and never into .git or .pbuild.
func (r *reader) glob(base, pattern string) ([]string, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("the pattern %q is malformed", pattern)
	}
	if !filepath.IsLocal(filepath.FromSlash(pattern)) {
		return nil, fmt.Errorf("the pattern %q leaves its directory", pattern)
	}
	segments := strings.Split(pattern, "/")
	for i, s := range segments {
		if strings.Count(s, "{") != strings.Count(s, "}") { // alternatives that hold directories
			segments = append(segments[:i], "**")
			break
		}
	}
	var found []string
	err := r.walk(base, "", segments, pattern, &found)
	return found, err
}

// walk looks into rel, whose entries the first of the pattern's segments in left are to match; after a "**" any depth may.
func (r *reader) walk(base, rel string, left []string, pattern string, found *[]string) error {
	entries, err := r.list(filepath.Join(base, filepath.FromSlash(rel)))
	if err != nil {
		return fmt.Errorf("%s: %w", r.short(r.abs(filepath.Join(base, rel))), errors.Unwrap(err))
	}
	for _, e := range entries {
		name := e.Name()
		path := strings.TrimPrefix(rel+"/"+name, "/")
		if !e.IsDir() {
			if ok, _ := doublestar.Match(pattern, path); ok && e.Type().IsRegular() {
				*found = append(*found, path)
			}
			continue
		}
		if name == ".git" || name == ".pbuild" {
			continue
		}
		deeper := left
		if left[0] != "**" {
			if ok, _ := doublestar.Match(left[0], name); !ok || len(left) == 1 {
				continue
			}
			deeper = left[1:]
		}
		if err := r.walk(base, path, deeper, pattern, found); err != nil {
			return err
		}
	}
	return nil
}
