package cli

import (
	"slices"

	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// A replacement is what --replace names: it runs although a record holds, once in an apply.
type replacement struct {
	named []selector
	done  map[string]bool // addresses of what an earlier part of the apply has replaced
}

// has says whether an earlier part of the apply has replaced a task.
func (r replacement) has(s *session, id task.ID) bool {
	return len(r.done) > 0 && slices.ContainsFunc(s.named.Addresses(id), func(a string) bool { return r.done[a] })
}

// add notes what a part of an apply has replaced.
func (r *replacement) add(p *plan.Plan) {
	if r.done == nil {
		r.done = map[string]bool{}
	}
	for id := range p.Inputs.Replace {
		if p.Wanted[id] {
			for _, a := range p.Addresses(id) {
				r.done[a] = true
			}
		}
	}
}

// toReplace is what r names, as far as it is in the graph, and is still to be replaced. What cannot be recomputed is not replaced: that would spend money
// under the name of a repair.
func (s *session) toReplace(r replacement) (map[task.ID]bool, error) {
	c, _ := match(s.graph, r.named)
	if c == nil {
		return nil, nil
	}
	out := make(map[task.ID]bool, len(c.tasks))
	for _, id := range c.tasks {
		if s.graph.Tasks[id].Spec.Kind().Frozen {
			return nil, usagef("--replace: %s cannot be recomputed; a new draw of it is asked for by --resample, which this version does not have yet", s.address(id))
		}
		if !r.has(s, id) {
			out[id] = true
		}
	}
	return out, nil
}

// checkReplaced finds what r names that is not wanted: to say nothing of it would be to ignore it.
func (s *session) checkReplaced(r replacement, wanted []bool) error {
	if _, err := s.choose(r.named); err != nil {
		return err
	}
	used := make([]bool, len(r.named))
	m := newMatcher(s.graph, r.named)
	for i := range s.graph.Objects {
		o := &s.graph.Objects[i]
		m.each(o, func(j, step int) {
			id := o.Steps[step].Task
			used[j] = used[j] || wanted[id] || r.has(s, id)
		})
	}
	for j := range r.named {
		if !used[j] && !r.named[j].not {
			return usagef("--replace %s: nothing of that is among what is chosen; choose it too, or leave --replace out", r.named[j].text)
		}
	}
	return nil
}
