package apply

import (
	"fmt"

	"pbuild/engine/sched"
	"pbuild/engine/task"
)

// tell gives an event its time and passes it on. Workers call it too.
func (l *loop) tell(e Event) {
	if l.o.Events != nil {
		e.Time = l.o.Clock()
		l.teller.tell(e)
	}
}

func droppedNote(bytes int) Event {
	return Event{Type: "note", Task: task.None, Code: "log_dropped", Detail: fmt.Sprintf("%d bytes of output came faster than they were read", bytes)}
}

// finish counts a task that has ended, and tells of it.
func (l *loop) finish(id task.ID) {
	end, phase := l.ends(id), l.s.Phase(id)
	e := Event{Type: "end", Task: id, Record: end.Record, Status: end.Status, Phase: phase.String(), Detail: end.Cause, Attempt: l.s.Runs(id)}
	if f := l.flights[id]; f != nil {
		if phase == sched.Failed && end.Record != nil {
			e.Data = end.Record.Tail
		}
		delete(l.flights, id)
	}
	switch {
	case end.Status == "":
		e.Phase = "unneeded"
		l.sum.Unneeded++
	case phase == sched.Skipped && end.Status != task.Cancelled:
		l.sum.Skipped++
	case l.how[id] != ran:
		e.Type = "reuse"
		l.sum.Reuse++
		if phase == sched.Done {
			e.Phase = "reused"
			if l.how[id] == restored {
				e.Phase = "restored"
				l.sum.Restored++
			}
		}
	}
	if l.rejected(id, end.Record) {
		e.Phase, e.Detail = "failed", Rejection(end.Record)
	}
	l.count(id, end, phase)
	l.tell(e)
}

// Rejection says of a record that Options.Failed names why it counts as failed: its one word, and its reason if it has one.
func Rejection(r *task.Record) string {
	if r.Reason == "" {
		return r.Outcome.Outcome
	}
	return r.Outcome.Outcome + ": " + r.Reason
}

func (l *loop) count(id task.ID, end *task.End, phase sched.Phase) {
	if l.s.Runs(id) > 0 {
		l.sum.Run++
	}
	if end.Status == task.Cancelled {
		l.sum.Cancelled++
	}
	if phase == sched.Failed {
		switch end.Status {
		case task.Failed:
			l.sum.Failed++
		case task.Infra:
			l.sum.Infra++
		case task.Provider:
			l.sum.Provider++
		}
	}
	if end.Record != nil && phase == sched.Done {
		if l.rejected(id, end.Record) {
			l.sum.Failed++
		}
		if end.Record.Outcome.Outcome == "flaky" {
			l.sum.Flaky++
		}
	}
}

func (l *loop) summary() *Summary {
	l.sum.Ends = l.s.Ends()
	l.sum.Absorbed = absorbed(l.p.Graph, l.p.Wanted, l.sum.Ends)
	l.sum.Failed -= len(l.sum.Absorbed)
	l.sum.Wall = l.o.Clock().Sub(l.began)
	l.sum.Interrupted = l.interrupted
	return &l.sum
}

// absorbed finds the failures that came, directly or by way of what they skipped, to a task that tolerates failures and ended well: of what was skipped
// for several, all.
func absorbed(g *task.Graph, wanted []bool, ends []task.End) map[task.ID]bool {
	found, seen := map[task.ID]bool{}, map[task.ID]bool{}
	var mark func(id task.ID)
	mark = func(id task.ID) {
		switch {
		case ends[id].Status != task.Failed || seen[id]:
		case ends[id].Record != nil:
			found[id] = true
		default:
			seen[id] = true
			for i := range g.Tasks[id].Deps {
				mark(g.Tasks[id].Deps[i].On)
			}
		}
	}
	for id := range g.Tasks {
		if !wanted[id] || ends[id].Status != task.OK {
			continue
		}
		for i := range g.Tasks[id].Deps {
			if d := &g.Tasks[id].Deps[i]; d.Tolerate == task.TolerateFailed {
				mark(d.On)
			}
		}
	}
	return found
}
