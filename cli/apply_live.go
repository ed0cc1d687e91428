package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"time"
)

// openStreams opens everything that the event stream goes to. What the user named comes first: where that cannot be opened, there is no run.
func (ap *applying) openStreams() error {
	ap.stream = &stream{address: ap.plan.Address}
	if ap.flags.jsonInto != "" {
		f, err := os.Create(ap.app.path(ap.flags.jsonInto))
		if err != nil {
			return usagef("--json-into: %v", err)
		}
		w := bufio.NewWriter(f)
		ap.closers = append(ap.closers, func() error { return errors.Join(w.Flush(), f.Close()) })
		ap.stream.full = append(ap.stream.full, w)
	}
	if ap.app.view.json {
		w := bufio.NewWriter(ap.app.view.out)
		ap.closers = append(ap.closers, w.Flush)
		ap.stream.full = append(ap.stream.full, lineFlusher{w})
	}
	file, err := ap.store.CreateRun(ap.run)
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	ap.closers = append(ap.closers, file.Close)
	ap.stream.brief = append(ap.stream.brief, file)
	ap.runFile = file
	return nil
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
func (a *app) interrupts(ctx context.Context, say func(string)) (_ context.Context, stop <-chan struct{}, release func()) {
	close(a.claimed)
	ctx, cancel := context.WithCancel(ctx)
	stopping := make(chan struct{})
	go func() {
		select {
		case <-a.cfg.Interrupts:
		case <-ctx.Done():
			return
		}
		close(stopping)
		say("interrupted: running tasks finish, no more start; interrupt again to kill them")
		select {
		case <-a.cfg.Interrupts:
			say("killing what runs")
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, stopping, cancel
}
