package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pbuild/engine/digest"

	"github.com/google/go-cmp/cmp"
)

// open makes a repository that ends with the test.
func open(t testing.TB) *Repo {
	t.Helper()
	r, err := Open(context.Background(), filepath.Join(t.TempDir(), "trees.git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// files is a tree as tests write it: content by path. A path that begins with "x:" is executable, one with "l:" is a link.
type files map[string]string

func (f files) edits() (edits []Edit) {
	for p, content := range f {
		mode := uint32(modeFile)
		if rest, ok := strings.CutPrefix(p, "x:"); ok {
			mode, p = modeExecutable, rest
		} else if rest, ok := strings.CutPrefix(p, "l:"); ok {
			mode, p = modeLink, rest
		}
		edits = append(edits, Edit{Path: p, Mode: mode, Content: []byte(content)})
	}
	return edits
}

func (r *Repo) mustMake(t testing.TB, f files) digest.Digest {
	t.Helper()
	id, err := r.Edit(context.Background(), emptyTree, f.edits())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// read is the opposite of mustMake.
func (r *Repo) read(t testing.TB, tree digest.Digest) files {
	t.Helper()
	entries, err := r.Entries(context.Background(), tree)
	if err != nil {
		t.Fatal(err)
	}
	f := files{}
	for _, e := range entries {
		content, err := r.Read(context.Background(), e.Blob)
		if err != nil {
			t.Fatal(err)
		}
		f[map[uint32]string{modeFile: "", modeExecutable: "x:", modeLink: "l:"}[e.Mode]+e.Path] = string(content)
	}
	return f
}

func wantFiles(t testing.TB, r *Repo, tree digest.Digest, want files) {
	t.Helper()
	if diff := cmp.Diff(want, r.read(t, tree)); diff != "" {
		t.Errorf("tree differs (-want +got):\n%s", diff)
	}
}

// wantBad demands a *Bad that says each of the words.
func wantBad(t testing.TB, err error, words ...string) {
	t.Helper()
	var bad *Bad
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want a *Bad", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(bad.Reason, w) {
			t.Errorf("%q does not say %q", bad.Reason, w)
		}
	}
}

func wantRejection(t testing.TB, err error, words ...string) {
	t.Helper()
	var rejected *Rejection
	if !errors.As(err, &rejected) {
		t.Errorf("got %v, want a *Rejection", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(rejected.Error(), w) {
			t.Errorf("%q does not say %q", rejected.Error(), w)
		}
	}
}

// git runs the user's git, as a fixture's author would.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, bad.String())
	}
	return strings.TrimSpace(out.String())
}

// layOut writes files below dir.
func layOut(t testing.TB, dir string, f files) {
	t.Helper()
	for _, e := range f.edits() {
		name := filepath.Join(dir, e.Path)
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil && e.Mode == modeLink {
			err = os.Symlink(string(e.Content), name)
		} else if err == nil {
			err = os.WriteFile(name, e.Content, os.FileMode(e.Mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// commit makes a repository with one commit and returns its directory and the commit.
func commit(t testing.TB, f files) (dir, id string) {
	t.Helper()
	dir = t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	return dir, commitMore(t, dir, f)
}

func commitMore(t testing.TB, dir string, f files) string {
	t.Helper()
	layOut(t, dir, f)
	git(t, dir, "add", "-A", "-f")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("%d files", len(f)))
	return git(t, dir, "rev-parse", "HEAD")
}
