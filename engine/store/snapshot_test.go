package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pbuild/engine/digest"
)

func TestSnapshotComesBack(t *testing.T) {
	root := t.TempDir()
	names := []string{`task.copy["1"]`, `task.copy["10"]`, `task.copy["2"]`, "", "z"}
	s := snapshotOf(t, root, NewFiles(root, nil), &SnapshotData{Counts: []byte("counts"), Names: names})
	if got := slices.Collect(s.Names()); !slices.Equal(got, names) {
		t.Errorf("names %q", got)
	}
	if string(s.Counts()) != "counts" {
		t.Errorf("counts %q", s.Counts())
	}
	if fresh, why := s.Check("", digest.Digest{}, 0); !fresh {
		t.Errorf("an empty snapshot is stale: %s", why)
	}
	_, err := OpenSnapshot(t.TempDir())
	if !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("an absent snapshot gives %v", err)
	}
}

// Any damaged byte, any cut and any other version is as good as no snapshot.
func TestSnapshotDamage(t *testing.T) {
	root := t.TempDir()
	write(t, root, "in/a", "a")
	f := NewFiles(root, nil)
	f.Prefetch([]string{"in/a", "b"})
	dir := filepath.Join(root, ".pbuild")
	snapshotOf(t, root, f, &SnapshotData{Names: []string{"x"}, Reads: []Read{{Path: filepath.Join(root, "in"), Kind: ReadDir}}})
	whole, err := os.ReadFile(filepath.Join(dir, snapshotFile))
	check(t, err)
	for i := range whole {
		if 12 <= i && i < 16 {
			continue // means nothing
		}
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		if _, err := parseSnapshot(dir, bad); err == nil {
			t.Fatalf("byte %d may be damaged", i)
		}
		if _, err := parseSnapshot(dir, whole[:i]); err == nil {
			t.Fatalf("the snapshot may end at byte %d", i)
		}
	}
}

