package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"path/filepath"
	"sort"
	"strings"

	"pbuild/engine/digest"
)

// A Snapshot is what the last full plan found, mapped read-only: whether a plan now would find the same (Check), what it printed
// (Counts, Names), and the stat cache of workspace files (NewFiles). It is disposable, and made anew by whoever finds it stale.
//
// All integers are little-endian; offsets of strings are into the strings.
//
//	header  8 "pbsnap", 0, version   4 CRC32C of all from byte 16 on   4 zero   8 size   8 generation   32 arguments   32 identity
//	        8 sections, each 8 offset and 8 size: strings, reads, directories, files, devices, counts, names, root
//	read    4+4 path   4+4 patterns   1 kind   1 racy   6 zero   40 stat   32 digest
//	dir     4+4 name   4 first file   4 count
//	file    4+2 name   1 kind and flags   1 device   32 stat without device   32 digest
//	names   uvarint shared with the one before, uvarint length, rest
//
// A file is 72 bytes and its name: a task with one input and one output takes about 200.
type Snapshot struct {
	data    []byte
	unmap   func() error
	strings []byte
	reads   []byte
	dirs    []byte
	files   []byte
	devs    []byte
	counts  []byte
	names   []byte
	root    string
}

const (
	snapshotFile    = "snapshot"
	snapshotMagic   = "pbsnap\x00"
	snapshotVersion = 1

	snapshotHead = 96 + 8*16
	readRow      = 4 + 4 + 4 + 4 + 8 + 40 + 32
	dirRowSize   = 4 + 4 + 4 + 4
	fileRow      = 4 + 2 + 1 + 1 + 32 + 32

	flagRacy   = 1 << 4
	flagOutput = 1 << 5
	kindMask   = 1<<4 - 1
)

// ErrNoSnapshot is what OpenSnapshot returns where there is none that this pbuild can read; the text says why.
var ErrNoSnapshot = errors.New("no snapshot")

// OpenSnapshot maps the snapshot in a .pbuild directory. A damaged one, and one of another version, is as good as none: ErrNoSnapshot.
// Strings and bytes of a Snapshot are valid until Close.
func OpenSnapshot(dir string) (*Snapshot, error) {
	data, unmap, err := mapFile(filepath.Join(dir, snapshotFile))
	if err != nil {
		return nil, fmt.Errorf("store: %w: %w", ErrNoSnapshot, err)
	}
	s, err := parseSnapshot(dir, data)
	if err != nil {
		unmap()
		return nil, fmt.Errorf("store: %w: %w", ErrNoSnapshot, err)
	}
	s.unmap = unmap
	return s, nil
}

func parseSnapshot(dir string, data []byte) (*Snapshot, error) {
	switch {
	case len(data) < snapshotHead || string(data[:7]) != snapshotMagic:
		return nil, errors.New("it is damaged")
	case data[7] != snapshotVersion:
		return nil, fmt.Errorf("it has version %d, not %d", data[7], snapshotVersion)
	case binary.LittleEndian.Uint64(data[16:]) != uint64(len(data)),
		binary.LittleEndian.Uint32(data[8:]) != crc32.Checksum(data[16:], castagnoli):
		return nil, errors.New("it is damaged")
	}
	s := &Snapshot{data: data}
	var root []byte
	for i, section := range []*[]byte{&s.strings, &s.reads, &s.dirs, &s.files, &s.devs, &s.counts, &s.names, &root} {
		at := 96 + 16*i
		off, size := binary.LittleEndian.Uint64(data[at:]), binary.LittleEndian.Uint64(data[at+8:])
		if off > uint64(len(data)) || size > uint64(len(data))-off {
			return nil, errors.New("it is damaged")
		}
		*section = data[off : off+size : off+size]
	}
	s.root = filepath.Join(dir, filepath.FromSlash(string(root)))
	if filepath.IsAbs(string(root)) {
		s.root = string(root)
	}
	return s, nil
}

// Close unmaps it. A nil Snapshot may be closed.
func (s *Snapshot) Close() error {
	if s == nil || s.unmap == nil {
		return nil
	}
	unmap := s.unmap
	s.unmap = nil
	return unmap()
}

// Counts is what the writer gave, for the caller to print.
func (s *Snapshot) Counts() []byte { return s.counts }

// Files is how many paths it knows.
func (s *Snapshot) Files() int { return len(s.files) / fileRow }

