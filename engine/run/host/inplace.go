//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// An InPlace runs commands in place. The zero InPlace is ready.
type InPlace struct{ groups groups }

// Run runs a command in dir as it is: no sandbox, no state. It dies as a process group; what leaves the group lives on, but does not hold the
// return up. If this process is killed, all that descends from the command dies. Of c it takes Argv, Secrets, Log, and the limits of time and output. env holds everything, HOME too; CPU, memory and processes are not limited. It is for `task` blocks, of which there may be ten thousand that each take a
// millisecond: one goroutine, no timer that is not asked for, and little beside fork and exec.
func (s *InPlace) Run(ctx context.Context, c *run.Command, dir string, env []string) (*run.Result, error) {
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("host: no command")
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	program, err := lookPath(c.Argv[0], dir, env)
	if errors.Is(err, fs.ErrNotExist) {
		err = &run.NotFound{Program: c.Argv[0]}
	}
	if err != nil {
		return nil, err
	}
	group, err := s.groups.take()
	if err != nil {
		return nil, err
	}
	defer s.groups.give(group)
	p := inPlace{group: group}
	started := time.Now()
	if err := p.start(program, c.Argv, dir, env); err != nil {
		return nil, fmt.Errorf("host: start %s: %w", c.Argv[0], err)
	}
	defer p.close()
	l := newLogger(c.Limits.Output, c.Secrets, c.Log)
	defer context.AfterFunc(ctx, p.kill)()
	if c.Limits.Wall > 0 {
		defer time.AfterFunc(c.Limits.Wall, func() {
			p.timedOut.CompareAndSwap(nil, &wallLimit)
			p.kill()
		}).Stop()
	}
	if err := p.pump(l, c.Limits.Idle); err != nil {
		p.kill()
		p.wait(0)
		return nil, fmt.Errorf("host: read the output of %s: %w", c.Argv[0], err)
	}
	p.wait(0)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	res := &run.Result{
		Exit: exitStatus(p.status), Elapsed: time.Since(started), CPU: time.Duration(p.usage.Utime.Nano() + p.usage.Stime.Nano()),
		MaxRSS: maxRSS(&p.usage), Limits: limitsText(describeTimes(&c.Limits), nil),
	}
	if which := p.timedOut.Load(); which != nil {
		res.TimedOut = *which
	}
	res.Log, res.Truncated = l.finish()
	return res, nil
}

var wallLimit, idleLimit = "wall", "idle"

// An inPlace is one process group and its output.
type inPlace struct {
	pid      int
	group    int    // 0: its own
	fds      [2]int // the reading ends of stdout and stderr
	timedOut atomic.Pointer[string]
	mu       sync.Mutex
	ended    bool      // its number may belong to another process, and its group to another command
	late     time.Time // when to read no more, once it has ended
	status   syscall.WaitStatus
	usage    syscall.Rusage
}

func (p *inPlace) start(program string, argv []string, dir string, env []string) error {
	var ends []int // to be closed here, whatever happens
	defer func() {
		for _, fd := range ends {
			unix.Close(fd)
		}
	}()
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ends = append(ends, null)
	p.fds = [2]int{-1, -1}
	files := []uintptr{uintptr(null), 0, 0}
	for i := range p.fds {
		r, w, err := pipe()
		if err != nil {
			p.close()
			return err
		}
		p.fds[i], files[i+1] = r, uintptr(w)
		ends = append(ends, w)
	}
	p.pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{Setpgid: true, Pgid: p.group}, Files: files})
	if err != nil {
		p.close()
		return err
	}
	if p.group == 0 {
		p.group = p.pid
	}
	return nil
}

func (p *inPlace) close() {
	for i, fd := range p.fds {
		if fd >= 0 {
			unix.Close(fd)
			p.fds[i] = -1
		}
	}
}

func (p *inPlace) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		syscall.Kill(-p.group, syscall.SIGKILL)
	}
}

// wait reaps the command; with WNOHANG it says whether there was something to reap. What is left of its group dies.
func (p *inPlace) wait(flags int) bool {
	for !p.ended {
		got, err := syscall.Wait4(p.pid, &p.status, flags, &p.usage)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && got == 0 {
			return false
		}
		p.mu.Lock()
		p.ended = true
		syscall.Kill(-p.group, syscall.SIGKILL)
		p.mu.Unlock()
	}
	return true
}

// look is how often a silent command is looked at: one that ended while a daemon holds its pipes would never be at its end.
const look = 50 * time.Millisecond

// drain is how long after the command's end its output is still read.
const drain = time.Second

// pump reads the output until its end, or the command's.
func (p *inPlace) pump(l *logger, idle time.Duration) error {
	buf := make([]byte, 16<<10)
	o := newOutputs(p.fds[0], p.fds[1])
	last, looked := time.Now(), time.Now()
	write := func(stream byte, data []byte) {
		last = time.Now()
		l.write(stream, data)
	}
	for o.open() {
		ready, err := unix.Poll(o[:], int(look.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if ready == 0 || time.Since(looked) > look {
			looked = time.Now()
			if ready == 0 && p.ended {
				return nil // nothing is left in the pipes
			}
			if p.wait(syscall.WNOHANG) && p.late.IsZero() {
				p.late = looked.Add(drain)
			} else if !p.late.IsZero() && looked.After(p.late) {
				return nil // whoever goes on writing is no part of the command
			}
			if idle > 0 && time.Since(last) > idle && p.timedOut.CompareAndSwap(nil, &idleLimit) {
				p.kill()
			}
		}
		o.read(buf, write)
	}
	return nil
}
