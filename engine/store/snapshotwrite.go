package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pbuild/engine/digest"
)

// SnapshotData is what WriteSnapshot stores.
type SnapshotData struct {
	Root       string        // the workspace: absolute, and the root of Table
	Identity   string        // of the binary
	Args       digest.Digest // of the arguments and variables that matter
	Generation uint64        // of the journal that the plan saw
	Began      time.Time     // before the first of Reads was read
	Reads      []Read        // everything that was read to get to the graph
	Table      *Table        // what Files found out
	Counts     []byte        // opaque
	Names      []string      // for completion; sorted ones take less room
}

// A ReadKind says what was read.
type ReadKind uint8

const (
	ReadFile   ReadKind = iota // a file's bytes
	ReadDir                    // a directory's listing
	ReadAbsent                 // nothing was there
)

// A Read is a file, listing or absence that the graph depends on.
type Read struct {
	Path string // absolute
	Kind ReadKind
	// Digest is that of the bytes that were read, or of the listing as Listing gives it. Where it is zero, a
	// file or directory that changes after Began makes the snapshot stale from the start.
	Digest digest.Digest
	Match  []string // of a directory: only names that match one of these patterns (path/filepath.Match) count; nil: all
}

// readListing lists a directory now.
func readListing(path string, patterns []string) (digest.Digest, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return digest.Digest{}, err
	}
	return digest.OfListing(list, patterns), nil
}

// WriteSnapshot writes the snapshot in a .pbuild directory, aside and renamed. It needs no lock. What it writes is disposable: it is
// not synced, and its reader finds out whether it is whole.
func WriteSnapshot(dir string, data *SnapshotData) error {
	b, err := encodeSnapshot(dir, data)
	if err == nil {
		d := &disk{}
		err = d.replace(filepath.Join(dir, snapshotFile), false, func(f *os.File) error { return d.writeAt(f, b, 0) })
	}
	if err != nil {
		return fmt.Errorf("store: write snapshot: %w", err)
	}
	return nil
}

// RemoveSnapshot makes the next plan look at everything, also at what is stored.
func RemoveSnapshot(dir string) error {
	err := os.Remove(filepath.Join(dir, snapshotFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// A snapshotEncoder gathers the sections.
type snapshotEncoder struct {
	root    string
	strings []byte
	reads   []byte
	dirs    []byte
	files   []byte
	devs    []uint64
}

func encodeSnapshot(dir string, data *SnapshotData) ([]byte, error) {
	e := &snapshotEncoder{root: data.Root}
	for _, r := range data.Reads {
		e.read(r, data.Began.UnixNano())
	}
	if data.Table != nil {
		if err := e.table(data.Table); err != nil {
			return nil, err
		}
	}
	root, err := relativeRoot(dir, data.Root)
	if err != nil {
		return nil, err
	}
	devs := make([]byte, 0, 8*len(e.devs))
	for _, dev := range e.devs {
		devs = binary.LittleEndian.AppendUint64(devs, dev)
	}
	if uint64(len(e.strings)) > math.MaxUint32 {
		return nil, errors.New("more than 4 GiB of names")
	}
	return assemble(data, e.strings, e.reads, e.dirs, e.files, devs, data.Counts, encodeNames(data.Names), []byte(root)), nil
}

// relativeRoot names the workspace as seen from .pbuild, so that a workspace that was copied with its snapshot is never taken for the original.
func relativeRoot(dir, root string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(abs, root)
	if err != nil { // on another volume
		return root, nil
	}
	return filepath.ToSlash(rel), nil
}

func assemble(data *SnapshotData, sections ...[]byte) []byte {
	size := snapshotHead
	for _, s := range sections {
		size += len(s) + 7
	}
	b := make([]byte, snapshotHead, size)
	copy(b, snapshotMagic)
	b[7] = snapshotVersion
	binary.LittleEndian.PutUint64(b[24:], data.Generation)
	ident := digest.Of([]byte(data.Identity))
	copy(b[32:], data.Args[:])
	copy(b[64:], ident[:])
	for i, s := range sections {
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
		binary.LittleEndian.PutUint64(b[96+16*i:], uint64(len(b)))
		binary.LittleEndian.PutUint64(b[96+16*i+8:], uint64(len(s)))
		b = append(b, s...)
	}
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)))
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[16:], castagnoli))
	return b
}