// Names yields the names that the writer gave, in its order.
func (s *Snapshot) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s == nil {
			return
		}
		var name []byte
		for rest := s.names; len(rest) > 0; {
			shared, a := binary.Uvarint(rest)
			if a <= 0 || shared > uint64(len(name)) {
				return
			}
			n, b := binary.Uvarint(rest[a:])
			if b <= 0 || n > uint64(len(rest)-a-b) {
				return
			}
			name = append(name[:shared], rest[a+b:a+b+int(n)]...)
			rest = rest[a+b+int(n):]
			if !yield(string(name)) {
				return
			}
		}
	}
}

func (s *Snapshot) generation() uint64   { return binary.LittleEndian.Uint64(s.data[24:]) }
func (s *Snapshot) args() digest.Digest  { return digest.Digest(s.data[32:64]) }
func (s *Snapshot) ident() digest.Digest { return digest.Digest(s.data[64:96]) }

// text is a string that refers to the mapping: it costs no memory and dies with it. Offsets that lead out of the strings give "".
func (s *Snapshot) text(off, n uint32) string {
	if uint64(off)+uint64(n) > uint64(len(s.strings)) {
		return ""
	}
	return viewString(s.strings[off:][:n])
}

// A dirRow is one directory with its files; the zero dirRow has none.
type dirRow struct {
	s     *Snapshot
	name  string
	first int
	count int
}

func (s *Snapshot) numDirs() int { return len(s.dirs) / dirRowSize }

func (s *Snapshot) dirAt(i int) dirRow {
	b := s.dirs[i*dirRowSize:]
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	first, count := word(8), word(12)
	if uint64(first)+uint64(count) > uint64(s.Files()) {
		return dirRow{s: s}
	}
	return dirRow{s: s, name: s.text(word(0), word(4)), first: int(first), count: int(count)}
}

// dir finds a directory by name.
func (s *Snapshot) dir(name string) dirRow {
	if s == nil {
		return dirRow{}
	}
	i := sort.Search(s.numDirs(), func(i int) bool { return s.dirAt(i).name >= name })
	if i < s.numDirs() {
		if d := s.dirAt(i); d.name == name {
			return d
		}
	}
	return dirRow{}
}

// find returns what is known of a file in d; of nothing, that it is absent.
func (d dirRow) find(name string) fileState {
	i := sort.Search(d.count, func(i int) bool { return d.s.fileName(d.first+i) >= name })
	if i == d.count || d.s.fileName(d.first+i) != name {
		return fileState{}
	}
	return d.s.fileAt(d.first + i)
}

func (s *Snapshot) fileName(i int) string {
	b := s.files[i*fileRow:]
	return s.text(binary.LittleEndian.Uint32(b), uint32(binary.LittleEndian.Uint16(b[4:])))
}

func (s *Snapshot) fileAt(i int) fileState {
	b := s.files[i*fileRow : (i+1)*fileRow]
	f := fileState{kind: fileKind(b[6] & kindMask), racy: b[6]&flagRacy != 0, output: b[6]&flagOutput != 0}
	if dev := int(b[7]) * 8; dev+8 <= len(s.devs) {
		f.dev = binary.LittleEndian.Uint64(s.devs[dev:])
	}
	f.ino = binary.LittleEndian.Uint64(b[8:])
	f.size = int64(binary.LittleEndian.Uint64(b[16:]))
	f.mtime = int64(binary.LittleEndian.Uint64(b[24:]))
	f.ctime = int64(binary.LittleEndian.Uint64(b[32:]))
	f.digest = digest.Digest(b[40:72])
	if f.kind > kindOther {
		f.kind, f.racy = kindAbsent, true // equal to nothing that may stand there
	}
	return f
}

// readAt returns one of the things that the plan read.
func (s *Snapshot) readAt(i int) (r Read, st stat, racy bool) {
	b := s.reads[i*readRow : (i+1)*readRow]
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	long := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	r.Path = s.text(word(0), word(4))
	if p := s.text(word(8), word(12)); p != "" {
		r.Match = strings.Split(p, "\x00")
	}
	r.Kind = ReadKind(b[16])
	st = stat{dev: long(24), ino: long(32), size: int64(long(40)), mtime: int64(long(48)), ctime: int64(long(56))}
	r.Digest = digest.Digest(b[64:96])
	if !filepath.IsAbs(r.Path) {
		r.Path = filepath.Join(s.root, filepath.FromSlash(r.Path))
	}
	return r, st, b[17] != 0
}
