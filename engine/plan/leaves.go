package plan

import (
	"runtime"
	"sync"
	"sync/atomic"

	"pbuild/engine/task"
)

// leafSpan is how many tasks a goroutine takes at a time. A graph of only a few spans is not worth one.
const leafSpan = 512

// leaves decides the tasks that depend on nothing, in several goroutines: nothing that is decided of another enters into it. What the keys and
// records of a hundred thousand cost is most of what a plan costs. errs holds the errors by span, each in the order of ids.
func (d *decider) leaves() (errs []map[task.ID]error) {
	n := len(d.p.Items)
	errs = make([]map[task.ID]error, (n+leafSpan-1)/leafSpan)
	d.likely = make([]task.End, n) // else each goroutine would make its own
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(errs)) {
		group.Go(func() {
			w := *d // shares what is known by id, and has scratch memory of its own
			w.keyer = d.p.Keyer()
			for {
				span := int(next.Add(1)) - 1
				if span >= len(errs) {
					return
				}
				for id := task.ID(span * leafSpan); int(id) < min(n, (span+1)*leafSpan); id++ {
					if !d.leaf(id) {
						continue
					}
					if err := w.decide(id); err != nil {
						if errs[span] == nil {
							errs[span] = map[task.ID]error{}
						}
						errs[span][id] = err
					}
				}
			}
		})
	}
	group.Wait()
	return errs
}

// leaf says whether a task is wanted and depends on nothing.
func (d *decider) leaf(id task.ID) bool {
	t := &d.p.Graph.Tasks[id]
	return d.p.Wanted[id] && len(t.Deps) == 0 && len(t.When) == 0
}
