//go:build darwin || (linux && !amd64 && !arm64)

package store

import "golang.org/x/sys/unix"

func fstatat(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
}
