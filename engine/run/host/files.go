package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// removeAll removes path and all below it, read-only directories too (Go's module cache is made of them).
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	openAll(path)
	return os.RemoveAll(path)
}

// openAll makes path and every directory below it writable, before it reads each.
func openAll(path string) {
	if fi, err := os.Lstat(path); err != nil || !fi.IsDir() {
		return
	}
	os.Chmod(path, 0o700)
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.IsDir() {
			openAll(filepath.Join(path, e.Name()))
		}
	}
}

// openUp lets this user read a file or directory that a command has closed; what shows of it is fi still. In a sandbox a command closes nothing to itself
// alone: its first process has root's rights there, and the runner has not.
func openUp(path string, fi fs.FileInfo) {
	want := fs.FileMode(0o400)
	if fi.IsDir() {
		want = 0o700
	}
	if fi.Mode().Perm()&want != want && fi.Mode()&fs.ModeSymlink == 0 && os.Geteuid() != 0 {
		os.Chmod(path, fi.Mode().Perm()|want)
	}
}

// openWay opens up root and the directories between it and root/path.
func openWay(root, path string) {
	dir := root
	for _, part := range strings.Split(path, "/") {
		fi, err := os.Lstat(dir)
		if err != nil || !fi.IsDir() {
			return
		}
		openUp(dir, fi)
		dir += "/" + part
	}
}

// rename moves a file or directory. A directory changes with its parent, and so must be one that this user may write to.
func rename(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	fi, statErr := os.Lstat(from)
	if statErr != nil || !fi.IsDir() {
		return err
	}
	openUp(from, fi)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return os.Chmod(to, fi.Mode().Perm())
}

// makeDir makes a directory of which a command sees the mode: that must not depend on the umask of whoever runs it.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// makeParents makes every directory between root and root/path. A link or file in the place of one is removed, never followed:
// whoever left it there would choose where the file lands.
func makeParents(root, path string) error {
	dir := root
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		dir += "/" + part
		fi, err := os.Lstat(dir)
		if err == nil && fi.IsDir() {
			continue
		}
		if err == nil {
			if err = os.Remove(dir); err != nil {
				return err
			}
		}
		if err = os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// throughLink says whether a component of path above its last is something other than a directory, or is not there.
func throughLink(root, path string) bool {
	dir := root
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		dir += "/" + part
		if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
			return true
		}
	}
	return false
}

// merge applies layers, lowest first, to the directory dst: what an overlay would show, as plain files. Links are copied as links; nothing is hard-linked,
// or a command could write into the state it started from.
func merge(dst string, lowestFirst []string) error {
	if err := os.MkdirAll(dst, 0o755); err != nil {
		return err
	}
	for _, layer := range lowestFirst {
		fi, err := os.Lstat(layer)
		if err == nil {
			openUp(layer, fi)
			err = mergeDir(dst, layer)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", layer, err)
		}
	}
	return nil
}

func mergeDir(dst, src string) error {
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		err := mergeOne(filepath.Join(dst, e.Name()), filepath.Join(src, e.Name()), e)
		if err != nil && !nameless(err) {
			return err
		}
	}
	return nil
}

func mergeOne(to, from string, e fs.DirEntry) error {
	fi, err := e.Info()
	switch {
	case err != nil:
		return err
	case isWhiteout(fi):
		return removeAll(to)
	case fi.IsDir():
		return mergeSubdir(to, from, fi)
	}
	return copyFile(to, from, fi)
}

func mergeSubdir(to, from string, fi fs.FileInfo) error {
	if old, err := os.Lstat(to); err == nil && (!old.IsDir() || isOpaque(from)) {
		if err := removeAll(to); err != nil {
			return err
		}
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(to, 0o700); err != nil { // a lower layer may have made it read-only
		return err
	}
	openUp(from, fi)
	if err := mergeDir(to, from); err != nil {
		return err
	}
	if err := os.Chmod(to, fi.Mode().Perm()|fi.Mode()&(fs.ModeSetgid|fs.ModeSticky)); err != nil {
		return err
	}
	return os.Chtimes(to, fi.ModTime(), fi.ModTime())
}

// copyFile copies a regular file or a link, with its mode and times, by sharing blocks where the file system can. Sockets, pipes and devices are left out.
func copyFile(to, from string, fi fs.FileInfo) error {
	if old, err := os.Lstat(to); err == nil {
		if old.IsDir() {
			err = removeAll(to)
		} else {
			err = os.Remove(to)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case !fi.Mode().IsRegular():
		return nil
	}
	openUp(from, fi)
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if reflink(out, in) != nil {
		err = copyData(out, in, fi.Size())
	}
	if err == nil {
		err = out.Chmod(fi.Mode().Perm())
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chtimes(to, fi.ModTime(), fi.ModTime())
	}
	return err
}

// diskUse is the bytes of disk that the files below dir hold.
func diskUse(dir string) int64 {
	var n int64
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if fi, err := d.Info(); err == nil {
			n += allocated(fi)
		}
		return nil
	})
	return n
}
