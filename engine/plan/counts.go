package plan

import "pbuild/engine/task"

// A Tally counts decisions.
type Tally struct {
	Run      int `json:"run"`
	Maybe    int `json:"maybe"`
	Reuse    int `json:"reuse"`
	Unneeded int `json:"unneeded"`
}

// add counts one decision.
func (t *Tally) add(d Decision) {
	switch d {
	case Run:
		t.Run++
	case Maybe:
		t.Maybe++
	case Reuse:
		t.Reuse++
	case Unneeded:
		t.Unneeded++
	}
}

// Counts are a plan's numbers: tasks in all, and what the user declared by class.
type Counts struct {
	Tally
	ByClass map[task.Class]Tally `json:"by_kind"`
}

// classes are those that are counted: the tasks of the others are steps towards these.
var classes = [...]task.Class{task.ClassInstance, task.ClassGate, task.ClassCandidate, task.ClassHandshake, task.ClassImage, task.ClassReport, task.ClassTask}

// Counts counts wanted tasks, and objects of which any step is wanted.
func (p *Plan) Counts() Counts {
	var c Counts
	for id := range p.Items {
		if p.Wanted[id] {
			c.add(p.Items[id].Decision)
		}
	}
	c.ByClass = make(map[task.Class]Tally, len(classes))
	for _, class := range classes {
		c.ByClass[class] = Tally{}
	}
	for i := range p.Graph.Objects {
		o := &p.Graph.Objects[i]
		t, counted := c.ByClass[o.Class]
		if d, ok := p.strongest(o); ok && counted {
			t.add(d)
			c.ByClass[o.Class] = t
		}
	}
	return c
}

// strongest is the strongest decision of an object's wanted steps, run before maybe before reuse before unneeded; ok is false if none is wanted.
func (p *Plan) strongest(o *task.Object) (d Decision, ok bool) {
	d = Unneeded
	for _, s := range o.Steps {
		if p.Wanted[s.Task] {
			d, ok = min(d, p.Items[s.Task].Decision), true // the order of the constants
		}
	}
	return d, ok
}
