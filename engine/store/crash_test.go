package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"pbuild/engine/digest"
	"pbuild/engine/store/storetest"
	"pbuild/engine/task"
)

// crash gives up the lock and all files as the kernel does for a process that was killed.
func crash(s *Store) {
	s.journal.close()
	s.packs.close()
	s.lock.Close()
	s.lock = nil
}

// withBlob makes a record whose log is a blob of the store.
func withBlob(t testing.TB, s *Store, n int) (*task.Record, error) {
	t.Helper()
	content := fmt.Appendf(nil, "log of %d: %s", n, bytes.Repeat([]byte{byte(n)}, n%5*40))
	if n%9 == 8 {
		content = bytes.Repeat(content, 70_000/len(content)+1)
	}
	d, err := s.Blobs().Put(content)
	r := storetest.Record(n, fmt.Sprint("task.", n%3))
	r.Log = d
	return r, err
}

// sound demands that every record's log can be read.
func sound(t testing.TB, s *Store) {
	t.Helper()
	for _, r := range records(s) {
		_, err := s.Blobs().Get(r.Log)
		check(t, err)
	}
}

// fill writes n records, one an append, and returns them and the size of the newest file with extension ext after each.
func fill(t testing.TB, dir string, n int, ext string) (records []*task.Record, ends []int64) {
	s := openForWriting(t, dir)
	for i := range n {
		r, err := withBlob(t, s, i)
		check(t, err)
		check(t, s.Append([]*task.Record{r}))
		records = append(records, r)
		info, err := os.Stat(only(t, dir, ext))
		check(t, err)
		ends = append(ends, info.Size())
	}
	check(t, s.Close())
	return records, ends
}

// only returns the one file below dir with extension ext.
func only(t testing.TB, dir, ext string) string {
	t.Helper()
	for _, sub := range []string{"journal", "blobs/packs"} {
		if list, _ := filepath.Glob(filepath.Join(dir, sub, "*"+ext)); len(list) == 1 {
			return list[0]
		}
	}
	t.Fatalf("there is not one file *%s", ext)
	return ""
}

// The journal cut at any byte gives back every record that was whole, without damage, and goes on from there.
func TestCutJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	records, ends := fill(t, dir, 6, ".seg")
	path := only(t, dir, ".seg")
	whole, err := os.ReadFile(path)
	check(t, err)
	extra := storetest.Record(99, "task.extra")
	for cut := len(whole); cut >= 0; cut-- {
		check(t, os.WriteFile(path, whole[:cut], 0o666))
		n := 0
		for n < len(ends) && ends[n] <= int64(cut) {
			n++
		}
		r := openForReading(t, dir)
		sameRecords(t, r, records[:n])
		if d := r.Damage(); d != nil {
			t.Fatalf("cut at %d: damage %v", cut, d)
		}
		w := openForWriting(t, dir)
		extra.Log = records[0].Log
		check(t, w.Append([]*task.Record{extra}))
		crash(w)
		r = openForReading(t, dir)
		sameRecords(t, r, append(records[:n:n], extra))
		if got := r.Lookup(extra.Key); got == nil || got.Address != extra.Address {
			t.Fatalf("cut at %d, and written on: the new record's key finds %v", cut, got)
		}
		sound(t, r)
		if d := r.Damage(); d != nil {
			t.Fatalf("cut at %d, and written on: damage %v", cut, d)
		}
		r.Close()
	}
}

// A pack cut at any byte gives back every blob that was whole, and takes the others again.
func TestCutPack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	records, ends := fill(t, dir, 6, ".pack")
	path := only(t, dir, ".pack")
	whole, err := os.ReadFile(path)
	check(t, err)
	for cut := len(whole); cut >= 0; cut-- {
		check(t, os.WriteFile(path, whole[:cut], 0o666))
		r := openForReading(t, dir)
		sameRecords(t, r, records)
		for i, rec := range records {
			_, err := r.Blobs().Get(rec.Log)
			var missing *blobError
			if ends[i] <= int64(cut) {
				check(t, err)
			} else if !errors.As(err, &missing) || !missing.Missing {
				t.Fatalf("cut at %d: blob %d gives %v", cut, i, err)
			}
		}
		w := openForWriting(t, dir)
		for i := range records {
			_, err := withBlob(t, w, i)
			check(t, err)
		}
		check(t, w.Append(nil))
		crash(w)
		sound(t, openForReading(t, dir))
	}
}

