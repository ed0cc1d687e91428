package tree

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// gitSync is what git syncs by itself: nothing, for sync does it.
const gitSync = "none"

// sync makes everything that was written to the repository's file system durable.
func (r *Repo) sync() error {
	d, err := os.Open(r.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}

// OwnGroup puts a command in a process group of its own, so that a Ctrl-C reaches only pbuild and a kill reaches its children too. It dies with pbuild.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// unbind lets a command outlive the thread that starts it.
func unbind(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = 0 }
