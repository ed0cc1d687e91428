//go:build unix

package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// Run runs a command in dir as it is: no sandbox, no state. It dies as a process group; what leaves the group lives on, but does not hold the
// return up. If this process is killed, all of the command dies. Of c it takes Argv, Secrets, Log, and the limits of time and output. env holds everything, HOME too; CPU, memory and processes are not limited. It is for `task` blocks, of which there may be ten thousand that each take a
// millisecond: one goroutine, no timer that is not asked for, and little beside fork and exec.
func (s *InPlace) Run(ctx context.Context, c *run.Command, dir string, env []string) (*run.Result, error) {
	if len(c.Argv) == 0 {
		return nil, fmt.Errorf("host: no command")
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	program, err := lookPath(c.Argv[0], dir, env)
	if err != nil {
		return nil, err
	}
	p := inPlace{spawner: s}
	started := time.Now()
	if err := p.start(program, c.Argv, dir, env); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
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
		p.wait()
		return nil, fmt.Errorf("read the output of %s: %w", c.Argv[0], err)
	}
	p.wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case p.lost:
		return nil, errSpawner
	case p.end.Errno != 0:
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], syscall.Errno(p.end.Errno))
	}
	status := syscall.WaitStatus(p.end.Status)
	res := &run.Result{
		Exit: status.ExitStatus(), Elapsed: time.Since(started), CPU: time.Duration(p.end.CPU), MaxRSS: p.end.MaxRSS, Limits: limitsText(describeTimes(&c.Limits), nil),
	}
	if status.Signaled() {
		res.Exit = 128 + int(status.Signal())
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
	spawner  *InPlace
	id       uint64
	answer   <-chan ended
	fds      [2]int // the reading ends of stdout and stderr
	timedOut atomic.Pointer[string]
	late     time.Time // when to read no more, once it has ended
	over     bool
	lost     bool // how it ended is not to be known
	end      ended
}

func (p *inPlace) start(program string, argv []string, dir string, env []string) (err error) {
	p.fds = [2]int{-1, -1}
	ends := [2]int{-1, -1} // the writing ends, which are the command's
	defer func() {
		for _, fd := range ends {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
		if err != nil {
			p.close()
		}
	}()
	for i := range p.fds {
		if p.fds[i], ends[i], err = pipe(); err != nil {
			p.fds[i], ends[i] = -1, -1
			return err
		}
	}
	p.id, p.answer, err = p.spawner.start(program, argv, dir, env, ends[0], ends[1])
	return err
}

func (p *inPlace) close() {
	for i, fd := range p.fds {
		if fd >= 0 {
			unix.Close(fd)
			p.fds[i] = -1
		}
	}
}

func (p *inPlace) kill() { p.spawner.kill(p.id) }

// wait returns when the command has ended.
func (p *inPlace) wait() {
	if !p.over {
		e, ok := <-p.answer
		p.ended(e, ok)
	}
}

func (p *inPlace) hasEnded() bool {
	if p.over {
		return true
	}
	select {
	case e, ok := <-p.answer:
		p.ended(e, ok)
	default:
	}
	return p.over
}

func (p *inPlace) ended(e ended, ok bool) { p.over, p.lost, p.end = true, !ok, e }

// look is how often a silent command is looked at: one that ended while a daemon holds its pipes would never be at its end.
const look = 50 * time.Millisecond

// drain is how long after the command's end its output is still read.
const drain = time.Second

// pump reads the output until its end, or the command's.
func (p *inPlace) pump(l *logger, idle time.Duration) error {
	var buf [16 << 10]byte
	fds := [2]unix.PollFd{{Fd: int32(p.fds[0]), Events: unix.POLLIN}, {Fd: int32(p.fds[1]), Events: unix.POLLIN}}
	last, looked := time.Now(), time.Now()
	for fds[0].Fd >= 0 || fds[1].Fd >= 0 {
		ready, err := unix.Poll(fds[:], int(look.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if ready == 0 || time.Since(looked) > look {
			looked = time.Now()
			if ready == 0 && p.over {
				return nil // nothing is left in the pipes
			}
			if p.hasEnded() && p.late.IsZero() {
				p.late = looked.Add(drain)
			} else if !p.late.IsZero() && looked.After(p.late) {
				return nil // whoever goes on writing is no part of the command
			}
			if idle > 0 && time.Since(last) > idle && p.timedOut.CompareAndSwap(nil, &idleLimit) {
				p.kill()
			}
		}
		for i := range fds {
			if fds[i].Fd < 0 || fds[i].Revents == 0 {
				continue
			}
			n, err := unix.Read(int(fds[i].Fd), buf[:])
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				fds[i].Fd = -1
				continue
			}
			last = time.Now()
			l.write(byte(i+1), buf[:n])
		}
	}
	return nil
}
