package tree

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pbuild/engine/digest"
)

// A pool keeps a few `git cat-file` processes that answer object after object. They see objects that were written after they began, and end when
// their input does, so that none outlives this process.
type pool struct {
	repo  *Repo
	args  []string
	slots chan struct{}

	mu     sync.Mutex
	idle   []*reader
	closed bool
}

type reader struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	bad *bytes.Buffer

	once bool // it buffers, and so serves one list of questions
}

func newPool(r *Repo, args ...string) *pool {
	return &pool{repo: r, args: args, slots: make(chan struct{}, max(4, runtime.GOMAXPROCS(0)))}
}

// An object is one answer: kind is blob, tree, commit, tag, or missing. Body is nil but for --batch.
type object struct {
	kind string
	size int64
	body io.Reader
}

// many is from how many questions on a process of its own is worth it: one that is told to buffer need not write after every answer.
const many = 100

// each asks for all names and calls f with each answer, in order. What f leaves of a body is skipped.
// f must not use the same pool.
func (p *pool) each(ctx context.Context, names []string, f func(i int, o object) error) error {
	if len(names) == 0 {
		return nil
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	rd, err := p.take(len(names) >= many)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { rd.cmd.Process.Kill() })
	wrote := make(chan error, 1)
	go func() { wrote <- rd.ask(names) }()
	for i := 0; i < len(names) && err == nil; i++ {
		err = p.answer(rd, names[i], func(o object) error { return f(i, o) })
	}
	if err != nil {
		rd.end() // before the writer is waited for: it may be blocked
	}
	werr := <-wrote
	if !stop() && ctx.Err() != nil {
		rd.end()
		return ctx.Err()
	}
	if err == nil && werr != nil {
		rd.end()
		err = werr
	}
	if err == nil {
		p.put(rd)
	}
	return err
}

// ask writes the questions. A process that buffers answers when it sees their end.
func (rd *reader) ask(names []string) error {
	w := bufio.NewWriter(rd.in)
	for _, n := range names {
		w.WriteString(n)
		w.WriteByte('\n')
	}
	err := w.Flush()
	if rd.once {
		rd.in.Close()
	}
	return err
}

func (p *pool) answer(rd *reader, name string, f func(object) error) error {
	line, err := rd.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("git %s ended: %s", p.args[0], strings.TrimSpace(rd.bad.String()))
	}
	fields := strings.Fields(line)
	if len(fields) == 2 && fields[1] == "missing" {
		return f(object{kind: "missing"})
	}
	if len(fields) != 3 {
		return fmt.Errorf("git %s answered %q to %q", p.args[0], line, name)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("git %s answered %q to %q", p.args[0], line, name)
	}
	o := object{kind: fields[1], size: size}
	if p.args[1] != "--batch" {
		return f(o)
	}
	body := &io.LimitedReader{R: rd.out, N: size}
	o.body = body
	if err := f(o); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	_, err = rd.out.Discard(1) // the line's end after a body
	return err
}

func (p *pool) take(once bool) (*reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("the repository is closed")
	}
	if n := len(p.idle); n > 0 && !once {
		rd := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return rd, nil
	}
	// It must outlive the call that starts it, and so cannot be bound to a context nor, by the signal of a dying thread, to a thread.
	args := p.args
	if once {
		args = append(slices.Clip(args), "--buffer")
	}
	cmd := p.repo.command(context.Background(), call{}, args...)
	unbind(cmd)
	rd := &reader{cmd: cmd, bad: new(bytes.Buffer), once: once}
	cmd.Stderr = &limited{rd.bad, 4 << 10}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	rd.in, rd.out = in, bufio.NewReaderSize(out, 64<<10)
	return rd, cmd.Start()
}

func (p *pool) put(rd *reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || rd.once {
		rd.end()
		return
	}
	p.idle = append(p.idle, rd)
}

func (p *pool) close() {
	p.forget()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// forget ends the idle processes: they hold packs open, and see in them what is gone.
func (p *pool) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rd := range p.idle {
		rd.end()
	}
	p.idle = nil
}

// end kills the process and waits for it; again it does nothing.
func (rd *reader) end() {
	if rd.cmd.ProcessState != nil {
		return
	}
	rd.in.Close()
	rd.cmd.Process.Kill()
	rd.cmd.Wait()
}

// name is how git is asked for an object; "" names nothing.
func name(d digest.Digest) string {
	id, _ := d.Git()
	return id
}

func names(ids []digest.Digest) ([]string, error) {
	out := make([]string, len(ids))
	for i, d := range ids {
		if out[i] = name(d); out[i] == "" {
			return nil, fmt.Errorf("%s is not a git object id", d)
		}
	}
	return out, nil
}
