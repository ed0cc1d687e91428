package apply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"pbuild/engine/plan"
	"pbuild/engine/sched"
	"pbuild/engine/task"
)

// A loop is one apply. Its fields belong to the caller's goroutine but for those that say otherwise.
type loop struct {
	o       Options
	p       *plan.Plan
	s       *sched.State
	keyer   *plan.Keyer
	ends    task.Ends // also read by workers: of tasks that ended before theirs began
	todo    []sched.Action
	flights map[task.ID]*result // started and not ended; a run that waits for its retry stays
	how     []manner

	slots, pures chan job
	results      chan result
	workers      sync.WaitGroup
	kill         context.Context // of all workers
	killNow      context.CancelFunc
	wake         chan task.ID
	over         chan struct{}
	commits      *committer
	teller       *teller

	began       time.Time
	fatal       error
	interrupted bool
	sum         Summary
}

// manner is how a task came by what it ended with, where it did not run.
type manner uint8

const (
	ran manner = iota
	reused
	restored
)

func newLoop(ctx context.Context, o Options) *loop {
	l := &loop{
		o: o, p: o.Plan, s: newState(&o), keyer: o.Plan.Keyer(), flights: make(map[task.ID]*result), how: make([]manner, len(o.Plan.Items)),
		slots: make(chan job, o.Slots), pures: make(chan job, o.Pure), results: make(chan result, o.Slots+o.Pure),
		wake: make(chan task.ID), over: make(chan struct{}), commits: newCommitter(o.Journal), teller: newTeller(o.Events), began: o.Clock(),
	}
	ends := l.s.Ends()
	l.ends = func(id task.ID) *task.End { return &ends[id] }
	l.kill, l.killNow = context.WithCancel(ctx)
	l.workers.Add(o.Slots + o.Pure)
	for range o.Slots {
		go l.work(l.slots)
	}
	for range o.Pure {
		go l.work(l.pures)
	}
	return l
}

func (l *loop) close() {
	close(l.over)
	close(l.slots)
	close(l.pures)
	l.workers.Wait()
	l.killNow()
	l.commits.stop()
	l.teller.close()
}

func (l *loop) run(ctx context.Context) {
	stop, kill := l.o.Stop, ctx.Done()
	l.step(sched.Event{Type: sched.Begin})
	for {
		select { // before anything starts
		case <-stop:
			stop = nil
			l.interrupt(sched.Stop)
		case <-kill:
			kill = nil
			l.interrupt(sched.Kill)
		default:
		}
		l.act()
		if l.s.Left() == 0 {
			return
		}
		if l.s.Starved() {
			l.commits.flush() // a slot is free, and what is uncommitted may hold back what could fill it
		}
		l.commits.pump()
		select {
		case r := <-l.results:
			l.ended(r)
		case b := <-l.commits.out:
			l.committed(b)
		case <-l.commits.expired:
			l.commits.flush()
		case id := <-l.wake:
			l.step(sched.Event{Type: sched.Wake, Task: id})
		case <-stop:
			stop = nil
			l.interrupt(sched.Stop)
		case <-kill:
			kill = nil
			l.interrupt(sched.Kill)
		}
	}
}

func (l *loop) interrupt(e sched.EventType) {
	l.interrupted = true
	l.step(sched.Event{Type: e})
}

func (l *loop) step(e sched.Event) { l.todo = append(l.todo, l.s.Step(e)...) }

// act does what the scheduler asked for, and what it asks for meanwhile.
func (l *loop) act() {
	for i := 0; i < len(l.todo); i++ {
		switch a := l.todo[i]; a.Type {
		case sched.Resolve:
			if l.s.Resolving(a.Task) {
				l.resolve(a.Task)
			}
		case sched.Start:
			l.start(a)
		case sched.Commit:
			l.commit(a)
		case sched.Retry:
			l.retry(a)
		case sched.Finish:
			l.finish(a.Task)
		case sched.Interrupt:
			l.killNow()
		}
	}
	clear(l.todo) // let go of records
	l.todo = l.todo[:0]
}

// start hands a task to a worker.
func (l *loop) start(a sched.Action) {
	t := &l.p.Graph.Tasks[a.Task]
	kind := t.Spec.Kind()
	j := job{id: a.Task, executor: l.o.Executors[kind.Name], fact: l.fact(t)}
	key, err := l.keyer.Key(a.Task, l.ends)
	if err == nil {
		j.preimage = append([]byte(nil), l.keyer.Preimage()...)
		j.files = l.keyer.Files()
	}
	j.attempt = l.attempt(a.Task, l.s.Key(a.Task), a.Attempt, nil)
	j.attempt.Alone = a.Alone
	if before := l.flights[a.Task]; before != nil && a.Alone {
		j.attempt.Before = before.record
	}
	l.flights[a.Task] = &result{job: j}
	l.tell(Event{Type: "start", Task: a.Task, Attempt: a.Attempt, Key: j.attempt.Key})
	switch {
	case err != nil:
		l.ended(j.refused(task.Failed, err.Error()))
	case key != j.attempt.Key:
		l.ended(j.refused(task.Failed, "an input changed while it waited to run"))
	case j.executor == nil:
		l.ended(j.refused(task.Infra, fmt.Sprintf("this version cannot run %s tasks yet", kind.Name)))
	case kind.Pure:
		l.pures <- j
	default:
		l.slots <- j
	}
}

