package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/store/storetest"
	"pbuild/engine/task"
)

// A collection keeps exactly the records that it is told to, what these name directly and through JSON, and the roots.
func TestCollect(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	w.journal.limit, w.packs.limit = 3000, 3000
	put := func(content string) digest.Digest {
		d, err := w.Blobs().Put([]byte(content))
		check(t, err)
		return d
	}
	large := func(s string) string { return string(bytes.Repeat([]byte(s), 80_000)) }
	var live, dead []digest.Digest
	var kept []*task.Record
	for n := range 40 {
		r := storetest.Record(n, "task.a")
		log, report := put(fmt.Sprint("log ", n)), put(large(fmt.Sprint("report ", n/20)))
		if n%2 == 1 {
			log = put(fmt.Sprint("odd log ", n))
		}
		result, err := json.Marshal(map[string]any{"log": log, "reports": []digest.Digest{report}})
		check(t, err)
		r.Outputs = []task.Output{{Role: "result", Digest: put(string(result))}}
		r.Log = put(fmt.Sprint("own log ", n))
		evidence := put(fmt.Sprint("evidence ", n))
		r.Evidence = fmt.Appendf(nil, `{"x":%q}`, evidence)
		names := []digest.Digest{r.Outputs[0].Digest, r.Log, log, evidence}
		if n%4 == 0 && n < 20 {
			kept = append(kept, r)
			live = append(append(live, names...), report)
		} else {
			dead = append(dead, names...)
		}
		check(t, w.Append([]*task.Record{r}))
	}
	root, nobodys := put("root"), put(large("nobody's"))
	live, dead = append(live, root), append(dead, nobodys)
	for _, id := range []string{"old", "new"} {
		run, err := w.CreateRun(id)
		check(t, err)
		fmt.Fprintln(run, "{}")
		check(t, run.Close())
	}
	keep := map[task.Key]bool{}
	for _, r := range kept {
		keep[r.Key] = true
	}
	options := GCOptions{
		Keep: func(r *task.Record) bool { return keep[r.Key] }, Roots: []digest.Digest{root},
		KeepRun: func(id string) bool { return id == "new" }, DryRun: true,
	}
	before, err := w.Stats()
	check(t, err)
	would, err := w.GC(options)
	check(t, err)
	after, err := w.Stats()
	check(t, err)
	if before != after {
		t.Errorf("a dry run changed %+v to %+v", before, after)
	}
	generation := w.Generation()
	options.DryRun = false
	did, err := w.GC(options)
	check(t, err)
	if would != did {
		t.Errorf("a dry run said %+v, then it was %+v", would, did)
	}
	if did.Records.Kept != int64(len(kept)) || did.Records.Dropped != 40-int64(len(kept)) || did.Runs.Kept != 1 || did.Runs.Dropped != 1 || did.Runs.DroppedBytes != 3 {
		t.Errorf("report %+v", did)
	}
	if w.Generation() == generation {
		t.Error("a collection did not move the generation")
	}
	after, err = w.Stats()
	check(t, err)
	if freed := before.JournalBytes - after.JournalBytes; after.Records != int64(len(kept)) || freed < did.Records.DroppedBytes {
		t.Errorf("%d bytes of the journal are free, %d were to go; %+v", freed, did.Records.DroppedBytes, after)
	}
	if got := after.SmallBlobs + after.LargeBlobs; got != did.Blobs.Kept {
		t.Errorf("%d blobs are left of %d", got, did.Blobs.Kept)
	}
	demand := func(s *Store) {
		t.Helper()
		sameRecords(t, s, kept)
		for _, d := range live {
			_, err := s.Blobs().Get(d)
			check(t, err)
		}
		for _, d := range dead {
			if s.Has(d) {
				t.Errorf("blob %s is still there", d.Short())
			}
		}
		if d := s.Damage(); d != nil {
			t.Errorf("damage %v", d)
		}
		found, err := s.Verify()
		check(t, err)
		if found != nil {
			t.Errorf("verify finds %v", found)
		}
	}
	demand(w)
	extra, err := withBlob(t, w, 100)
	check(t, err)
	check(t, w.Append([]*task.Record{extra}))
	kept = append(kept, extra)
	demand(w)
	check(t, w.Close())
	demand(openForReading(t, dir))
}

