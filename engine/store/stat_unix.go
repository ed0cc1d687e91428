//go:build linux || darwin

package store

import (
	"crypto/sha256"
	"os"

	"golang.org/x/sys/unix"

	"pbuild/engine/digest"
)

// A dirHandle is an open directory, in which names are looked up without walking its path again.
type dirHandle struct{ fd int }

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

func openDir(path string) (dirHandle, error) {
	return openDirAt(unix.AT_FDCWD, path)
}

// open opens a directory below d; "" is d itself.
func (d dirHandle) open(name string) (dirHandle, error) {
	if name == "" {
		name = "."
	}
	return openDirAt(d.fd, name)
}

func openDirAt(at int, path string) (dirHandle, error) {
	fd, err := again(func() (int, error) { return unix.Openat(at, path, dirFlags, 0) })
	if err != nil {
		return dirHandle{-1}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return dirHandle{fd}, nil
}

func (d dirHandle) close() { unix.Close(d.fd) }

// stat does not follow a link.
func (d dirHandle) stat(name string) (stat, fileKind, error) {
	var st unix.Stat_t
	_, err := again(func() (int, error) { return 0, fstatat(d.fd, name, &st) })
	if err != nil {
		return stat{}, kindAbsent, err
	}
	return toStat(&st), toKind(uint32(st.Mode)), nil
}

func toStat(st *unix.Stat_t) stat {
	return stat{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
}

// statPath follows links: what was read through one is what counts.
func statPath(path string) (stat, error) {
	var st unix.Stat_t
	if _, err := again(func() (int, error) { return 0, unix.Stat(path, &st) }); err != nil {
		return stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return toStat(&st), nil
}

func toKind(mode uint32) fileKind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		if mode&unix.S_IXUSR != 0 {
			return kindExecutable
		}
		return kindRegular
	case unix.S_IFLNK:
		return kindLink
	}
	return kindOther
}

// hash reads the regular file name, and returns also its stat afterwards.
func (d dirHandle) hash(name string, size int64, buf []byte) (dig digest.Digest, after stat, err error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := again(func() (int, error) { return unix.Openat(d.fd, name, flags, 0) })
	if err != nil {
		return dig, after, err
	}
	defer unix.Close(fd)
	dig, err = hashFD(fd, size, buf)
	if err != nil {
		return dig, after, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return dig, after, err
	}
	return dig, toStat(&st), nil
}

// hashFD hashes what fd holds; a file of less than a buffer costs one read and no allocation.
func hashFD(fd int, size int64, buf []byte) (digest.Digest, error) {
	n, err := again(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return digest.Digest{}, err
	}
	if int64(n) == size && n < len(buf) { // a file that has grown since shows in its stat afterwards
		return digest.Of(buf[:n]), nil
	}
	h := sha256.New()
	for n > 0 {
		h.Write(buf[:n])
		if n, err = again(func() (int, error) { return unix.Read(fd, buf) }); err != nil {
			return digest.Digest{}, err
		}
	}
	return digest.Digest(h.Sum(nil)), nil
}

func (d dirHandle) readLink(name string) (string, error) {
	buf := make([]byte, 4096) // PATH_MAX
	n, err := again(func() (int, error) { return unix.Readlinkat(d.fd, name, buf) })
	return string(buf[:max(n, 0)]), err
}

// again repeats a system call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
