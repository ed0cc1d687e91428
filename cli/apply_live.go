package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"pbuild/bench/decl"
	"pbuild/engine/apply"
)

// openStreams opens everything that the event stream goes to. What the user named comes first: where that cannot be opened, there is no run.
func (ap *applying) openStreams() error {
	named, err := ap.namedStreams()
	if err != nil {
		return err
	}
	file, err := ap.store.CreateRun(ap.run)
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	ap.closers = append(ap.closers, file.Close)
	ap.stream = &stream{address: ap.plan.Address, full: named, brief: []io.Writer{file}, seq: ap.lines()}
	ap.runFile = file
	return nil
}

// lines is how many lines the applies before this one have written.
func (ap *applying) lines() int {
	for b := ap.before; b != nil; b = b.before {
		if b.stream != nil {
			return b.stream.seq
		}
	}
	return 0
}

// namedStreams are where the user wants the stream; with an error, those of them that can be had.
func (ap *applying) namedStreams() (out []io.Writer, err error) {
	if ap.app.view.json {
		w := bufio.NewWriter(ap.app.view.out)
		ap.closers = append(ap.closers, w.Flush)
		out = append(out, lineFlusher{w})
	}
	if ap.flags.jsonInto != "" {
		into := os.O_TRUNC
		if ap.lines() > 0 {
			into = os.O_APPEND
		}
		f, err := os.OpenFile(ap.app.path(ap.flags.jsonInto), os.O_WRONLY|os.O_CREATE|into, 0o666)
		if err != nil {
			return out, usagef("--json-into: %v", err)
		}
		w := bufio.NewWriter(f)
		ap.closers = append(ap.closers, func() error { return errors.Join(w.Flush(), f.Close()) })
		out = append(out, w)
	}
	return out, nil
}

// broken says that the last apply that began has ended its stream itself, or was cut off within it.
func (ap *applying) broken() bool {
	last := ap
	for last.stream == nil && last.before != nil {
		last = last.before
	}
	return last.stream != nil && (last.stream.ended || last.sum == nil)
}

// refused ends the stream of an apply that does not begin, or not again: diagnostics, and the summary of what was done before, mostly nothing.
func (ap *applying) refused(why error) {
	defer ap.close()
	var ds decl.Diagnostics
	if ap.session != nil {
		ds.Add(ap.diags...)
	}
	if !isSaid(why) {
		ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Apply refused", Detail: why.Error()})
	}
	sum := &apply.Summary{}
	if ap.before != nil && ap.before.sum != nil {
		sum = ap.before.sum
	}
	named, _ := ap.namedStreams() // one that cannot be opened may be why
	s := &stream{full: named, seq: ap.lines()}
	now := ap.app.cfg.Clock()
	s.diagnostics(ds, now)
	s.summary(sum, 0, codeOf(why), now)
}

// A lineFlusher writes each line at once: a reader of the stream follows the run.
type lineFlusher struct{ *bufio.Writer }

func (l lineFlusher) Write(b []byte) (int, error) {
	n, err := l.Writer.Write(b)
	if e := l.Flush(); err == nil {
		err = e
	}
	return n, err
}

func (ap *applying) close() {
	for i := len(ap.closers) - 1; i >= 0; i-- {
		if err := ap.closers[i](); err != nil {
			ap.app.view.notef("note: %v\n", err)
		}
	}
	ap.closers = nil
}

// ticking draws the progress ten times a second until the returned function is called.
func (ap *applying) ticking() (quit func()) {
	ticker := time.NewTicker(100 * time.Millisecond)
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-ticker.C:
				ap.progress.tick(ap.app.cfg.Clock())
				ap.runFile.Flush() // who reads along sees the run; nothing depends on it
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-gone
	}
}

// interrupts turns the first interrupt into a closed channel and the second into a cancelled context.
func (a *app) interrupts(ctx context.Context, say func(string)) (_ context.Context, stop <-chan struct{}, cancel func()) {
	ctx, kill := context.WithCancelCause(ctx)
	stopping := make(chan struct{})
	heard := 0
	a.listen(func() {
		switch heard++; heard {
		case 1:
			close(stopping)
			say("interrupted: running tasks finish, no more start; interrupt again to kill them")
		case 2:
			say("killing what runs")
			kill(errors.New("killed by an interrupt"))
		}
	})
	return ctx, stopping, func() { kill(nil) }
}
