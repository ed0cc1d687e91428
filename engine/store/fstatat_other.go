//go:build darwin || (linux && !(amd64 || arm64 || loong64 || ppc64le || riscv64 || s390x))

package store

import "golang.org/x/sys/unix"

func fstatat(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
}
