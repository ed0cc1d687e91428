//go:build unix

package host

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// A process is the runner's end of an init.
type process struct {
	cmd            *exec.Cmd
	orders         *os.File
	replies        *os.File
	stdout, stderr *os.File
	enc            *gob.Encoder
	dec            *gob.Decoder
	once           sync.Once
}

// startInit re-executes this program as the init of a sandbox, and gives it its spec. index are the files that it reads and writes an index in; nil is none.
func startInit(s *spec, index [2]*os.File) (p *process, err error) {
	var files []*os.File // the init's, in order from descriptor 3
	defer func() {
		for _, f := range files {
			f.Close()
		}
		if err != nil && p != nil {
			p.close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	orEmpty := func(f *os.File) *os.File {
		if f == nil && err == nil {
			f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
		}
		return f
	}
	p = &process{}
	ordersIn, orders := pipe()
	replies, repliesOut := pipe()
	stdout, stdoutOut := pipe()
	stderr, stderrOut := pipe()
	p.orders, p.replies, p.stdout, p.stderr = orders, replies, stdout, stderr
	files = append(files, ordersIn, repliesOut, stdoutOut, stderrOut,
		orEmpty(index[0]), orEmpty(index[1]))
	if err != nil {
		return p, fmt.Errorf("host: open pipes: %w", err)
	}
	p.cmd = &exec.Cmd{
		Path: self(), Args: []string{initName}, Env: []string{}, // nothing of this process's environment is to be found in /proc
		ExtraFiles: files, Dir: "/", SysProcAttr: initAttr(s),
	}
	if err = p.cmd.Start(); err != nil {
		p.cmd = nil
		return p, fmt.Errorf("host: start the sandbox: %w", err)
	}
	p.enc, p.dec = gob.NewEncoder(p.orders), gob.NewDecoder(p.replies)
	if err = p.enc.Encode(s); err != nil {
		return p, p.died(err)
	}
	return p, nil
}

// reply reads the next reply. An init that failed, or is gone, is an error.
func (p *process) reply() (*reply, error) {
	var r reply
	if err := p.dec.Decode(&r); err != nil {
		return nil, p.died(err)
	}
	if r.Missing != nil {
		return nil, r.Missing
	}
	if r.Error != "" {
		return nil, errors.New("host: sandbox: " + r.Error)
	}
	return &r, nil
}

func (p *process) died(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) {
		p.wait()
		return fmt.Errorf("host: the sandbox's first process ended unasked: %s", p.cmd.ProcessState)
	}
	return fmt.Errorf("host: hear from the sandbox: %w", err)
}

// wait returns when the init is gone.
func (p *process) wait() { p.once.Do(func() { p.cmd.Wait() }) }

// kill ends the command and lets the init collect.
func (p *process) kill() { p.enc.Encode(order{Kill: true}) }

// abandon ends everything at once: closing the orders does, and where the init leads a pid namespace so does its death.
func (p *process) abandon() { p.orders.Close() }

// close ends the init and returns when it is gone.
func (p *process) close() {
	for _, f := range []*os.File{p.orders, p.replies, p.stdout, p.stderr} {
		if f != nil {
			f.Close()
		}
	}
	if p.cmd != nil {
		p.wait()
	}
}

// reap waits until the init, which was told to end, is gone.
func (p *process) reap(level run.Isolation) {
	if level > run.IsolationNone {
		p.cmd.Process.Kill() // everything dies with the first process of a pid namespace
	}
	late := time.AfterFunc(grace, func() { p.cmd.Process.Kill() })
	defer late.Stop()
	p.wait()
}

// pump reads stdout and stderr in the order in which they become ready and gives what it reads to f, until both are at their end or stop is set. One
// goroutine reads both, for the order between them is the order of its reads.
func (p *process) pump(stop *atomic.Bool, f func(stream byte, data []byte)) error {
	o := newOutputs(int(p.stdout.Fd()), int(p.stderr.Fd()))
	buf := make([]byte, 64<<10)
	for o.open() && !stop.Load() {
		if _, err := unix.Poll(o[:], 100); err != nil {
			if err == unix.EINTR {
				continue
			}
			return err
		}
		o.read(buf, f)
	}
	return nil
}

// outputs are the reading ends of a command's stdout and stderr, as poll wants them. One that is at its end has no descriptor.
type outputs [2]unix.PollFd

func newOutputs(stdout, stderr int) *outputs {
	return &outputs{{Fd: int32(stdout), Events: unix.POLLIN}, {Fd: int32(stderr), Events: unix.POLLIN}}
}

func (o *outputs) open() bool { return o[0].Fd >= 0 || o[1].Fd >= 0 }

// read reads once from each that is ready, and gives f what it read.
func (o *outputs) read(buf []byte, f func(stream byte, data []byte)) {
	for i := range o {
		if o[i].Fd < 0 || o[i].Revents == 0 {
			continue
		}
		switch n, err := unix.Read(int(o[i].Fd), buf); {
		case err == unix.EINTR || err == unix.EAGAIN:
		case n <= 0:
			o[i].Fd = -1
		default:
			f(byte(i+1), buf[:n])
		}
	}
}

// waitLock waits for the lock on a file until ctx ends.
func waitLock(ctx context.Context, f *os.File) error {
	for {
		err := tryLock(f)
		if err != unix.EWOULDBLOCK {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ownDir makes a directory that only this user can write to, or says why it is not one.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st := fi.Sys().(*syscall.Stat_t); !fi.IsDir() || int(st.Uid) != os.Geteuid() || fi.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is not this user's alone", dir)
	}
	return nil
}

func isCrossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }

func tryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