// A reader that was open before a collection still reads all it knew.
func TestCollectUnderReader(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	records, _ := fill(t, dir, 5, ".seg")
	r := openForReading(t, dir)
	sameRecords(t, r, records)
	r.Has(records[0].Log)
	w := openForWriting(t, dir)
	_, err := w.GC(GCOptions{Keep: func(r *task.Record) bool { return r.Key == records[4].Key }})
	check(t, err)
	sameRecords(t, r, records)
	sound(t, r)
	sameRecords(t, openForReading(t, dir), records[4:])
}

// A collection that dies at any change loses nothing that was to be kept, and the next one ends it.
func TestDieCollecting(t *testing.T) {
	for _, part := range []float64{0, 0.5} {
		for n := 1; ; n++ {
			dir := filepath.Join(t.TempDir(), ".pbuild")
			w := openForWriting(t, dir)
			w.journal.limit, w.packs.limit = 1500, 600
			var all []*task.Record
			for i := range 12 {
				r, err := withBlob(t, w, i)
				check(t, err)
				all = append(all, r)
			}
			check(t, w.Append(all))
			check(t, w.Close())
			keep := func(r *task.Record) bool { return r.Started/1e9%3 == 1 }
			var kept []*task.Record
			for _, r := range all {
				if keep(r) {
					kept = append(kept, r)
				}
			}
			f := &failer{n: n, part: part, forGood: true, err: errPower}
			w, err := openWriter(context.Background(), dir, holder, 0, &disk{fault: f.fault})
			check(t, err)
			_, err = w.GC(GCOptions{Keep: keep})
			crash(w)
			if f.hit == "" {
				check(t, err)
				sameRecords(t, openForReading(t, dir), kept)
				if n < 10 {
					t.Fatalf("a collection makes only %d changes", n)
				}
				break
			}
			w = openForWriting(t, dir)
			recovered(t, w, kept, all, f.hit)
			_, err = w.GC(GCOptions{Keep: keep})
			check(t, err)
			sameRecords(t, w, kept)
			sound(t, w)
			left, err := filepath.Glob(filepath.Join(dir, "*", "*"+tempExt))
			check(t, err)
			if left != nil {
				t.Errorf("%s: left aside: %v", f.hit, left)
			}
			check(t, w.Close())
		}
	}
}

// Verify finds a record whose key is not the hash of its preimage, and a frame that no index admits to.
func TestVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	good, bad := storetest.Record(1, "a"), storetest.Record(2, "b")
	bad.Key[0] ^= 1
	check(t, w.Append([]*task.Record{good, bad}))
	found, err := w.Verify()
	check(t, err)
	if len(found) != 1 || found[0].Object != "record "+bad.Key.Short()+" of b" {
		t.Errorf("found %v", found)
	}
	check(t, w.Close())
	old := filepath.Join(dir, snapshotFile+".1"+tempExt)
	check(t, os.WriteFile(old, nil, 0o666))
	past := time.Now().Add(-2 * time.Hour)
	check(t, os.Chtimes(old, past, past))
	w = openForWriting(t, dir)
	_, err = w.GC(GCOptions{})
	check(t, err)
	if _, err := os.Stat(old); err == nil {
		t.Error("a collection left what a writer of snapshots had left")
	}
	sameRecords(t, w, []*task.Record{good, bad})
}

// Nothing is collected from under a newer pbuild even where all that the journal holds is its own.
func TestCollectUnderNewerJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	records, _ := fill(t, dir, 3, ".seg")
	path := only(t, dir, ".seg")
	b, err := os.ReadFile(path)
	check(t, err)
	b[7]++
	check(t, os.WriteFile(path, append(appendHeaderSum(b[:16]), b[headerSize:]...), 0o666))
	w := openForWriting(t, dir)
	if _, err := w.GC(GCOptions{}); !errors.Is(err, errVersion) {
		t.Errorf("collected from under a newer pbuild: %v", err)
	}
	for _, r := range records {
		if !w.Has(r.Log) {
			t.Errorf("%s is gone", r.Log)
		}
	}
}

