package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// openWriter loads everything, cuts off the last segment's torn tail, and removes what a dead writer left aside.
func (s *segments) openWriter() (err error) {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reload(os.O_RDWR)
		err = s.cutTail()
	})
	if err == nil {
		err = sweep(s.disk, s.dir)
	}
	return err
}

// cutTail leaves of the last segment what is sound. An index that covers more than that goes too: it would be believed once the segment had grown again.
// What no index covers a killed writer may not have synced, nor the segment's name, and records that name it are to come.
func (s *segments) cutTail() error {
	if len(s.files) == 0 {
		return nil
	}
	g := s.files[len(s.files)-1]
	if g.sealed {
		return nil
	}
	if g.indexed == 0 {
		if err := s.disk.remove(s.indexPath(g)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	info, err := g.f.Stat()
	if err == nil && info.Size() != g.size {
		err = s.disk.truncate(g.f, g.size)
	}
	if err == nil && g.indexed != g.size {
		err = errors.Join(s.disk.sync(g.f), s.disk.syncDir(s.dir))
	}
	return err
}

// sweep removes the files that were being written aside when a writer died. The caller holds the lock.
func sweep(d *disk, dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), tempExt) {
			err = errors.Join(err, d.remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// append writes payloads, syncs, and only then lets them be found.
func (s *segments) append(payloads [][]byte) error {
	s.load()
	s.writing.Lock()
	defer s.writing.Unlock()
	for len(payloads) > 0 {
		n, err := s.appendBatch(payloads)
		if err != nil {
			return err
		}
		payloads = payloads[n:]
	}
	return nil
}

// appendBatch writes as many payloads as go into the last segment before it is full, at least one.
func (s *segments) appendBatch(payloads [][]byte) (n int, err error) {
	s.mu.Lock()
	g, err := s.last()
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	var frames []byte
	var places []place
	for _, payload := range payloads {
		off := g.size + int64(len(frames))
		if n > 0 && off >= s.limit {
			break
		}
		if len(payload) > maxPayload {
			return 0, fmt.Errorf("a record of %d bytes is over the limit of %d", len(payload), maxPayload)
		}
		places = append(places, s.place(payload, g, off))
		frames = appendFrame(frames, g.mark, payload)
		n++
	}
	if err := s.write(g, frames); err != nil {
		return 0, err
	}
	err = s.disk.sync(g.f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.broken = err
		return 0, err
	}
	g.size += int64(len(frames))
	s.places = append(s.places, places...)
	s.link()
	return n, nil
}

// place is where payload can be found once it is written to g at off.
func (s *segments) place(payload []byte, g *segment, off int64) place {
	key, tag, err := s.describe(payload)
	if err != nil {
		panic("pbuild bug: the store cannot read what it writes: " + err.Error())
	}
	return place{key: key, tag: tag, file: g.at, off: off}
}

// write puts frames at the end of g. What a failure wrote of them is cut off, or else is a torn tail.
func (s *segments) write(g *segment, frames []byte) error {
	if err := s.disk.writeAt(g.f, frames, g.size); err != nil {
		return errors.Join(err, s.disk.truncate(g.f, g.size))
	}
	return nil
}

// last returns the segment to append to, a new one where the last is full. The caller holds mu.
func (s *segments) last() (*segment, error) {
	if s.broken != nil {
		return nil, fmt.Errorf("nothing more is written after a failed sync: %w", s.broken)
	}
	number := 1
	if n := len(s.files); n > 0 {
		g := s.files[n-1]
		if !g.sealed && g.size == 0 {
			return g, s.begin(g)
		}
		if !g.sealed && g.size+int64(len(s.pending)) < s.limit {
			return g, nil
		}
		if err := s.flushPending(true); err != nil {
			return nil, err
		}
		s.writeIndex(g)
		number = g.number + 1
	}
	f, err := s.disk.create(s.segmentPath(number))
	if err != nil {
		return nil, err
	}
	g := &segment{number: number, at: uint32(len(s.files)), path: f.Name(), f: f}
	s.files = append(s.files, g)
	return g, s.begin(g)
}

// begin writes g's header and makes its name durable.
func (s *segments) begin(g *segment) error {
	m := newMark()
	if err := s.write(g, appendHeader(nil, s.kind, m)); err != nil {
		return err
	}
	if err := s.disk.syncDir(s.dir); err != nil {
		return err
	}
	g.mark, g.size = m, headerSize
	return nil
}

// buffer appends payload to the frames that wait to be written; it can be found at once. The caller holds mu.
func (s *segments) buffer(payload []byte) error {
	g, err := s.last()
	if err != nil {
		return err
	}
	s.places = append(s.places, s.place(payload, g, g.size+int64(len(s.pending))))
	s.pending = appendFrame(s.pending, g.mark, payload)
	s.link()
	if len(s.pending) < pendingLimit {
		return nil
	}
	return s.flushPending(false)
}

// pendingLimit is how much waits in memory before it is written.
const pendingLimit = 1 << 20

// flushPending writes the waiting frames, and syncs if it is told to. The caller holds mu.
func (s *segments) flushPending(sync bool) error {
	if len(s.pending) > 0 {
		g := s.files[len(s.files)-1]
		if err := s.write(g, s.pending); err != nil {
			return err
		}
		g.size += int64(len(s.pending))
		s.pending = s.pending[:0]
		s.dirty = true
	}
	if !sync || !s.dirty {
		return nil
	}
	if err := s.disk.sync(s.files[len(s.files)-1].f); err != nil {
		s.broken = err
		return err
	}
	s.dirty = false
	return nil
}

// flush makes everything that was buffered durable. Others go on buffering while the disk syncs.
func (s *segments) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.broken
	if err == nil {
		err = s.flushPending(false)
	}
	if err != nil || !s.dirty {
		return err
	}
	f := s.files[len(s.files)-1].f
	s.dirty = false
	s.mu.Unlock()
	err = s.disk.sync(f)
	s.mu.Lock()
	if err != nil {
		s.broken = err
	}
	return err
}
