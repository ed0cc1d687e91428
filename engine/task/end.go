package task

import "pbuild/engine/digest"

// An End is how a task ended, as its dependents see it. The zero End is unneeded.
type End struct {
	Record *Record // what it ran or reused; nil where it was skipped or unneeded
	Status Status  // "" where it is unneeded; of the root failure where it was skipped
	Cause  string  // the one line of the failure
	Root   ID      // the root failure, where it was skipped; None where it was cancelled before it began
}

// Ends tells how tasks ended; nil means that it is not known.
type Ends func(ID) *End

// Accepts says whether an end of a dependency lets its dependent run.
func (d *Dep) Accepts(e *End) bool {
	switch e.Status {
	case OK:
		return true
	case "":
		return d.Tolerate != TolerateNone
	case Failed:
		return d.Tolerate >= TolerateFailed
	}
	return d.Tolerate == TolerateAny
}

// Contribution is what a dependency whose end is known and accepted puts into its dependent's key, if it puts anything (UseOrder does not).
func (d *Dep) Contribution(ends Ends) digest.Digest {
	e := ends(d.On)
	switch {
	case e.Status == "":
		return digest.Digest{}
	case e.Status != OK:
		if f := e.failure(ends); f != nil {
			return f.Digest("")
		}
		return digest.Of([]byte(e.Status))
	case d.Use == UseKey:
		return digest.Digest(e.Record.Key)
	}
	return e.Record.Digest(d.Output)
}

// failure is the record of the failure that e is or stems from, or nil.
func (e *End) failure(ends Ends) *Record {
	if e.Record != nil || e.Root == None {
		return e.Record
	}
	if root := ends(e.Root); root != nil {
		return root.Record
	}
	return nil
}

// Fact says whether e is, or stems from, nothing that the journal would not remember: what depends on it may be recorded.
func (e *End) Fact(ends Ends) bool {
	if e.Status == "" || e.Status == OK {
		return true
	}
	f := e.failure(ends)
	return f != nil && f.Keepable()
}

// Keepable says whether r is a fact, which the journal may keep and later runs may reuse.
func (r *Record) Keepable() bool {
	return r.Status == OK || r.Status == Failed && r.Outcome.Record
}

// A Fate is what becomes of a task once everything that it depends on has ended.
type Fate uint8

const (
	Proceed Fate = iota // it is reused or runs
	Unneed              // a condition does not hold, or what it needs is unneeded
	Skip                // what it needs failed
)

// Fate says what becomes of t, and for Skip which failure is the root. It is one function so that a plan and its apply cannot disagree.
// Where ends are not known, sure says whether they could still make a difference.
//
// Unneed comes before Skip, and a failure that is a fact before one that is not: so the fate, which may enter a key
// by way of a tolerant dependent, depends neither on the order of events nor on the luck of a run.
func (t *Task) Fate(ends Ends) (fate Fate, root ID, sure bool) {
	sure, root = true, None
	for i := range t.When {
		e := ends(t.When[i].On)
		if e == nil {
			sure = false
		} else if !t.When[i].holds(e) {
			return Unneed, None, true
		}
	}
	fact := false
	for i := range t.Deps {
		d := &t.Deps[i]
		e := ends(d.On)
		switch {
		case e == nil:
			sure = false
		case d.Accepts(e):
		case e.Status == "":
			return Unneed, None, true
		case root == None || !fact && e.Fact(ends):
			fate, fact, root = Skip, e.Fact(ends), d.On
			if e.Record == nil && e.Root != None {
				root = e.Root
			}
		}
	}
	return fate, root, sure
}

func (c *Condition) holds(e *End) bool {
	return (e.Record != nil && e.Record.Has(c.Fact)) != c.Not
}
