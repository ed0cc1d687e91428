package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// segmentLimit is the size at which a new segment is begun.
const segmentLimit = 64 << 20

// segments is a row of numbered files of frames, with an index of what each frame holds: the journal, or the packs.
type segments struct {
	disk     *disk
	dir, ext string
	kind     byte
	limit    int64
	// describe says under which key, and which second hash, a payload is found. Its error makes the payload damage.
	describe func(payload []byte) (key [32]byte, tag uint64, err error)
	tagged   bool // places are also looked up by tag
	ledger   *ledger
	windows  *sync.Pool // of *window

	once    sync.Once
	writing sync.Mutex // held by append, while mu is free for readers
	mu      sync.RWMutex
	files   []*segment
	places  []place // in the order in which they were written
	byKey   chains
	byTag   chains

	pending []byte // of packs: frames that are not in the file yet, which belong at its end
	dirty   bool   // of packs: something was written and not synced
	newer   bool   // there is something that only a newer pbuild can read
	broken  error  // a sync failed: nothing is known of what the file holds, so nothing more is written
}

// A segment is one open file.
type segment struct {
	number  int
	at      uint32 // its place in segments.files
	path    string
	f       *os.File
	mark    mark
	size    int64 // the end of its last sound frame
	indexed int64 // what its index file covers
	sealed  bool  // nothing may be appended: its header is unreadable
}

// A place says where a payload is.
type place struct {
	key  [32]byte
	tag  uint64
	file uint32
	off  int64 // of its frame
}

func keyHash(k [32]byte) uint64 { return binary.LittleEndian.Uint64(k[:]) }

func (s *segments) keyAt(i int) uint64 { return keyHash(s.places[i].key) }
func (s *segments) tagAt(i int) uint64 { return s.places[i].tag }

// load reads the indexes, and scans what they do not cover. What cannot be read is damage, not an error.
func (s *segments) load() {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reload(os.O_RDONLY)
	})
}

// reload forgets everything and looks again. The caller holds mu.
func (s *segments) reload(flag int) {
	s.forget()
	numbers, err := s.numbers()
	if err != nil {
		s.ledger.add(Damage{File: s.dir, Reason: err.Error()})
	}
	for _, n := range numbers {
		s.loadSegment(n, flag)
	}
	s.link()
}

// link brings the chains up to the places.
func (s *segments) link() {
	s.byKey.grow(len(s.places), s.keyAt)
	for len(s.byKey.older) < len(s.places) {
		s.byKey.add(s.keyAt)
	}
	if !s.tagged {
		return
	}
	s.byTag.grow(len(s.places), s.tagAt)
	for len(s.byTag.older) < len(s.places) {
		s.byTag.add(s.tagAt)
	}
}

