package store

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const eventsFile = "events.jsonl"

// A RunStream is the event stream of a run that is being written. Events are buffered and never synced: they are for people,
// and no record depends on them.
type RunStream struct {
	mu  sync.Mutex
	f   *os.File
	buf *bufio.Writer
}

func (r *RunStream) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

// Flush lets others read what was written so far.
func (r *RunStream) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Flush()
}

func (r *RunStream) Close() error {
	err := r.Flush()
	return errors.Join(err, r.f.Close())
}

// CreateRun begins the event stream of a new run.
func (s *Store) CreateRun(id string) (*RunStream, error) {
	path, err := s.runPath(id)
	if err != nil {
		return nil, err
	}
	if s.lock == nil {
		return nil, fmt.Errorf("store: create run %s: %w", id, errReader)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("store: create run %s: %w", id, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("store: create run %s: %w", id, err)
	}
	return &RunStream{f: f, buf: bufio.NewWriterSize(f, 64<<10)}, nil
}

// OpenRun reads a run's event stream, as far as it is written.
func (s *Store) OpenRun(id string) (io.ReadCloser, error) {
	path, err := s.runPath(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("store: open run %s: %w", id, err)
	}
	return f, nil
}

// Runs lists the runs, newest first: by the time at which their directory last changed, which is when their stream was begun.
func (s *Store) Runs() ([]string, error) {
	list, err := os.ReadDir(filepath.Join(s.dir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("store: list runs: %w", err)
	}
	type run struct {
		id   string
		time int64
	}
	var runs []run
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.dir, "runs", e.Name(), eventsFile)); err != nil {
			continue // killed before it had begun
		}
		runs = append(runs, run{e.Name(), info.ModTime().UnixNano()})
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.id, a.id)) })
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.id
	}
	return ids, nil
}

func (s *Store) runPath(id string) (string, error) {
	if id == "" || id == "." || !filepath.IsLocal(id) || filepath.Base(id) != id {
		return "", fmt.Errorf("store: %q cannot name a run", id)
	}
	return filepath.Join(s.dir, "runs", id, eventsFile), nil
}
