//go:build unix

package tree

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestImport(t *testing.T) {
	r := open(t)
	dir := t.TempDir()
	f := files{"a/b": "b", "x:run": "#!/bin/sh\n", "l:link": "/etc/passwd", "l:dirlink": "a", "big": strings.Repeat("0123456789abcdef", small/8), ".gitignore": "*"}
	layOut(t, dir, f)
	layOut(t, dir, files{".git/config": "x", "a/.git": "gitdir: x"})
	if err := os.MkdirAll(filepath.Join(dir, "empty", "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := r.Import(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, tree, f)
	if want := r.mustMake(t, f); tree != want {
		t.Errorf("got %s, want %s", tree, want)
	}
	tree, err = r.Import(context.Background(), dir, func(p string, isDir bool) bool { return p != "a" && p != "big" })
	if err != nil {
		t.Fatal(err)
	}
	delete(f, "a/b")
	delete(f, "big")
	wantFiles(t, r, tree, f)
	if _, err := r.Import(context.Background(), filepath.Join(dir, "none"), nil); err == nil {
		t.Error("imported what is not there")
	}
	layOut(t, dir, files{"a/.GIT/x": "x"})
	_, err = r.Import(context.Background(), dir, nil)
	wantBad(t, err, "a/.GIT/x")
}

func TestManyImportsIndexTheirPacks(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i := range packsTogether + 1 {
		dir := t.TempDir()
		f := files{}
		for p, c := range manyFiles(21) {
			f[p] = c + strings.Repeat("z", i)
		}
		layOut(t, dir, f)
		tree, err := r.Import(context.Background(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Keep(context.Background(), tree); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "objects", "pack", "multi-pack-index")); err != nil {
		t.Error(err)
	}
	git(t, r.dir, "fsck", "--strict")
}

func TestDirFiles(t *testing.T) {
	r := open(t)
	dir := t.TempDir()
	layOut(t, dir, files{
		".gitignore": "*.log\n/build/\n!keep.log\n", "a.log": "x", "keep.log": "x", "build/x": "x", "sub/build/y": "y", "sub/.gitignore": "!a.log\nz\n", "sub/a.log": "x", "sub/z": "z",
		".pbuild/journal": "x", "sub/.pbuild/x": "x", ".git/HEAD": "x", "nested/.git/HEAD": "x", "nested/file": "f", "x:run": "r", "l:link": "nowhere", "secret.txt": "s",
	})
	list := func() []string {
		files, err := DirFiles(dir, []string{"secret.*", "!sub/z", "# no comment"})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range files {
			out = append(out, f.Path)
		}
		return out
	}
	want := []string{".gitignore", "keep.log", "link", "nested/file", "run", "sub/.gitignore", "sub/a.log", "sub/build/y", "sub/z"}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]bool{"keep.log": true, "b.log": false, "new/build/y": true, "build/new": false, "sub/new": true, "sub/.pbuild/new": false, "new/secret.x": false} {
		if got, err := DirTakes(dir, []string{"secret.*"}, file); got != want || err != nil {
			t.Errorf("%s would be taken: %v, %v", file, got, err)
		}
	}
	before, err := DirFiles(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	tree, files, err := r.ImportDir(context.Background(), dir, nil)
	if err != nil || !slices.Equal(files, before) {
		t.Errorf("import saw %v, the list %v, %v", files, before, err)
	}
	if _, ok, err := r.ReadFile(context.Background(), tree, "a.log"); ok || err != nil {
		t.Errorf("a.log was imported: %v", err)
	}
	for name, change := range map[string]func() error{
		"content": func() error { return os.WriteFile(filepath.Join(dir, "keep.log"), []byte("y"), 0o644) },
		"mode":    func() error { return os.Chmod(filepath.Join(dir, "keep.log"), 0o755) },
		"name":    func() error { return os.Rename(filepath.Join(dir, "keep.log"), filepath.Join(dir, "kept")) },
	} {
		if err := change(); err != nil && name != "mode" {
			continue // the file is renamed already
		}
		after, err := DirFiles(dir, nil)
		if err != nil || slices.Equal(after, before) {
			t.Errorf("%s: the list stays: %v", name, err)
		}
	}
}

// Our reading of .gitignore files is git's.
func TestIgnoreIsGits(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "ab", "a.o", "foo", "foo bar", "a[b", "x-y", "-", "#h", "!n", "\\", "Z", "a*b", "é", "trail "}
	atom := rapid.SampledFrom([]string{"a", "b", "o", "foo", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[a-f]", "[[:alpha:]]", "[[:upper:][:digit:]]", "[]a]", "[a", "[[a]", "[a-]", "[--0]", "[[:no:]]", "\\", "\\*", "\\#", "\\!", "!", "#", ".", " ", "\\ ", "-", "é", "ZZ", "***"})
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		line := rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(atom, 1, 5).Draw(rt, "atoms"), "")
		})
		end := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "/\n", " \n"})
		ignoreFile := func(label string) string {
			var b strings.Builder
			for range rapid.IntRange(0, 4).Draw(rt, label) {
				b.WriteString(line.Draw(rt, label+" line") + end.Draw(rt, "end"))
			}
			return b.String()
		}
		f := files{".gitignore": ignoreFile("root")}
		taken := map[string]bool{".gitignore": true}
		for range rapid.IntRange(1, 12).Draw(rt, "paths") {
			p := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(rt, "path"), "/")
			if !clashes(taken, p) {
				taken[p] = true
				f[p] = ""
				if i := strings.IndexByte(p, '/'); i > 0 && rapid.Bool().Draw(rt, "nested") && !clashes(taken, p[:i]+"/.gitignore") {
					taken[p[:i]+"/.gitignore"] = true
					f[p[:i]+"/.gitignore"] = ignoreFile("nested")
				}
			}
		}
		layOut(t, dir, f)
		entries, err := DirFiles(dir, nil)
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Path)
		}
		git(t, dir, "init", "-q")
		cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			rt.Fatal(err)
		}
		var want []string
		for p := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
			if len(p) > 0 {
				want = append(want, string(p))
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("-git +ours:\n%s\n%q", diff, f)
		}
	})
}

func TestOpenWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(context.Background(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "install it") {
		t.Errorf("got %v", err)
	}
}
