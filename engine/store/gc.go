package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// GCOptions says what a collection keeps. Zero functions keep everything of their sort.
type GCOptions struct {
	// Keep says whether a record stays: of a frozen kind, of the current graph, or young enough. It is called once for each, oldest
	// first, so it may also note what trees live records name.
	Keep func(*task.Record) bool
	// Marked is called when Keep was asked about every record. Its error ends the collection before anything goes.
	Marked func() error
	// Roots are blobs that stay though no record names them.
	Roots []digest.Digest
	// KeepRun says whether a run's event stream stays.
	KeepRun func(id string) bool
	DryRun  bool // change nothing, and report what would go
}

// A Part is one category of what is kept and what goes.
type Part struct {
	Kept, KeptBytes       int64
	Dropped, DroppedBytes int64
}

func (p *Part) add(keep bool, bytes int64) {
	if keep {
		p.Kept++
		p.KeptBytes += bytes
	} else {
		p.Dropped++
		p.DroppedBytes += bytes
	}
}

// A GCReport says what a collection kept and dropped, in records, blobs and runs.
type GCReport struct{ Records, Blobs, Runs Part }

// GC drops the records that Keep refuses, the blobs that no kept record names, and the event streams that KeepRun refuses. Each file is replaced
// as a whole, records before blobs, so a crash at any moment leaves a sound store, with some of what was to go. A blob that is JSON, as the
// kinds' results are, also keeps what its text names. Nothing may be put or appended meanwhile; readers go on with what they have open.
func (s *Store) GC(o GCOptions) (GCReport, error) {
	var report GCReport
	if s.lock == nil && !o.DryRun {
		return report, fmt.Errorf("store: collect %s: %w", s.dir, errReader)
	}
	if s.lock != nil {
		if err := s.blobs.sync(); err != nil {
			return report, fmt.Errorf("store: collect %s: %w", s.dir, err)
		}
	}
	keepRecord, live, err := s.mark(o)
	if err != nil {
		return report, fmt.Errorf("store: collect %s: %w", s.dir, err)
	}
	if o.Marked != nil {
		if err := o.Marked(); err != nil {
			return report, err
		}
	}
	err = s.collect(o, keepRecord, live, &report)
	if err == nil {
		err = s.collectLarge(o, live, &report)
	}
	if err == nil {
		err = s.collectRuns(o, &report)
	}
	if err != nil {
		return report, fmt.Errorf("store: collect %s: %w", s.dir, err)
	}
	return report, nil
}

// mark asks Keep of every record, and gathers the blobs that the kept ones name. What a newer pbuild has recorded cannot be asked about,
// so nothing is collected from under it.
func (s *Store) mark(o GCOptions) (keepRecord map[int]bool, live map[digest.Digest]bool, err error) {
	n := s.journal.len()
	keepRecord = make(map[int]bool, n)
	live = map[digest.Digest]bool{}
	if s.journal.newer {
		return nil, nil, fmt.Errorf("%w; collect with that one", errVersion)
	}
	for i := range n {
		r, err := s.readRecord(i)
		if errors.Is(err, errVersion) {
			return nil, nil, fmt.Errorf("%w; collect with that one", errVersion)
		}
		if r == nil || o.Keep != nil && !o.Keep(r) {
			continue
		}
		keepRecord[i] = true
		for _, out := range r.Outputs {
			s.markBlob(live, out.Digest)
		}
		s.markBlob(live, r.Log)
		s.markNamed(live, r.Evidence)
	}
	for _, d := range o.Roots {
		s.markBlob(live, d)
	}
	return keepRecord, live, nil
}

func (s *Store) markBlob(live map[digest.Digest]bool, d digest.Digest) {
	if live[d] || !s.blobs.Has(d) {
		return
	}
	live[d] = true
	r, err := s.blobs.Open(d)
	if err != nil {
		return
	}
	defer r.Close()
	var first [1]byte
	if n, _ := io.ReadFull(r, first[:]); n == 0 || !opensJSON(first[0]) {
		return
	}
	if rest, err := io.ReadAll(r); err == nil {
		s.markNamed(live, append(first[:], rest...))
	}
}

func opensJSON(c byte) bool { return c == '{' || c == '[' }

// markNamed marks every blob that JSON names. Where it only seems to name one, too much is kept, never too little.
func (s *Store) markNamed(live map[digest.Digest]bool, content []byte) {
	if len(content) == 0 || !opensJSON(content[0]) {
		return
	}
	const prefix, size = "sha256:", len("sha256:") + 64
	for {
		i := bytes.Index(content, []byte(prefix))
		if i < 0 || len(content)-i < size {
			return
		}
		if d, err := digest.Parse(string(content[i : i+size])); err == nil {
			s.markBlob(live, d)
		}
		content = content[i+len(prefix):]
	}
}

