// Package store keeps what the engine remembers below .pbuild: the journal of records, the blobs that they name, the snapshot of
// the last plan with its stat cache, the event streams of runs, and the lock.
//
// It promises: a record that Append returned from survives any crash, and so do the blobs it names; what a crash cut off is dropped
// and costs nothing before it; damage is a miss with a reason (Damage), never a wrong answer and never a failed build. One
// process writes, any number read, and readers need no lock. It does not know what a task means or which records are
// worth keeping: callers say so.
//
// The invariant it guards: blob, sync, record, sync, in this order.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A Store is one .pbuild directory. Its methods may be called from many goroutines at once, but for Close, GC and Verify.
// A reader sees the journal as it was at the first look, and blobs also while another process writes them.
type Store struct {
	dir     string
	disk    *disk
	lock    *os.File // nil for a reader
	journal *segments
	packs   *segments
	blobs   *blobs
	ledger  *ledger
}

// Open returns a reader of dir, which creates nothing and takes no lock. A directory that is absent is an empty store.
func Open(dir string) (*Store, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("store: open %s: it is not a directory; move it away", dir)
	}
	return newStore(dir, &disk{}, nil), nil
}

// OpenWriter makes dir where it is absent and takes its lock, for which it waits up to wait while another holds it. A lock that is
// held still is a *Locked. The journal's torn tail, if it has one, is cut off.
func OpenWriter(ctx context.Context, dir string, h Holder, wait time.Duration) (*Store, error) {
	return openWriter(ctx, dir, h, wait, &disk{})
}

func openWriter(ctx context.Context, dir string, h Holder, wait time.Duration, d *disk) (*Store, error) {
	if err := prepareDir(d, dir); err != nil {
		return nil, fmt.Errorf("store: make %s: %w", dir, err)
	}
	lock, err := acquire(ctx, dir, h, wait)
	if err != nil {
		return nil, err
	}
	s := newStore(dir, d, lock)
	if err := errors.Join(s.packs.openWriter(), s.journal.openWriter(), s.blobs.sweep()); err != nil {
		s.packs.close()
		s.journal.close()
		release(lock)
		return nil, fmt.Errorf("store: open %s for writing: %w", dir, err)
	}
	return s, nil
}

func newStore(dir string, d *disk, lock *os.File) *Store {
	s := &Store{dir: dir, disk: d, lock: lock, ledger: &ledger{}}
	s.journal = &segments{disk: d, dir: filepath.Join(dir, "journal"), ext: ".seg", kind: 'J', limit: segmentLimit, describe: describeRecord, tagged: true, ledger: s.ledger, windows: newWindows()}
	s.packs = &segments{disk: d, dir: filepath.Join(dir, "blobs", "packs"), ext: ".pack", kind: 'P', limit: segmentLimit, describe: describeBlob, ledger: s.ledger, windows: newWindows()}
	s.blobs = newBlobs(s)
	return s
}

// prepareDir makes dir with the two files that keep it out of version control and backups.
func prepareDir(d *disk, dir string) error {
	for _, sub := range []string{"journal", "blobs/packs", "blobs/new"} {
		if err := d.makeDirs(filepath.Join(dir, sub)); err != nil {
			return err
		}
	}
	files := map[string]string{
		".gitignore":   "*\n",
		"CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# What pbuild remembers. It can be made again by running everything again.\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close writes the indexes, which spare the next reader a scan, and gives up the lock. What Append returned from is safe without it.
func (s *Store) Close() error {
	var err error
	if s.lock != nil {
		err = s.blobs.sync()
		s.packs.writeIndexes()
		s.journal.writeIndexes()
	}
	s.packs.close()
	s.journal.close()
	if s.lock != nil {
		release(s.lock)
		s.lock = nil
	}
	if err != nil {
		return fmt.Errorf("store: close %s: %w", s.dir, err)
	}
	return nil
}

// Append makes the blobs that were put so far durable, then records, and returns; a record is visible to Lookup only then. After an
// error those of them that were not yet synced do not count, and the store is as it was.
func (s *Store) Append(records []*task.Record) error {
	if s.lock == nil {
		return fmt.Errorf("store: append %d records: %w", len(records), errReader)
	}
	if err := s.blobs.sync(); err != nil {
		return fmt.Errorf("store: append %d records: blobs: %w", len(records), err)
	}
	payloads := make([][]byte, len(records))
	for i, r := range records {
		payloads[i] = encodeRecord(r)
	}
	if err := s.journal.append(payloads); err != nil {
		return fmt.Errorf("store: append %d records: %w", len(records), err)
	}
	return nil
}

// Lookup returns the newest record under a key, or nil.
func (s *Store) Lookup(k task.Key) *task.Record {
	for _, i := range s.journal.withKey(k) {
		if r := s.record(i); r != nil {
			return r
		}
	}
	return nil
}

// Latest returns the newest record that an address ran under, whatever its key, or nil.
func (s *Store) Latest(address string) *task.Record {
	for r := range s.ofAddress(address) {
		return r
	}
	return nil
}

// History returns every record of an address, newest first.
func (s *Store) History(address string) []*task.Record {
	var out []*task.Record
	for r := range s.ofAddress(address) {
		out = append(out, r)
	}
	return out
}

// Records are the newest record of every key, newest first.
func (s *Store) Records() func(yield func(*task.Record) bool) {
	return func(yield func(*task.Record) bool) {
		seen := map[task.Key]bool{}
		for i := s.journal.len() - 1; i >= 0; i-- {
			r := s.record(i)
			if r == nil || seen[r.Key] {
				continue
			}
			seen[r.Key] = true
			if !yield(r) {
				return
			}
		}
	}
}

func (s *Store) ofAddress(address string) func(yield func(*task.Record) bool) {
	return func(yield func(*task.Record) bool) {
		for _, i := range s.journal.withTag(hashString(address)) {
			if r := s.record(i); r != nil && r.Address == address && !yield(r) {
				return
			}
		}
	}
}

// record returns the i-th record, or nil if it cannot be read.
func (s *Store) record(i int) *task.Record {
	r, _ := s.readRecord(i)
	return r
}

// readRecord notes its error as damage too.
func (s *Store) readRecord(i int) (r *task.Record, err error) {
	p := s.journal.at(i)
	err = s.journal.read(p, func(payload []byte) (err error) {
		if r, err = decodeRecord(payload); err == nil && r.Key != task.Key(p.key) {
			err = errors.New("the index tells of another record at this place")
		}
		return err
	})
	if err != nil {
		s.ledger.add(Damage{File: s.journal.name(p), Offset: p.off, Records: 1, Object: "record " + task.Key(p.key).Short(), Reason: err.Error()})
		return nil, err
	}
	return r, nil
}

// Generation changes with every append and collection. It costs one directory listing, and reads no file.
func (s *Store) Generation() uint64 { return s.journal.generation() }

// Damage reports what could not be read so far. Each was a miss.
func (s *Store) Damage() []Damage { return s.ledger.all() }

var errReader = errors.New("the store was opened for reading")

// Blobs is the content store.
func (s *Store) Blobs() task.Blobs { return s.blobs }

// Has says whether a blob is stored.
func (s *Store) Has(d digest.Digest) bool { return s.blobs.Has(d) }
