package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// unfinished tells which addresses recent runs began and left no record of: the run was killed, or they failed, and how. The runs' streams are read when
// first asked for.
func (s *session) unfinished(st *store.Store) func(address string) (failure string, began bool) {
	read := sync.OnceValue(func() *pastRun { return recentRuns(st) })
	return func(address string) (failure string, began bool) {
		r := read()
		if f, failed := r.failed[address]; failed {
			return firstLine(f.Detail), true
		}
		return "", r.open[address]
	}
}

// A pastRun is what the event stream of a run says, or those of several together.
type pastRun struct {
	id      string
	open    map[string]bool    // addresses that began and did not end
	failed  map[string]failure // those that failed and left no record
	done    map[string]success // those that ran and came to an end
	summary *summaryJSON       // nil where the run has none (yet)
	size    int                // of the stream, in bytes
}

// A failure is how a task ended that no record keeps.
type failure struct {
	Time   time.Time
	Status task.Status
	Detail string
	Log    digest.Digest
	Run    string
}

// A success is a run of a task that ended ok. No record keeps that of a gate which stands on a failure that none keeps.
type success struct {
	Run     string
	Outcome string
}

func newPastRun(id string) *pastRun {
	return &pastRun{id: id, open: map[string]bool{}, failed: map[string]failure{}, done: map[string]success{}}
}

// lastRun is the newest run; nil where there is none.
func lastRun(st *store.Store) (*pastRun, error) {
	runs, err := st.Runs()
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return readRun(st, runs[0])
}

// readRun reads a run's event stream, as far as it is written.
func readRun(st *store.Store, id string) (*pastRun, error) {
	r, err := st.OpenRun(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := newPastRun(id)
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		p.size += len(line)
		p.add(line)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
	}
}

func (p *pastRun) add(line []byte) {
	var e struct {
		Type, Address, Phase, Detail, Log, Outcome string
		Time                                       time.Time
		Status                                     task.Status
	}
	if json.Unmarshal(line, &e) != nil {
		return // the last line of a killed run is cut
	}
	switch e.Type {
	case "start":
		p.open[e.Address] = true
	case "end":
		if e.Status != task.Cancelled {
			delete(p.open, e.Address)
		}
		switch {
		case e.Phase == "skipped":
		case e.Status == task.OK: // also of what was rejected there is a record
			p.done[e.Address] = success{p.id, e.Outcome}
		default:
			f := failure{Time: e.Time, Status: e.Status, Detail: e.Detail, Run: p.id}
			if d, err := digest.Parse(e.Log); err == nil {
				f.Log = d
			}
			p.failed[e.Address] = f
		}
	case "summary":
		s := &summaryJSON{}
		if json.Unmarshal(line, s) == nil {
			p.summary = s
		}
	}
}

// How far back runs are searched: so many of them, and no further once so many bytes have been read.
const (
	recentCount = 20
	recentBytes = 16 << 20
)

// recentRuns is what the newest runs say together: of each address the newest that says anything of it. It is for people, so what cannot be read is left out.
func recentRuns(st *store.Store) *pastRun {
	all := newPastRun("")
	runs, err := st.Runs()
	if err != nil {
		return all
	}
	for _, id := range runs[:min(recentCount, len(runs))] {
		if past, err := readRun(st, id); err == nil {
			all.addOlder(past)
		}
		if all.size > recentBytes {
			break
		}
	}
	return all
}

// addOlder adds what an older run says of addresses of which the newer ones say nothing.
func (p *pastRun) addOlder(o *pastRun) {
	p.size += o.size
	known := func(address string) bool {
		_, failed := p.failed[address]
		_, done := p.done[address]
		return failed || p.open[address] || done
	}
	for address, f := range o.failed {
		if !known(address) {
			p.failed[address] = f
		}
	}
	for address := range o.open {
		if !known(address) {
			p.open[address] = true
		}
	}
	for address, s := range o.done {
		if !known(address) {
			p.done[address] = s
		}
	}
}

// lastFailure is the newest failure of any of the addresses since the run of a record, or ever where r is nil; nil where there is none.
func lastFailure(st *store.Store, addrs []string, r *task.Record) *failure {
	var since time.Time
	if r != nil {
		since = time.Unix(0, r.Started)
	}
	var newest *failure
	failed := recentRuns(st).failed
	for _, addr := range addrs {
		if f, ok := failed[addr]; ok && f.Time.After(since) {
			newest, since = &f, f.Time
		}
	}
	return newest
}
