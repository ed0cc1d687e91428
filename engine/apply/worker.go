package apply

import (
	"context"
	"fmt"
	"runtime/debug"

	"pbuild/engine/task"
)

// A job is one run of one task.
type job struct {
	id       task.ID
	attempt  *task.Attempt
	executor task.Executor
	preimage []byte
	files    []task.FileInput // the files that the key holds
	fact     bool             // nothing that it tolerates keeps it from being recorded
}

// A result is what a job came to.
type result struct {
	job
	record *task.Record
	cause  string // the one line of a failure, or a panic with its stack
	final  bool   // trying again is of no use
}

// work runs jobs until there are no more.
func (l *loop) work(jobs <-chan job) {
	defer l.workers.Done()
	for j := range jobs {
		l.results <- l.execute(j)
	}
}

func (l *loop) execute(j job) result {
	started := l.o.Clock()
	out, cause, final := guard(l.kill, j)
	a := j.attempt
	return result{job: j, cause: cause, final: final, record: &task.Record{
		Key: a.Key, Kind: a.Task.Spec.Kind().Name, Address: a.Address, Preimage: j.preimage, Started: started.UnixNano(),
		Elapsed: l.o.Clock().Sub(started), Attempt: a.Number, Run: l.o.Run, Outcome: out,
	}}
}

// guard calls the executor. A panic in it is the world's failure as far as the apply goes: one task fails, the others go on.
func guard(ctx context.Context, j job) (out task.Outcome, cause string, final bool) {
	defer func() {
		if p := recover(); p != nil {
			out = task.Outcome{Status: task.Infra, Reason: fmt.Sprintf("panic: %v", p)}
			cause = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	out, err := j.executor.Run(ctx, j.attempt)
	if err != nil {
		out.Status, out.Reason = task.Infra, err.Error()
		if ctx.Err() != nil {
			out.Status = task.Cancelled
		}
	}
	switch out.Status {
	case task.OK:
		return out, "", false
	case task.Failed, task.Infra, task.Provider, task.Cancelled:
		return out, out.Reason, task.IsFinal(err)
	}
	panic(fmt.Sprintf("pbuild bug: the executor of %s ended with status %q", j.attempt.Task.Spec.Kind().Name, out.Status))
}

// attempt makes what an executor sees of a run. Everything that it reads of ends has ended, so a worker may follow Input.Attempt further up.
func (l *loop) attempt(id task.ID, key task.Key, number int, note *task.Attempt) *task.Attempt {
	t := &l.p.Graph.Tasks[id]
	a := &task.Attempt{Address: l.p.Address(id), Task: t, Key: key, Number: number, Inputs: make([]task.Input, len(t.Deps))}
	if note != nil {
		a.Log, a.Note = note.Log, note.Note
	} else if l.o.Events != nil {
		a.Log = func(stream string, data []byte) {
			l.tell(Event{Type: "log", Task: id, Attempt: number, Stream: stream, Data: append([]byte(nil), data...)})
		}
		a.Note = func(code, detail string) {
			l.tell(Event{Type: "note", Task: id, Attempt: number, Code: code, Detail: detail})
		}
	} else {
		a.Note = func(code, detail string) {}
	}
	for i := range t.Deps {
		d := &t.Deps[i]
		e := l.ends(d.On)
		in := &a.Inputs[i]
		in.Dep, in.Record, in.Status, in.Cause = *d, e.Record, e.Status, e.Cause
		if d.Use != task.UseOrder {
			in.Digest = d.Contribution(l.ends)
		}
		if e.Status == task.OK && l.p.Graph.Tasks[d.On].Spec.Kind().Opaque {
			in.Attempt = func() *task.Attempt {
				up := l.attempt(d.On, e.Record.Key, 1, a)
				up.Record = e.Record
				return up
			}
		}
	}
	return a
}