// One damaged byte costs at most the record it lies in, which is reported, whether the index still vouches for it or not.
func TestDamageInTheMiddle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	records, ends := fill(t, dir, 5, ".seg")
	path := only(t, dir, ".seg")
	whole, err := os.ReadFile(path)
	check(t, err)
	for _, indexed := range []bool{true, false} {
		if !indexed {
			check(t, os.Remove(strings.TrimSuffix(path, ".seg")+".idx"))
		}
		for at := range int(ends[3]) { // what hits the last record is a torn tail
			bad := bytes.Clone(whole)
			bad[at] ^= 0x10
			check(t, os.WriteFile(path, bad, 0o666))
			hit := 0
			for ends[hit] <= int64(at) {
				hit++
			}
			want := append(append([]*task.Record{}, records[:hit]...), records[hit+1:]...)
			if at < headerSize { // the first frame mends the header
				want = records
			}
			r := openForReading(t, dir)
			sameRecords(t, r, want)
			if d := r.Damage(); at >= headerSize && (len(d) != 1 || d[0].Records != 1 || d[0].File != path) {
				t.Fatalf("byte %d: damage %v", at, d)
			}
			r.Close()
		}
	}
}

// A frame that some log imitates is not taken for a record when the reader looks for where to go on.
func TestForgedFrame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	forged := storetest.Record(1, "task.victim")
	forged.Verdict = task.Pass
	carrier := storetest.Record(2, "task.carrier")
	carrier.Evidence = appendFrame(nil, newMark(), encodeRecord(forged))
	last := storetest.Record(3, "task.last")
	check(t, w.Append([]*task.Record{carrier, last}))
	crash(w)
	path := only(t, dir, ".seg")
	b, err := os.ReadFile(path)
	check(t, err)
	b[headerSize+frameSize+1] ^= 1 // within the carrier
	check(t, os.WriteFile(path, b, 0o666))
	sameRecords(t, openForReading(t, dir), []*task.Record{last})
}

// What a newer pbuild wrote is a miss with that reason, is not written to, and is not collected.
func TestNewerVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	a, b := storetest.Record(1, "a"), storetest.Record(2, "b")
	check(t, w.Append([]*task.Record{a}))
	newer := encodeRecord(storetest.Record(3, "c"))
	newer[0] = recordVersion + 1
	g := w.journal.files[0]
	check(t, w.journal.write(g, appendFrame(nil, g.mark, newer)))
	crash(w)
	w = openForWriting(t, dir)
	check(t, w.Append([]*task.Record{b}))
	sameRecords(t, w, []*task.Record{a, b})
	if d := w.Damage(); len(d) != 1 || !strings.Contains(d[0].Reason, "newer pbuild") {
		t.Errorf("damage: %v", d)
	}
	if _, err := w.GC(GCOptions{Keep: func(*task.Record) bool { return false }}); !errors.Is(err, errVersion) {
		t.Errorf("collected from under a newer pbuild: %v", err)
	}
	check(t, w.Close())

	path := only(t, dir, ".seg")
	bytes, err := os.ReadFile(path)
	check(t, err)
	head := appendHeader(nil, 'J', g.mark)
	head[7]++
	head = append(appendHeaderSum(head[:16]), bytes[headerSize:]...)
	check(t, os.WriteFile(path, head, 0o666))
	w = openForWriting(t, dir)
	check(t, w.Append([]*task.Record{b}))
	sameRecords(t, w, []*task.Record{b})
	check(t, w.Close())
	after, err := os.ReadFile(path)
	check(t, err)
	if string(after) != string(head) {
		t.Error("a newer segment was changed")
	}
}

// errPower is what every change ends in once the power is off.
var errPower = errors.New("the power is off")

// A failer fails the n-th change, of a write after the first part of it, and all later ones too where it is for good.
type failer struct {
	n       int
	part    float64
	forGood bool
	err     error

	count int
	hit   string
}

func (f *failer) fault(op, path string, size int) (int, error) {
	f.count++
	if f.count < f.n || f.count > f.n && !f.forGood {
		return noSync(op, path, size)
	}
	if f.count == f.n {
		f.hit = op + " " + filepath.Base(path)
		return int(float64(size) * f.part), f.err
	}
	return 0, f.err
}

// work opens a store, writes to it in several appends over several segments, and returns what was acknowledged and all that was tried.
func work(t testing.TB, dir string, f *failer) (acked, tried []*task.Record, s *Store, failures []error) {
	s, err := openWriter(context.Background(), dir, holder, 0, &disk{fault: f.fault})
	if err != nil {
		return nil, nil, nil, []error{err}
	}
	s.journal.limit, s.packs.limit = 1500, 600
	for i := 0; i < 12; i += 2 {
		var batch []*task.Record
		for j := range 2 {
			r, err := withBlob(t, s, i+j)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			batch = append(batch, r)
		}
		tried = append(tried, batch...)
		if err := s.Append(batch); err != nil {
			failures = append(failures, err)
			continue
		}
		acked = append(acked, batch...)
	}
	return acked, tried, s, failures
}