// read stats r now. If it has not changed since began, what stands there is what was read; else its content decides at Check.
func (e *snapshotEncoder) read(r Read, began int64) {
	var st stat
	racy := false
	if r.Kind != ReadAbsent {
		var err error
		if st, err = statPath(r.Path); err != nil || isRacy(st, began) {
			racy = true
		}
		if r.Kind == ReadDir && r.Digest.IsZero() && !racy {
			if r.Digest, err = readListing(r.Path, r.Match); err != nil {
				racy = true
			}
		}
	}
	path := r.Path
	if rel, err := filepath.Rel(e.root, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	e.reads = e.text(e.reads, path)
	e.reads = e.text(e.reads, strings.Join(r.Match, "\x00"))
	flag := byte(0)
	if racy {
		flag = 1
	}
	e.reads = append(e.reads, byte(r.Kind), flag, 0, 0, 0, 0, 0, 0)
	e.reads = binary.LittleEndian.AppendUint64(e.reads, st.dev)
	e.reads = appendStat(e.reads, st)
	e.reads = append(e.reads, r.Digest[:]...)
}

// text adds s to the strings, and its offset and length to dst.
func (e *snapshotEncoder) text(dst []byte, s string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.strings)))
	e.strings = append(e.strings, s...)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
}

func appendStat(dst []byte, st stat) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, st.ino)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(st.size))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(st.mtime))
	return binary.LittleEndian.AppendUint64(dst, uint64(st.ctime))
}

func (e *snapshotEncoder) table(t *Table) error {
	total := 0
	for _, d := range t.dirs {
		total += len(d.files)
	}
	e.files = make([]byte, 0, total*fileRow)
	for _, d := range t.dirs {
		e.dirs = e.text(e.dirs, d.name)
		e.dirs = binary.LittleEndian.AppendUint32(e.dirs, uint32(len(e.files)/fileRow))
		e.dirs = binary.LittleEndian.AppendUint32(e.dirs, uint32(len(d.files)))
		for i := range d.files {
			if err := e.file(&d.files[i]); err != nil {
				return fmt.Errorf("%s/%s: %w", d.name, d.files[i].name, err)
			}
		}
	}
	return nil
}

func (e *snapshotEncoder) file(f *namedState) error {
	if len(f.name) > math.MaxUint16 {
		return errors.New("the name is too long")
	}
	flags := byte(f.kind)
	if f.racy || f.err != nil { // what could not be read is looked at again
		flags |= flagRacy
	}
	if f.output {
		flags |= flagOutput
	}
	dev, err := e.device(f.dev)
	if err != nil {
		return err
	}
	e.files = binary.LittleEndian.AppendUint32(e.files, uint32(len(e.strings)))
	e.files = binary.LittleEndian.AppendUint16(e.files, uint16(len(f.name)))
	e.files = append(e.files, flags, dev)
	e.files = appendStat(e.files, f.stat)
	e.files = append(e.files, f.digest[:]...)
	e.strings = append(e.strings, f.name...)
	return nil
}

func (e *snapshotEncoder) device(dev uint64) (byte, error) {
	i := slices.Index(e.devs, dev)
	if i < 0 {
		if i = len(e.devs); i > math.MaxUint8 {
			return 0, errors.New("the files lie on more than 256 devices")
		}
		e.devs = append(e.devs, dev)
	}
	return byte(i), nil
}

func encodeNames(names []string) []byte {
	var out []byte
	last := ""
	for _, name := range names {
		shared := 0
		for shared < min(len(last), len(name)) && last[shared] == name[shared] {
			shared++
		}
		out = binary.AppendUvarint(out, uint64(shared))
		out = binary.AppendUvarint(out, uint64(len(name)-shared))
		out = append(out, name[shared:]...)
		last = name
	}
	return out
}
