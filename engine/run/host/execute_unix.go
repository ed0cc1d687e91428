//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/run"
)

// grace is how long an init that was told to end all may take before it is killed itself.
const grace = 5 * time.Second

// A watch is one command under its limits.
type watch struct {
	s     *session
	p     *process
	log   *logger
	last  atomic.Int64 // when output came last, Unix nanoseconds
	group *group

	timedOut string
	replies  chan *reply
	failed   chan error
	pumped   chan error
	stop     atomic.Bool
}

// execute runs what the spec says and returns when everything is dead.
func (s *session) execute(ctx context.Context, sp *spec) (*run.Result, error) {
	c := s.c
	w := &watch{s: s, log: newLogger(c.Limits.Output, c.Secrets, c.Log)}
	// A resource limit counts all processes of a user, so it is one of the command's only in a user namespace; the machine's root has none.
	byUser := s.r.level > run.IsolationNone && os.Geteuid() != 0
	g, held, err := s.r.controls.group(&c.Limits, byUser)
	if err != nil {
		return nil, err
	}
	w.group = g
	defer g.remove()
	sp.Grouped = len(g.dirs) > 0
	if byUser && g.dirs["pids"] == "" {
		sp.Pids = c.Limits.Pids
	}
	if err := os.MkdirAll(s.r.states.path("layers"), 0o700); err != nil {
		return nil, err
	}
	index, err := s.indexFiles(sp)
	if err != nil {
		return nil, err
	}
	w.p, err = startInit(sp, index)
	if err != nil {
		return nil, err
	}
	defer w.p.close()
	e, err := w.wait(ctx)
	if err != nil {
		return nil, err
	}
	res := &run.Result{
		Exit: e.Exit, TimedOut: w.timedOut, OutOfMem: g.outOfMemory(), Reports: e.Reports, Refused: e.Refused, Changes: e.Changes, Reset: e.Reset,
		Manifest: e.Manifest, Elapsed: time.Duration(e.Elapsed), CPU: time.Duration(e.CPU), MaxRSS: e.MaxRSS, Isolation: s.r.level, Limits: held,
	}
	res.Log, res.Truncated = w.log.finish()
	for p, b := range res.Reports {
		res.Reports[p], _ = redact(b, w.log.secrets, true)
	}
	res.Skipped = e.Skipped
	res.Altered, err = s.leftBehind(ctx, e.Altered)
	return res, err
}

// indexFiles opens the index of the workspace that the command starts with, and a file for that of the one that is kept. nil is an empty file.
func (s *session) indexFiles(sp *spec) (files [2]*os.File, err error) {
	if (sp.Manifest || sp.Changes) && s.start != nil && s.base == nil {
		files[0], _ = os.Open(s.r.states.path(s.start.Name, "index"))
	}
	if sp.Manifest {
		files[1], err = os.Create(s.indexOut())
	}
	return files, err
}

// wait serves the init until the command has ended.
func (w *watch) wait(ctx context.Context) (*end, error) {
	w.replies, w.failed, w.pumped = make(chan *reply), make(chan error, 1), make(chan error, 1)
	gone := make(chan struct{})
	defer close(gone)
	go w.listen(gone)
	go func() {
		w.pumped <- w.p.pump(&w.stop, func(stream byte, data []byte) {
			w.last.Store(time.Now().UnixNano())
			w.log.write(stream, data)
		})
	}()
	e, err := w.serve(ctx)
	// Whoever could write is dead, so the pipes are at their end; one that got away must not keep this from returning.
	late := time.AfterFunc(grace, func() { w.stop.Store(true) })
	defer late.Stop()
	if err != nil {
		w.p.abandon()
		w.p.reap(w.s.r.level)
		w.stop.Store(true)
	}
	if perr := <-w.pumped; err == nil && perr != nil {
		err = fmt.Errorf("host: read the command's output: %w", perr)
	}
	return e, err
}

func (w *watch) listen(gone chan struct{}) {
	for {
		rep, err := w.p.reply()
		if err != nil {
			w.failed <- err
			return
		}
		select {
		case w.replies <- rep:
		case <-gone:
			return
		}
	}
}

func (w *watch) serve(ctx context.Context) (*end, error) {
	l := &w.s.c.Limits
	var wall, idle <-chan time.Time
	for {
		select {
		case rep := <-w.replies:
			switch {
			case rep.End != nil:
				return rep.End, nil
			case rep.Ready:
				if err := w.group.join(w.p.cmd.Process.Pid); err != nil {
					return nil, err
				}
				if err := w.p.enc.Encode(order{}); err != nil {
					return nil, w.p.died(err)
				}
			case rep.Started:
				// The init must not be among what is limited: it has to go on when the command is at its limits.
				if err := w.group.leave(w.p.cmd.Process.Pid); err != nil {
					return nil, err
				}
				w.last.Store(time.Now().UnixNano())
				if l.Wall > 0 {
					wall = time.After(l.Wall)
				}
				if l.Idle > 0 {
					idle = time.After(l.Idle)
				}
			default:
				if err := w.bring(ctx, rep.Need); err != nil {
					return nil, err
				}
			}
		case <-wall:
			w.timeOut("wall")
			wall, idle = nil, nil
		case <-idle:
			silent := time.Since(time.Unix(0, w.last.Load()))
			if silent < l.Idle {
				idle = time.After(l.Idle - silent)
				continue
			}
			w.timeOut("idle")
			wall, idle = nil, nil
		case err := <-w.failed:
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (w *watch) timeOut(which string) {
	w.timedOut = which
	w.p.kill()
}

// bring sends the init the blobs that it needs.
func (w *watch) bring(ctx context.Context, ids []digest.Digest) error {
	o := order{Blobs: make([][]byte, len(ids))}
	for i, id := range ids {
		b, err := w.s.r.opt.Trees.Read(ctx, id)
		if err != nil {
			return fmt.Errorf("host: read blob %s: %w", id, err)
		}
		o.Blobs[i] = b
	}
	if err := w.p.enc.Encode(o); err != nil && !errors.Is(err, os.ErrClosed) {
		return w.p.died(err)
	}
	return nil
}
