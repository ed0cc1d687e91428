package apply

import "sync"

// maxTold bounds the bytes of log output that wait for a slow listener. What comes on top is dropped and noted: logs are whole in the
// store, and no worker may wait for a terminal.
const maxTold = 16 << 20

// A teller calls the listener from one goroutine, in the order of tell.
type teller struct {
	listen  func(Event)
	mu      sync.Mutex
	more    sync.Cond
	queue   []Event
	bytes   int
	dropped int
	closed  bool
	done    chan struct{}
}

func newTeller(listen func(Event)) *teller {
	t := &teller{listen: listen, done: make(chan struct{})}
	t.more.L = &t.mu
	if listen == nil {
		close(t.done)
		return t
	}
	go t.loop()
	return t
}

func (t *teller) tell(e Event) {
	if t.listen == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Type == "log" {
		if t.bytes+len(e.Data) > maxTold {
			t.dropped += len(e.Data)
			return
		}
		t.bytes += len(e.Data)
	}
	t.queue = append(t.queue, e)
	if len(t.queue) == 1 {
		t.more.Signal()
	}
}

func (t *teller) loop() {
	defer close(t.done)
	var batch []Event
	for {
		t.mu.Lock()
		for len(t.queue) == 0 && !t.closed {
			t.more.Wait()
		}
		if len(t.queue) == 0 {
			t.mu.Unlock()
			return
		}
		clear(batch) // its events were told: let go of their records
		batch, t.queue = t.queue, batch[:0]
		dropped := t.dropped
		t.bytes, t.dropped = 0, 0
		t.mu.Unlock()
		for _, e := range batch {
			t.listen(e)
		}
		if dropped > 0 {
			t.listen(droppedNote(dropped))
		}
	}
}

// close returns once every event has been told.
func (t *teller) close() {
	if t.listen != nil {
		t.mu.Lock()
		t.closed = true
		t.more.Signal()
		t.mu.Unlock()
	}
	<-t.done
}