// Each thing that a plan depends on makes the snapshot stale, and the reason names it.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	args := digest.Of([]byte("args"))
	for _, path := range []string{"a.hcl", "b.hcl", "in/1.txt", "in/2.txt", "out/1.txt", "other/x", "in/link"} {
		write(t, root, path, "v1")
	}
	check(t, os.Remove(filepath.Join(root, "in/link")))
	check(t, os.Symlink("1.txt", filepath.Join(root, "in/link")))
	settle(t, root)
	abs := func(path string) string { return filepath.Join(root, path) }
	fresh := func() *Snapshot {
		f := NewFiles(root, nil)
		f.Prefetch([]string{"in/1.txt", "in/2.txt", "in/link", "in/absent", "nowhere/x"})
		f.PrefetchOutputs([]string{"out/1.txt"})
		hcl, err := hashPath(abs("a.hcl"))
		check(t, err)
		other, err := readListing(abs("other"), nil)
		check(t, err)
		list, err := os.ReadDir(root)
		check(t, err)
		return snapshotOf(t, root, f, &SnapshotData{
			Identity: "build 1", Args: args, Generation: 7, Began: time.Now(),
			Reads: []Read{
				{Path: abs("a.hcl"), Kind: ReadFile, Digest: hcl},
				{Path: root, Kind: ReadDir, Match: []string{"*.hcl", "*.json"}, Digest: digest.OfListing(list, []string{"*.hcl"})},
				{Path: abs("locked"), Kind: ReadAbsent},
				{Path: abs("other"), Kind: ReadDir, Digest: other},
			},
		})
	}
	s := fresh()
	if ok, why := s.Check("build 1", args, 7); !ok {
		t.Fatalf("stale at once: %s", why)
	}
	for _, c := range []struct {
		identity   string
		args       digest.Digest
		generation uint64
		want       string
	}{
		{"build 2", args, 7, "another pbuild wrote the snapshot"},
		{"build 1", digest.Digest{}, 7, "the arguments or variables differ"},
		{"build 1", args, 8, "the journal has grown"},
	} {
		if ok, why := s.Check(c.identity, c.args, c.generation); ok || why != c.want {
			t.Errorf("fresh is %v because %q, want %q", ok, why, c.want)
		}
	}
	// What does not change content may not change the answer either: a touch of what was read, another file beside.
	now := time.Now().Add(-time.Hour)
	check(t, os.Chtimes(abs("a.hcl"), now, now))
	write(t, root, "notes.txt", "x")
	if ok, why := s.Check("build 1", args, 7); !ok {
		t.Errorf("stale after a touch: %s", why)
	}

	for _, c := range []struct {
		name string
		do   func()
		want string
	}{
		{"edit what was read", func() { write(t, root, "a.hcl", "v2") }, "ROOT/a.hcl has changed"},
		{"remove what was read", func() { check(t, os.Remove(abs("a.hcl"))) }, "ROOT/a.hcl is gone"},
		{"add to a listing", func() { write(t, root, "c.hcl", "v1") }, "ROOT has changed"},
		{"make what was absent", func() { write(t, root, "locked", "") }, "ROOT/locked is new"},
		{"make a directory of a file", func() {
			check(t, os.Remove(abs("other/x")))
			check(t, os.Mkdir(abs("other/x"), 0o777))
		}, "ROOT/other has changed"},
		{"add to another listing", func() { write(t, root, "other/y", "") }, "ROOT/other has changed"},
		{"edit an input", func() { write(t, root, "in/2.txt", "v2") }, "input in/2.txt has changed"},
		{"edit and hide it", func() {
			write(t, root, "in/2.txt", "v3")
			check(t, os.Chtimes(abs("in/2.txt"), longAgo, longAgo))
		}, "input in/2.txt has changed"},
		{"point a link elsewhere", func() {
			check(t, os.Remove(abs("in/link")))
			check(t, os.Symlink("2.txt", abs("in/link")))
		}, "input in/link has changed"},
		{"make an absent input", func() { write(t, root, "in/absent", "") }, "input in/absent is new"},
		{"make an absent directory", func() { write(t, root, "nowhere/x", "") }, "input nowhere/x is new"},
		{"remove an output", func() { check(t, os.Remove(abs("out/1.txt"))) }, "output out/1.txt is gone"},
		{"make an output executable", func() {
			check(t, os.Chmod(abs("out/1.txt"), 0o755))
		}, "output out/1.txt has changed"},
		{"remove a directory", func() { check(t, os.RemoveAll(abs("in"))) }, "input in/1.txt is gone"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			write(t, root, "a.hcl", "v1")
			write(t, root, "out/1.txt", "v1")
			os.Remove(abs("c.hcl"))
			os.Remove(abs("locked"))
			s = fresh()
			if ok, why := s.Check("build 1", args, 7); !ok {
				t.Fatalf("stale before the edit: %s", why)
			}
			c.do()
			ok, why := s.Check("build 1", args, 7)
			if want := strings.ReplaceAll(c.want, "ROOT", root); ok || why != want {
				t.Errorf("fresh is %v because %q, want %q", ok, why, want)
			}
		})
	}
}

// A thing that changed after loading began is judged by the content that was read, and without its digest it is stale.
func TestChangedWhileRead(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.hcl", "v1")
	path := filepath.Join(root, "a.hcl")
	began := time.Now()
	write(t, root, "a.hcl", "v2") // after v1 was read
	for _, c := range []struct {
		digest digest.Digest
		fresh  bool
	}{
		{digest.Of([]byte("v1")), false},
		{digest.Of([]byte("v2")), true},
		{digest.Digest{}, false},
	} {
		s := snapshotOf(t, root, NewFiles(root, nil), &SnapshotData{Began: began, Reads: []Read{{Path: path, Kind: ReadFile, Digest: c.digest}}})
		if fresh, why := s.Check("", digest.Digest{}, 0); fresh != c.fresh {
			t.Errorf("with digest %s fresh is %v: %s", c.digest.Short(), fresh, why)
		}
	}
	s := snapshotOf(t, root, NewFiles(root, nil), &SnapshotData{Began: began, Reads: []Read{{Path: root, Kind: ReadDir}}})
	if fresh, _ := s.Check("", digest.Digest{}, 0); fresh {
		t.Error("a directory that changed while it was read is trusted")
	}
}

