package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pbuild/engine/digest"
)

// newFile is a patch that adds one file, named as the header is to name it.
func newFile(name, mode, line string) string {
	return fmt.Sprintf("diff --git %[1]s %[2]s\nnew file mode %[3]s\n--- /dev/null\n+++ %[2]s\n@@ -0,0 +1 @@\n+%[4]s\n",
		quoteIf(name, "a/"), quoteIf(name, "b/"), mode, line)
}

func quoteIf(name, prefix string) string {
	if strings.ContainsAny(name, "\\\"") {
		return `"` + prefix + name + `"`
	}
	return prefix + name
}

func TestApplyStrict(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	var long strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	base := r.mustMake(t, files{"f": long.String(), "x:run": "#!/bin/sh\n", "crlf": "a\r\nb\r\nc\r\n", "noeol": "a\nb", "empty": "", "bin": "\x00\x01", "l:link": "f"})
	edit := func(context, at string) string {
		return "--- a/f\n+++ b/f\n@@ -" + at + ",3 +" + at + ",3 @@\n " + context + "\n-line 21\n+line XXI\n line 22\n"
	}
	for _, c := range []struct {
		name, patch string
		want        files  // changed files; "" removes
		reject      string // or git's words
	}{
		{name: "in place", patch: edit("line 20", "21"), want: files{"f": strings.Replace(long.String(), "line 21", "line XXI", 1)}},
		{name: "at an offset", patch: edit("line 20", "5"), want: files{"f": strings.Replace(long.String(), "line 21", "line XXI", 1)}},
		{name: "with fuzz", patch: edit("line twenty", "21"), reject: "patch failed: f:21"},
		{name: "two hunks, one bad", patch: "--- a/crlf\n+++ b/crlf\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n" + edit("line 20", "21"), reject: "crlf: patch does not apply"},
		{name: "crlf content", patch: "--- a/crlf\n+++ b/crlf\n@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n", want: files{"crlf": "a\r\nB\r\nc\r\n"}},
		{name: "no newline at end", patch: "--- a/noeol\n+++ b/noeol\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", want: files{"noeol": "a\nc"}},
		{name: "rename with a change", patch: "diff --git a/noeol b/dir/new\nsimilarity index 50%\nrename from noeol\nrename to dir/new\n--- a/noeol\n+++ b/dir/new\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", want: files{"noeol": "", "dir/new": "A\nb"}},
		{name: "mode", patch: "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", want: files{"f": "", "x:f": long.String()}},
		{name: "deletion", patch: "diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n", want: files{"empty": ""}},
		{name: "empty file", patch: "diff --git a/e2 b/e2\nnew file mode 100644\nindex 0000000..e69de29\n", want: files{"e2": "\x00empty"}},
		{name: "binary without data", patch: "diff --git a/bin b/bin\nindex 0123456..789abcd 100644\nBinary files a/bin and b/bin differ\n", reject: "without full index line"},
		{name: "quoted name", patch: newFile(`na\303\257ve\t\"x\".go`, "100644", "ok"), want: files{"naïve\t\"x\".go": "ok\n"}},
		{name: "exists", patch: newFile("f", "100644", "x"), reject: "f: already exists in index"},
		{name: "absent", patch: "--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n", reject: "none: does not exist in index"},
		{name: "empty", patch: "", reject: "No valid patches"},
		{name: "words", patch: "I changed the file as you asked.\n", reject: "No valid patches"},
		{name: "cut short", patch: "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n line 0\n", reject: "corrupt patch"},
		{name: "too large a hunk", patch: "diff --git a/bin b/bin\nindex 0000..1111 100644\nGIT binary patch\nliteral 99999999999999999999\nzcmZ\n\n", reject: "larger than"},
		{name: "broken binary", patch: "diff --git a/bin b/bin\nindex " + strings.Repeat("0", 40) + ".." + strings.Repeat("1", 40) + " 100644\nGIT binary patch\nliteral 5\nzzzzzzz\n\n", reject: "corrupt binary patch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.Apply(ctx, base, []byte(c.patch))
			if c.reject != "" {
				wantRejection(t, err, c.reject)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := r.read(t, base)
			for p, content := range c.want {
				if content == "" {
					delete(want, p)
				} else {
					want[p] = strings.TrimPrefix(content, "\x00empty")
				}
			}
			wantFiles(t, r, got, want)
		})
	}
}

