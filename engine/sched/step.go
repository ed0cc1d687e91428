package sched

import (
	"time"

	"pbuild/engine/task"
)

// An EventType says what happened.
type EventType uint8

const (
	Begin     EventType = iota
	Reuse               // resolving: a record serves
	Run                 // resolving: none does; the task has this key
	Fail                // resolving: it cannot start
	Ended               // a run is over
	Committed           // what it left is durable, or is not to be kept
	Lost                // it could not be made durable
	Wake                // a retry's time has come
	Stop                // start nothing more
	Kill                // and end what runs
)

// An Event is one input of Step. Which fields are set depends on Type.
type Event struct {
	Type     EventType
	Task     task.ID
	Key      task.Key     // Run
	Record   *task.Record // Reuse, Ended
	Cause    string       // Ended, Fail, Lost: the one line of a failure
	Status   task.Status  // Fail
	Final    bool         // Ended: trying again is of no use
	Rejected bool         // Reuse, Ended, Committed: though ok it counts as failed, for FailFast
}

// An ActionType says what is to be done.
type ActionType uint8

const (
	Resolve   ActionType = iota // unless a stop came between (see Resolving), find a record for the task; answer with Reuse, Run or Fail
	Start                       // run it; answer with Ended
	Commit                      // make what it ended with durable, if it is to be; answer with Committed or Lost
	Retry                       // answer with Wake after the time given
	Finish                      // nothing: the task has ended, as Ends tells
	Interrupt                   // end what runs
)

// An Action is one output of Step.
type Action struct {
	Type    ActionType
	Task    task.ID
	Attempt int           // Start: 1 is the first
	Alone   bool          // Start: it is a confirming run
	Record  *task.Record  // Retry; Commit, where nil is nothing to keep
	Cause   string        // Retry
	After   time.Duration // Retry
}

// Step takes an event and returns what is to be done, in order, valid until the next Step. It panics where the event does not fit the phase of its task.
func (s *State) Step(e Event) []Action {
	s.actions = s.actions[:0]
	switch e.Type {
	case Begin:
		s.begin()
	case Reuse:
		s.expect(e.Task, resolving, e.Type)
		s.resolves--
		s.finish(e.Task, phaseOf(e.Record.Status), task.End{Record: e.Record, Status: e.Record.Status, Cause: e.Cause}, e.Rejected)
	case Run:
		s.expect(e.Task, resolving, e.Type)
		s.resolves--
		s.enqueue(e.Task, e.Key)
	case Fail:
		s.expect(e.Task, resolving, e.Type)
		s.resolves--
		s.finish(e.Task, Failed, task.End{Record: e.Record, Status: e.Status, Cause: e.Cause}, false)
	case Ended:
		s.ended(e)
	case Committed:
		s.expect(e.Task, committing, e.Type)
		s.finish(e.Task, phaseOf(s.ends[e.Task].Status), s.ends[e.Task], e.Rejected)
	case Lost:
		s.expect(e.Task, committing, e.Type)
		s.finish(e.Task, Failed, task.End{Record: s.ends[e.Task].Record, Status: task.Infra, Cause: e.Cause}, false)
	case Wake:
		if s.stage[e.Task] == backoff { // a stop may have ended it
			s.requeue(e.Task)
		}
	case Stop:
		s.stop()
	case Kill:
		s.stop()
		s.act(Action{Type: Interrupt})
	}
	s.settle()
	s.dispatch()
	return s.actions
}

func (s *State) act(a Action) { s.actions = append(s.actions, a) }

func phaseOf(st task.Status) Phase {
	if st == task.OK {
		return Done
	}
	return Failed
}

func (s *State) begin() {
	if s.began {
		panic("pbuild bug: an apply began twice")
	}
	s.began = true
	for id := range s.phase {
		if s.wanted(task.ID(id)) && s.waits[id] == 0 && s.phase[id] == Waiting {
			s.arrived = append(s.arrived, task.ID(id))
		}
	}
}

// settle gives every task whose last dependency has ended its fate. What that ends may let others arrive.
func (s *State) settle() {
	for i := 0; i < len(s.arrived); i++ { // s.arrived grows meanwhile
		id := s.arrived[i]
		if s.phase[id] != Waiting {
			continue // a stop has ended it
		}
		switch fate, root, _ := s.cfg.Graph.Tasks[id].Fate(s.lookup); fate {
		case task.Unneed:
			s.finish(id, Done, task.End{}, false)
		case task.Skip:
			s.skip(id, root)
		case task.Proceed:
			s.move(id, Ready, resolving)
			s.resolves++
			s.act(Action{Type: Resolve, Task: id})
		}
	}
	s.arrived = s.arrived[:0]
}

func (s *State) skip(id, root task.ID) {
	s.finish(id, Skipped, task.End{Status: s.ends[root].Status, Cause: s.ends[root].Cause, Root: root}, false)
}

func (s *State) enqueue(id task.ID, key task.Key) {
	if leader, ok := s.leaders[key]; ok {
		s.stage[id] = following
		s.followers[leader] = append(s.followers[leader], id)
		return
	}
	s.keys[id] = key
	s.leaders[key] = id
	s.requeue(id)
}

func (s *State) requeue(id task.ID) {
	s.stage[id] = queued
	s.queue(id).heap.push(id)
}

