package cli

import (
	"bufio"
	"encoding/json"
	"sync"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// unfinished tells which addresses the last run began and left no record of: it was killed, or they failed, and how. The run's stream is read when first
// asked for.
func (s *session) unfinished(st *store.Store) func(address string) (failure string, began bool) {
	read := sync.OnceValue(func() *pastRun {
		r, err := lastRun(st)
		if err != nil || r == nil {
			return &pastRun{} // who began what is a courtesy
		}
		return r
	})
	return func(address string) (failure string, began bool) {
		r := read()
		if f, failed := r.failed[address]; failed {
			return firstLine(f.Detail), true
		}
		return "", r.open[address]
	}
}

// A pastRun is what the event stream of a run says.
type pastRun struct {
	id      string
	open    map[string]bool    // addresses that began and did not end
	failed  map[string]failure // those that failed and left no record
	summary *summaryJSON       // nil where the run has none (yet)
}

// A failure is how a task ended that no record keeps.
type failure struct {
	Time   time.Time
	Status task.Status
	Detail string
	Log    digest.Digest
	Run    string
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
	p := &pastRun{id: id, open: map[string]bool{}, failed: map[string]failure{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.add(lines.Bytes())
	}
	return p, lines.Err()
}

func (p *pastRun) add(line []byte) {
	var e struct {
		Type, Address, Phase, Detail, Log string
		Time                              time.Time
		Status                            task.Status
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
		if e.Phase == "failed" && e.Status != task.OK { // of what was rejected there is a record
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

// recentRuns is how many runs are searched for a failure.
const recentRuns = 20

// lastFailure is the newest failure of any of the addresses since the run of a record, or ever where r is nil; nil where there is none.
func lastFailure(st *store.Store, addrs []string, r *task.Record) *failure {
	var since time.Time
	if r != nil {
		since = time.Unix(0, r.Started)
	}
	runs, err := st.Runs()
	if err != nil {
		return nil
	}
	for _, id := range runs[:min(recentRuns, len(runs))] {
		past, err := readRun(st, id)
		if err != nil {
			continue
		}
		for _, addr := range addrs {
			if f, ok := past.failed[addr]; ok && f.Time.After(since) {
				return &f
			}
		}
	}
	return nil
}
