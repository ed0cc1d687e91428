package sched

import "pbuild/engine/task"

// A queue holds tasks that are ready to run and bounds how many of them run.
type queue struct {
	heap    heap
	running int
	limit   int // 0: only slots bound it
}

const (
	plainQueue = iota // no pool
	pureQueue
	firstPool
)

func (s *State) makeQueues() {
	s.queues = make([]queue, firstPool)
	s.queues[pureQueue].limit = s.cfg.Pure
	s.queueOf = make(map[string]int32, len(s.cfg.Graph.Pools))
	for name, limit := range s.cfg.Graph.Pools { // which number a pool gets makes no difference
		s.queueOf[name] = int32(len(s.queues))
		s.queues = append(s.queues, queue{limit: max(limit, 0)})
	}
	for i := range s.queues {
		s.queues[i].heap.rank = s.rank
	}
	s.confirm.rank = s.rank
}

// queue returns where a task queues. A pure one takes neither slot nor place in a pool; a pool that the graph does not bound is none.
func (s *State) queue(id task.ID) *queue {
	t := &s.cfg.Graph.Tasks[id]
	switch {
	case t.Spec.Kind().Pure:
		return &s.queues[pureQueue]
	case t.Pool == "":
		return &s.queues[plainQueue]
	}
	return &s.queues[s.queueOf[t.Pool]] // plainQueue if there is none
}

func (q *queue) open() bool { return len(q.heap.ids) > 0 && (q.limit == 0 || q.running < q.limit) }

// best is the queue whose first task is the next to take a slot, or nil.
func (s *State) best() *queue {
	var best *queue
	for i := range s.queues {
		q := &s.queues[i]
		if i != pureQueue && q.open() && (best == nil || q.heap.less(best.heap.ids[0], q.heap.ids[0])) {
			best = q
		}
	}
	return best
}

// A heap yields the task with the longest critical path first, and of equal ones that with the lower id.
type heap struct {
	ids  []task.ID
	rank []int64
}

// less says that a comes after b.
func (h *heap) less(a, b task.ID) bool {
	if h.rank[a] != h.rank[b] {
		return h.rank[a] < h.rank[b]
	}
	return a > b
}

func (h *heap) push(id task.ID) {
	h.ids = append(h.ids, id)
	i := len(h.ids) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.ids[parent], h.ids[i]) {
			break
		}
		h.ids[parent], h.ids[i] = h.ids[i], h.ids[parent]
		i = parent
	}
}

func (h *heap) pop() task.ID {
	top, last := h.ids[0], len(h.ids)-1
	h.ids[0] = h.ids[last]
	h.ids = h.ids[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && h.less(h.ids[child], h.ids[child+1]) {
			child++
		}
		if !h.less(h.ids[i], h.ids[child]) {
			return top
		}
		h.ids[i], h.ids[child] = h.ids[child], h.ids[i]
		i = child
	}
}
