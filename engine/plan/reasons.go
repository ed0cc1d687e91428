package plan

import (
	"strings"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Reasons says why a task runs or may run, or what of it is restored. It is computed when asked for, since most runs of a new workspace need none.
func (p *Plan) Reasons(id task.ID) []Reason {
	it := &p.Items[id]
	switch {
	case !p.Wanted[id] || it.Decision == Unneeded:
		return nil
	case it.Reasons != nil:
		return it.Reasons
	case it.Decision == Reuse:
		return nil
	case it.Decision == Maybe:
		return []Reason{p.unknown(id)}
	}
	var reasons []Reason
	old := p.latest(id)
	if old != nil {
		reasons = p.differences(id, old)
	} else if failure, began := p.started(id); began {
		reasons = []Reason{{Code: NeverFinished, Detail: failure}}
	} else {
		return []Reason{{Code: New}}
	}
	if !it.Known {
		reasons = append(reasons, p.unknown(id))
	}
	if reasons == nil {
		reasons = []Reason{{Code: New, Detail: "its record is gone"}}
	}
	return reasons
}

// unknown names the first thing upstream whose end is not known.
func (p *Plan) unknown(id task.ID) Reason {
	d := p.decider
	t := &p.Graph.Tasks[id]
	d.steady = d.needsSteady(t)
	for i := range t.When {
		if d.certainEnd(t.When[i].On) == nil {
			return Reason{Code: UpstreamUnknown, Detail: p.Address(t.When[i].On)}
		}
	}
	for i := range t.Deps {
		if dep := &t.Deps[i]; dep.Use != task.UseOrder {
			if _, ok := d.contribution(dep); !ok {
				return Reason{Code: UpstreamUnknown, Detail: p.Address(dep.On)}
			}
		}
	}
	for i := range t.Deps { // only whether it is needed at all is unknown
		if on := t.Deps[i].On; d.certainEnd(on) == nil {
			return Reason{Code: UpstreamUnknown, Detail: p.Address(on)}
		}
	}
	return Reason{Code: UpstreamUnknown}
}

// A Comparison is one component of a key beside what it was. Old or New is nil where there is none; New also where it is not known yet.
type Comparison struct {
	Name     string
	Old, New *digest.Component
	Unknown  bool // the new value depends on an upstream that runs
}

// Same says whether nothing changed.
func (c *Comparison) Same() bool {
	return c.Unknown || c.Old != nil && c.New != nil && c.Old.Digest == c.New.Digest && c.Old.Shown == c.New.Shown
}

// Why lists every component of a task's key beside that of the newest record which its address ran under, if there is one.
func (p *Plan) Why(id task.ID) []Comparison {
	now, unknown := p.components(id)
	if now == nil {
		return nil
	}
	var then []digest.Component
	if old := p.latest(id); old != nil {
		then, _ = digest.Explain(old.Preimage) // a damaged preimage explains nothing, and is no reason to fail
	}
	return compare(then, now, unknown)
}

// components explains a task's key as far as it is known; unknown holds the roles of inputs which are not. It returns nil where a file is missing.
func (p *Plan) components(id task.ID) (now []digest.Component, unknown map[string]bool) {
	preimage, unknown := p.preimage(id)
	if preimage == nil {
		return nil, nil
	}
	now, err := digest.Explain(preimage)
	if err != nil {
		panic("pbuild bug: a key's preimage does not read back: " + err.Error())
	}
	return now, unknown
}

// preimage is what a task's key is hashed from, with nothing in the place of unknown inputs; nil where a file is missing.
func (p *Plan) preimage(id task.ID) (b []byte, unknown map[string]bool) {
	d := p.decider
	d.steady = d.needsSteady(&p.Graph.Tasks[id])
	_, _, err := d.keyer.key(id, func(dep *task.Dep) (digest.Digest, bool) {
		c, ok := d.contribution(dep)
		if !ok {
			if unknown == nil {
				unknown = make(map[string]bool)
			}
			unknown["inputs."+dep.Role] = true
		}
		return c, true
	})
	if err != nil {
		return nil, nil
	}
	return d.keyer.Preimage(), unknown
}

// compare pairs components by name; where a name repeats, by its place among its like. Their order is that of now, then what is gone.
func compare(then, now []digest.Component, unknown map[string]bool) []Comparison {
	old := make(map[string][]*digest.Component, len(then))
	for i := range then {
		old[then[i].Name] = append(old[then[i].Name], &then[i])
	}
	out := make([]Comparison, 0, len(now))
	for i := range now {
		c := Comparison{Name: now[i].Name, New: &now[i], Unknown: unknown[now[i].Name]}
		if c.Unknown {
			c.New = nil
		}
		if same := old[c.Name]; len(same) > 0 {
			c.Old, old[c.Name] = same[0], same[1:]
		}
		out = append(out, c)
	}
	for i := range then {
		if gone := old[then[i].Name]; len(gone) > 0 && gone[0] == &then[i] {
			out = append(out, Comparison{Name: then[i].Name, Old: &then[i]})
			old[then[i].Name] = gone[1:]
		}
	}
	return out
}

// differences turns what differs between a task's key and an old record's into reasons, one for each name.
func (p *Plan) differences(id task.ID, old *task.Record) []Reason {
	preimage, unknown := p.preimage(id)
	if preimage == nil {
		return nil
	}
	then, now, err := digest.Differ(old.Preimage, preimage)
	if err != nil {
		return nil
	}
	frozen := p.Graph.Tasks[id].Spec.Kind().Frozen
	var reasons []Reason
	seen := make(map[string]bool)
	for _, c := range compare(then, now, unknown) {
		// A file that came or went is told by its content alone.
		modeOnly := ofFile(c.Name) && strings.HasSuffix(c.Name, ".mode") && (c.Old == nil || c.New == nil)
		if c.Same() || modeOnly || seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		r := Reason{Code: code(c.Name, frozen), Detail: c.Name}
		if c.Old != nil {
			r.Old = c.Old.Shown
		}
		if c.New != nil {
			r.New = c.New.Shown
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// ofFile says whether a component is of a file: of the task's inputs, or of a directory that its spec names.
func ofFile(component string) bool {
	return strings.HasPrefix(strings.TrimPrefix(component, "spec."), "files.")
}

func code(component string, frozen bool) Code {
	switch {
	case component == "salt":
		return Salt
	case component == "kind_version" || component == "schema" || component == "domain":
		return KindVersion
	case component == "spec.draw" && frozen:
		return Resampled
	case ofFile(component):
		return InputChanged
	case strings.HasPrefix(component, "inputs."):
		return UpstreamChanged
	}
	return SpecChanged
}
