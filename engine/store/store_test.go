package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pbuild/engine/digest"
	"pbuild/engine/store/storetest"
	"pbuild/engine/task"
)

var holder = Holder{PID: 1, Host: "here", Command: "pbuild apply"}

func TestContract(t *testing.T) {
	storetest.Test(t, func(t *testing.T) storetest.Opener {
		dir := filepath.Join(t.TempDir(), ".pbuild")
		return storetest.Opener{
			Writer: func(t testing.TB) storetest.Store {
				s, err := OpenWriter(context.Background(), dir, holder, 0)
				check(t, err)
				return s
			},
			Reader: func(t testing.TB) storetest.Store { return openForReading(t, dir) },
		}
	})
}

// noSync is a disk for tests that make stores by the thousand: what is not synced is lost only when the power goes.
func noSync(op, path string, size int) (int, error) {
	if strings.HasPrefix(op, "sync") {
		return 0, errSkip
	}
	return size, nil
}

func openForWriting(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := openWriter(context.Background(), dir, holder, 0, &disk{fault: noSync})
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func openForReading(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// records are all of a store's, oldest first.
func records(s *Store) (all []*task.Record) {
	for i := range s.journal.len() {
		if r := s.record(i); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// sameRecords demands exactly want, oldest first.
func sameRecords(t testing.TB, s *Store, want []*task.Record) {
	t.Helper()
	got := records(s)
	same := func(a, b *task.Record) bool { return bytes.Equal(encodeRecord(a), encodeRecord(b)) } // quicker than cmp
	if !slices.EqualFunc(want, got, same) {
		t.Fatalf("records (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// The first writer makes the directory so that neither git nor a backup takes it; a reader makes nothing.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	r := openForReading(t, dir)
	r.Lookup(task.Key{1})
	r.Has(digest.Digest{1})
	r.Blobs().Get(digest.Digest{1})
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a reader made %s", dir)
	}
	openForWriting(t, dir).Close()
	ignore, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	check(t, err)
	tag, err := os.ReadFile(filepath.Join(dir, "CACHEDIR.TAG"))
	check(t, err)
	if string(ignore) != "*\n" || !bytes.HasPrefix(tag, []byte("Signature: 8a477f597d28d172789f06886806bc55")) {
		t.Errorf(".gitignore is %q, CACHEDIR.TAG is %q", ignore, tag)
	}
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o666))
	if _, err := Open(file); err == nil {
		t.Error("a file opens as a store")
	}
}

// A reader that was open while a writer wrote finds blobs that came later, and a new reader finds the records.
func TestReaderWhileWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	early := openForReading(t, dir)
	early.Has(digest.Of(nil))
	for n := range 50 {
		d, err := w.Blobs().Put(fmt.Appendf(nil, "log %d", n))
		check(t, err)
		r := storetest.Record(n, "task.a")
		r.Log = d
		check(t, w.Append([]*task.Record{r}))
		reader := openForReading(t, dir)
		if got := reader.Latest("task.a"); got == nil || got.Log != d {
			t.Fatalf("after append %d a reader sees %v", n, got)
		}
		for _, s := range []*Store{reader, early} {
			if got, err := s.Blobs().Get(d); err != nil || string(got) != fmt.Sprintf("log %d", n) {
				t.Fatalf("blob %d: %q, %v", n, got, err)
			}
		}
		check(t, reader.Close())
	}
}

// A reader that was open while a writer made a pack finds what came into it.
func TestReaderWhileAPackIsMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	check(t, os.WriteFile(w.packs.segmentPath(1), nil, 0o666)) // as it is for a moment
	early := openForReading(t, dir)
	early.Has(digest.Of(nil))
	d, err := w.Blobs().Put([]byte("log"))
	check(t, err)
	check(t, w.Append(nil))
	if _, err := early.Blobs().Get(d); err != nil {
		t.Error(err)
	}
}

// A full segment is followed by another, and both are found again, with and without their indexes.
func TestSegmentsRoll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	w.journal.limit, w.packs.limit = 4000, 4000
	var want []*task.Record
	var blobs []digest.Digest
	for n := range 100 {
		d, err := w.Blobs().Put(fmt.Appendf(nil, "content %d %s", n, bytes.Repeat([]byte("."), n)))
		check(t, err)
		blobs = append(blobs, d)
		want = append(want, storetest.Record(n, fmt.Sprint("task.", n%7)))
		if n%10 == 9 {
			check(t, w.Append(want[len(want)-10:]))
		}
	}
	check(t, w.Close())
	for _, pattern := range []string{"", "*.idx"} {
		if pattern != "" {
			for _, sub := range []string{"journal", "blobs/packs"} {
				list, err := filepath.Glob(filepath.Join(dir, sub, pattern))
				check(t, err)
				if len(list) < 3 {
					t.Fatalf("%s has %d indexes", sub, len(list))
				}
				for _, path := range list {
					check(t, os.Remove(path))
				}
			}
		}
		r := openForReading(t, dir)
		sameRecords(t, r, want)
		for _, d := range blobs {
			_, err := r.Blobs().Get(d)
			check(t, err)
		}
		if d := r.Damage(); d != nil {
			t.Errorf("damage: %v", d)
		}
	}
}

