package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pbuild/engine/digest"
	"pbuild/engine/store/storetest"
	"pbuild/engine/task"
)

// sizes are numbers of files; a task of the scale workspace has two.
var sizes = []int{1_000, 10_000, 100_000}

// scale writes n small files, a thousand to a directory, and returns their paths.
func scale(b *testing.B, n int) (root string, paths []string) {
	b.Helper()
	root = b.TempDir()
	for i := range n {
		if i%1000 == 0 {
			check(b, os.MkdirAll(filepath.Join(root, "in", fmt.Sprint(i/1000)), 0o777))
		}
		paths = append(paths, fmt.Sprintf("in/%d/%d.txt", i/1000, i))
		check(b, os.WriteFile(filepath.Join(root, paths[i]), fmt.Append(nil, i), 0o666))
	}
	settle(b, root)
	return root, paths
}

func benchSizes(b *testing.B, f func(b *testing.B, n int)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) { f(b, n) })
	}
}

// perFile reports the time for one of n files.
func perFile(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/file")
}

// The null plan's share: open, check everything, close.
func BenchmarkCheck(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		root, paths := scale(b, n)
		f := NewFiles(root, nil)
		f.Prefetch(paths)
		snapshotOf(b, root, f, &SnapshotData{})
		b.ReportAllocs()
		for b.Loop() {
			s, err := OpenSnapshot(filepath.Join(root, ".pbuild"))
			check(b, err)
			if fresh, why := s.Check("", digest.Digest{}, 0); !fresh {
				b.Fatal(why)
			}
			s.Close()
		}
		perFile(b, n)
	})
}

// What stat-ing one after the other costs, to compare.
func BenchmarkLstat(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		root, paths := scale(b, n)
		for b.Loop() {
			for _, path := range paths {
				if _, err := os.Lstat(root + "/" + path); err != nil {
					b.Fatal(err)
				}
			}
		}
		perFile(b, n)
	})
}

// What listing directories costs: the other way to see that outputs are there. It does not see an edit.
func BenchmarkListing(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		root, _ := scale(b, n)
		for b.Loop() {
			for i := range (n + 999) / 1000 {
				f, err := os.Open(filepath.Join(root, "in", fmt.Sprint(i)))
				check(b, err)
				_, err = f.Readdirnames(-1)
				check(b, err)
				f.Close()
			}
		}
		perFile(b, n)
	})
}

func BenchmarkPrefetch(b *testing.B) {
	for _, kind := range []string{"clean", "cached"} {
		b.Run(kind, func(b *testing.B) {
			benchSizes(b, func(b *testing.B, n int) {
				root, paths := scale(b, n)
				var prev *Snapshot
				if kind == "cached" {
					f := NewFiles(root, nil)
					f.Prefetch(paths)
					prev = snapshotOf(b, root, f, &SnapshotData{})
				}
				for b.Loop() {
					NewFiles(root, prev).Prefetch(paths)
				}
				perFile(b, n)
			})
		})
	}
}

func BenchmarkWriteSnapshot(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		root, paths := scale(b, n)
		f := NewFiles(root, nil)
		f.Prefetch(paths)
		for b.Loop() {
			check(b, WriteSnapshot(filepath.Join(root, "in"), &SnapshotData{Root: root, Table: f.Table()}))
		}
		perFile(b, n)
	})
}

// bigJournal is a store of n records.
func bigJournal(b *testing.B, n int) (dir string, keys []task.Key) {
	dir = filepath.Join(b.TempDir(), ".pbuild")
	w := openForWriting(b, dir)
	var batch []*task.Record
	for i := range n {
		r := storetest.Record(i, fmt.Sprintf("task.copy[%q]", fmt.Sprint(i)))
		keys = append(keys, r.Key)
		if batch = append(batch, r); len(batch) == 256 || i == n-1 {
			check(b, w.Append(batch))
			batch = nil
		}
	}
	check(b, w.Close())
	return dir, keys
}

// Opening a journal with its index, and one look-up.
func BenchmarkOpen(b *testing.B) {
	benchSizes(b, func(b *testing.B, n int) {
		dir, keys := bigJournal(b, n)
		b.ReportAllocs()
		for b.Loop() {
			s, err := Open(dir)
			check(b, err)
			if s.Lookup(keys[n/2]) == nil {
				b.Fatal("lost")
			}
			s.Close()
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	dir, keys := bigJournal(b, 100_000)
	s := openForReading(b, dir)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if s.Lookup(keys[i%len(keys)]) == nil {
			b.Fatal("lost")
		}
		i += 7919
	}
}

// A batch of 256 records with a small log each, synced.
func BenchmarkAppend(b *testing.B) {
	w := openForWriting(b, filepath.Join(b.TempDir(), ".pbuild"))
	w.disk.fault = nil
	n := 0
	for b.Loop() {
		var batch []*task.Record
		for range 256 {
			r := storetest.Record(n, fmt.Sprint("task.", n))
			d, err := w.Blobs().Put(fmt.Append(nil, "log ", n))
			check(b, err)
			r.Log = d
			batch = append(batch, r)
			n++
		}
		check(b, w.Append(batch))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
}
