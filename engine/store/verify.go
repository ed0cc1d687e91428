package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Verify reads everything again and says what is damaged. On a writer it also drops the damaged blobs, so that they count as
// missing and the next run makes them again.
func (s *Store) Verify() ([]Damage, error) {
	if s.lock != nil {
		if err := s.blobs.sync(); err != nil { // what is not in the packs yet would be forgotten
			return nil, fmt.Errorf("store: verify %s: %w", s.dir, err)
		}
	}
	s.blobs.load()
	var found []Damage
	s.verifyJournal(&found)
	if err := s.verifyPacks(&found); err != nil {
		return found, fmt.Errorf("store: verify %s: %w", s.dir, err)
	}
	err := s.blobs.eachLarge(func(path string, d digest.Digest, _ fs.FileInfo) error {
		r, err := s.blobs.openLarge(d)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err == nil {
			return nil
		}
		var bad *blobError
		if !errors.As(err, &bad) {
			return err
		}
		found = append(found, Damage{File: path, Records: 1, Object: "blob " + d.String(), Reason: bad.Reason})
		if s.lock == nil {
			return nil
		}
		return s.disk.remove(path)
	})
	if err != nil {
		return found, fmt.Errorf("store: verify %s: %w", s.dir, err)
	}
	return found, nil
}

func (s *Store) verifyJournal(found *[]Damage) {
	s.journal.verify(found, func(payload []byte) (string, error) {
		r, err := decodeRecord(payload)
		if err != nil {
			return "", err
		}
		if len(r.Preimage) > 0 && task.Key(digest.Of(r.Preimage)) != r.Key {
			return "record " + r.Key.Short() + " of " + r.Address, errors.New("its key is not the hash of what it says went into it")
		}
		return "", nil
	})
}

func (s *Store) verifyPacks(found *[]Damage) error {
	damaged := s.packs.verify(found, func(payload []byte) (string, error) {
		content, err := decodeBlob(&s.blobs.codec, payload)
		key, _, _ := describeBlob(payload)
		if err == nil && digest.Of(content) != key {
			err = errContent
		}
		return "blob " + digest.Digest(key).String(), err
	})
	if s.lock == nil || len(damaged) == 0 {
		return nil
	}
	return s.packs.mend(damaged)
}

// verify scans every segment from its start, whatever its index says, and calls sound with every payload. It returns the segments in which
// anything is wrong, each with the places of what is not, or only a newer pbuild can tell.
func (s *segments) verify(found *[]Damage, sound func(payload []byte) (object string, err error)) map[*segment][]place {
	s.load()
	s.mu.RLock()
	defer s.mu.RUnlock()
	damaged := map[*segment][]place{}
	for _, g := range s.files {
		before := len(*found)
		if g.sealed || g.f == nil {
			*found = append(*found, Damage{File: g.path, Records: 1, Reason: errHeader.Error()})
			continue
		}
		if g.size < headerSize {
			continue
		}
		b := make([]byte, g.size-headerSize)
		if _, err := g.f.ReadAt(b, headerSize); err != nil {
			*found = append(*found, Damage{File: g.path, Records: 1, Reason: err.Error()})
			continue
		}
		var rest []place
		end := scan(b, g.mark, func(off int, payload []byte) {
			at := headerSize + int64(off)
			object, err := sound(payload)
			if err != nil {
				*found = append(*found, Damage{File: g.path, Offset: at, Bytes: int64(frameSize + len(payload)), Records: 1, Object: object, Reason: err.Error()})
			}
			if err == nil || errors.Is(err, errVersion) {
				rest = append(rest, place{off: at})
			}
		}, func(from, to int) {
			*found = append(*found, Damage{File: g.path, Offset: headerSize + int64(from), Bytes: int64(to - from), Records: 1, Reason: errDamaged.Error()})
		})
		if end < len(b) { // an index or an append has vouched for more
			*found = append(*found, Damage{File: g.path, Offset: headerSize + int64(end), Bytes: int64(len(b) - end), Records: 1, Reason: errDamaged.Error()})
		}
		if len(*found) > before {
			damaged[g] = rest
		}
	}
	return damaged
}

// mend replaces segments by ones that hold no more than the given places, and reloads.
func (s *segments) mend(damaged map[*segment][]place) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.reload(os.O_RDWR) // after an error too: what was replaced must not be written to
	for g, places := range damaged {
		if err := s.rewriteSegment(g, places); err != nil {
			return err
		}
	}
	return nil
}

// Stats counts what a store holds. Bytes are those on disk.
type Stats struct {
	Records, Keys, JournalBytes  int64
	SmallBlobs, Packs, PackBytes int64
	LargeBlobs, LargeBytes       int64
	Runs, RunBytes               int64
	SnapshotBytes                int64
}

// Stats looks at names and sizes, and reads no content.
func (s *Store) Stats() (Stats, error) {
	s.blobs.load()
	var st Stats
	st.Records, st.Keys, _, st.JournalBytes = s.journal.stats()
	_, st.SmallBlobs, st.Packs, st.PackBytes = s.packs.stats()
	st.SnapshotBytes = fileSize(filepath.Join(s.dir, snapshotFile))
	err := s.blobs.eachLarge(func(_ string, _ digest.Digest, info fs.FileInfo) error {
		st.LargeBlobs++
		st.LargeBytes += info.Size()
		return nil
	})
	if err != nil {
		return st, err
	}
	runs, err := s.Runs()
	for _, id := range runs {
		st.Runs++
		st.RunBytes += fileSize(filepath.Join(s.dir, "runs", id, eventsFile))
	}
	return st, err
}

// fileSize is 0 where there is no file.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (s *segments) stats() (places, keys, files, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	distinct := make(map[[32]byte]struct{}, len(s.places))
	for i := range s.places {
		distinct[s.places[i].key] = struct{}{}
	}
	for _, g := range s.files {
		bytes += g.size
	}
	return int64(len(s.places)), int64(len(distinct)), int64(len(s.files)), bytes + int64(len(s.pending))
}
