package host

import (
	"os"
	"syscall"
)

func self() string {
	p, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return p
}

func initAttr(*spec) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// pipe makes a pipe that only its maker has: no fork comes between making it and marking it.
func pipe() (r, w int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		return 0, 0, err
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// syncFS only asks for it: macOS gives a program no call that waits for a file system.
func syncFS(string) error { return syscall.Sync() }
