package apply

import (
	"time"

	"pbuild/engine/task"
)

// A batch is closed at so many records, bytes, or after so long; sooner where nothing else can start (see loop.pump).
const (
	batchRecords = 256
	batchBytes   = 1 << 20
	batchAge     = 50 * time.Millisecond
)

// A batch is what is appended to the journal, and made durable, at once.
type batch struct {
	records []*task.Record
	ids     []task.ID
	err     error
}

// A committer gathers records into batches and appends them, one batch after the other, in a goroutine of its own.
type committer struct {
	open    batch
	bytes   int
	timer   *time.Timer      // of the open batch; nil where it is empty
	expired <-chan time.Time // its channel
	closed  []batch
	busy    bool
	in      chan batch
	out     chan batch
}

func newCommitter(j Journal) *committer {
	c := &committer{in: make(chan batch, 1), out: make(chan batch, 1)}
	go func() {
		defer close(c.out)
		for b := range c.in {
			b.err = j.Append(b.records)
			c.out <- b
		}
	}()
	return c
}

// add takes a record. Alone, it shares its batch with no other, and the batch is closed.
func (c *committer) add(id task.ID, r *task.Record, alone bool) {
	if alone {
		c.flush()
	}
	c.open.ids, c.open.records = append(c.open.ids, id), append(c.open.records, r)
	c.bytes += len(r.Preimage) + len(r.Evidence)
	if c.timer == nil {
		c.timer = time.NewTimer(batchAge)
		c.expired = c.timer.C
	}
	if alone || len(c.open.ids) >= batchRecords || c.bytes >= batchBytes {
		c.flush()
	}
}

// flush closes the open batch.
func (c *committer) flush() {
	if c.timer == nil {
		return
	}
	c.timer.Stop()
	c.timer, c.expired = nil, nil
	c.closed = append(c.closed, c.open)
	c.open, c.bytes = batch{}, 0
}

// pump hands on the next closed batch if the goroutine is free.
func (c *committer) pump() {
	if !c.busy && len(c.closed) > 0 {
		c.busy = true
		c.in <- c.closed[0]
		c.closed = c.closed[1:]
	}
}

// stop waits for the goroutine. Nothing is uncommitted any more.
func (c *committer) stop() {
	close(c.in)
	for range c.out {
		panic("pbuild bug: an apply ended with a batch under way")
	}
}
