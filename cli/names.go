package cli

import (
	"pbuild/engine/task"
)

// names gives every task the address it is shown under: that of the first object that has it. Addresses are made when they are printed,
// never for all tasks at once.
type names struct {
	g     *task.Graph
	owner []place // parallel to g.Tasks
}

type place struct{ object, step int32 }

func newNames(g *task.Graph) *names {
	n := &names{g: g, owner: make([]place, len(g.Tasks))}
	for i := range n.owner {
		n.owner[i].object = -1
	}
	for i := range g.Objects {
		for k, s := range g.Objects[i].Steps {
			if n.owner[s.Task].object < 0 {
				n.owner[s.Task] = place{int32(i), int32(k)}
			}
		}
	}
	return n
}

// of is a task's address. A task of no object (there is none in a graph that lower made) is named by its kind.
func (n *names) of(id task.ID) string {
	p := n.owner[id]
	if p.object < 0 {
		return n.g.Tasks[id].Spec.Kind().Name
	}
	return address(&n.g.Objects[p.object], int(p.step))
}

// block is the declared block that a task belongs to.
func (n *names) block(id task.ID) string {
	p := n.owner[id]
	if p.object < 0 {
		return n.g.Tasks[id].Spec.Kind().Name
	}
	return n.g.Objects[p.object].Block
}

// kind is the name of a task's kind.
func (n *names) kind(id task.ID) string { return n.g.Tasks[id].Spec.Kind().Name }
