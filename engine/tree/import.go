package tree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// Import makes a tree of the files below dir that keep accepts (nil: all; .git never). Empty directories are dropped; modes become 0644, 0755 or link.
// Sockets, devices and pipes are left out.
func (r *Repo) Import(ctx context.Context, dir string, keep func(path string, isDir bool) bool) (digest.Digest, error) {
	files, err := walk(dir, func(rel string, isDir bool) (bool, error) { return keep == nil || keep(rel, isDir), nil })
	if err == nil {
		var id digest.Digest
		if id, err = r.importFiles(ctx, dir, files, nil); err == nil {
			return id, nil
		}
	}
	return digest.Digest{}, fmt.Errorf("tree: import %s: %w", dir, err)
}

// DirFiles lists the files of a directory as a `dir` source takes them, sorted by path, each with the SHA-256 of its content (of a link: of its target).
// Left out are .git and .pbuild at any depth, what the .gitignore files in the directory say, and what ignore says: patterns as in a
// .gitignore at its root, which outrank the files.
func DirFiles(dir string, ignore []string) ([]Entry, error) {
	files, err := walk(dir, ignored(dir, ignore))
	if err != nil {
		return nil, fmt.Errorf("tree: list %s: %w", dir, err)
	}
	for i := range files {
		h := sha256.New()
		if err := content(dir, files[i], func(_ int64, rd io.Reader) error { _, err := io.Copy(h, rd); return err }); err != nil {
			return nil, fmt.Errorf("tree: read %s: %w", dir, err)
		}
		files[i].Blob = digest.Digest(h.Sum(nil))
	}
	return files, nil
}

// DirTakes says whether a `dir` source would have the file of a path in it, whether or not that is there.
func DirTakes(dir string, ignore []string, file string) (bool, error) {
	keep := ignored(dir, ignore)
	for i := range file {
		if file[i] != '/' {
			continue
		}
		if ok, err := keep(file[:i], true); !ok || err != nil {
			return false, err
		}
	}
	return keep(file, false)
}

// ImportDir makes the tree of a `dir` source, and returns with it the list that DirFiles gives for the very bytes that were stored.
func (r *Repo) ImportDir(ctx context.Context, dir string, ignore []string) (tree digest.Digest, files []Entry, err error) {
	list, err := walk(dir, ignored(dir, ignore))
	if err == nil {
		sums := make([]digest.Digest, len(list))
		if tree, err = r.importFiles(ctx, dir, list, sums); err == nil {
			for i := range list {
				list[i].Blob = sums[i]
			}
			return tree, list, nil
		}
	}
	return tree, nil, fmt.Errorf("tree: import %s: %w", dir, err)
}

// ignored is the keep function of a `dir` source. It is called for a directory before what is in it.
func ignored(dir string, ignore []string) func(string, bool) (bool, error) {
	var own ignoreFile
	for _, line := range ignore {
		if p, ok := parsePattern(line); ok {
			own.patterns = append(own.patterns, p)
		}
	}
	files := map[string]*ignoreFile{} // by directory; nil where it has none
	read := func(rel string) error {
		name := filepath.Join(dir, filepath.FromSlash(rel), ".gitignore")
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			f := parseIgnore(rel, text)
			files[rel] = &f
		}
		return err
	}
	first := true
	return func(rel string, isDir bool) (bool, error) {
		if first {
			first = false
			if err := read(""); err != nil {
				return false, err
			}
		}
		base := path.Base(rel)
		if base == ".pbuild" || ignoredBy(&own, files, rel, isDir) {
			return false, nil
		}
		if isDir {
			return true, read(rel)
		}
		return true, nil
	}
}

// parent is the directory of a path; "" is the root.
func parent(p string) string { return p[:max(strings.LastIndexByte(p, '/'), 0)] }

func ignoredBy(own *ignoreFile, files map[string]*ignoreFile, rel string, isDir bool) bool {
	if no, ok := own.match(rel, isDir); ok {
		return no
	}
	for dir := rel; dir != ""; {
		dir = parent(dir)
		if f := files[dir]; f != nil {
			if no, ok := f.match(rel, isDir); ok {
				return no
			}
		}
	}
	return false
}

// walk lists the files and links below dir that keep accepts, sorted by path.
func walk(dir string, keep func(rel string, isDir bool) (bool, error)) ([]Entry, error) {
	var out []Entry
	// A link at dir itself is followed, none below it is.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(real, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == real {
			return err
		}
		rel, err := filepath.Rel(real, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		ok := d.Name() != ".git"
		if ok {
			ok, err = keep(rel, d.IsDir())
		}
		if err == nil && !ok && d.IsDir() {
			return fs.SkipDir
		}
		if err != nil || !ok || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := uint32(modeFile)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			mode = modeLink
		case !info.Mode().IsRegular():
			return nil
		case info.Mode()&0o100 != 0:
			mode = modeExecutable
		}
		out = append(out, Entry{Path: rel, Mode: mode})
		return checkPath(rel)
	})
	if err == nil && len(out) == 0 {
		var info fs.FileInfo
		if info, err = os.Stat(real); err == nil && !info.IsDir() {
			err = badf("%s is not a directory", dir)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return out, err
}

// content calls f with the size and the content of a file, or the target of a link.
func content(dir string, e Entry, f func(int64, io.Reader) error) error {
	name := filepath.Join(dir, filepath.FromSlash(e.Path))
	if e.Mode == modeLink {
		target, err := os.Readlink(name)
		if err != nil {
			return err
		}
		return f(int64(len(target)), bytes.NewReader([]byte(target)))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return f(info.Size(), file)
}

// importFiles stores files of dir and makes their tree. Where sums is not nil it receives the SHA-256 of each content.
func (r *Repo) importFiles(ctx context.Context, dir string, files []Entry, sums []digest.Digest) (digest.Digest, error) {
	im := r.importer(ctx)
	defer im.abort()
	stored := slices.Clone(files)
	for i, e := range files {
		err := content(dir, e, func(size int64, rd io.Reader) error {
			var h hash.Hash
			if sums != nil {
				h = sha256.New()
				rd = io.TeeReader(rd, h)
			}
			var err error
			stored[i].Blob, err = im.blob(size, rd)
			if sums != nil {
				sums[i] = digest.Digest(h.Sum(nil))
			}
			return err
		})
		if errors.Is(err, errShort) || errors.Is(err, errLong) {
			err = fmt.Errorf("%s changed while it was read", e.Path)
		}
		if err != nil {
			return digest.Digest{}, err
		}
	}
	if err := im.finish(); err != nil {
		return digest.Digest{}, err
	}
	return r.change(ctx, emptyTree, stored)
}