// Names that some file system takes for something else, and paths that lead elsewhere.
func TestApplyHostileNames(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := context.Background()
	base := r.mustMake(t, files{"l:out": "/tmp", "l:in": "dir", "dir/f": "f\n"})
	for _, name := range []string{
		"../x", "a/../../x", "a/../b", "/etc/x", "./x", "a//b", ".git/config", ".git/hooks/post-checkout", "sub/.git/config", ".GIT/config", ".Git/x", "a/.giT/x",
		"GIT~1/config", "git~1/config", ".git./x", ".git /x", ".git...  /x", ".git::$INDEX_ALLOCATION/x", `.git\\config`, `a\\.git\\config`,
		`.g\342\200\214it/config`, `\357\273\277.git/x`, `.gi\342\201\252t/x`,
		"out/x", "in/x", "in/f", strings.Repeat("n", 256), strings.Repeat("long/", 900) + "x",
	} {
		t.Run(name[:min(len(name), 30)], func(t *testing.T) {
			_, err := r.Apply(ctx, base, []byte(newFile(name, "100644", "x")))
			wantRejection(t, err)
		})
	}
	for _, c := range []struct{ name, patch string }{
		{"through a link of the patch", newFile("new", "120000", "/tmp") + newFile("new/x", "100644", "x")},
		{"a submodule", newFile("sub", "160000", "Subproject commit "+strings.Repeat("1", 40))},
		{"a link without a target", "diff --git a/e b/e\nnew file mode 120000\nindex 0000000..e69de29\n"},
		{"a link with a zero byte", newFile("z", "120000", "a\x00b")},
		{"renamed out", "diff --git a/dir/f b/../f\nsimilarity index 100%\nrename from dir/f\nrename to ../f\n"},
		{"copied into .git", "diff --git a/dir/f b/.git/f\nsimilarity index 100%\ncopy from dir/f\ncopy to .git/f\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.Apply(ctx, base, []byte(c.patch))
			wantRejection(t, err)
		})
	}
	// What only looks hostile is let in.
	for _, name := range []string{".gitignore", ".gitattributes", ".github/x", "git/x", "a.git/x", "..x", "...", "git~2"} {
		if _, err := r.Apply(ctx, base, []byte(newFile(name, "100644", "x"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApplyKeepsNoPathOfThisMachine(t *testing.T) {
	r := open(t)
	base := r.mustMake(t, files{"f": "a\n"})
	for _, patch := range []string{"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n", "nonsense", newFile(".git/x", "100644", "x")} {
		_, err := r.Apply(context.Background(), base, []byte(patch))
		wantRejection(t, err)
		if strings.Contains(err.Error(), r.dir) || strings.Contains(err.Error(), r.tmp) {
			t.Errorf("%q names a path of this machine", err)
		}
	}
}

// What the machine did is not the patch's fault.
func TestApplyTellsTheWorldFromThePatch(t *testing.T) {
	r := open(t)
	good := []byte(newFile("x", "100644", "x"))
	if _, err := r.Apply(context.Background(), digest.OfObject("tree", []byte("no such tree")), good); err == nil || isRejection(err) {
		t.Errorf("a base that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Apply(ctx, emptyTree, good); err == nil || isRejection(err) {
		t.Errorf("a cancelled context: %v", err)
	}
	for _, words := range []string{"error: unable to write file 4b825", "fatal: Unable to create '/x/index.lock': File exists.", "fatal: Out of memory, malloc failed"} {
		if err := rejection(&gitError{args: []string{"apply"}, stderr: words, exit: 128}); isRejection(err) {
			t.Errorf("%q is taken for the patch's fault", words)
		}
	}
}

// A blob of the base that is gone or spoiled is not the patch's fault either, though git says too that the patch does not apply; a file's name that
// reads like git's words for it is.
func TestApplyOverSpoiledObjects(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"gone":  os.Remove,
		"torn":  func(file string) error { return os.Truncate(file, 10) },
		"empty": func(file string) error { return os.Truncate(file, 0) },
		"else":  func(file string) error { return os.WriteFile(file, []byte("no object"), 0o644) },
	} {
		r := open(t)
		base := r.mustMake(t, files{"f": "a\n"})
		blob, _ := digest.OfObject("blob", []byte("a\n")).Git()
		file := filepath.Join(r.dir, "objects", blob[:2], blob[2:])
		if err := errors.Join(os.Chmod(file, 0o644), spoil(file)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Apply(context.Background(), base, []byte("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+c\n")); err == nil || isRejection(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := open(t)
	base := r.mustMake(t, files{"f": "a\n"})
	_, err := r.Apply(context.Background(), base, []byte("--- a/failed to read f\n+++ b/failed to read f\n@@ -1 +1 @@\n-a\n+c\n"))
	wantRejection(t, err, "failed to read f: does not exist in index")
}

func isRejection(err error) bool {
	_, ok := err.(*Rejection)
	return ok
}

func TestPatchOfSomePaths(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	a := r.mustMake(t, files{"a.go": "a\n", "a_test.go": "a\n", "old_test.go": "old\n"})
	b := r.mustMake(t, files{"a.go": "b\n", "a_test.go": "b\n", "bin": "\x00\xff", "x:new.go": "n\n"})
	isTest := func(p string) bool { return strings.HasSuffix(p, "_test.go") }
	patch, err := r.Patch(ctx, a, b, isTest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Apply(ctx, a, patch)
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, got, files{"a.go": "a\n", "a_test.go": "b\n"})
	if none, err := r.Patch(ctx, a, b, func(string) bool { return false }); err != nil || len(none) != 0 {
		t.Errorf("got %q, %v for no path", none, err)
	}
}

// FuzzApply: whatever the bytes, the end is a tree of good paths or a *Rejection.
func FuzzApply(f *testing.F) {
	f.Add([]byte(newFile("a/b", "100644", "x")))
	f.Add([]byte(newFile("new", "120000", "/tmp") + newFile("new/x", "100644", "x")))
	f.Add([]byte("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"))
	f.Add([]byte("diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"))
	f.Add([]byte("diff --git a/bin b/bin\nindex 0000..1111 100644\nGIT binary patch\nliteral 5\nMc$@(*0R-3s\n\n"))
	f.Add([]byte("--- a/f\n+++ b/f\n@@ -1 +1,99999999999 @@\n-f\n"))
	f.Add([]byte("\x00\xff\n--- \n+++ \n@@ @@\n"))
	f.Add([]byte("diff --git a/new b/new\n\n--- /dev/null\n+++ w\n@@ -0,0 +1 @@\n+\n")) // git 2.39 fails an assertion
	r := open(f)
	base := r.mustMake(f, files{"f": "f\n", "bin": "\x00", "l:link": "f"})
	f.Fuzz(func(t *testing.T, patch []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		tree, err := r.Apply(ctx, base, patch)
		if err != nil {
			if !isRejection(err) {
				t.Fatal(err)
			}
			return
		}
		entries, err := r.Entries(ctx, tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := checkPath(e.Path); err != nil {
				t.Error(err)
			}
		}
	})
}

// BenchmarkCandidate is what one candidate costs: its patch applied to a base of 2,000 files, and the difference written anew.
func BenchmarkCandidate(b *testing.B) {
	r := open(b)
	ctx := context.Background()
	base := r.mustMake(b, manyFiles(2000))
	patch := []byte("--- a/d7/f7.go\n+++ b/d7/f7.go\n@@ -1,3 +1,3 @@\n package d7\n-// 7\n+// seven\n" + " // " + strings.Repeat("x", 70) + "\n" + newFile("d9/sub/new.go", "100644", "package sub"))
	var tree digest.Digest
	var err error
	for b.Loop() {
		if tree, err = r.Apply(ctx, base, patch); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Patch(ctx, base, tree, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func manyFiles(n int) files {
	f := files{}
	for i := range n {
		var b bytes.Buffer
		fmt.Fprintf(&b, "package d%d\n// %d\n", i%200, i)
		for range 50 {
			b.WriteString("// " + strings.Repeat("x", 70) + "\n")
		}
		f[fmt.Sprintf("d%d/f%d.go", i%200, i)] = b.String()
	}
	return f
}
