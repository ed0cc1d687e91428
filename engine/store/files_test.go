package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// longAgo is a time that no racy rule doubts; only mtimes can be set to it.
var longAgo = time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC)

func write(t testing.TB, root, path, content string) {
	t.Helper()
	full := filepath.Join(root, filepath.FromSlash(path))
	check(t, os.MkdirAll(filepath.Dir(full), 0o777))
	check(t, os.WriteFile(full, []byte(content), 0o666))
}

// settle waits until the files that were written so far are older than any tick that the racy rule doubts.
func settle(t testing.TB, root string) {
	t.Helper()
	probe := filepath.Join(root, "probe")
	check(t, os.WriteFile(probe, nil, 0o666))
	dir, err := openDir(root)
	check(t, err)
	defer dir.close()
	st, _, err := dir.stat("probe")
	check(t, err)
	check(t, os.Remove(probe))
	for isRacy(st, time.Now().UnixNano()) {
		runtime.Gosched()
	}
}

func input(t testing.TB, f *Files, path string) (task.FileInput, bool) {
	t.Helper()
	in, ok, err := f.Input(path)
	check(t, err)
	return in, ok
}

// snapshotOf writes and opens the snapshot of what f knows.
func snapshotOf(t testing.TB, root string, f *Files, data *SnapshotData) *Snapshot {
	t.Helper()
	dir := filepath.Join(root, ".pbuild")
	check(t, os.MkdirAll(dir, 0o777))
	data.Root, data.Table = root, f.Table()
	check(t, WriteSnapshot(dir, data))
	s, err := OpenSnapshot(dir)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// Modes are normalised, a link is its target's text, and what is no file is none.
func TestInput(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a.txt", "a")
	write(t, root, "dir/run.sh", "#!/bin/sh\n")
	check(t, os.Chmod(filepath.Join(root, "dir/run.sh"), 0o700))
	check(t, os.Symlink("../a.txt", filepath.Join(root, "dir/link")))
	check(t, os.Symlink("nowhere", filepath.Join(root, "dangling")))
	large := strings.Repeat("x", 3*hashBuffer+1)
	write(t, root, "large", large)
	write(t, root, "exact", large[:hashBuffer])
	write(t, root, "empty", "")
	f := NewFiles(root, nil)
	for path, want := range map[string]task.FileInput{
		"a.txt":      {Mode: 0o644, Digest: digest.Of([]byte("a"))},
		"dir/run.sh": {Mode: 0o755, Digest: digest.Of([]byte("#!/bin/sh\n"))},
		"dir/link":   {Mode: 0o120000, Digest: digest.Of([]byte("../a.txt"))},
		"dangling":   {Mode: 0o120000, Digest: digest.Of([]byte("nowhere"))},
		"large":      {Mode: 0o644, Digest: digest.Of([]byte(large))},
		"exact":      {Mode: 0o644, Digest: digest.Of([]byte(large[:hashBuffer]))},
		"empty":      {Mode: 0o644, Digest: digest.Of(nil)},
	} {
		want.Path = path
		if got, ok := input(t, f, path); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", path, got, ok, want)
		}
	}
	for _, path := range []string{"dir", "absent", "no/such/dir", "a.txt/below", ""} {
		if got, ok := input(t, f, path); ok {
			t.Errorf("%q is a file: %v", path, got)
		}
	}
}

