package tree

import (
	"sync"

	"pbuild/engine/digest"
)

// A memo remembers something of objects. It is emptied when it is full: candidates of one base come close together.
type memo[V any] struct {
	mu    sync.Mutex
	m     map[digest.Digest]V
	limit int
}

func (c *memo[V]) get(id digest.Digest) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.m[id]
	return v, ok
}

func (c *memo[V]) put(id digest.Digest, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= c.limit {
		c.m = make(map[digest.Digest]V)
	}
	c.m[id] = v
}

func (c *memo[V]) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m = nil
}