// Of the index any damage is harmless, as is one that is older than its segment, or another segment's.
func TestIndexIsDisposable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	want := []*task.Record{storetest.Record(0, "a"), storetest.Record(1, "b")}
	check(t, w.Append(want))
	check(t, w.Close())
	index := filepath.Join(dir, "journal", "00000001.idx")
	first, err := os.ReadFile(index)
	check(t, err)

	w = openForWriting(t, dir)
	want = append(want, storetest.Record(2, "c"))
	check(t, w.Append(want[2:]))
	check(t, w.Close())
	check(t, os.WriteFile(index, first, 0o666))
	sameRecords(t, openForReading(t, dir), want)

	for i := range first {
		bad := slices.Clone(first)
		bad[i] ^= 0x40
		check(t, os.WriteFile(index, bad, 0o666))
		sameRecords(t, openForReading(t, dir), want)
		check(t, os.WriteFile(index, first[:i], 0o666))
		sameRecords(t, openForReading(t, dir), want)
	}
}

// Putting what is there writes nothing.
func TestPutTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 100_000)
	sizes := func() (out []int64) {
		check(t, filepath.Walk(filepath.Join(dir, "blobs"), func(_ string, info os.FileInfo, err error) error {
			out = append(out, info.Size(), info.ModTime().UnixNano())
			return err
		}))
		return out
	}
	put := func() {
		for _, c := range [][]byte{small, large} {
			_, err := w.Blobs().Put(c)
			check(t, err)
		}
		check(t, w.Append(nil))
	}
	put()
	before := sizes()
	put()
	if after := sizes(); !slices.Equal(before, after) {
		t.Errorf("the second put changed files: %v, then %v", before, after)
	}
	check(t, w.Close())
	w = openForWriting(t, dir)
	put()
	_, _, err := w.Blobs().PutFrom(bytes.NewReader(small))
	check(t, err)
	st, err := w.Stats()
	check(t, err)
	if st.SmallBlobs != 1 || st.LargeBlobs != 1 {
		t.Errorf("stats: %+v", st)
	}
	if st.LargeBytes > int64(len(large))/10 {
		t.Errorf("%d bytes for a blob that compresses well", st.LargeBytes)
	}
}

// A run's events can be read while it goes on, and runs are listed newest first.
func TestRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	w := openForWriting(t, dir)
	for i, id := range []string{"b", "a", "c"} {
		run, err := w.CreateRun(id)
		check(t, err)
		_, err = io.WriteString(run, "{}\n")
		check(t, err)
		check(t, run.Flush())
		r, err := openForReading(t, dir).OpenRun(id)
		check(t, err)
		if text, err := io.ReadAll(r); err != nil || string(text) != "{}\n" {
			t.Errorf("events of %s: %q, %v", id, text, err)
		}
		r.Close()
		check(t, run.Close())
		at := holder.Since.AddDate(2000+i, 0, 0)
		check(t, os.Chtimes(filepath.Join(dir, "runs", id), at, at))
	}
	check(t, os.Mkdir(filepath.Join(dir, "runs", "killed-before-it-began"), 0o777))
	ids, err := w.Runs()
	check(t, err)
	if !slices.Equal(ids, []string{"c", "a", "b"}) {
		t.Errorf("runs: %v", ids)
	}
	for _, id := range []string{"a", "", ".", "..", "x/y", "../x"} {
		if _, err := w.CreateRun(id); err == nil {
			t.Errorf("run %q was created", id)
		}
	}
}