// A workspace that was copied with its snapshot is judged by its own files.
func TestCopiedWorkspace(t *testing.T) {
	parent := t.TempDir()
	root, twin := filepath.Join(parent, "a"), filepath.Join(parent, "b")
	write(t, root, "main.hcl", "v1")
	write(t, root, "in/x", "v1")
	f := NewFiles(root, nil)
	f.Prefetch([]string{"in/x"})
	snapshotOf(t, root, f, &SnapshotData{Began: time.Now(), Reads: []Read{{Path: filepath.Join(root, "main.hcl"), Digest: digest.Of([]byte("v1"))}}})
	check(t, os.CopyFS(twin, os.DirFS(root)))
	write(t, twin, "main.hcl", "v2")
	s, err := OpenSnapshot(filepath.Join(twin, ".pbuild"))
	check(t, err)
	defer s.Close()
	if fresh, why := s.Check("", digest.Digest{}, 0); fresh || why != filepath.Join(twin, "main.hcl")+" has changed" {
		t.Errorf("the copy is fresh (%v) or stale because %q", fresh, why)
	}
}

// A task with an input, an output and a name takes no more than 300 bytes.
func TestSnapshotSize(t *testing.T) {
	root := t.TempDir()
	const tasks = 2000
	var in, out, names []string
	for i := range tasks {
		in = append(in, fmt.Sprintf("in/%d/%d.txt", i/1000, i))
		out = append(out, fmt.Sprintf("out/%d/%d.txt", i/1000, i))
		names = append(names, fmt.Sprintf("task.copy[%q]", fmt.Sprint(i)))
		write(t, root, in[i], "x")
		write(t, root, out[i], "x")
	}
	f := NewFiles(root, nil)
	f.Prefetch(in)
	f.PrefetchOutputs(out)
	s := snapshotOf(t, root, f, &SnapshotData{Names: names})
	if per := len(s.data) / tasks; per > 300 {
		t.Errorf("%d bytes a task", per)
	}
	if s.Files() != 2*tasks {
		t.Errorf("%d files", s.Files())
	}
}

// Whatever bytes there are, with a sum that is right, decoding neither panics nor reads outside of them.
func FuzzSnapshot(f *testing.F) {
	root := f.TempDir()
	write(f, root, "in/a", "a")
	files := NewFiles(root, nil)
	files.Prefetch([]string{"in/a", "in/b", "c"})
	b, err := encodeSnapshot(filepath.Join(root, ".pbuild"), &SnapshotData{Root: root, Table: files.Table(), Names: []string{"x", "xy"},
		Reads: []Read{{Path: "/x", Kind: ReadAbsent}, {Path: root, Kind: ReadDir, Match: []string{"*"}}}})
	check(f, err)
	f.Add(b)
	f.Add(b[:snapshotHead])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= snapshotHead {
			copy(b, snapshotMagic)
			b[7] = snapshotVersion
			binary.LittleEndian.PutUint64(b[16:], uint64(len(b)))
			binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[16:], castagnoli))
		}
		s, err := parseSnapshot(root, b)
		if err != nil {
			return
		}
		for range s.Names() {
		}
		for i := range s.Files() {
			s.fileAt(i)
			s.fileName(i)
		}
		for i := range len(s.reads) / readRow {
			s.readAt(i)
		}
		s.dir("in").find("a")
		s.checkFiles()
	})
}

// A null plan makes no heap object a file, or a large workspace would pay for the collector what it saves elsewhere.
func TestCheckMakesNoGarbage(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("names are copied here")
	}
	allocations := func(files int) float64 {
		root := t.TempDir()
		var paths []string
		for i := range files {
			paths = append(paths, fmt.Sprintf("in/%d/%d.txt", i/500, i))
			write(t, root, paths[i], "x")
		}
		settle(t, root)
		f := NewFiles(root, nil)
		f.Prefetch(paths)
		s := snapshotOf(t, root, f, &SnapshotData{Identity: "i"})
		return testing.AllocsPerRun(3, func() {
			if fresh, why := s.Check("i", digest.Digest{}, 0); !fresh {
				t.Fatal(why)
			}
		})
	}
	few, many := allocations(1000), allocations(5000)
	if each := (many - few) / 4000; each > 0.05 {
		t.Errorf("%.2f heap objects a file: %v for a thousand, %v for five thousand", each, few, many)
	}
}
