package apply

import (
	"errors"

	"pbuild/engine/plan"
	"pbuild/engine/sched"
	"pbuild/engine/task"
)

// resolve finds out whether a task, all of whose dependencies have ended, is reused or runs.
func (l *loop) resolve(id task.ID) {
	it := &l.p.Items[id]
	if it.Decision == plan.Reuse || it.Decision == plan.Maybe && it.Known {
		l.reuse(id, it.Record, it.Restore)
		return
	}
	key := it.Key
	if !it.Known {
		var err error
		if key, err = l.keyer.Key(id, l.ends); err != nil {
			st := task.Infra
			if missing := (plan.MissingInputs)(nil); errors.As(err, &missing) {
				st = task.Failed
			}
			l.fail(id, st, err.Error())
			return
		}
	}
	if r, restore := l.find(id, key); r != nil {
		l.reuse(id, r, restore)
		return
	}
	if lost := l.p.Lost(id, l.o.Journal.Lookup(key)); lost != nil {
		l.fail(id, task.Failed, lost.Error())
		return
	}
	l.step(sched.Event{Type: sched.Run, Task: id, Key: key})
}

// find returns the record that serves under a key, or nil. What an equal task has just left always does; an older record only if
// plan has not refused it already, and if nothing that the task tolerates is absent from its key.
func (l *loop) find(id task.ID, key task.Key) (r *task.Record, restore []int) {
	t := &l.p.Graph.Tasks[id]
	if t.NoCache || !l.fact(t) {
		return nil, nil
	}
	r = l.o.Journal.Lookup(key)
	if r != nil && r.Run == l.o.Run {
		return r, nil
	}
	if l.p.Items[id].Known {
		return nil, nil
	}
	restore, _, ok := l.p.Serves(id, r)
	if !ok {
		return nil, nil
	}
	return r, restore
}

// reuse ends a task with a record, once its outputs are there.
func (l *loop) reuse(id task.ID, r *task.Record, restore []int) {
	t := &l.p.Graph.Tasks[id]
	l.how[id] = reused
	for _, i := range restore {
		out, _ := r.Find(t.Outputs[i])
		if err := l.o.Restore(out); err != nil {
			// It does not run instead: a plan may be held to what it said.
			l.fail(id, task.Infra, "restore "+out.Role+": "+err.Error())
			return
		}
		l.refresh(out.Role)
		l.how[id] = restored
	}
	cause := ""
	if r.Status != task.OK {
		cause = r.Reason
	}
	l.step(sched.Event{Type: sched.Reuse, Task: id, Record: r, Cause: cause, Rejected: l.rejected(id, r)})
}

func (l *loop) fail(id task.ID, st task.Status, cause string) {
	l.how[id] = ran
	r := refusal(l.p.Graph.Tasks[id].Spec.Kind().Name, l.p.Address(id), task.Key{}, st, cause)
	l.step(sched.Event{Type: sched.Fail, Task: id, Record: r, Status: st, Cause: cause})
}

// fact says whether what a task ends with may be recorded: it tolerates no failure that is not itself recorded.
func (l *loop) fact(t *task.Task) bool {
	for i := range t.Deps {
		if !l.ends(t.Deps[i].On).Fact(l.ends) {
			return false
		}
	}
	return true
}
