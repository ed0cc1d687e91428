package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// self is the running program, even if its file was replaced meanwhile.
func self() string { return "/proc/self/exe" }

// initAttr gives the init its namespaces. It is root in its own user namespace, which is nobody outside but the user that runs this program.
func initAttr(s *spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	switch s.Isolation {
	case run.IsolationSealed:
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if !s.Network {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
	case run.IsolationProcess:
		attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID
		if os.Geteuid() != 0 {
			attr.Cloneflags |= unix.CLONE_NEWUSER
		}
	}
	if attr.Cloneflags&unix.CLONE_NEWUSER != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

func pipe() (r, w int, err error) {
	var fds [2]int
	err = unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return fds[0], fds[1], err
}

func syncFS(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.Syncfs(int(d.Fd()))
}
