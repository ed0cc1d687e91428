package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"pbuild/engine/store"
)

// unfinished tells which addresses the last run began and did not end: it was killed. The run's stream is read when first asked for.
func (s *session) unfinished(st *store.Store) func(address string) bool {
	read := sync.OnceValue(func() map[string]bool {
		runs, err := st.Runs()
		if err != nil || len(runs) == 0 {
			return nil
		}
		open, _, err := readRun(st, runs[0])
		if err != nil {
			return nil // who began what is a courtesy
		}
		return open
	})
	return func(address string) bool { return read()[address] }
}

// readRun reads a run's event stream: the addresses that began and did not end, and the summary, nil where the run has none (yet).
func readRun(st *store.Store, id string) (open map[string]bool, summary *summaryJSON, err error) {
	r, err := st.OpenRun(id)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	open = map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Type, Address, Status string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line of a killed run is cut
		}
		switch e.Type {
		case "start":
			open[e.Address] = true
		case "end":
			if e.Status != "cancelled" {
				delete(open, e.Address)
			}
		case "summary":
			summary = &summaryJSON{}
			if err := json.Unmarshal(bytes.TrimSpace(lines.Bytes()), summary); err != nil {
				summary = nil
			}
		}
	}
	return open, summary, lines.Err()
}

// cutBlock splits "task.copy" into its type and name.
func cutBlock(block string) (typ, name string, ok bool) { return strings.Cut(block, ".") }