// What is looked at ahead is known when it is asked for, and what nobody asks for is in no table: it would make the next snapshot stale.
func TestPrefetchKnown(t *testing.T) {
	root := t.TempDir()
	write(t, root, "in/a", "a")
	write(t, root, "in/gone", "gone")
	write(t, root, "out/b", "b")
	before := NewFiles(root, nil)
	before.PrefetchOutputs([]string{"out/b"})
	before.Prefetch([]string{"in/a", "in/gone", "in/absent"})
	f := NewFiles(root, snapshotOf(t, root, before, &SnapshotData{}))
	write(t, root, "in/a", "changed")
	f.PrefetchKnown()
	f.PrefetchOutputs([]string{"out/b"})
	f.Prefetch([]string{"in/a", "out/b", "in/absent"})
	if got, ok := input(t, f, "in/a"); !ok || got.Digest != digest.Of([]byte("changed")) {
		t.Errorf("the edited input is %v, %v", got, ok)
	}
	want := []tableFile{{"in", "a", false, kindRegular}, {"in", "absent", false, kindAbsent}, {"out", "b", true, kindRegular}}
	var got []tableFile
	for _, d := range f.Table().dirs {
		for _, s := range d.files {
			got = append(got, tableFile{d.name, s.name, s.output, s.kind})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table holds %v, want %v", got, want)
	}
}

type tableFile struct {
	dir, name string
	output    bool
	kind      fileKind
}

// A file that cannot be read is an error of Input that names it, whatever Prefetch met.
func TestInputError(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	root := t.TempDir()
	write(t, root, "secret", "x")
	check(t, os.Chmod(filepath.Join(root, "secret"), 0))
	f := NewFiles(root, nil)
	f.Prefetch([]string{"secret"})
	if _, _, err := f.Input("secret"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

// What was asked once is remembered until it is forgotten.
func TestRefresh(t *testing.T) {
	root := t.TempDir()
	write(t, root, "out/a", "old")
	write(t, root, "out/b", "b")
	f := NewFiles(root, nil)
	f.PrefetchOutputs([]string{"out/a", "out/b", "out/c", "out/a"})
	write(t, root, "out/a", "new")
	write(t, root, "out/c", "c")
	if in, _ := input(t, f, "out/a"); in.Digest != digest.Of([]byte("old")) {
		t.Error("the file was looked at again")
	}
	for _, path := range []string{"out/a", "out/c", "out/never"} {
		f.Refresh(path)
	}
	for path, want := range map[string]string{"out/a": "new", "out/b": "b", "out/c": "c"} {
		if in, ok := input(t, f, path); !ok || in.Digest != digest.Of([]byte(want)) {
			t.Errorf("%s is not %q", path, want)
		}
	}
	if n := len(f.Table().dirs[0].files); n != 3 {
		t.Errorf("the table has %d files", n)
	}
}

// The snapshot spares reading exactly those files whose stat is the same: proven by giving a snapshot that lies about content.
func TestStatCache(t *testing.T) {
	root := t.TempDir()
	paths := []string{"in/same", "in/edited", "in/chmod", "in/gone", "in/old-mtime", "top"}
	for _, path := range paths {
		write(t, root, path, "v1")
	}
	settle(t, root)
	f := NewFiles(root, nil)
	f.Prefetch(paths)
	lie := digest.Of([]byte("a lie"))
	for _, d := range f.dirs {
		for i := range d.files {
			d.files[i].digest = lie
		}
	}
	prev := snapshotOf(t, root, f, &SnapshotData{})

	write(t, root, "in/edited", "v2")
	check(t, os.Chmod(filepath.Join(root, "in/chmod"), 0o755))
	check(t, os.Remove(filepath.Join(root, "in/gone")))
	write(t, root, "in/old-mtime", "v3")
	check(t, os.Chtimes(filepath.Join(root, "in/old-mtime"), longAgo, longAgo))
	write(t, root, "in/new", "new")
	f = NewFiles(root, prev)
	f.Prefetch(append(paths, "in/new"))
	for path, want := range map[string]digest.Digest{
		"in/same": lie, "top": lie, "in/edited": digest.Of([]byte("v2")), "in/chmod": digest.Of([]byte("v1")),
		"in/old-mtime": digest.Of([]byte("v3")), "in/new": digest.Of([]byte("new")),
	} {
		if in, ok := input(t, f, path); !ok || in.Digest != want {
			t.Errorf("%s: digest %s", path, in.Digest)
		}
	}
	if _, ok := input(t, f, "in/gone"); ok {
		t.Error("in/gone is still there")
	}
}

// Git's racy rule: a file that was looked at in the tick in which it changed is read again, though its stat is the same.
func TestRacy(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "v1")
	f := NewFiles(root, nil)
	input(t, f, "a")
	d := f.dirs[""]
	if !d.files[0].racy {
		t.Skip("writing and looking took longer than a tick")
	}
	d.files[0].digest = digest.Of([]byte("v0, which the same tick overwrote"))
	prev := snapshotOf(t, root, f, &SnapshotData{})
	if fresh, why := prev.Check("", digest.Digest{}, 0); fresh || why != "input a has changed" {
		t.Errorf("a racy file was trusted: %v, %q", fresh, why)
	}
	if in, _ := input(t, NewFiles(root, prev), "a"); in.Digest != digest.Of([]byte("v1")) {
		t.Error("a racy file was not read again")
	}
	second := int64(time.Second)
	for _, c := range []struct {
		changed, looked int64
		want            bool
	}{
		{10*second + 5, 10*second + 5, true},
		{10*second + 5, 10*second + 5 + tick, true},
		{10*second + 5, 10*second + 6 + tick, false},
		{10*second + 5, 9 * second, true}, // the clocks disagree
		{10 * second, 12 * second, true},  // a file system of whole seconds
		{10 * second, 12*second + 1, false},
	} {
		if got := isRacy(stat{mtime: 1, ctime: c.changed}, c.looked); got != c.want {
			t.Errorf("changed at %d and looked at at %d: racy is %v", c.changed, c.looked, got)
		}
	}
}

// After any edits, a stat cache that begins from the last snapshot tells what one that reads everything tells.
func TestStatCacheEqualsClean(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "")
		check(t, err)
		path := rapid.Custom(func(rt *rapid.T) string {
			return rapid.SampledFrom([]string{"", "a/", "a/b/", "a.b/", "z/"}).Draw(rt, "dir") + rapid.SampledFrom([]string{"x", "y", "x.y"}).Draw(rt, "name")
		})
		var prev *Snapshot
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 6).Draw(rt, "edits") {
				p := path.Draw(rt, "path")
				full := filepath.Join(root, p)
				switch rapid.IntRange(0, 4).Draw(rt, "edit") {
				case 0:
					os.Remove(full)
				case 1:
					os.Chmod(full, rapid.SampledFrom([]os.FileMode{0o644, 0o755}).Draw(rt, "mode"))
				case 2:
					os.Remove(full)
					check(t, os.MkdirAll(filepath.Dir(full), 0o777))
					check(t, os.Symlink(rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "target"), full))
				default:
					os.Remove(full)
					write(t, root, p, rapid.SampledFrom([]string{"1", "2", "22"}).Draw(rt, "content"))
				}
			}
			paths := rapid.SliceOf(path).Draw(rt, "paths")
			cached, clean := NewFiles(root, prev), NewFiles(root, nil)
			cached.Prefetch(paths)
			for _, p := range paths {
				a, aok := input(t, cached, p)
				b, bok := input(t, clean, p)
				if a != b || aok != bok {
					rt.Fatalf("%s: with the snapshot %v %v, without %v %v", p, a, aok, b, bok)
				}
			}
			prev = snapshotOf(t, root, cached, &SnapshotData{})
			if fresh, why := prev.Check("", digest.Digest{}, 0); !fresh {
				rt.Fatalf("the snapshot is stale at once: %s", why)
			}
			if prev.Files() != len(slices.Compact(slices.Sorted(slices.Values(paths)))) {
				rt.Fatalf("the snapshot knows %d of %v", prev.Files(), paths)
			}
		}
	})
}

