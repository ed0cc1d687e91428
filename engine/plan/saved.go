package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Magic is the first line of a saved plan.
const Magic = "pbuild plan 1\n"

// Meta is what a saved plan holds besides the decisions.
type Meta struct {
	Pbuild    string   `json:"pbuild"`
	Created   int64    `json:"created"` // Unix nanoseconds
	Selectors []string `json:"selectors,omitempty"`
	Replace   []string `json:"replace,omitempty"`
	Samples   int      `json:"samples"` // frozen tasks that it may run
	USD       *float64 `json:"estimate_usd"`
}

// A Saved is a plan on disk: it can be shown without its workspace, and checked against it.
type Saved struct {
	Meta
	Graph  digest.Digest `json:"graph"`
	Counts Counts        `json:"counts"`
	Tasks  []SavedTask   `json:"tasks"` // all that it may run: decided run or maybe
}

// A SavedTask is one task that a saved plan may run.
type SavedTask struct {
	ID       task.ID       `json:"id"`
	Address  string        `json:"address"`
	Kind     string        `json:"kind"`
	Decision string        `json:"decision"`
	Reasons  []Reason      `json:"reasons"`
	Digest   digest.Digest `json:"digest"` // of its declaration and files, to name it when it has changed
	Seconds  float64       `json:"seconds,omitempty"`
}

// Save writes a plan.
func Save(w io.Writer, p *Plan, m Meta) error {
	s := Saved{Meta: m, Counts: p.Counts(), Tasks: []SavedTask{}}
	var err error
	if s.Graph, err = p.GraphDigest(); err != nil {
		return err
	}
	var e digest.Encoder
	k := p.Keyer()
	for i := range p.Items {
		id := task.ID(i)
		if !p.mayRun(id) {
			continue
		}
		kind := p.Graph.Tasks[id].Spec.Kind()
		self, err := p.taskDigest(&e, k, id)
		if err != nil {
			return err
		}
		if kind.Frozen {
			s.Samples++
		}
		estimate, _ := p.Estimate(id)
		s.Tasks = append(s.Tasks, SavedTask{
			ID: id, Address: p.Address(id), Kind: kind.Name, Decision: p.Items[id].Decision.String(), Reasons: p.Reasons(id), Digest: self,
			Seconds: estimate.Seconds(),
		})
	}
	b := bufio.NewWriter(w)
	b.WriteString(Magic)
	if err := json.NewEncoder(b).Encode(&s); err != nil {
		return fmt.Errorf("plan: save: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("plan: save: %w", err)
	}
	return nil
}

// ErrNoPlan says that what was to be loaded does not begin with the magic.
var ErrNoPlan = errors.New("not a saved plan")

// Load reads what Save wrote.
func Load(r io.Reader) (*Saved, error) {
	b := bufio.NewReader(r)
	if line, err := b.ReadString('\n'); line != Magic {
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("plan: load: %w", err)
		}
		return nil, ErrNoPlan
	}
	var s Saved
	d := json.NewDecoder(b)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("plan: load: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("plan: load: something follows the plan")
	}
	return &s, nil
}

// A Stale is why a saved plan may not be applied any more.
type Stale struct {
	Differences []string // one line each; not empty
}

func (e *Stale) Error() string {
	const most = 10
	lines := e.Differences
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return "the saved plan no longer holds: " + strings.Join(lines, "; ")
}

// Check compares a saved plan with one made now. It is nil if that one runs nothing that the saved one does not hold, and a *Stale otherwise.
func Check(s *Saved, now *Plan) error {
	graph, err := now.GraphDigest()
	if err != nil {
		return err
	}
	would := unheld(s, now)
	if graph == s.Graph {
		if would == nil {
			return nil
		}
		return &Stale{would}
	}
	stale := &Stale{}
	var e digest.Encoder
	k := now.Keyer()
	ids := make(map[string]task.ID)
	for id := range now.Items {
		if now.Wanted[id] {
			ids[now.Address(task.ID(id))] = task.ID(id)
		}
	}
	for _, t := range s.Tasks {
		id, ok := ids[t.Address]
		if !ok {
			stale.Differences = append(stale.Differences, t.Address+" is gone")
			continue
		}
		self, err := now.taskDigest(&e, k, id)
		if err != nil {
			return err
		}
		if self != t.Digest {
			stale.Differences = append(stale.Differences, t.Address+" has changed")
		}
	}
	stale.Differences = append(stale.Differences, would...)
	if stale.Differences == nil {
		stale.Differences = []string{fmt.Sprintf("what it does not run has changed: the graph was %s and is %s", s.Graph.Short(), graph.Short())}
	}
	return stale
}

// unheld names what would run now and is not in the saved plan.
func unheld(s *Saved, now *Plan) (would []string) {
	held := make(map[string]bool, len(s.Tasks))
	for _, t := range s.Tasks {
		held[t.Address] = true
	}
	for i := range now.Items {
		if id := task.ID(i); now.mayRun(id) && !held[now.Address(id)] {
			would = append(would, now.Address(id)+" would run")
		}
	}
	return would
}

func (p *Plan) mayRun(id task.ID) bool {
	return p.Wanted[id] && p.Items[id].Decision <= Maybe
}

// Estimate is how long a task took last; where it has no history, its time limit as the upper bound, 0 if that is unknown too.
func (p *Plan) Estimate(id task.ID) (d time.Duration, history bool) {
	r := p.Items[id].Record
	if r == nil {
		r = p.latest(id)
	}
	if r != nil {
		return r.Elapsed, true
	}
	return p.Graph.Tasks[id].Timeout, false
}
