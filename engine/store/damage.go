package store

import (
	"fmt"
	"sync"
)

// Damage is one stretch of a file that could not be read. What it held is gone, and counts as never recorded.
type Damage struct {
	File    string // its path
	Offset  int64
	Bytes   int64  // 0 if unknown
	Records int    // how many records or blobs are lost, at least
	Object  string // "record 3f9a...", "blob sha256:..."; "" if unknown
	Reason  string
}

func (d Damage) String() string {
	s := fmt.Sprintf("%s, offset %d: %s", d.File, d.Offset, d.Reason)
	if d.Object != "" {
		s += " (" + d.Object + ")"
	}
	return s
}

// A ledger collects damage, each place once, however often it is met.
type ledger struct {
	mu   sync.Mutex
	list []Damage
}

func (l *ledger) add(d Damage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, have := range l.list {
		if have.File == d.File && have.Offset == d.Offset {
			return
		}
	}
	l.list = append(l.list, d)
}

func (l *ledger) all() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Damage(nil), l.list...)
}
