package plan

import (
	"strconv"

	"pbuild/engine/task"
)

// addresses finds the steps under which tasks are reached. It is three flat tables, made once when first asked for:
// the strings are built only where they are printed or looked up.
type addresses struct {
	start  []int32 // of task id: entries start[id] to start[id+1]
	object []int32
	step   []int32
}

func (p *Plan) addresses() *addresses {
	p.once.Do(func() { p.names = index(p.Graph) })
	return &p.names
}

func index(g *task.Graph) addresses {
	start := make([]int32, len(g.Tasks)+2)
	total := 0
	for i := range g.Objects {
		for _, s := range g.Objects[i].Steps {
			start[s.Task+2]++
			total++
		}
	}
	for i := 2; i < len(start); i++ {
		start[i] += start[i-1]
	}
	a := addresses{object: make([]int32, total), step: make([]int32, total)}
	for i := range g.Objects {
		for j, s := range g.Objects[i].Steps {
			at := start[s.Task+1] // becomes the end of the task's entries, which is the start of the next one's
			a.object[at], a.step[at] = int32(i), int32(j)
			start[s.Task+1]++
		}
	}
	a.start = start[:len(g.Tasks)+1]
	return a
}

// Address is the first address under which a task is reached, in the order of the graph's objects. It may be called from many goroutines.
func (p *Plan) Address(id task.ID) string {
	a := p.addresses()
	if a.start[id] == a.start[id+1] {
		return p.Graph.Tasks[id].Spec.Kind().Name + "." + strconv.Itoa(int(id))
	}
	return a.at(p.Graph, a.start[id])
}

func (a *addresses) at(g *task.Graph, entry int32) string {
	return g.Objects[a.object[entry]].Address(int(a.step[entry])).String()
}

// Addresses are all addresses under which a task is reached.
func (p *Plan) Addresses(id task.ID) []string {
	a := p.addresses()
	if a.start[id] == a.start[id+1] {
		return []string{p.Address(id)}
	}
	var out []string
	for e := a.start[id]; e < a.start[id+1]; e++ {
		out = append(out, a.at(p.Graph, e))
	}
	return out
}

// latest returns the newest record that any of a task's addresses ran under, if it is of the task's kind.
func (p *Plan) latest(id task.ID) *task.Record {
	if p.Inputs.Latest == nil {
		return nil
	}
	var newest *task.Record
	kind := p.Graph.Tasks[id].Spec.Kind().Name
	for _, a := range p.Addresses(id) {
		r := p.Inputs.Latest(a)
		if r != nil && r.Kind == kind && (newest == nil || r.Started > newest.Started) {
			newest = r
		}
	}
	return newest
}

// started says whether an earlier run began a task, and how it failed: "" where it was killed.
func (p *Plan) started(id task.ID) (failure string, began bool) {
	if p.Inputs.Started == nil {
		return "", false
	}
	for _, a := range p.Addresses(id) {
		if failure, began := p.Inputs.Started(a); began {
			return failure, true
		}
	}
	return "", false
}
