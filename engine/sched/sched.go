// Package sched decides when tasks start. It is a state machine: Step takes an event and returns what is to be done. It has no goroutine, no
// clock and no input or output, so that every interleaving can be tested.
//
// It promises that a task starts only when all that it depends on has ended, that never more run than there are slots and places in its pool,
// that equal keys never run at once, that a confirming run has its node to itself, and that every wanted task ends exactly once.
package sched

import (
	"fmt"
	"slices"
	"time"

	"pbuild/engine/task"
)

// A Phase is where the scheduler has a task.
type Phase uint8

const (
	Waiting Phase = iota // something that it depends on has not ended
	Ready                // its fate is to proceed: being resolved, queued, or waiting for a retry or an equal task
	Running              // started, or finished and not yet committed
	Done                 // ran, was reused, or is unneeded
	Failed
	Skipped // what it needs failed, or it was cancelled before it began
)

var phaseNames = [...]string{"waiting", "ready", "running", "done", "failed", "skipped"}

func (p Phase) String() string { return phaseNames[p] }

// next holds for each phase the phases that may follow it.
var next = [...][]Phase{
	Waiting: {Ready, Done, Skipped},
	Ready:   {Running, Done, Failed, Skipped},
	Running: {Ready, Done, Failed},
	Done:    {},
	Failed:  {},
	Skipped: {},
}

// stage says more exactly what a Ready or Running task waits for.
type stage uint8

const (
	idle       stage = iota
	resolving        // Ready: the driver looks for a record
	queued           // Ready: for a slot
	following        // Ready: an equal task runs
	backoff          // Ready: a retry's time has not come
	confirming       // Ready: to run alone
	executing        // Running
	committing       // Running
)

// Config is what a State is made from.
type Config struct {
	Graph    *task.Graph
	Wanted   []bool // closed under dependencies; nil is all
	Slots    int    // how many tasks may run at once
	Pure     int    // how many of pure kinds may run besides
	Retries  int    // how often an infra or provider failure is tried again
	Backoff  time.Duration
	FailFast bool                        // start nothing more after a failure that no task tolerates
	Weight   func(task.ID) time.Duration // how long a task may take, for the critical path; nil: all alike
}

// A State is where every task is. It belongs to one goroutine.
type State struct {
	cfg   Config
	phase []Phase
	stage []stage
	waits []int32 // how many edges of it have not ended
	tries []uint8 // retries used
	runs  []int32 // runs started
	ends  []task.End
	keys  []task.Key

	upStart []int32 // dependents of id are up[upStart[id]:upStart[id+1]]
	up      []task.ID
	rank    []int64 // the critical path from a task to the end

	tolerated []bool // with FailFast

	queues    []queue
	queueOf   map[string]int32 // pools by name
	confirm   heap
	leaders   map[task.Key]task.ID
	followers map[task.ID][]task.ID

	left, slots, pure, resolves int
	alone, stopping, began      bool
	failing                     bool      // a failure that will stop the apply is being committed
	arrived                     []task.ID // their last dependency has ended
	actions                     []Action
	lookup                      task.Ends
}

// New makes the state before anything has begun.
func New(c Config) *State {
	n := len(c.Graph.Tasks)
	s := &State{
		cfg: c, phase: make([]Phase, n), stage: make([]stage, n), waits: make([]int32, n), tries: make([]uint8, n), runs: make([]int32, n),
		ends: make([]task.End, n), keys: make([]task.Key, n), leaders: map[task.Key]task.ID{}, followers: map[task.ID][]task.ID{},
	}
	if c.Slots < 1 || c.Pure < 1 {
		panic(fmt.Sprintf("pbuild bug: a scheduler with %d slots and %d for pure kinds", c.Slots, c.Pure))
	}
	if c.FailFast {
		s.tolerated = c.Graph.Tolerated(c.Wanted)
	}
	s.lookup = s.end
	s.link()
	s.rankAll()
	s.makeQueues()
	return s
}

func (s *State) wanted(id task.ID) bool { return s.cfg.Wanted == nil || s.cfg.Wanted[id] }

// link counts the edges into every wanted task and turns them round.
func (s *State) link() {
	g := s.cfg.Graph
	start := make([]int32, len(g.Tasks)+2)
	for id := range g.Tasks {
		if !s.wanted(task.ID(id)) {
			continue
		}
		s.left++
		for _, d := range g.Tasks[id].Deps {
			if !s.wanted(d.On) {
				panic(fmt.Sprintf("pbuild bug: task %d is wanted, and its dependency %d is not", id, d.On))
			}
			start[d.On+2]++
			s.waits[id]++
		}
	}
	for i := 2; i < len(start); i++ {
		start[i] += start[i-1]
	}
	s.up = make([]task.ID, start[len(start)-1])
	for id := range g.Tasks {
		if !s.wanted(task.ID(id)) {
			continue
		}
		for _, d := range g.Tasks[id].Deps {
			s.up[start[d.On+1]] = task.ID(id)
			start[d.On+1]++
		}
	}
	s.upStart = start[:len(g.Tasks)+1]
}

// rankAll gives every task the weight of the heaviest chain that begins with it.
func (s *State) rankAll() {
	s.rank = make([]int64, len(s.phase))
	for id := len(s.rank) - 1; id >= 0; id-- {
		if !s.wanted(task.ID(id)) {
			continue
		}
		w := int64(1)
		if s.cfg.Weight != nil {
			w = max(1, int64(s.cfg.Weight(task.ID(id))))
		}
		s.rank[id] += w
		for _, d := range s.cfg.Graph.Tasks[id].Deps {
			s.rank[d.On] = max(s.rank[d.On], s.rank[id])
		}
	}
}

// Left is how many wanted tasks have not ended.
func (s *State) Left() int { return s.left }

// Phase is where a task is.
func (s *State) Phase(id task.ID) Phase { return s.phase[id] }

// Resolving says whether an event Reuse, Run or Fail is awaited for a task.
func (s *State) Resolving(id task.ID) bool { return s.stage[id] == resolving }

// Ends are parallel to the graph's tasks; those of tasks that have not ended mean nothing yet.
func (s *State) Ends() []task.End { return s.ends }

// Starved says whether a slot is free for which there is no task: then what is uncommitted should wait for no more to join it.
func (s *State) Starved() bool { return s.slots < s.cfg.Slots && !s.alone }

// Key is what the event Run gave for a task.
func (s *State) Key(id task.ID) task.Key { return s.keys[id] }

// Runs is how often a task was started.
func (s *State) Runs(id task.ID) int { return int(s.runs[id]) }

func (s *State) end(id task.ID) *task.End {
	if s.phase[id] < Done {
		return nil
	}
	return &s.ends[id]
}

// move is the one place where a phase changes.
func (s *State) move(id task.ID, to Phase, st stage) {
	from := s.phase[id]
	if !slices.Contains(next[from], to) {
		panic(fmt.Sprintf("pbuild bug: task %d goes from %s to %s", id, from, to))
	}
	s.phase[id], s.stage[id] = to, st
}

// expect is the precondition of an event.
func (s *State) expect(id task.ID, st stage, e EventType) {
	if s.stage[id] != st {
		panic(fmt.Sprintf("pbuild bug: event %d for task %d, which is %s in stage %d", e, id, s.phase[id], s.stage[id]))
	}
}
