//go:build amd64 || arm64

package store

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fstatat is that of unix without a heap object for the name: a null plan calls it for every file of the workspace. Elsewhere than on these processors
// the kernel may lack the call, or lay its answer out otherwise.
func fstatat(dir int, name string, st *unix.Stat_t) error {
	var path [256]byte
	if len(name) >= len(path) || strings.IndexByte(name, 0) >= 0 {
		return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
	}
	copy(path[:], name)
	_, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(&path)), uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
