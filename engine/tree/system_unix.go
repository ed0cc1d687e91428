//go:build unix && !linux

package tree

import (
	"os/exec"
	"syscall"
)

// gitSync is what git syncs by itself: everything, for here no call syncs a file system.
const gitSync = "all"

func (r *Repo) sync() error { return nil }

// OwnGroup puts a command in a process group of its own, so that a Ctrl-C reaches only pbuild and a kill reaches its children too.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func unbind(*exec.Cmd) {}