// A collection that fails half-way takes no blob of a record that stays, and what is appended afterwards is not lost with a file that was replaced.
func TestAppendAfterFailedCollection(t *testing.T) {
	for n := 1; ; n++ {
		dir := filepath.Join(t.TempDir(), ".pbuild")
		w := openForWriting(t, dir)
		var all []*task.Record
		for i := range 12 {
			r, err := withBlob(t, w, i)
			check(t, err)
			all = append(all, r)
		}
		check(t, w.Append(all))
		f := &failer{n: n, err: errPower}
		w.disk.fault = f.fault
		_, err := w.GC(GCOptions{Keep: func(*task.Record) bool { return false }})
		if f.hit != "" && err == nil {
			t.Errorf("%s failed, and the collection did not", f.hit)
		}
		w.disk.fault = noSync
		sound(t, w)
		extra, err := withBlob(t, w, 99)
		check(t, err)
		check(t, w.Append([]*task.Record{extra}))
		check(t, w.Close())
		r := openForReading(t, dir)
		if r.Lookup(extra.Key) == nil {
			t.Errorf("%s: a record that was appended afterwards is lost", f.hit)
		}
		sound(t, r)
		if f.hit == "" {
			break
		}
	}
}

// What Verify has dropped it does not find again, and the rest of the pack stays.
func TestVerifyEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	fill(t, dir, 3, ".seg")
	path := only(t, dir, ".pack")
	b, err := os.ReadFile(path)
	check(t, err)
	b[len(b)-2] ^= 1 // a frame that is damaged, and is followed by one that holds something else than it says
	check(t, os.WriteFile(path, b, 0o666))
	w := openForWriting(t, dir)
	w.packs.mu.Lock()
	check(t, w.packs.buffer(encodeBlob(&w.blobs.codec, digest.Of([]byte("a")), []byte("b"))))
	w.packs.mu.Unlock()
	last, err := w.Blobs().Put([]byte("c"))
	check(t, err)
	for _, want := range []int{2, 0} {
		found, err := w.Verify()
		check(t, err)
		if len(found) != want {
			t.Errorf("%d are damaged, not %v", want, found)
		}
		check(t, w.Close())
		w = openForWriting(t, dir)
	}
	if _, err := w.Blobs().Get(last); err != nil || w.Has(digest.Of([]byte("a"))) {
		t.Errorf("the sound one: %v; the other is there: %v", err, w.Has(digest.Of([]byte("a"))))
	}
}

// Verify forgets nothing that was put and is not on the disk yet.
func TestVerifyAmongPuts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	fill(t, dir, 3, ".seg")
	path := only(t, dir, ".pack")
	b, err := os.ReadFile(path)
	check(t, err)
	b[len(b)-2] ^= 1
	check(t, os.WriteFile(path, b, 0o666))
	w := openForWriting(t, dir)
	d, err := w.Blobs().Put([]byte("put before"))
	check(t, err)
	found, err := w.Verify()
	check(t, err)
	if len(found) == 0 {
		t.Error("nothing was damaged")
	}
	if _, err := w.Blobs().Get(d); err != nil {
		t.Error(err)
	}
}

// A record is not written while another Append still syncs the blobs that it names.
func TestAppendsAtOnce(t *testing.T) {
	w := openForWriting(t, filepath.Join(t.TempDir(), ".pbuild"))
	a, err := withBlob(t, w, 1)
	check(t, err)
	b, err := withBlob(t, w, 2)
	check(t, err)
	synced, syncing := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(syncing); <-synced })
	w.disk.fault = func(op, path string, size int) (int, error) {
		switch filepath.Ext(path) {
		case ".pack":
			if op == "sync" {
				first()
			}
		case ".seg":
			select {
			case <-synced:
			default:
				t.Error("the journal was written before the pack was synced")
			}
		}
		return noSync(op, path, size)
	}
	var group sync.WaitGroup
	appendTo := func(r *task.Record) {
		if err := w.Append([]*task.Record{r}); err != nil {
			t.Error(err)
		}
	}
	group.Go(func() { appendTo(a) })
	<-syncing
	time.AfterFunc(50*time.Millisecond, func() { close(synced) })
	appendTo(b)
	group.Wait()
}