// A process that dies at any change, in the middle of any write, loses nothing that was acknowledged.
func TestDieAtEveryChange(t *testing.T) {
	for _, part := range []float64{0, 0.5, 0.99} {
		for n := 1; ; n++ {
			dir := filepath.Join(t.TempDir(), ".pbuild")
			f := &failer{n: n, part: part, forGood: true, err: errPower}
			acked, tried, s, failures := work(t, dir, f)
			if s != nil {
				crash(s)
			}
			if f.hit == "" {
				if len(failures) > 0 || len(acked) != 12 || n < 30 {
					t.Fatalf("without a failure %d records were acknowledged over %d changes: %v", len(acked), n, failures)
				}
				break
			}
			if len(failures) == 0 {
				t.Fatalf("change %d (%s) failed, and nobody was told", n, f.hit)
			}
			w := openForWriting(t, dir)
			recovered(t, w, acked, tried, f.hit)
			extra, err := withBlob(t, w, 50)
			check(t, err)
			check(t, w.Append([]*task.Record{extra}))
			check(t, w.Close())
			recovered(t, openForReading(t, dir), append(acked, extra), append(tried, extra), f.hit)
		}
	}
}

// recovered demands that s holds all of acked, nothing but tried, every blob, and no damage.
func recovered(t testing.TB, s *Store, acked, tried []*task.Record, when string) {
	t.Helper()
	for _, r := range acked {
		if s.Lookup(r.Key) == nil {
			t.Fatalf("%s: acknowledged record %s is lost", when, r.Preimage)
		}
	}
	known := map[task.Key]bool{}
	for _, r := range tried {
		known[r.Key] = true
	}
	for _, r := range records(s) {
		if !known[r.Key] {
			t.Fatalf("%s: record %s comes from nowhere", when, r.Preimage)
		}
	}
	sound(t, s)
	if d := s.Damage(); d != nil {
		t.Fatalf("%s: damage %v", when, d)
	}
}

// A disk that is full for a moment is an error that says so, never a lost or a half record; a failed sync ends all writing.
func TestFullDisk(t *testing.T) {
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), ".pbuild")
		f := &failer{n: n, part: 0.5, err: syscall.ENOSPC}
		acked, tried, s, failures := work(t, dir, f)
		if f.hit == "" {
			break
		}
		for _, err := range failures {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: the error is %v", f.hit, err)
			}
		}
		cheap := strings.HasSuffix(f.hit, ".idx") || strings.Contains(f.hit, ".idx.") // losing an index costs nothing
		if len(failures) == 0 && !cheap {
			t.Fatalf("%s failed, and nobody was told", f.hit)
		}
		if s == nil {
			continue
		}
		if len(acked) < 8 && !strings.HasPrefix(f.hit, "sync ") {
			t.Fatalf("%s: after one failure only %d records were stored: %v", f.hit, len(acked), failures)
		}
		recovered(t, s, acked, tried, f.hit)
		crash(s)
		recovered(t, openForReading(t, dir), acked, tried, f.hit)
	}
}

// A history of writes, kills, power cuts and collections, at random: what was acknowledged and not collected is always there.
func TestRandomHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		check(t, err)
		dir := filepath.Join(root, ".pbuild")
		synced := map[string]int64{}
		d := &disk{fault: func(op, path string, size int) (int, error) {
			if op == "sync" {
				if info, err := os.Stat(path); err == nil {
					synced[path] = info.Size()
				}
			}
			return noSync(op, path, size)
		}}
		var s *Store
		open := func() {
			s, err = openWriter(context.Background(), dir, holder, 0, d)
			check(t, err)
			s.journal.limit, s.packs.limit = 3000, 2000
		}
		open()
		defer func() { s.Close() }()
		var acked []*task.Record
		next := 0
		put := func() *task.Record {
			next++
			r, err := withBlob(t, s, next)
			check(t, err)
			return r
		}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				var batch []*task.Record
				for range rapid.IntRange(0, 5).Draw(rt, "size") {
					batch = append(batch, put())
				}
				check(t, s.Append(batch))
				acked = append(acked, batch...)
			},
			"put": func(*rapid.T) { put() },
			"reopen": func(*rapid.T) {
				check(t, s.Close())
				open()
			},
			"kill": func(*rapid.T) {
				crash(s)
				open()
			},
			"power cut": func(rt *rapid.T) {
				crash(s)
				for _, path := range dataFiles(dir) {
					info, err := os.Stat(path)
					check(t, err)
					size := info.Size()
					if floor := synced[path]; floor < size {
						size = rapid.Int64Range(floor, size).Draw(rt, "size")
					}
					check(t, os.Truncate(path, size))
				}
				open()
			},
			"collect": func(rt *rapid.T) {
				mod := rapid.IntRange(1, 4).Draw(rt, "mod")
				keep := func(r *task.Record) bool { return r.Started/1e9%int64(mod) == 0 }
				_, err := s.GC(GCOptions{Keep: keep})
				check(t, err)
				var left []*task.Record
				for _, r := range acked {
					if keep(r) {
						left = append(left, r)
					}
				}
				acked = left
				for _, path := range dataFiles(dir) { // each was synced under another name
					info, err := os.Stat(path)
					check(t, err)
					synced[path] = info.Size()
				}
			},
			"": func(*rapid.T) {
				sameRecords(t, s, acked)
				r := openForReading(t, dir)
				sameRecords(t, r, acked)
				sound(t, r)
				if damage := append(s.Damage(), r.Damage()...); damage != nil {
					t.Fatalf("damage: %v", damage)
				}
				r.Close()
			},
		})
	})
}

