package host

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"pbuild/engine/run"
)

// enter has nothing to build: macOS has no namespaces.
func enter(s *spec) (cleanUp func() error, err error) {
	if s.Isolation > run.IsolationNone {
		return nil, errors.New("this system has no namespaces")
	}
	return forwardCopies(s)
}

func commandAttr(*spec) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func closeOnExec() {
	for fd := fdOrders; fd < fdEnd; fd++ {
		syscall.CloseOnExec(fd)
	}
}

func limitPids(int64, *int) func() { return func() {} }

// killTree kills the command's process group. A process that left it is not found: that is what isolation none means here.
func killTree(pid int) {
	if pid > 0 {
		syscall.Kill(-pid, syscall.SIGKILL)
	}
}

func maxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss }

func ctime(fi fs.FileInfo) int64 { return fi.Sys().(*syscall.Stat_t).Ctimespec.Nano() }

func copyData(out, in *os.File, _ int64) error {
	_, err := io.Copy(out, in)
	return err
}

func allocated(fi fs.FileInfo) int64 { return fi.Sys().(*syscall.Stat_t).Blocks * 512 }

func hardLinks(fi fs.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Nlink) }

func isWhiteout(fs.FileInfo) bool { return false }

func isOpaque(string) bool { return false }

func setOpaque(string) error { return nil }

func reflink(_, _ *os.File) error { return errors.ErrUnsupported }

// groups are where there is no guard: each command leads a group of its own, and may outlive a killed pbuild.
type groups struct{}

const guardName, anchorName = "pbuild-guard", "pbuild-anchor"

func guard() {}

func (*groups) take() (int, error) { return 0, nil }
func (*groups) give(int)           {}
