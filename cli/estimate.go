package cli

import "time"

// An estimate guesses how much work is left: a task takes as long as it took last, or else as long as the tasks of its kind took on the average in
// this run or before.
type estimate struct {
	kinds map[string]*kindEstimate
}

type kindEstimate struct {
	known   time.Duration // of tasks left that have a history
	unknown int           // tasks left that have none
	past    time.Duration // what is known of this kind's duration:
	samples int           // the sum, over so many tasks
}

func (e *estimate) kind(name string) *kindEstimate {
	if e.kinds == nil {
		e.kinds = map[string]*kindEstimate{}
	}
	k := e.kinds[name]
	if k == nil {
		k = &kindEstimate{}
		e.kinds[name] = k
	}
	return k
}

// add counts a task that is to run; last is how long it took last, or 0.
func (e *estimate) add(kind string, last time.Duration) {
	k := e.kind(kind)
	if last == 0 {
		k.unknown++
		return
	}
	k.known += last
	k.past += last
	k.samples++
}

// done takes a task out again. What took no time because it did not run teaches nothing.
func (e *estimate) done(kind string, last, took time.Duration, ran bool) {
	k := e.kind(kind)
	if last == 0 {
		k.unknown--
	} else {
		k.known -= last
	}
	if ran {
		k.past += took
		k.samples++
	}
}

// left is the work left over all slots; false where too little is known to say anything.
func (e *estimate) left(slots int) (time.Duration, bool) {
	var total time.Duration
	blind, seen := 0, 0
	for _, k := range e.kinds {
		total += k.known
		switch {
		case k.samples > 0:
			total += time.Duration(k.unknown) * (k.past / time.Duration(k.samples)) // the other order would overflow for many tasks
			seen += k.unknown
		default:
			blind += k.unknown
		}
	}
	if blind > seen && total == 0 {
		return 0, false
	}
	left := total / time.Duration(slots)
	return left, left >= time.Second // what ran longer than it did last is no work left, and not nothing either
}
