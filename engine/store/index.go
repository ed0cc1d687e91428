package store

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"strings"
)

// An index says what the first stretch of a segment holds, so that a reader need not scan it. It is disposable: one that is absent,
// damaged or of another segment is ignored, and one that covers less than the segment is made up for by a scan of the rest.
//
//	8 "pbuildI", version   8 mark   8 covered bytes   8 count   count * (32 key, 8 tag, 8 offset)   4 CRC32C of all before
const (
	indexHead  = 32
	indexPlace = 48
	indexMagic = "pbuildI\x01"
)

func (s *segments) indexPath(g *segment) string {
	return strings.TrimSuffix(g.path, s.ext) + ".idx"
}

// readIndex appends the places that g's index holds, and sets g.size to what it covers.
func (s *segments) readIndex(g *segment) {
	b, err := os.ReadFile(s.indexPath(g))
	if err != nil {
		return
	}
	covered, ok := checkIndex(b, g.mark)
	if !ok {
		return
	}
	if info, err := g.f.Stat(); err != nil || covered > info.Size() {
		return
	}
	for at := indexHead; at < len(b)-4; at += indexPlace {
		s.places = append(s.places, place{
			key:  [32]byte(b[at:]),
			tag:  binary.LittleEndian.Uint64(b[at+32:]),
			file: g.at,
			off:  int64(binary.LittleEndian.Uint64(b[at+40:])),
		})
	}
	g.size, g.indexed = covered, covered
}

// checkIndex says whether b is a whole index of the segment with mark m, and what it covers.
func checkIndex(b []byte, m mark) (covered int64, ok bool) {
	if len(b) < indexHead+4 || string(b[:8]) != indexMagic || mark(b[8:]) != m {
		return 0, false
	}
	covered = int64(binary.LittleEndian.Uint64(b[16:]))
	count := binary.LittleEndian.Uint64(b[24:])
	if covered < headerSize || count != uint64(len(b)-indexHead-4)/indexPlace || (len(b)-indexHead-4)%indexPlace != 0 {
		return 0, false
	}
	if crc32.Checksum(b[:len(b)-4], castagnoli) != binary.LittleEndian.Uint32(b[len(b)-4:]) {
		return 0, false
	}
	for at := indexHead; at < len(b)-4; at += indexPlace {
		if off := binary.LittleEndian.Uint64(b[at+40:]); off < headerSize || off > uint64(covered) {
			return 0, false
		}
	}
	return covered, true
}

func (s *segments) encodeIndex(g *segment) []byte {
	b := append([]byte(indexMagic), g.mark[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(g.size))
	b = binary.LittleEndian.AppendUint64(b, 0)
	count := uint64(0)
	for i := range s.places {
		p := &s.places[i]
		if p.file != g.at {
			continue
		}
		count++
		b = append(b, p.key[:]...)
		b = binary.LittleEndian.AppendUint64(b, p.tag)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.off))
	}
	binary.LittleEndian.PutUint64(b[24:], count)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// writeIndexes writes the indexes that do not cover their segments. A failure costs the next reader a scan and is nobody's error.
func (s *segments) writeIndexes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.files {
		s.writeIndex(g)
	}
}

func (s *segments) writeIndex(g *segment) {
	if s.broken != nil || g.size <= headerSize || g.indexed == g.size {
		return
	}
	b := s.encodeIndex(g)
	err := s.disk.replace(s.indexPath(g), false, func(f *os.File) error { return s.disk.writeAt(f, b, 0) })
	if err == nil {
		g.indexed = g.size
	}
}
