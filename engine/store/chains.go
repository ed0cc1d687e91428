package store

// chains finds places by a hash, newest first, in flat memory: eight to sixteen bytes a place and no heap object of its own.
type chains struct {
	heads []uint32 // by hash: 1 + the newest place there, 0 for none
	older []uint32 // by place: 1 + the next older one with the same head
}

// add appends the place len(older). hash gives that of any place so far, this one included.
func (c *chains) add(hash func(i int) uint64) {
	if len(c.older) >= len(c.heads) {
		c.grow(2*len(c.older), hash)
	}
	c.link(len(c.older), hash)
}

// grow makes room for n places.
func (c *chains) grow(n int, hash func(i int) uint64) {
	size := 1024
	for size < n {
		size *= 2
	}
	if size <= len(c.heads) {
		return
	}
	have := len(c.older)
	c.heads = make([]uint32, size)
	c.older = append(make([]uint32, 0, size), c.older[:0]...)
	for i := range have {
		c.link(i, hash)
	}
}

func (c *chains) link(i int, hash func(i int) uint64) {
	head := &c.heads[hash(i)&uint64(len(c.heads)-1)]
	c.older = append(c.older, *head)
	*head = uint32(i + 1)
}

// find is the places that may have hash h and that match, newest first.
func (c *chains) find(h uint64, match func(i int) bool) (found []int) {
	if len(c.heads) == 0 {
		return nil
	}
	for at := c.heads[h&uint64(len(c.heads)-1)]; at != 0; at = c.older[at-1] {
		if i := int(at - 1); match(i) {
			found = append(found, i)
		}
	}
	return found
}

// hashString is FNV-1a of 64 bits, with its bits mixed so that the low ones may index a table. It is stored in indexes.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h ^ h>>32
}