// dataFiles lists the segments and packs.
func dataFiles(dir string) []string {
	a, _ := filepath.Glob(filepath.Join(dir, "journal", "*.seg"))
	b, _ := filepath.Glob(filepath.Join(dir, "blobs", "packs", "*.pack"))
	return append(a, b...)
}

// Before a record is written, the names of new directories are synced, and what a killed writer had stored and not synced.
func TestWhatAKilledWriterLeftIsSynced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", ".pbuild")
	synced := map[string]bool{}
	open := func() *Store {
		clear(synced)
		s, err := openWriter(t.Context(), dir, holder, 0, &disk{fault: func(op, path string, size int) (int, error) {
			synced[path] = synced[path] || strings.HasPrefix(op, "sync")
			return noSync(op, path, size)
		}})
		check(t, err)
		return s
	}
	demand := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if !synced[path] {
				t.Errorf("%s is not synced", path)
			}
		}
	}
	put := func(s *Store) digest.Digest {
		_, err := s.Blobs().Put([]byte("small"))
		check(t, err)
		large, err := s.Blobs().Put(bytes.Repeat([]byte("large "), 50_000))
		check(t, err)
		return large
	}
	w := open()
	demand(filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir, filepath.Join(dir, "blobs"))
	large := put(w)
	w.packs.mu.Lock()
	check(t, w.packs.flushPending(false))
	w.packs.mu.Unlock()
	crash(w)

	w = open()
	put(w)
	check(t, w.Append(nil))
	demand(only(t, dir, ".pack"), filepath.Join(dir, "blobs", "packs"), filepath.Dir(w.blobs.largePath(large)), filepath.Join(dir, "blobs"))
	check(t, w.Close())
}

// A damaged blob is an error that names it and the remedy; it counts as absent, and Put makes it whole again.
func TestDamagedBlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	contents := [][]byte{[]byte("small"), bytes.Repeat([]byte("large "), 50_000)}
	var names []digest.Digest
	for _, c := range contents {
		d, err := w.Blobs().Put(c)
		check(t, err)
		names = append(names, d)
	}
	check(t, w.Append(nil))
	check(t, w.Close())
	flip := func(path string) {
		b, err := os.ReadFile(path)
		check(t, err)
		b[len(b)-2] ^= 1
		check(t, os.WriteFile(path, b, 0o666))
	}
	for round := range 2 {
		flip(only(t, dir, ".pack"))
		w = openForWriting(t, dir)
		flip(w.blobs.largePath(names[1]))
		for _, d := range names {
			_, err := w.Blobs().Get(d)
			var bad *blobError
			if !errors.As(err, &bad) || bad.Missing || !strings.Contains(err.Error(), d.String()) || !strings.Contains(err.Error(), "pbuild cache verify") {
				t.Fatalf("round %d: a damaged blob gives %v", round, err)
			}
			if w.Has(d) {
				t.Errorf("round %d: Has is still true", round)
			}
		}
		if round == 1 { // verify drops them too, whatever process found them first
			found, err := w.Verify()
			check(t, err)
			if len(found) == 0 {
				t.Error("verify finds nothing")
			}
		}
		for i, d := range names {
			_, err := w.Blobs().Put(contents[i])
			check(t, err)
			got, err := w.Blobs().Get(d)
			check(t, err)
			if !bytes.Equal(got, contents[i]) {
				t.Error("the blob that was put again is wrong")
			}
		}
		check(t, w.Close())
		sound := openForReading(t, dir)
		for _, d := range names {
			_, err := sound.Blobs().Get(d)
			check(t, err)
		}
	}
}
