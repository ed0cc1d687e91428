package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/bench/decl"
	"pbuild/bench/formats"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// A lowerHost answers what lowering asks of this machine (lower.Host), and remembers what it looked at, so that a later plan can tell whether
// anything has changed.
type lowerHost struct {
	dir    string
	ws     *decl.Workspace
	probes *probes
	listed *listings

	mu    sync.Mutex
	read  []decl.Read
	files map[string][]byte
}

func newLowerHost(ctx context.Context, a *app, ws *decl.Workspace, noProbe bool) *lowerHost {
	h := &lowerHost{dir: ws.Dir, ws: ws, files: map[string][]byte{}}
	h.probes = openProbes(ctx, a.cfg.Clock, filepath.Join(ws.Dir, stateDir), a.getenv("PATH"), noProbe)
	h.listed = &listings{dir: ws.Dir, dirs: map[string][]fs.DirEntry{}, looked: map[string]decl.Read{}}
	return h
}

// save keeps what the probes printed.
func (h *lowerHost) save() error { return h.probes.save() }

func (h *lowerHost) Probe(name string, argv []string, env map[string]string, path string) (digest.Digest, error) {
	return h.probes.identity(name, argv, env, path)
}

func (h *lowerHost) Dir(path string, ignore []string) ([]task.FileInput, error) {
	listed, err := tree.DirFiles(path, ignore)
	if err != nil {
		return nil, err
	}
	files := make([]task.FileInput, len(listed))
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, f := range listed {
		files[i] = task.FileInput{Path: f.Path, Mode: f.Mode, Digest: f.Blob}
		h.read = append(h.read, decl.Read{Path: filepath.Join(path, filepath.FromSlash(f.Path)), Digest: f.Blob})
	}
	// A file may come to a directory that holds none now.
	return files, filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if hiddenPath(d.Name()) {
			return filepath.SkipDir
		}
		list, err := os.ReadDir(p)
		h.read = append(h.read, decl.Read{Path: p, Dir: true, Digest: digest.OfListing(list, nil)})
		return err
	})
}

func (h *lowerHost) DirTakes(dir string, ignore []string, file string) (bool, error) {
	return tree.DirTakes(dir, ignore, file)
}

// File reads a file once.
func (h *lowerHost) File(path string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b, ok := h.files[path]; ok {
		return b, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		h.read = append(h.read, decl.Read{Path: path, Absent: true})
		return nil, err
	}
	h.files[path] = b
	h.read = append(h.read, decl.Read{Path: path, Digest: digest.Of(b)})
	return b, nil
}

func (h *lowerHost) Glob(patterns []string) ([]string, error) {
	var out []string
	for _, p := range patterns {
		found, err := doublestar.Glob(h.listed, path.Clean(p), doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", p, err)
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Predictions reads a file of candidate patches; where it holds mistakes, all of them are in the error, a line each.
func (h *lowerHost) Predictions(path string) (map[string]kind.Data, error) {
	b, err := h.File(path)
	if err != nil {
		return nil, err
	}
	parsed, ds := formats.ParsePredictions(path, b)
	if ds.HasErrors() {
		var all []error
		for _, d := range ds.Sort() {
			all = append(all, d)
		}
		return nil, errors.Join(all...)
	}
	out := make(map[string]kind.Data, len(parsed))
	for _, p := range parsed {
		out[p.Instance] = kind.Data{Digest: digest.Of(p.Patch), Bytes: p.Patch}
	}
	return out, nil
}

func (h *lowerHost) Repository(url string) string {
	return (&tree.Git{URL: url, Dir: h.dir}).Local()
}

func (h *lowerHost) Exists(path string) bool {
	_, err := os.Stat(path)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.read = append(h.read, decl.Read{Path: path, Absent: true})
		return false
	}
	read := decl.Read{Path: filepath.Dir(path), Dir: true, Match: []string{filepath.Base(path)}}
	if strings.ContainsAny(read.Match[0], `*?[\`) { // it is no pattern: any change of the listing will do
		read.Match = nil
	}
	h.read = append(h.read, read)
	return true
}

func (h *lowerHost) Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func (h *lowerHost) Secret(name string) string { return h.ws.Secrets[name] }

// reads is everything that lowering looked at.
func (h *lowerHost) reads() []decl.Read {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.read, h.listed.reads(), h.probes.reads())
}

// A listings is the workspace's directory as patterns see it: each directory is listed once, and what pbuild and git keep there is not seen.
type listings struct {
	dir    string
	mu     sync.Mutex
	dirs   map[string][]fs.DirEntry
	looked map[string]decl.Read
}

func (l *listings) Open(name string) (fs.File, error) { return os.Open(l.path(name)) }

// Stat also lists a directory, and remembers that there is none: a file that a pattern would match may come to either.
func (l *listings) Stat(name string) (fs.FileInfo, error) {
	if hiddenPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	info, err := os.Lstat(l.path(name))
	if err != nil || info.IsDir() {
		l.ReadDir(name)
	}
	return info, err
}

func (l *listings) path(name string) string { return filepath.Join(l.dir, filepath.FromSlash(name)) }

func (l *listings) ReadDir(name string) ([]fs.DirEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list, ok := l.dirs[name]; ok {
		return list, nil
	}
	full := l.path(name)
	list, err := os.ReadDir(full)
	if err != nil {
		l.missed(name)
		return nil, err
	}
	l.looked[name] = decl.Read{Path: full, Dir: true, Digest: digest.OfListing(list, nil)}
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool { return hiddenPath(e.Name()) })
	l.dirs[name] = list
	return list, nil
}

// missed remembers that there is no directory of a name: because there is nothing, or by how the directory above lists it. l.mu is held.
func (l *listings) missed(name string) {
	full := l.path(name)
	if fi, err := os.Lstat(full); err == nil && fi.Mode()&fs.ModeSymlink == 0 && name != "." {
		above := filepath.Dir(full)
		if list, err := os.ReadDir(above); err == nil {
			it := []string{literal.Replace(filepath.Base(full))}
			l.looked[name] = decl.Read{Path: above, Dir: true, Match: it, Digest: digest.OfListing(list, it)}
			return
		}
	}
	l.looked[name] = decl.Read{Path: full, Absent: true} // of a link that leads to none, that never holds
}

// literal makes a name a pattern of filepath.Match that matches it alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

func hiddenPath(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == stateDir || first == ".git"
}

func (l *listings) reads() []decl.Read {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.looked))
}
