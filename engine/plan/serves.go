package plan

import (
	"fmt"
	"time"

	"pbuild/engine/task"
)

// Serves says whether a record under a task's key may stand for a run of it. restore lists the outputs to be brought back from the store first;
// reasons says why the record does not serve, or what is restored.
func (p *Plan) Serves(id task.ID, r *task.Record) (restore []int, reasons []Reason, ok bool) {
	t, in := &p.Graph.Tasks[id], p.Inputs
	if r == nil || !r.Keepable() {
		return nil, nil, false
	}
	age := time.Duration(in.Now-r.Started) - r.Elapsed
	switch {
	case t.NoCache:
		return nil, []Reason{{Code: UpstreamUnknown, Detail: "precondition"}}, false
	case p.Replaces(id, r.Key):
		return nil, []Reason{{Code: Replaced}}, false
	case t.MaxAge > 0 && age > t.MaxAge:
		return nil, []Reason{{Code: Expired, Detail: "max_age", Old: age.String(), New: t.MaxAge.String()}}, false
	case in.MinIsolation != nil && r.Isolation != "" && !in.MinIsolation(t, r.Isolation): // pure kinds have none
		return nil, []Reason{{Code: Isolation, Detail: r.Isolation}}, false
	}
	switch {
	case r.Status != task.OK:
		return nil, nil, true
	case t.Spec.Kind().Files:
		return p.outputs(t, r)
	}
	lost := p.lost(r)
	return nil, lost, lost == nil
}

// Replaces says whether a task runs under a key though a record holds: because it was named, or because it is equal work with one that was.
func (p *Plan) Replaces(id task.ID, k task.Key) bool { return p.Inputs.Replace[id] || p.replaced[k] }

// lost are the outputs of r whose content is no longer in the store.
func (p *Plan) lost(r *task.Record) (lost []Reason) {
	if p.Inputs.Stored == nil {
		return nil
	}
	for _, o := range r.Outputs {
		if !o.Digest.IsZero() && !p.Inputs.Stored(o) {
			lost = append(lost, Reason{Code: OutputMissing, Detail: o.Role})
		}
	}
	return lost
}

// Lost says of a frozen task whether its record r holds while something that it gave is gone.
func (p *Plan) Lost(id task.ID, r *task.Record) *LostSample {
	if r == nil || r.Status != task.OK || !p.Graph.Tasks[id].Spec.Kind().Frozen {
		return nil
	}
	if lost := p.lost(r); lost != nil {
		return &LostSample{id, r, lost[0].Detail}
	}
	return nil
}

// A LostSample is a frozen task whose record holds while what it gave is gone. It is never run again unasked: that could cost money, and would give something else.
type LostSample struct {
	Task   task.ID
	Record *task.Record
	Output string
}

func (e *LostSample) Error() string {
	return fmt.Sprintf("output %s of a sample that cannot be made again is not in the store (key %s)", e.Output, e.Record.Key.Short())
}

// LostSamples are all of a plan's, in the order of tasks.
type LostSamples []*LostSample

func (e LostSamples) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%s, and %d more", e[0].Error(), len(e)-1)
}

// outputs compares the files that r says were made with those on the disk.
func (p *Plan) outputs(t *task.Task, r *task.Record) (restore []int, reasons []Reason, ok bool) {
	var lost []Reason
	for i, path := range t.Outputs {
		made, recorded := r.Find(path)
		if recorded {
			have, ok, err := p.Inputs.Files.Input(path)
			if err == nil && ok && have.Digest == made.Digest && have.Mode == made.Mode {
				continue
			}
		}
		if recorded && p.Inputs.Stored != nil && p.Inputs.Stored(made) {
			restore = append(restore, i)
			reasons = append(reasons, Reason{Code: Restore, Detail: path})
		} else {
			lost = append(lost, Reason{Code: OutputMissing, Detail: path})
		}
	}
	if lost != nil {
		return nil, lost, false
	}
	return restore, reasons, true
}