// refused is the result of a job that no worker took.
func (j job) refused(st task.Status, cause string) result {
	a := j.attempt
	return result{job: j, cause: cause, final: true, record: refusal(a.Task.Spec.Kind().Name, a.Address, a.Key, st, cause)}
}

// refusal stands for a run that could not begin. It is never recorded.
func refusal(kind, address string, key task.Key, st task.Status, cause string) *task.Record {
	return &task.Record{Kind: kind, Address: address, Key: key, Outcome: task.Outcome{Status: st, Reason: cause}}
}

// ended looks at what a run left, before the scheduler does.
func (l *loop) ended(r result) {
	if r.record.Status == task.OK {
		if path := l.changed(r.files); path != "" {
			r.cause = "input changed while running: " + path
			r.record.Status, r.record.Outcome.Record, r.record.Reason = task.Failed, false, r.cause
		}
	}
	for _, path := range r.attempt.Task.Outputs {
		l.refresh(path)
	}
	if l.p.Replaces(r.id, r.record.Key) && r.record.Status == task.OK {
		if old := l.o.Journal.Lookup(r.record.Key); old != nil && old.Verdict != r.record.Verdict {
			r.record.Flags = append(r.record.Flags, task.FlagUnstable)
		}
	}
	if r.record.USD != 0 {
		if l.sum.USD == nil {
			l.sum.USD = new(float64)
		}
		*l.sum.USD += r.record.USD
	}
	l.flights[r.id] = &r
	l.step(sched.Event{Type: sched.Ended, Task: r.id, Record: r.record, Cause: r.cause, Final: r.final, Rejected: l.rejected(r.id, r.record)})
}

// changed returns the first file that is not what a key holds.
func (l *loop) changed(files []task.FileInput) string {
	for _, f := range files {
		l.refresh(f.Path)
		now, ok, err := l.p.Inputs.Files.Input(f.Path)
		if err != nil || !ok || now.Digest != f.Digest || now.Mode != f.Mode {
			return f.Path
		}
	}
	return ""
}

// refresh makes the next look at a file a new one.
func (l *loop) refresh(path string) {
	if f, ok := l.p.Inputs.Files.(Refresher); ok {
		f.Refresh(path)
	}
}

// commit keeps what a task ended with, if that is a fact.
func (l *loop) commit(a sched.Action) {
	t := &l.p.Graph.Tasks[a.Task]
	if a.Record == nil || !a.Record.Keepable() || t.NoCache || !l.flights[a.Task].fact {
		l.step(sched.Event{Type: sched.Committed, Task: a.Task, Rejected: l.rejected(a.Task, a.Record)})
		return
	}
	frozen := t.Spec.Kind().Frozen
	if l.fatal != nil && !frozen { // what cannot be made again is tried by itself all the same
		l.step(sched.Event{Type: sched.Lost, Task: a.Task, Cause: l.fatal.Error()})
		return
	}
	l.commits.add(a.Task, a.Record, frozen)
}

// committed lets a batch's tasks be done. Where it could not be appended, the apply starts nothing more, and says so in the end.
func (l *loop) committed(b batch) {
	l.commits.busy = false
	if b.err != nil && l.fatal == nil {
		l.fatal = b.err
	}
	for i, id := range b.ids {
		e := sched.Event{Type: sched.Committed, Task: id, Rejected: l.rejected(id, b.records[i])}
		if b.err != nil {
			e = sched.Event{Type: sched.Lost, Task: id, Cause: b.err.Error()}
		}
		l.step(e)
	}
	if b.err != nil {
		l.step(sched.Event{Type: sched.Stop})
	}
}

func (l *loop) rejected(id task.ID, r *task.Record) bool {
	return l.o.Failed != nil && r != nil && r.Status == task.OK && l.o.Failed(&l.p.Graph.Tasks[id], r)
}

func (l *loop) retry(a sched.Action) {
	l.tell(Event{Type: "retry", Task: a.Task, Attempt: a.Attempt, Record: a.Record, Detail: a.Cause})
	if a.After <= 0 {
		l.step(sched.Event{Type: sched.Wake, Task: a.Task})
		return
	}
	time.AfterFunc(a.After, func() {
		select {
		case l.wake <- a.Task:
		case <-l.over:
		}
	})
}
