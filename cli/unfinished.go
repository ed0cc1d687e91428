package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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
		_, began = r.open[address]
		return "", began
	}
}

// A pastRun is what the event stream of a run says, or those of several together.
type pastRun struct {
	id      string
	open    map[string]pastTask // by address: what began and did not end
	failed  map[string]pastTask // what failed and left no record
	skipped map[string]pastTask // what waited for something that failed
	done    map[string]pastTask // what ran and ended ok. No record keeps that of a gate which stands on a failure that none keeps
	summary *summaryJSON        // nil where the run has none (yet)
	size    int                 // of the stream, in bytes
}

// A pastTask is the last that a run says of a task.
type pastTask struct {
	Time    time.Time
	Key     string // that it began under; "" where it did not begin
	Phase   string // running: it began and did not end
	Status  task.Status
	Outcome string
	Detail  string
	Log     digest.Digest
	Run     string
}

func newPastRun(id string) *pastRun {
	return &pastRun{id: id, open: map[string]pastTask{}, failed: map[string]pastTask{}, skipped: map[string]pastTask{}, done: map[string]pastTask{}}
}

// lastRun is the newest run; nil where there is none.
func lastRun(st *store.Store) (*pastRun, error) {
	runs, err := st.Runs()
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return readRun(st, runs[0])
}

// readRun reads a run's event stream, as far as it is written; with addresses, only what it says of them.
func readRun(st *store.Store, id string, addrs ...string) (*pastRun, error) {
	var quoted [][]byte
	for _, addr := range addrs {
		b, err := json.Marshal(addr)
		if err != nil {
			return nil, err
		}
		quoted = append(quoted, b)
	}
	about := func(line []byte) bool { // most lines are not, and need no decoding
		return quoted == nil || slices.ContainsFunc(quoted, func(q []byte) bool { return bytes.Contains(line, q) })
	}
	r, err := st.OpenRun(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := newPastRun(id)
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadBytes('\n')
		p.size += len(line)
		if about(line) {
			p.add(line)
		}
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
		Type, Address, Key, Phase, Detail, Log, Outcome string
		Time                                            time.Time
		Status                                          task.Status
	}
	if json.Unmarshal(line, &e) != nil {
		return // the last line of a killed run is cut
	}
	t := pastTask{Time: e.Time, Key: cmp.Or(e.Key, p.open[e.Address].Key), Phase: e.Phase, Status: e.Status, Outcome: e.Outcome, Detail: e.Detail, Run: p.id}
	if d, err := digest.Parse(e.Log); err == nil {
		t.Log = d
	}
	switch e.Type {
	case "start":
		t.Phase = "running"
		p.open[e.Address] = t
	case "end":
		if e.Status != task.Cancelled {
			delete(p.open, e.Address)
		}
		switch {
		case e.Phase == "skipped":
			p.skipped[e.Address] = t
		case e.Status == task.OK: // also of what was rejected there is a record
			p.done[e.Address] = t
		default:
			p.failed[e.Address] = t
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

// recentRuns is what the newest runs say together, of the given addresses or of all: of each the newest that says anything of it. It is for people, so what cannot be read is left out.
func recentRuns(st *store.Store, addrs ...string) *pastRun {
	all := newPastRun("")
	runs, err := st.Runs()
	if err != nil {
		return all
	}
	for _, id := range runs[:min(recentCount, len(runs))] {
		if past, err := readRun(st, id, addrs...); err == nil {
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
		_, open := p.open[address]
		_, done := p.done[address]
		return failed || open || done
	}
	for address, t := range o.skipped { // which says nothing of how it ends where it runs
		if _, skipped := p.skipped[address]; !skipped && !known(address) {
			p.skipped[address] = t
		}
	}
	for _, pair := range [][2]map[string]pastTask{{p.failed, o.failed}, {p.open, o.open}, {p.done, o.done}} {
		for address, t := range pair[1] {
			if !known(address) {
				pair[0][address] = t
			}
		}
	}
}

// lastFailure is the newest failure of any of the addresses since the run of a record, or ever where r is nil; nil where there is none. Where the record
// serves, only failures under its key count: it has served since any other.
func lastFailure(st *store.Store, addrs []string, r *task.Record, serves bool) *pastTask {
	return newest(addrs, r, serves, recentRuns(st, addrs...).failed)
}

// lastUnrecorded is the newest that is known of any of the addresses since the run of a record, and that no record keeps, as lastFailure counts; nil where
// there is nothing.
func lastUnrecorded(st *store.Store, addrs []string, r *task.Record, serves bool, history []*task.Record) *pastTask {
	past := recentRuns(st, addrs...)
	maps.DeleteFunc(past.done, func(_ string, t pastTask) bool {
		return r != nil && r.Run == t.Run || slices.ContainsFunc(history, func(h *task.Record) bool { return h.Run == t.Run })
	})
	return newest(addrs, r, serves, past.open, past.failed, past.skipped, past.done)
}

func newest(addrs []string, r *task.Record, serves bool, by ...map[string]pastTask) *pastTask {
	var since time.Time
	if r != nil {
		since = time.Unix(0, r.Started)
	}
	var last *pastTask
	for _, m := range by {
		for _, addr := range addrs {
			if t, ok := m[addr]; ok && t.Time.After(since) && (!serves || t.Key == r.Key.String()) {
				last, since = &t, t.Time
			}
		}
	}
	return last
}