// collect rewrites the journal and then the packs.
func (s *Store) collect(o GCOptions, keepRecord map[int]bool, live map[digest.Digest]bool, report *GCReport) error {
	err := s.journal.rewrite(o.DryRun, &report.Records, func(i int, _ *place) bool { return keepRecord[i] })
	if err != nil {
		return err
	}
	seen := map[digest.Digest]int{} // the newest place of each live blob; older ones are damaged
	for i := range s.packs.len() {
		if p := s.packs.at(i); live[p.key] {
			seen[p.key] = i
		}
	}
	return s.packs.rewrite(o.DryRun, &report.Blobs, func(i int, p *place) bool {
		newest, ok := seen[p.key]
		return ok && newest == i
	})
}

func (s *Store) collectLarge(o GCOptions, live map[digest.Digest]bool, report *GCReport) error {
	return s.blobs.eachLarge(func(path string, d digest.Digest, info fs.FileInfo) error {
		report.Blobs.add(live[d], info.Size())
		if live[d] || o.DryRun {
			return nil
		}
		return s.disk.remove(path)
	})
}

func (s *Store) collectRuns(o GCOptions, report *GCReport) error {
	runs, err := s.Runs()
	if err != nil {
		return err
	}
	for _, id := range runs {
		dir := filepath.Join(s.dir, "runs", id)
		keep := o.KeepRun == nil || o.KeepRun(id)
		report.Runs.add(keep, fileSize(filepath.Join(dir, eventsFile)))
		if !keep && !o.DryRun {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	if o.DryRun {
		return nil
	}
	return s.sweepSnapshots()
}

// sweepSnapshots removes what writers of snapshots left aside. They hold no lock, so only what is old is certainly left.
func (s *Store) sweepSnapshots() error {
	list, err := filepath.Glob(filepath.Join(s.dir, snapshotFile+".*"+tempExt))
	if err != nil {
		return err
	}
	for _, path := range list {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			if err := s.disk.remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewrite replaces every segment by one without the places that keep refuses, and reloads. One that would hold nothing is removed, but for
// the last, whose number must not be used again.
func (s *segments) rewrite(dry bool, part *Part, keep func(i int, p *place) bool) error {
	s.load()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make(map[uint32][]place)
	dropped := make(map[uint32]bool)
	sizes := s.frameSizes()
	for i := range s.places {
		p := &s.places[i]
		ok := keep(i, p)
		part.add(ok, sizes[i])
		if ok {
			kept[p.file] = append(kept[p.file], *p)
		} else {
			dropped[p.file] = true
		}
	}
	if dry {
		return nil
	}
	defer s.reload(os.O_RDWR) // after an error too: what was replaced must not be written to
	for _, g := range s.files {
		if !dropped[g.at] {
			continue
		}
		if err := s.rewriteSegment(g, kept[g.at]); err != nil {
			return err
		}
	}
	for _, g := range s.files {
		s.writeIndex(g)
	}
	return nil
}

// frameSizes is how many bytes each place takes, by the distance to the next one in its file.
func (s *segments) frameSizes() []int64 {
	sizes := make([]int64, len(s.places))
	for i := range s.places {
		p := &s.places[i]
		end := s.files[p.file].size
		if i+1 < len(s.places) && s.places[i+1].file == p.file {
			end = s.places[i+1].off
		}
		sizes[i] = end - p.off
	}
	return sizes
}

// rewriteSegment copies the frames of places into a new file, under a new mark, and gives it g's name. g's index is then of another
// segment, and ignored.
func (s *segments) rewriteSegment(g *segment, places []place) error {
	g.indexed = g.size // it is to be replaced, not to be indexed
	last := g == s.files[len(s.files)-1]
	if len(places) == 0 && !last {
		os.Remove(s.indexPath(g))
		return s.disk.remove(g.path)
	}
	m := newMark()
	return s.disk.replace(g.path, true, func(f *os.File) error {
		w := &diskWriter{disk: s.disk, f: f}
		buf := appendHeader(nil, s.kind, m)
		from := &window{buf: make([]byte, aheadRead)}
		for _, p := range places {
			payload, err := from.frame(g.f, g.mark, p.off, g.size)
			if err != nil { // it was damaged before, and is dropped
				s.ledger.add(Damage{File: g.path, Offset: p.off, Records: 1, Reason: err.Error()})
				continue
			}
			if buf = appendFrame(buf, m, payload); len(buf) >= pendingLimit {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		_, err := w.Write(buf)
		return err
	})
}

// eachLarge calls f with every file of a large blob.
func (b *blobs) eachLarge(f func(path string, d digest.Digest, info fs.FileInfo) error) error {
	shards, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, shard := range shards {
		if len(shard.Name()) != 2 {
			continue
		}
		list, err := os.ReadDir(filepath.Join(b.dir, shard.Name()))
		if err != nil {
			return err
		}
		for _, e := range list {
			d, err := digest.Parse("sha256:" + strings.ToLower(e.Name()))
			info, infoErr := e.Info()
			if err != nil || infoErr != nil {
				continue
			}
			if err := f(filepath.Join(b.dir, shard.Name(), e.Name()), d, info); err != nil {
				return err
			}
		}
	}
	return nil
}
