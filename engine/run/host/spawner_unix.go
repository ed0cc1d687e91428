//go:build unix

package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Commands in place are children of a process of their own, the spawner, which is this program re-executed. It is all that outlives a killed pbuild,
// and for long enough to kill what was running: also what left its process group, for orphans become the spawner's children where the system has that.
//
// The two speak over one socket. A request is a length, a requestHead, and for a start the program, the directory, the number of arguments, the
// arguments and the environment, with a zero byte after each; it carries the writing ends of the command's stdout and stderr. An answer is an ended.

// spawnerName is argv[0] of the spawner.
const spawnerName = "pbuild-spawner"

const fdSpawner = 3

type requestHead struct {
	ID   uint64
	Kill bool // end the command with this ID; else start one
}

// An ended says how a command ended, or with an Errno that it did not start.
type ended struct {
	ID     uint64
	Errno  uint32
	Status uint32 // a syscall.WaitStatus
	CPU    int64  // nanoseconds
	MaxRSS int64  // bytes
}

// An InPlace starts commands in place. The zero InPlace is ready: the spawner is started with the first command.
type InPlace struct {
	begin sync.Once
	err   error // of the beginning

	sock    int
	writing sync.Mutex // held while a request is written

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan ended // nil once the spawner is gone
}

func (s *InPlace) open() error {
	s.begin.Do(func() {
		ours, theirs, err := socketPair()
		if err != nil {
			s.err = fmt.Errorf("host: start the spawner: %w", err)
			return
		}
		end := os.NewFile(uintptr(theirs), "spawner")
		defer end.Close()
		cmd := &exec.Cmd{Path: self(), Args: []string{spawnerName}, Env: []string{}, ExtraFiles: []*os.File{end}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
		if err := cmd.Start(); err != nil {
			unix.Close(ours)
			s.err = fmt.Errorf("host: start the spawner: %w", err)
			return
		}
		s.sock, s.waiting = ours, map[uint64]chan ended{}
		go s.listen(cmd)
	})
	return s.err
}

// socketPair makes a connection that no command inherits.
func socketPair() (a, b int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// listen passes answers on until the spawner is gone.
func (s *InPlace) listen(cmd *exec.Cmd) {
	in := os.NewFile(uintptr(s.sock), "spawner") // never closed: the spawner ends with this process
	for {
		var e ended
		if err := binary.Read(in, binary.NativeEndian, &e); err != nil {
			break
		}
		s.mu.Lock()
		c := s.waiting[e.ID]
		delete(s.waiting, e.ID)
		s.mu.Unlock()
		c <- e
	}
	cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.waiting {
		close(c)
	}
	s.waiting = nil
}

var errSpawner = errors.New("host: the spawner of commands in place is gone")

// start has a command started. How it ended comes over the channel, which is closed if that is not to be known.
func (s *InPlace) start(program string, argv []string, dir string, env []string, stdout, stderr int) (id uint64, c <-chan ended, err error) {
	if err := s.open(); err != nil {
		return 0, nil, err
	}
	answer := make(chan ended, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		return 0, nil, errSpawner
	}
	s.last++
	id = s.last
	s.waiting[id] = answer
	s.mu.Unlock()
	if err := s.send(requestHead{ID: id}, startText(program, argv, dir, env), unix.UnixRights(stdout, stderr)); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", errSpawner, err)
	}
	return id, answer, nil
}

// kill ends a command. A spawner that is gone has done so already.
func (s *InPlace) kill(id uint64) { s.send(requestHead{ID: id, Kill: true}, nil, nil) }

func startText(program string, argv []string, dir string, env []string) []byte {
	var b bytes.Buffer
	for _, list := range [][]string{{program, dir, fmt.Sprint(len(argv))}, argv, env} {
		for _, s := range list {
			b.WriteString(s)
			b.WriteByte(0)
		}
	}
	return b.Bytes()
}

// send writes one request.
func (s *InPlace) send(h requestHead, text, rights []byte) error {
	b, err := binary.Append(binary.NativeEndian.AppendUint32(nil, 0), binary.NativeEndian, h)
	if err != nil {
		return err
	}
	b = append(b, text...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)-4))
	s.writing.Lock()
	defer s.writing.Unlock()
	for len(b) > 0 {
		n, err := unix.SendmsgN(s.sock, b, rights, nil, noSignal)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, rights = b[n:], nil
	}
	return nil
}