// numbers lists the segments there are, in order.
func (s *segments) numbers() ([]int, error) {
	list, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []int
	for _, e := range list {
		if base, ok := strings.CutSuffix(e.Name(), s.ext); ok {
			if n, err := strconv.Atoi(base); err == nil && s.segmentPath(n) == filepath.Join(s.dir, e.Name()) {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, err
}

func (s *segments) segmentPath(n int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d%s", n, s.ext))
}

func (s *segments) loadSegment(n, flag int) {
	g := &segment{number: n, at: uint32(len(s.files)), path: s.segmentPath(n), sealed: true}
	s.files = append(s.files, g)
	f, err := os.OpenFile(g.path, flag, 0)
	if err != nil {
		s.ledger.add(Damage{File: g.path, Reason: err.Error()})
		return
	}
	g.f = f
	s.readSegment(g)
}

// readSegment reads g's header, and finds its frames.
func (s *segments) readSegment(g *segment) {
	var head [headerSize]byte
	switch n, err := g.f.ReadAt(head[:], 0); {
	case err == io.EOF && n < headerSize: // torn while it was made
		g.sealed = false
		return
	case err != nil:
		s.ledger.add(Damage{File: g.path, Reason: err.Error()})
		return
	}
	var err error
	g.mark, err = parseHeader(s.kind, head[:])
	if err == errHeader {
		first := make([]byte, smallLimit+2*firstRead) // as large as most first frames
		n, _ := g.f.ReadAt(first, headerSize)
		g.mark, err = mendHeader(first[:n])
	}
	if err != nil {
		s.newer = s.newer || errors.Is(err, errVersion)
		s.ledger.add(Damage{File: g.path, Records: 1, Reason: err.Error()})
		return
	}
	g.sealed = false
	g.size = headerSize
	s.readIndex(g)
	s.scanTail(g)
}

// scanTail finds the frames after g.size.
func (s *segments) scanTail(g *segment) {
	info, err := g.f.Stat()
	if err == nil && info.Size() > g.size {
		b := make([]byte, info.Size()-g.size)
		var n int
		n, err = g.f.ReadAt(b, g.size)
		if err == io.EOF { // another process has cut off a torn tail
			err = nil
		}
		s.scanBytes(g, b[:n])
	}
	if err != nil {
		s.ledger.add(Damage{File: g.path, Offset: g.size, Records: 1, Reason: err.Error()})
	}
}

func (s *segments) scanBytes(g *segment, b []byte) {
	base := g.size
	end := scan(b, g.mark, func(off int, payload []byte) {
		at := base + int64(off)
		key, tag, err := s.describe(payload)
		if err != nil {
			s.newer = s.newer || errors.Is(err, errVersion)
			s.ledger.add(Damage{File: g.path, Offset: at, Bytes: int64(frameSize + len(payload)), Records: 1, Reason: err.Error()})
			return
		}
		s.places = append(s.places, place{key: key, tag: tag, file: g.at, off: at})
	}, func(from, to int) {
		s.ledger.add(Damage{File: g.path, Offset: base + int64(from), Bytes: int64(to - from), Records: 1, Reason: errDamaged.Error()})
	})
	g.size = base + int64(end)
}

// withKey is the places with key, newest first. No lock is held while the caller reads and decodes them.
func (s *segments) withKey(key [32]byte) []int {
	s.load()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey.find(keyHash(key), func(i int) bool { return s.places[i].key == key })
}

// holds says whether a place has key. The caller holds mu.
func (s *segments) holds(key [32]byte) bool {
	return s.byKey.find(keyHash(key), func(i int) bool { return s.places[i].key == key }) != nil
}

// withTag is the places with tag, newest first.
func (s *segments) withTag(tag uint64) []int {
	s.load()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byTag.find(tag, func(i int) bool { return s.places[i].tag == tag })
}

// refresh finds what a running writer has appended since load. Only a reader may call it.
func (s *segments) refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.files {
		switch {
		case g.sealed:
		case g.size < headerSize: // it was being made
			s.readSegment(g)
		default:
			s.scanTail(g)
		}
	}
	numbers, _ := s.numbers()
	for _, n := range numbers {
		if len(s.files) == 0 || n > s.files[len(s.files)-1].number {
			s.loadSegment(n, os.O_RDONLY)
		}
	}
	s.link()
}

func (s *segments) len() int {
	s.load()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.places)
}

func (s *segments) at(i int) place {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.places[i]
}

func (s *segments) name(p place) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.files[p.file].path
}

var errDamaged = errors.New("the bytes are damaged")

// read calls use with a place's payload, which is use's only until it returns.
func (s *segments) read(p place, use func(payload []byte) error) error {
	s.mu.RLock()
	g := s.files[p.file]
	f, size, m := g.f, g.size, g.mark
	if off := p.off - size; off >= 0 && off < int64(len(s.pending)) {
		defer s.mu.RUnlock()
		payload, _, ok := cutFrame(s.pending[off:], m)
		if !ok {
			return errDamaged
		}
		return use(payload)
	}
	s.mu.RUnlock()
	if f == nil {
		return errDamaged
	}
	w := s.windows.Get().(*window)
	defer s.windows.Put(w)
	payload, err := w.frame(f, m, p.off, size)
	if err != nil {
		return err
	}
	return use(payload)
}

// generation hashes the names, sizes and times of the files: an append makes one grow, a collection replaces some.
func (s *segments) generation() uint64 {
	numbers, err := s.numbers()
	if err != nil {
		return 0
	}
	var b []byte
	for _, n := range numbers {
		info, err := os.Stat(s.segmentPath(n))
		if err != nil {
			continue
		}
		b = binary.AppendVarint(b, int64(n))
		b = binary.AppendVarint(b, info.Size())
		b = binary.AppendVarint(b, info.ModTime().UnixNano())
	}
	return hashString(string(b))
}

func (s *segments) close() {
	s.once.Do(func() {})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	s.pending = nil
}

func (s *segments) forget() {
	for _, g := range s.files {
		if g.f != nil {
			g.f.Close()
		}
	}
	s.files, s.places, s.byKey, s.byTag = nil, nil, chains{}, chains{}
}
