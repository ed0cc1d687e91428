package task

import (
	"encoding/binary"
	"fmt"

	"pbuild/engine/digest"
)

// A Graph holds every task of a workspace, each after what it depends on, and the objects that the user declared.
// IDs are indices: 0 <= dependency < dependent < len(Tasks).
type Graph struct {
	Tasks   []Task
	Objects []Object
	Pools   map[string]int // how many tasks of a pool may run at once
	Salt    string

	first map[digest.Digest]ID // tasks by structure, so that equal work is one task whoever asks
	enc   digest.Encoder
}

// A Class is what a user calls a declared object; plan counts by it.
type Class string

const (
	ClassInstance  Class = "instance"
	ClassGate      Class = "gate"
	ClassCandidate Class = "candidate"
	ClassHandshake Class = "handshake"
	ClassImage     Class = "image"
	ClassRuntime   Class = "runtime" // its prepare; not counted
	ClassReport    Class = "report"
	ClassTask      Class = "task"
)

// An Object is one declared thing: an instance, a gate's verdict on one, a matrix cell, a report file. Its steps are tasks, perhaps
// shared with other objects; the last is what its address means.
type Object struct {
	Class Class
	Block string   // "gate.go"
	Index []string // ["ID"]; nil where the block has no for_each
	Steps []Step
	Tags  []string
}

// A Step is a task under the name it has within an object; "" where the object is one task.
type Step struct {
	Name string
	Task ID
}

// Address names step i of o.
func (o *Object) Address(i int) Address {
	return Address{Block: o.Block, Index: o.Index, Step: o.Steps[i].Name}
}

// Add appends t, or returns the task of equal structure that is there already: same spec, same dependencies in the same roles, same conditions, same Apart.
func (g *Graph) Add(t Task) ID {
	for _, d := range t.Deps {
		if d.On < 0 || int(d.On) >= len(g.Tasks) {
			panic(fmt.Sprintf("pbuild bug: task of kind %s depends on task %d of %d", t.Spec.Kind().Name, d.On, len(g.Tasks)))
		}
	}
	id := ID(len(g.Tasks))
	if t.Spec.Kind().Files { // owns files at fixed paths, and so is never shared
		g.Tasks = append(g.Tasks, t)
		return id
	}
	s := g.structure(&t)
	if have, ok := g.first[s]; ok {
		return have
	}
	if g.first == nil {
		g.first = make(map[digest.Digest]ID)
	}
	g.first[s] = id
	g.Tasks = append(g.Tasks, t)
	return id
}

func (g *Graph) structure(t *Task) digest.Digest {
	e := &g.enc
	e.Reset()
	e.String("kind", t.Spec.Kind().Name)
	e.Group("spec", t.Spec.Encode)
	var b []byte
	for _, d := range t.Deps {
		b = binary.AppendVarint(b, int64(d.On))
		b = append(b, byte(d.Use), byte(d.Tolerate))
		e.String(d.Role, d.Output)
	}
	for _, c := range t.When {
		b = binary.AppendVarint(b, int64(c.On))
		e.String("when", c.Fact)
		e.Bool("not", c.Not)
	}
	e.Bytes("edges", b)
	e.String("apart", t.Apart)
	return e.Sum()
}

// Tolerated finds the tasks whose failure comes, directly or by way of what it lets be skipped, to a wanted task that tolerates failures: how that one ends
// tells whether something is wrong. A nil wanted is all.
func (g *Graph) Tolerated(wanted []bool) []bool {
	found := make([]bool, len(g.Tasks))
	for id := len(found) - 1; id >= 0; id-- { // what depends on a task stands after it
		if wanted != nil && !wanted[id] {
			continue
		}
		for i := range g.Tasks[id].Deps {
			d := &g.Tasks[id].Deps[i]
			if d.Tolerate == TolerateFailed || d.Tolerate < TolerateFailed && found[id] {
				found[d.On] = true
			}
		}
	}
	return found
}
