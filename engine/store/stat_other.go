//go:build !linux && !darwin

package store

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"pbuild/engine/digest"
)

// A dirHandle is a directory by its path. There is no inode nor status-change time here: size and mtime stand for a file's content.
type dirHandle struct{ path string }

func openDir(path string) (dirHandle, error) { return dirHandle{path}, nil }

// open opens a directory below d; "" is d itself.
func (d dirHandle) open(name string) (dirHandle, error) { return dirHandle{d.join(name)}, nil }

func (d dirHandle) join(name string) string {
	name = filepath.FromSlash(name)
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.path, name)
}

func (d dirHandle) close() {}

// stat does not follow a link.
func (d dirHandle) stat(name string) (stat, fileKind, error) {
	info, err := os.Lstat(d.join(name))
	if err != nil {
		return stat{}, kindAbsent, err
	}
	return toStat(info), toKind(info.Mode()), nil
}

func toStat(info fs.FileInfo) stat {
	return stat{size: info.Size(), mtime: info.ModTime().UnixNano()}
}

// statPath follows links: what was read through one is what counts.
func statPath(path string) (stat, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stat{}, err
	}
	return toStat(info), nil
}

func toKind(mode fs.FileMode) fileKind {
	switch {
	case mode.IsRegular() && mode&0o100 != 0:
		return kindExecutable
	case mode.IsRegular():
		return kindRegular
	case mode&fs.ModeSymlink != 0:
		return kindLink
	}
	return kindOther
}

// hash reads the regular file name, and returns also its stat afterwards.
func (d dirHandle) hash(name string, _ int64, buf []byte) (dig digest.Digest, after stat, err error) {
	f, err := os.Open(d.join(name))
	if err != nil {
		return dig, after, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, f, buf); err != nil {
		return dig, after, err
	}
	info, err := f.Stat()
	if err != nil {
		return dig, after, err
	}
	return digest.Digest(h.Sum(nil)), toStat(info), nil
}

func (d dirHandle) readLink(name string) (string, error) { return os.Readlink(d.join(name)) }
