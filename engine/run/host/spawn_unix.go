//go:build unix

package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A spawning is the spawner's own side.
type spawning struct {
	mu      sync.Mutex // held while a command is started, so that it is known before its end is
	running map[int]uint64
	pids    map[uint64]int
	more    chan struct{} // a command was started
	answers *os.File
}

// spawn is the spawner's life: it starts and kills what it is told to until the connection ends. What runs then dies with all that it started;
// where nothing runs, what earlier commands left behind on purpose lives on.
func spawn() {
	unix.CloseOnExec(fdSpawner)
	adoptOrphans()
	s := &spawning{running: map[int]uint64{}, pids: map[uint64]int{}, more: make(chan struct{}, 1), answers: os.NewFile(fdSpawner, "answers")}
	go s.reap()
	for s.serve() == nil {
	}
	s.mu.Lock()
	if len(s.running) > 0 {
		for pid := range s.running {
			syscall.Kill(-pid, syscall.SIGKILL)
		}
		killTree(0)
	}
	os.Exit(0)
}

// serve does what one request asks for.
func (s *spawning) serve() error {
	h, text, fds, err := receive()
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Kill {
		if pid := s.pids[h.ID]; pid > 0 {
			syscall.Kill(-pid, syscall.SIGKILL)
		}
		return nil
	}
	if len(fds) != 2 {
		return fmt.Errorf("%d descriptors came with a request", len(fds))
	}
	pid, err := startInPlace(text, fds)
	if err != nil {
		errno, ok := err.(syscall.Errno)
		if !ok {
			errno = syscall.EINVAL
		}
		return s.answer(ended{ID: h.ID, Errno: uint32(errno)})
	}
	s.running[pid], s.pids[h.ID] = h.ID, pid
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

func startInPlace(text []byte, fds []int) (int, error) {
	var words []string
	for w := range bytes.SplitSeq(text, []byte{0}) {
		words = append(words, string(w))
	}
	words = words[:len(words)-1] // nothing follows the last zero
	n, err := strconv.Atoi(words[2])
	if err != nil {
		return 0, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(null)
	return syscall.ForkExec(words[0], words[3:3+n], &syscall.ProcAttr{Dir: words[1], Env: words[3+n:],
		Sys: &syscall.SysProcAttr{Setpgid: true}, Files: []uintptr{uintptr(null), uintptr(fds[0]), uintptr(fds[1])}})
}

// receive reads one request.
func receive() (h requestHead, text []byte, fds []int, err error) {
	var size [4]byte
	oob := make([]byte, unix.CmsgSpace(2*4))
	n, oobn, _, _, err := unix.Recvmsg(fdSpawner, size[:], oob, 0)
	for err == unix.EINTR {
		n, oobn, _, _, err = unix.Recvmsg(fdSpawner, size[:], oob, 0)
	}
	if err != nil {
		return h, nil, nil, err
	}
	if n == 0 {
		return h, nil, nil, io.EOF
	}
	if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
		for i := range messages {
			if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
				fds = append(fds, got...)
			}
		}
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd) // only this goroutine forks
	}
	if err := readFull(size[n:]); err != nil {
		return h, nil, fds, err
	}
	body := make([]byte, binary.NativeEndian.Uint32(size[:]))
	if err := readFull(body); err != nil {
		return h, nil, fds, err
	}
	used, err := binary.Decode(body, binary.NativeEndian, &h)
	return h, body[used:], fds, err
}

func readFull(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(fdSpawner, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	return nil
}

// reap collects whatever ends: commands, what is left of whose group dies with them, and orphans.
func (s *spawning) reap() {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &usage)
		switch err {
		case nil:
			s.collect(pid, status, &usage)
		case syscall.ECHILD:
			<-s.more
		}
	}
}

func (s *spawning) collect(pid int, status syscall.WaitStatus, usage *syscall.Rusage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.running[pid]
	if !ok {
		return
	}
	syscall.Kill(-pid, syscall.SIGKILL)
	delete(s.running, pid)
	delete(s.pids, id)
	s.answer(ended{ID: id, Status: uint32(status), CPU: usage.Utime.Nano() + usage.Stime.Nano(), MaxRSS: maxRSS(usage)}) // who is gone is told nothing
}

func (s *spawning) answer(e ended) error {
	b, err := binary.Append(nil, binary.NativeEndian, e)
	if err != nil {
		return err
	}
	_, err = s.answers.Write(b)
	return err
}