// ended frees what a run took, and decides whether there is to be another.
func (s *State) ended(e Event) {
	id, r := e.Task, e.Record
	s.expect(id, executing, e.Type)
	q := s.queue(id)
	q.running--
	pure := q == &s.queues[pureQueue]
	wasAlone := s.alone && !pure
	if pure {
		s.pure--
	} else {
		s.slots--
		s.alone = false
	}
	s.ends[id] = task.End{Record: r, Status: r.Status, Cause: e.Cause}
	again := r.Status == task.Infra || r.Status == task.Provider
	switch {
	case r.Status == task.OK && r.Confirm && !wasAlone && !pure:
		if s.stopping {
			s.ends[id].Status, s.ends[id].Cause, r = task.Cancelled, unconfirmed, nil
			break
		}
		s.move(id, Ready, confirming)
		s.confirm.push(id)
		return
	case again && !e.Final && !pure && !s.stopping && int(s.tries[id]) < s.cfg.Retries:
		s.move(id, Ready, backoff)
		after := s.cfg.Backoff << min(s.tries[id], 16)
		s.tries[id]++
		s.act(Action{Type: Retry, Task: id, After: after, Attempt: int(s.runs[id]) + 1, Record: r, Cause: e.Cause})
		return
	}
	s.failing = s.failing || s.isFailure(id, phaseOf(s.ends[id].Status), e.Rejected)
	s.stage[id] = committing
	s.act(Action{Type: Commit, Task: id, Record: r})
}

// finish ends a task and lets its dependents and its equals go on.
func (s *State) finish(id task.ID, to Phase, end task.End, rejected bool) {
	s.move(id, to, idle)
	s.ends[id] = end
	s.left--
	s.act(Action{Type: Finish, Task: id})
	for _, up := range s.up[s.upStart[id]:s.upStart[id+1]] {
		if s.waits[up]--; s.waits[up] == 0 && s.phase[up] == Waiting {
			s.arrived = append(s.arrived, up)
		}
	}
	if s.isFailure(id, to, rejected) {
		s.stop()
	}
	s.release(id)
}

// isFailure says whether nothing more is to start because of how a task ends.
func (s *State) isFailure(id task.ID, to Phase, rejected bool) bool {
	return s.cfg.FailFast && (rejected || to == Failed && !(s.ends[id].Status == task.Failed && s.tolerated[id]))
}

// release lets the tasks whose key is that of a task which has ended look for its record.
func (s *State) release(id task.ID) {
	if len(s.leaders) == 0 || s.leaders[s.keys[id]] != id {
		return
	}
	delete(s.leaders, s.keys[id])
	for _, f := range s.followers[id] {
		if !s.stopping { // else a stop has ended it, or is about to
			s.stage[f] = resolving
			s.resolves++
			s.act(Action{Type: Resolve, Task: f})
		}
	}
	delete(s.followers, id)
}

// dispatch starts what there is room for, the longest critical path first. While records are still looked for, the best task is not known.
func (s *State) dispatch() {
	if s.stopping || s.failing || s.resolves > 0 {
		return
	}
	for p := &s.queues[pureQueue]; p.open(); {
		s.start(p.heap.pop(), p, false)
		s.pure++
	}
	for !s.alone && s.slots < s.cfg.Slots {
		q := s.best()
		if q == nil {
			break
		}
		s.start(q.heap.pop(), q, false)
		s.slots++
	}
	// Confirming runs come last, when nothing else can start: to drain the slots for each would leave them idle.
	if s.slots == 0 && len(s.confirm.ids) > 0 {
		id := s.confirm.pop()
		s.start(id, s.queue(id), true)
		s.slots++
		s.alone = true
	}
}

func (s *State) start(id task.ID, q *queue, alone bool) {
	s.move(id, Running, executing)
	q.running++
	s.runs[id]++
	s.act(Action{Type: Start, Task: id, Attempt: int(s.runs[id]), Alone: alone})
}

const unconfirmed = "stopped before the run that was to confirm its time-out"

// stop ends all that does not run: as skipped below a failure, as the failure that was to be tried again, else as cancelled.
func (s *State) stop() {
	if s.stopping {
		return
	}
	s.stopping = true
	for i := range s.phase {
		id := task.ID(i)
		if !s.wanted(id) || s.phase[id] > Ready {
			continue
		}
		switch s.stage[id] {
		case backoff:
			s.finish(id, Failed, s.ends[id], false)
			continue
		case confirming:
			s.finish(id, Failed, task.End{Record: s.ends[id].Record, Status: task.Cancelled, Cause: unconfirmed}, false)
			continue
		case resolving:
			s.resolves--
		}
		if root := s.failedBelow(id); root != task.None {
			s.skip(id, root)
			continue
		}
		s.finish(id, Skipped, task.End{Status: task.Cancelled, Cause: "stopped before it began", Root: task.None}, false)
	}
}

// failedBelow is the root failure because of which a waiting task could not have run anyway, or None.
func (s *State) failedBelow(id task.ID) task.ID {
	if s.phase[id] != Waiting {
		return task.None
	}
	t := &s.cfg.Graph.Tasks[id]
	for i := range t.Deps {
		e := s.end(t.Deps[i].On)
		if e == nil || t.Deps[i].Accepts(e) || e.Status == task.Cancelled || e.Status == "" {
			continue
		}
		if e.Record == nil {
			return e.Root
		}
		return t.Deps[i].On
	}
	return task.None
}
