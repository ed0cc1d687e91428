//go:build unix

package tree

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pbuild/engine/digest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMain lets the test binary be another process that opens a repository and stores trees until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TREE_TEST_WRITER"); dir != "" {
		write := func() error {
			r, err := Open(context.Background(), dir)
			if err != nil {
				return err
			}
			defer r.Close()
			for i := 0; os.Getenv("TREE_TEST_FOREVER") != "" || i < 3; i++ {
				f := files{}
				for p, c := range manyFiles(30) {
					f[p] = c + os.Getenv("TREE_TEST_SEED") + strings.Repeat("y", i)
				}
				t, err := r.Edit(context.Background(), emptyTree, f.edits())
				if err != nil {
					return err
				}
				if err := r.Keep(context.Background(), t); err != nil {
					return err
				}
			}
			return nil
		}
		if err := write(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func writer(dir, seed string, more ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "TREE_TEST_WRITER="+dir, "TREE_TEST_SEED="+seed), more...)
	return cmd
}

func TestProcessesMakeOneRepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "trees.git")
	var wg sync.WaitGroup
	for _, seed := range []string{"a", "b", "a", "b"} {
		wg.Go(func() {
			if out, err := writer(dir, seed).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the repository is left %v, %v", left, err)
	}
	git(t, dir, "fsck", "--strict", "--no-dangling")
	if refs := git(t, dir, "for-each-ref"); strings.Count(refs, "\n") != 5 {
		t.Errorf("want six trees, got\n%s", refs)
	}
}

// A repository of which a part was taken away is completed, and keeps what it has.
func TestRepositoryIsCompleted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trees.git")
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.Edit(t.Context(), emptyTree, []Edit{{Path: "f", Mode: 0o644, Content: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	for _, part := range []string{"HEAD", "refs", "config", "pbuild", "info"} {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			t.Fatal(err)
		}
		if r, err = Open(t.Context(), dir); err != nil {
			t.Fatalf("without %s: %v", part, err)
		}
		if got, ok, err := r.ReadFile(t.Context(), id, "f"); string(got) != "x" || !ok || err != nil {
			t.Errorf("without %s: %q, %v, %v", part, got, ok, err)
		}
		r.Close()
	}
}

// A killed writer leaves no tree that Has calls whole and is not.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "trees.git")
	r, err := Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 8 {
		cmd := writer(dir, string(rune('a'+i)), "TREE_TEST_FOREVER=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed once it has stored something, each time at another moment.
		for objectCount(t, dir) < 40*(i+1) {
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
	}
	git(t, dir, "fsck", "--strict", "--no-dangling")
	all := git(t, dir, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
	for line := range strings.Lines(all) {
		id, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		if d, err := digest.OfGit(id); err != nil || kind == "tree" && r.isWhole(context.Background(), d) != r.whole(context.Background(), d) {
			t.Errorf("isWhole(%s) is wrong: %v", id, err)
		}
	}
}

func objectCount(t *testing.T, dir string) int {
	found, err := filepath.Glob(filepath.Join(dir, "objects", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestEdit(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	base := r.mustMake(t, files{"a/b/c": "c", "a/d": "d", "l:link": "a", "x:run": "run"})
	for _, c := range []struct {
		name  string
		edits []Edit
		want  files
		bad   string
	}{
		{"nothing", nil, files{"a/b/c": "c", "a/d": "d", "l:link": "a", "x:run": "run"}, ""},
		{"the last of a path counts", []Edit{{Path: "n", Mode: modeFile, Content: []byte("1")}, {Path: "n", Mode: modeFile, Content: []byte("2")}}, files{"n": "2", "a/b/c": "c", "a/d": "d", "l:link": "a", "x:run": "run"}, ""},
		{"an emptied directory goes", []Edit{{Path: "a/b/c"}}, files{"a/d": "d", "l:link": "a", "x:run": "run"}, ""},
		{"a directory goes", []Edit{{Path: "a"}, {Path: "absent/x"}, {Path: "run/x"}}, files{"l:link": "a", "x:run": "run"}, ""},
		{"a link becomes a directory", []Edit{{Path: "link/x", Mode: modeFile}, {Path: "link"}}, files{"link/x": "", "a/b/c": "c", "a/d": "d", "x:run": "run"}, ""},
		{"a file takes a directory's place", []Edit{{Path: "a", Mode: modeFile}}, files{"a": "", "l:link": "a", "x:run": "run"}, ""},
		{"through a link", []Edit{{Path: "link/x", Mode: modeFile}}, nil, `passes the link "link"`},
		{"through a file", []Edit{{Path: "a/d/x", Mode: modeFile}}, nil, `passes the file "a/d"`},
		{"file and directory", []Edit{{Path: "n/x", Mode: modeFile}, {Path: "n", Mode: modeFile}}, nil, "both a file and a directory"},
		{"out", []Edit{{Path: "../x", Mode: modeFile}}, nil, "leaves the tree"},
		{"removal out", []Edit{{Path: "a/../../x"}}, nil, "leaves the tree"},
		{"absolute", []Edit{{Path: "/x", Mode: modeFile}}, nil, "absolute"},
		{"empty", []Edit{{Mode: modeFile}}, nil, "empty"},
		{".git", []Edit{{Path: "a/.GIT/x", Mode: modeFile}}, nil, "enters .git"},
		{"mode", []Edit{{Path: "x", Mode: 0o777}}, nil, "mode 777"},
		{"no target", []Edit{{Path: "x", Mode: modeLink}}, nil, "no target"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.Edit(ctx, base, c.edits)
			if c.bad != "" {
				wantBad(t, err, c.bad)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, r, got, c.want)
		})
	}
	if _, err := r.Edit(ctx, base, []Edit{{Path: "x", Mode: modeFile, Blob: digest.OfObject("blob", []byte("nowhere"))}}); err == nil {
		t.Error("a blob that is not there was taken")
	}
	git(t, r.dir, "fsck", "--strict")
}

// Our trees are git's own: the same ids, and the same answers.
func TestTreesAreGits(t *testing.T) {
	t.Parallel()
	r := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		f := drawFiles(rt, "tree")
		if len(f) == 0 {
			return
		}
		id := r.mustMake(t, f)
		index := filepath.Join(r.tmp, "index")
		defer os.Remove(index)
		env := call{env: []string{"GIT_INDEX_FILE=" + index}}
		if _, err := r.run(context.Background(), env, "read-tree", name(id)); err != nil {
			rt.Fatal(err)
		}
		out, err := r.run(context.Background(), env, "write-tree")
		if got, _ := parseID(out); err != nil || got != id {
			rt.Fatalf("git makes %s of %s, %v", out, id, err)
		}
	})
}

func TestReadFile(t *testing.T) {
	r := open(t)
	tree := r.mustMake(t, files{"a/b": "content", "l:a/link": "b"})
	for path, want := range map[string]string{"a/b": "content", "a/link": "b", "a": "", "a/c": "", "a/b/c": "", "a/link/x": ""} {
		got, ok, err := r.ReadFile(context.Background(), tree, path)
		if err != nil || ok != (want != "") || string(got) != want {
			t.Errorf("%s: got %q, %v, %v", path, got, ok, err)
		}
	}
	if _, err := r.Read(context.Background(), digest.OfObject("blob", []byte("nowhere"))); err == nil {
		t.Error("a blob that is not there was read")
	}
	if _, err := r.Read(context.Background(), tree); err == nil {
		t.Error("a tree was read as a blob")
	}
}

func TestCheckout(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	r := open(t)
	f := files{
		".gitattributes": "* text=auto eol=crlf ident filter=evil working-tree-encoding=UTF-16 export-ignore\n*.secret export-ignore\n",
		"lf.txt":         "a\nb\n$Id$\n", "crlf.txt": "a\r\nb\r\n", "deep/er/x.secret": "kept", "x:bin/run": "#!/bin/sh\n", "l:out": "/etc/passwd", "l:deep/up": "../lf.txt", "empty": "",
	}
	for p, c := range manyFiles(300) {
		f[p] = c
	}
	tree := r.mustMake(t, f)
	dir := filepath.Join(t.TempDir(), "new", "workspace")
	before := time.Now().Add(-2 * time.Second)
	if err := r.Checkout(context.Background(), tree, dir); err != nil {
		t.Fatal(err)
	}
	back, err := r.Import(context.Background(), dir, nil)
	if err != nil || back != tree {
		t.Errorf("what was laid out is another tree: %v %s", err, cmp.Diff(f, r.read(t, back)))
	}
	for path, want := range map[string]os.FileMode{"lf.txt": 0o644, "bin/run": 0o755, "deep": 0o755 | os.ModeDir, "": 0o755 | os.ModeDir} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode() != want || info.ModTime().Before(before) {
			t.Errorf("%s: %v %v %v", path, info.Mode(), info.ModTime(), err)
		}
	}
	if err := r.Checkout(context.Background(), tree, dir); err == nil {
		t.Error("checked out over what is there")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := r.Checkout(context.Background(), tree, link); err == nil {
		t.Error("checked out through a link")
	}
}

// A git that was killed while it changed refs leaves its locks.
func TestKeepBreaksLocks(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := context.Background()
	for _, timeout := range []string{"core.filesRefLockTimeout", "core.packedRefsTimeout"} {
		git(t, r.dir, "config", timeout, "100") // git waits as long, and has nobody to wait for
	}
	a, b := r.mustMake(t, files{"a": "1"}), r.mustMake(t, files{"a": "2"})
	lock := func(name string, age time.Duration) {
		full := filepath.Join(r.dir, name+".lock")
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(full, nil, 0o666)
		if err == nil {
			then := time.Now().Add(-age)
			err = os.Chtimes(full, then, then)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	id, _ := a.Git()
	lock(refPrefix+id, 0)
	if err := r.Keep(ctx, a, b); err != nil {
		t.Fatal(err)
	}
	lock("packed-refs", time.Hour)
	if err := r.Drop(ctx, func(d digest.Digest) bool { return d == a }); err != nil {
		t.Fatal(err)
	}
	if kept := Kept(r.dir); !kept[a] || kept[b] {
		t.Errorf("kept are %v", kept)
	}
}

func TestKeepAndDrop(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	kept := r.mustMake(t, files{"a": "shared", "b/c": "kept"})
	dropped := r.mustMake(t, files{"a": "shared", "b/c": "dropped"})
	loose := r.mustMake(t, files{"a": "never kept"})
	dir := t.TempDir()
	layOut(t, dir, manyFiles(60))
	packed, err := r.Import(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is nothing
		if err := r.Keep(ctx, kept, dropped, kept, packed); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Keep(ctx, digest.OfObject("tree", []byte("nowhere"))); err == nil {
		t.Error("kept a tree that is not there")
	}
	if !r.isWhole(ctx, kept) || !r.isWhole(ctx, dropped) || !r.isWhole(ctx, loose) || r.isWhole(ctx, digest.Of(nil)) || r.isWhole(ctx, digest.Digest{}) {
		t.Error("isWhole is wrong before")
	}
	live := func(d digest.Digest) bool { return d == kept || d == packed }
	stay, gone, err := r.Shares(ctx, live)
	if err != nil || stay.Trees != 2 || gone.Trees != 1 || gone.Bytes == 0 || gone.Bytes > stay.Bytes {
		t.Errorf("before the drop %+v are to stay and %+v to go, %v", stay, gone, err)
	}
	if !r.isWhole(ctx, dropped) {
		t.Error("a tree that was only counted is gone")
	}
	if err := r.Drop(ctx, live); err != nil {
		t.Fatal(err)
	}
	if _, gone, err = r.Shares(ctx, live); err != nil || gone != (Share{}) {
		t.Errorf("after the drop %+v are to go, %v", gone, err)
	}
	other, err := Open(ctx, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, r := range []*Repo{r, other} {
		if !r.isWhole(ctx, kept) || !r.isWhole(ctx, packed) || r.isWhole(ctx, dropped) || r.isWhole(ctx, loose) {
			t.Error("isWhole is wrong after")
		}
	}
	wantFiles(t, r, kept, files{"a": "shared", "b/c": "kept"})
	if err := r.Drop(ctx, func(digest.Digest) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if r.isWhole(ctx, kept) || r.isWhole(ctx, packed) {
		t.Error("a tree outlived its drop")
	}
	if n := git(t, r.dir, "count-objects", "-v"); !strings.Contains(n, "count: 0\n") || !strings.Contains(n, "in-pack: 1\n") {
		t.Errorf("objects are left:\n%s", n)
	}
	r.mustMake(t, files{"a": "shared"}) // the pool and the caches know what is gone
}

// A tree with a hole is not whole, and cannot be kept.
func TestHole(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	tree := r.mustMake(t, files{"a/b": "content"})
	blob := name(digest.OfObject("blob", []byte("content")))
	if err := os.Remove(filepath.Join(r.dir, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	other, err := Open(ctx, r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.isWhole(ctx, tree) {
		t.Error("a tree with a hole is called whole")
	}
	if err := other.Keep(ctx, tree); err == nil {
		t.Error("a tree with a hole was kept")
	}
}

// Verify finds what is missing below any directory, takes the refs of what is not whole, and lets it be made again.
func TestVerify(t *testing.T) {
	blob := name(digest.OfObject("blob", []byte("content")))
	for how, hurt := range map[string]func(file string) error{
		"missing": os.Remove,
		"damaged": func(file string) error { return replace(file, []byte("garbage"), 0o444) },
	} {
		r := open(t)
		ctx := context.Background()
		first := files{"a/b": "content", "a/c": "more"}
		trees := []digest.Digest{r.mustMake(t, first), r.mustMake(t, files{"x/a/b": "content", "x/a/c": "more"}), r.mustMake(t, files{"a/c": "more"})}
		if err := r.Keep(ctx, trees...); err != nil {
			t.Fatal(err)
		}
		if broken, err := r.Verify(ctx, trees); err != nil || len(broken) != 0 || len(Kept(r.dir)) != 3 {
			t.Errorf("%v, %v while all is there; kept %v", broken, err, Kept(r.dir))
		}
		if err := hurt(filepath.Join(r.dir, "objects", blob[:2], blob[2:])); err != nil {
			t.Fatal(err)
		}
		r, err := Open(ctx, r.dir)
		if err != nil {
			t.Fatal(err)
		}
		broken, err := r.Verify(ctx, trees)
		if err != nil || len(broken) != 2 || broken[trees[2]] != nil || !strings.Contains(broken[trees[0]].Error(), blob+" is missing") {
			t.Errorf("%s: %v, %v", how, broken, err)
		}
		if kept := Kept(r.dir); len(kept) != 1 || !kept[trees[2]] {
			t.Errorf("%s: kept %v", how, kept)
		}
		if err := r.Keep(ctx, r.mustMake(t, first)); err != nil {
			t.Error(how, err)
		}
		git(t, r.dir, "pack-refs", "--all")
		if broken, err := r.Verify(ctx, trees); err != nil || len(broken) != 0 || len(Kept(r.dir)) != 2 {
			t.Errorf("%s: %v, %v after one of them is made again; kept %v", how, broken, err, Kept(r.dir))
		}
		r.Close()
	}
}

func TestManyAtOnce(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	base := r.mustMake(t, manyFiles(100))
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			name := strings.Repeat("n", i+1)
			tree, err := r.Apply(ctx, base, []byte(newFile(name, "100644", "x")))
			if err != nil {
				t.Error(err)
				return
			}
			if got, ok, err := r.ReadFile(ctx, tree, name); err != nil || !ok || string(got) != "x\n" {
				t.Errorf("%s: %q %v %v", name, got, ok, err)
			}
			if err := r.Keep(ctx, tree, base); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestCancel(t *testing.T) {
	r := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Entries(ctx, emptyTree); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := r.Import(ctx, t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// A reader whose question was cancelled is not asked again.
	if _, err := r.Edit(context.Background(), emptyTree, files{"a": "a"}.edits()); err != nil {
		t.Error(err)
	}
}

// Nothing that the user's environment or files say reaches git.
func TestEnvironmentIsScrubbed(t *testing.T) {
	home := t.TempDir()
	layOut(t, home, files{".gitconfig": "[core]\n\tautocrlf = true\n[diff]\n\tnoprefix = true\n\texternal = false\n[apply]\n\twhitespace = fix\n[init]\n\tdefaultObjectFormat = sha256\n"})
	for k, v := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "diff.noprefix", "GIT_CONFIG_VALUE_0": "true",
		"GIT_EXTERNAL_DIFF": "false", "GIT_DIFF_OPTS": "-u0", "GIT_DEFAULT_HASH": "sha256", "GIT_OBJECT_DIRECTORY": "/nowhere", "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"} {
		t.Setenv(k, v)
	}
	r := open(t)
	ctx := context.Background()
	a, b := r.mustMake(t, files{"f": "a\r\nb \n"}), r.mustMake(t, files{"f": "a\r\nc \n"})
	patch, err := r.Patch(ctx, a, b, nil)
	if err != nil || !strings.Contains(string(patch), "\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b \n+c \n") {
		t.Errorf("%q, %v", patch, err)
	}
	if got, err := r.Apply(ctx, a, patch); err != nil || got != b {
		t.Errorf("got %s, %v, want %s", got, err, b)
	}
	_, err = r.Apply(ctx, b, patch)
	wantRejection(t, err, "patch does not apply")
}

// A cancelled fetch is killed at once, with the processes that git started for it.
func TestCancelKillsFetch(t *testing.T) {
	r := open(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(context.Background())
	hungUp := make(chan struct{})
	go func() {
		conn, err := listener.Accept() // and never answered
		if err != nil {
			return
		}
		cancel()
		io.Copy(io.Discard, conn)
		close(hungUp)
	}()
	_, err = r.FetchGit(ctx, Git{URL: "http://" + listener.Addr().String() + "/x.git", Commit: strings.Repeat("a", 40)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-hungUp // the helper that held the connection is dead
}
