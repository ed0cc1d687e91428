package plan

import (
	"errors"
	"slices"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// decider holds what is known of each task's end while decisions are made, in the order of ids.
//
// An end is certain (ends), or likely: what it will be if all that runs comes out as it did last time. From likely ends come the
// hypothetical keys, and from these the decision maybe.
//
// A certain end is shaky if a failure upstream could still make the task skipped: a key may be known and its record be there while what the
// task waits for runs again. What cannot do without the task may build on a shaky end, for it would be skipped as well; what tolerates failures may not.
type decider struct {
	p      *Plan
	keyer  *Keyer
	state  []certainty
	ends   []task.End
	likely []task.End // nil until the first is asked for
	real   task.Ends  // certain and guess as values, made once
	hypo   task.Ends
	steady bool // certainEnd tells no shaky ends
	moves  bool // a contribution to the last likely key was moved
}

type certainty uint8

const (
	certain certainty = 1 << iota // ends holds its end
	guessed                       // likely holds its likely end
	nothing                       // it has no likely end
	open                          // it may yet turn out unneeded
	shaky                         // its certain end holds unless something upstream fails
	moved                         // its likely end is of another key, or follows from one that is: an edit, mostly, that may change it
)

// Decide says for every task whether it runs. It touches no disk but by in.Files. A MissingInputs error lists every input file that is not there;
// the plan is returned with it, and those tasks are decided run. A LostSamples error does the same for samples.
func Decide(in Inputs) (*Plan, error) {
	p, err := decide(in, nil)
	if err != nil || len(in.Replace) == 0 {
		return p, err
	}
	// Equal work is one task: what has the key of a replaced one is served by the new record too. Which these are is known only now.
	return decide(in, p.replacing())
}

func decide(in Inputs, replaced map[task.Key]bool) (*Plan, error) {
	g := in.Graph
	p := &Plan{Graph: g, Items: make([]Item, len(g.Tasks)), Wanted: Closure(g, in.Want), Inputs: &in, replaced: replaced}
	d := &decider{p: p, keyer: p.Keyer(), state: make([]certainty, len(g.Tasks)), ends: make([]task.End, len(g.Tasks))}
	d.real, d.hypo = d.certainEnd, d.likelyEnd
	p.decider = d
	var missing MissingInputs
	var lost LostSamples
	var leaves []map[task.ID]error // nil where none is decided yet
	if len(p.Items) > 2*leafSpan {
		leaves = d.leaves()
	}
	for i := range p.Items {
		id := task.ID(i)
		if !p.Wanted[i] {
			continue
		}
		var err error
		if leaves != nil && d.leaf(id) {
			err = leaves[i/leafSpan][id]
		} else {
			err = d.decide(id)
		}
		if err != nil {
			var m MissingInputs
			var l *LostSample
			switch {
			case errors.As(err, &m):
				missing = append(missing, m...)
			case errors.As(err, &l):
				lost = append(lost, l)
			default:
				return nil, err
			}
		}
	}
	switch {
	case missing != nil:
		return p, missing
	case lost != nil:
		return p, lost
	}
	return p, nil
}

// replacing are the keys, known or likely, of the records that tasks which are to be replaced have.
func (p *Plan) replacing() map[task.Key]bool {
	keys := make(map[task.Key]bool, len(p.Inputs.Replace))
	for id := range p.Inputs.Replace {
		if reasons := p.Items[id].Reasons; len(reasons) == 1 && reasons[0].Code == Replaced {
			keys[p.decider.likely[id].Record.Key] = true
		}
	}
	return keys
}

func (d *decider) certainEnd(id task.ID) *task.End {
	if d.state[id]&certain == 0 || d.steady && d.state[id]&shaky != 0 {
		return nil
	}
	return &d.ends[id]
}

// likelyEnd is the certain end, else the likely one, else what the task's address ended with last, else nil.
func (d *decider) likelyEnd(id task.ID) *task.End {
	switch {
	case d.state[id]&certain != 0:
		return &d.ends[id]
	case d.state[id]&guessed != 0:
		return &d.likely[id]
	case d.state[id]&nothing != 0:
		return nil
	}
	r := d.p.latest(id)
	if r == nil {
		d.state[id] |= nothing
		return nil
	}
	d.state[id] |= moved
	return d.guess(id, task.End{Record: r, Status: r.Status})
}

func (d *decider) guess(id task.ID, e task.End) *task.End {
	if d.likely == nil {
		d.likely = make([]task.End, len(d.ends))
	}
	d.likely[id] = e
	d.state[id] |= guessed
	return &d.likely[id]
}

func (d *decider) settle(id task.ID, e task.End) {
	d.ends[id] = e
	d.state[id] |= certain
}

func (d *decider) decide(id task.ID) error {
	t, it := &d.p.Graph.Tasks[id], &d.p.Items[id]
	d.steady = d.needsSteady(t)
	if d.isShaky(t) {
		d.state[id] |= shaky
	}
	fate, root, sure := t.Fate(d.real)
	if fate != task.Proceed {
		it.Decision = Unneeded
		if end := d.fated(fate, root, d.real); sure {
			d.settle(id, end)
		} else {
			d.guess(id, end)
		}
		return nil
	}
	if d.mayBeUnneeded(t) {
		d.state[id] |= open
	}
	key, known, err := d.keyer.key(id, d.contribution)
	switch {
	case err != nil:
		return err
	case known:
		it.Known = true
		return d.byKey(id, key)
	}
	return d.byLikelyKey(id)
}

// byKey decides a task whose key is known.
func (d *decider) byKey(id task.ID, key task.Key) error {
	it := &d.p.Items[id]
	it.Key = key
	r := d.lookup(key)
	if r == nil {
		it.Decision = Run
		return nil
	}
	end := task.End{Record: r, Status: r.Status, Cause: r.Reason}
	restore, reasons, serves := d.p.Serves(id, r)
	it.Reasons = reasons
	switch {
	case !serves:
		it.Decision = Run
		d.guess(id, end)
		if lost := d.p.Lost(id, r); lost != nil && d.state[id]&moved == 0 {
			return lost
		}
	case d.state[id]&open != 0 || !it.Known:
		it.Decision, it.Record, it.Restore = Maybe, r, restore
		d.guess(id, end)
	default:
		it.Decision, it.Record, it.Restore = Reuse, r, restore
		d.settle(id, end)
	}
	return nil
}

// byLikelyKey decides a task whose key is not known yet: maybe, if a record serves in case that upstream comes out equal.
func (d *decider) byLikelyKey(id task.ID) error {
	fate, root, sure := d.p.Graph.Tasks[id].Fate(d.hypo)
	if fate != task.Proceed {
		if sure {
			d.guess(id, d.fated(fate, root, d.hypo))
		}
		return nil // it may be needed after all: run is the upper bound
	}
	d.moves = false
	key, known, err := d.keyer.key(id, d.likelyContribution)
	if err != nil || !known {
		return err
	}
	if d.moves {
		d.state[id] |= moved
	}
	err = d.byKey(id, key)
	if it := &d.p.Items[id]; it.Decision == Run {
		it.Key = task.Key{}
	}
	return err
}

func (d *decider) fated(fate task.Fate, root task.ID, ends task.Ends) task.End {
	if fate == task.Unneed {
		return task.End{}
	}
	e := ends(root)
	return task.End{Status: e.Status, Cause: e.Cause, Root: root}
}

// mayBeUnneeded says whether a condition of t, or of what it cannot do without, is still open.
func (d *decider) mayBeUnneeded(t *task.Task) bool {
	for i := range t.When {
		if d.certainEnd(t.When[i].On) == nil {
			return true
		}
	}
	for i := range t.Deps {
		if t.Deps[i].Tolerate == task.TolerateNone && d.state[t.Deps[i].On]&(open|certain) == open {
			return true
		}
	}
	return false
}

// needsSteady says whether t would go on, with another key or condition, if a failure upstream undid a shaky end.
func (d *decider) needsSteady(t *task.Task) bool {
	for i := range t.Deps {
		dep := &t.Deps[i]
		if dep.Tolerate < task.TolerateFailed || d.state[dep.On]&shaky == 0 {
			continue
		}
		asked := slices.ContainsFunc(t.When, func(c task.Condition) bool { return c.On == dep.On })
		if dep.Use != task.UseOrder || asked {
			return true
		}
	}
	return false
}

// isShaky says whether a failure upstream could make t skipped. A condition that is steadily false excludes that.
func (d *decider) isShaky(t *task.Task) bool {
	if !slices.ContainsFunc(t.Deps, func(dep task.Dep) bool {
		s := d.state[dep.On]
		return dep.Tolerate != task.TolerateAny && (s&certain == 0 || s&shaky != 0)
	}) {
		return false
	}
	was := d.steady
	d.steady = true
	fate, _, _ := t.Fate(d.real)
	d.steady = was
	return fate != task.Unneed
}

// contribution is what a dependency certainly puts into a key. An opaque one need not have run for that: its own key is enough, unless
// its dependent could also go on without it, and then keys on how it ended.
func (d *decider) contribution(dep *task.Dep) (digest.Digest, bool) {
	if d.certainEnd(dep.On) != nil {
		return dep.Contribution(d.real), true
	}
	it := &d.p.Items[dep.On]
	if dep.Use != task.UseKey || !it.Known || dep.Tolerate >= task.TolerateFailed {
		return digest.Digest{}, false
	}
	if dep.Tolerate == task.TolerateUnmet && d.state[dep.On]&open != 0 {
		return digest.Digest{}, false
	}
	return digest.Digest(it.Key), true
}

func (d *decider) likelyContribution(dep *task.Dep) (digest.Digest, bool) {
	if c, ok := d.contribution(dep); ok {
		return c, true
	}
	if d.likelyEnd(dep.On) == nil {
		return digest.Digest{}, false
	}
	d.moves = d.moves || d.state[dep.On]&moved != 0
	return dep.Contribution(d.hypo), true
}

func (d *decider) lookup(k task.Key) *task.Record {
	if d.p.Inputs.Lookup == nil {
		return nil
	}
	return d.p.Inputs.Lookup(k)
}