// Everything may be asked, prefetched and forgotten at once, and what is told after the last write is the truth.
func TestFilesConcurrently(t *testing.T) {
	root := t.TempDir()
	var paths []string
	for i := range 600 {
		paths = append(paths, fmt.Sprintf("d%d/f%d", i%3, i))
		write(t, root, paths[i], "old")
	}
	f := NewFiles(root, nil)
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			f.Prefetch(paths)
			for i := w; i < len(paths); i += 4 {
				write(t, root, paths[i], "new")
				f.Refresh(paths[i])
				if in, ok, err := f.Input(paths[i]); err != nil || !ok || in.Digest != digest.Of([]byte("new")) {
					t.Errorf("%s is not what was just written", paths[i])
				}
				f.Table()
			}
		})
	}
	group.Wait()
}

// A link leads to a path below the root, however it is written, or to an absolute one.
func TestLeads(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	root := filepath.Join(top, "w")
	write(t, root, "real/deep/data", "d")
	link := func(to, path string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(root, path)); err != nil {
			t.Skip(err)
		}
	}
	link("real/deep", "short")
	link("data", "real/deep/near")
	link("../deep/data", "real/deep/up")
	link("../../none", "real/deep/dangling")
	link(filepath.Join(root, "real"), "absolute")
	link("../outside", "out")
	f := NewFiles(root, nil)
	for path, want := range map[string]string{
		"real/deep/near": "real/deep/data", "real/deep/up": "real/deep/data", "short/up": "real/deep/data", "real/deep/dangling": "none", "absolute": "real",
		"out": filepath.Join(top, "outside"), "real/deep/data": "", "gone": "",
	} {
		if to, ok := f.Leads(path); to != want || ok != (want != "") {
			t.Errorf("%s leads to %q, %v; want %q", path, to, ok, want)
		}
	}
}
