package tree

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pbuild/engine/digest"
)

func TestFetchGit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir, first := commit(t, files{"f": "1\r\n", "x:run": "r", "l:link": "f", "sub/a": "a", "sub/.gitattributes": "* text eol=lf export-ignore ident\n", "$Id$": "$Id$"})
	second := commitMore(t, dir, files{"g": "2"})
	for name, url := range map[string]string{"path": dir, "file URL": "file://" + dir, "bare": filepath.Join(dir, ".git")} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			tree, err := r.FetchGit(ctx, Git{URL: url, Commit: strings.ToUpper(first)})
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, r, tree, files{"f": "1\r\n", "x:run": "r", "l:link": "f", "sub/a": "a", "sub/.gitattributes": "* text eol=lf export-ignore ident\n", "$Id$": "$Id$"})
			if _, err := os.Stat(filepath.Join(r.dir, "shallow")); err == nil {
				t.Error("the repository is shallow")
			}
			sub, err := r.FetchGit(ctx, Git{URL: url, Commit: second, Subdir: "./sub/"})
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, r, sub, files{"a": "a", ".gitattributes": "* text eol=lf export-ignore ident\n"})
			if err := r.Keep(ctx, tree, sub); err != nil {
				t.Error(err)
			}
			if err := r.Drop(ctx, func(d digest.Digest) bool { return d == sub }); err != nil {
				t.Error(err)
			}
			if r.isWhole(ctx, tree) || !r.isWhole(ctx, sub) {
				t.Error("isWhole is wrong after a drop")
			}
		})
	}
}

func TestFetchGitRelative(t *testing.T) {
	repo, id := commit(t, files{"f": "1"})
	sibling := filepath.Join(filepath.Dir(repo), "workspace")
	name := filepath.Base(repo)
	for url, dir := range map[string]string{"../" + name: sibling, name: filepath.Dir(repo), ".": repo} {
		r := open(t)
		tree, err := r.FetchGit(t.Context(), Git{URL: url, Dir: dir, Commit: id})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		wantFiles(t, r, tree, files{"f": "1"})
	}
	_, err := open(t).FetchGit(t.Context(), Git{URL: "../none", Dir: sibling, Commit: id})
	wantBad(t, err, "no repository at "+filepath.Join(filepath.Dir(repo), "none"))
	_, err = open(t).FetchGit(t.Context(), Git{Dir: repo, Commit: id})
	wantBad(t, err, "not a URL")
}

func TestFetchGitBad(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	dir, id := commit(t, files{"f": "1", "l:link": "f"})
	tree := git(t, dir, "rev-parse", id+"^{tree}")
	git(t, dir, "tag", "-a", "-m", "v1", "v1")
	for _, c := range []struct {
		name string
		g    Git
		says string
	}{
		{"branch", Git{URL: dir, Commit: "main"}, "git rev-parse main^{commit}"},
		{"short", Git{URL: dir, Commit: id[:12]}, "40 hexadecimal digits"},
		{"absent", Git{URL: dir, Commit: strings.Repeat("ab", 20)}, "no branch or tag"},
		{"a tree", Git{URL: dir, Commit: tree}, "commit"},
		{"a tag", Git{URL: dir, Commit: git(t, dir, "rev-parse", "v1")}, "not a commit"},
		{"no such directory", Git{URL: dir, Commit: id, Subdir: "sub"}, `no directory "sub"`},
		{"a file", Git{URL: dir, Commit: id, Subdir: "f"}, `no directory "f"`},
		{"a link", Git{URL: dir, Commit: id, Subdir: "link"}, `no directory "link"`},
		{"out", Git{URL: dir, Commit: id, Subdir: "../x"}, "leaves the tree"},
		{"no repository", Git{URL: dir + "/none", Commit: id}, "no repository"},
		{"an option", Git{URL: "--upload-pack=touch x", Commit: id}, "not a URL"},
		{"nothing", Git{Commit: id}, "not a URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := r.FetchGit(ctx, c.g)
			wantBad(t, err, c.says)
		})
	}
	for name, url := range map[string]string{"refused": "http://127.0.0.1:1/x.git", "no transport": "ext::sh -c 'touch x'"} {
		_, err := r.FetchGit(ctx, Git{URL: url, Commit: id})
		var bad *Bad
		if err == nil || errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a plain error", name, err)
		}
	}
	_, err := r.FetchGit(ctx, Git{URL: "http://user:secret@127.0.0.1:1/x.git", Commit: id})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is shown: %v", err)
	}
}

// A server that gives commits only by name makes pbuild fetch all that is named.
func TestFetchGitOverHTTP(t *testing.T) {
	backend := filepath.Join(git(t, ".", "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	dir, first := commit(t, files{"f": "1"})
	commitMore(t, dir, files{"f2": "2"})
	var asked atomic.Int32
	backendHandler := &cgi.Handler{Path: backend, Stderr: io.Discard, Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/info/refs") {
			asked.Add(1)
		}
		req.Header.Del("Git-Protocol") // the first protocol gives what is advertised, and no more
		backendHandler.ServeHTTP(w, req)
	}))
	defer server.Close()
	r := open(t)
	tree, err := r.FetchGit(context.Background(), Git{URL: server.URL + "/.git", Commit: first})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, tree, files{"f": "1"})
	if asked.Load() != 2 {
		t.Errorf("the server was asked for its refs %d times, want for the commit and then for all", asked.Load())
	}
	_, err = r.FetchGit(context.Background(), Git{URL: server.URL + "/.git", Commit: strings.Repeat("ab", 20)})
	wantBad(t, err, "no branch or tag")
}

func TestFetchGitSubmodules(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := context.Background()
	inner, _ := commit(t, files{"deep": "deep"})
	middle, _ := commit(t, files{"m": "m"})
	git(t, middle, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "in ner")
	// A relative URL is relative to where its repository came from.
	git(t, middle, "config", "-f", ".gitmodules", "submodule.in ner.url", "../"+relTo(t, middle, inner))
	commitMore(t, middle, nil)
	outer, _ := commit(t, files{"o": "o", "lib/x": "x"})
	git(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", middle, "lib/mid")
	id := commitMore(t, outer, nil)

	tree, err := r.FetchGit(ctx, Git{URL: outer, Commit: id, Submodules: true})
	if err != nil {
		t.Fatal(err)
	}
	got := r.read(t, tree)
	delete(got, ".gitmodules")
	delete(got, "lib/mid/.gitmodules")
	want := r.mustMake(t, files{"o": "o", "lib/x": "x", "lib/mid/m": "m", "lib/mid/in ner/deep": "deep"})
	if r.mustMake(t, got) != want {
		t.Errorf("got %q", got)
	}
	sub, err := r.FetchGit(ctx, Git{URL: outer, Commit: id, Subdir: "lib/mid/in ner", Submodules: true})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, sub, files{"deep": "deep"})
	without, err := r.FetchGit(ctx, Git{URL: outer, Commit: id})
	if err != nil {
		t.Fatal(err)
	}
	got = r.read(t, without)
	delete(got, ".gitmodules")
	if r.mustMake(t, got) != r.mustMake(t, files{"o": "o", "lib/x": "x"}) {
		t.Errorf("got %q", got)
	}
	git(t, outer, "rm", "-q", "--cached", ".gitmodules")
	git(t, outer, "commit", "-q", "-m", "no .gitmodules")
	_, err = r.FetchGit(ctx, Git{URL: outer, Commit: git(t, outer, "rev-parse", "HEAD"), Submodules: true})
	wantBad(t, err, "lib/mid", "no URL")
}

// relTo is the path from dir's parent to target.
func relTo(t *testing.T, dir, target string) string {
	rel, err := filepath.Rel(filepath.Dir(dir), target)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func TestResolveURL(t *testing.T) {
	for _, c := range [][3]string{
		{"https://host/a/b.git", "../c.git", "https://host/a/c.git"}, {"https://host/a/b.git/", "../../c", "https://host/c"}, {"host:a/b", "../c", "host:a/c"}, {"host:b", "../c", "host:c"},
		{"/x/y", "./z", "/x/y/z"}, {"https://host/a", "https://other/b", "https://other/b"}, {"git@host:a/b.git", "../../c", "git@host:c"},
	} {
		if got := resolveURL(c[0], c[1]); got != c[2] {
			t.Errorf("%s from %s: got %s, want %s", c[1], c[0], got, c[2])
		}
	}
	for url, local := range map[string]bool{"/x": true, "x/y": true, "file:///x": true, "./a:b": true, "host:x": false, "git@host:x/y": false, "https://h/x": false, "ssh://h/x": false} {
		if isLocal(url) != local {
			t.Errorf("isLocal(%s) is %v", url, !local)
		}
	}
}

func TestFetchGitLFS(t *testing.T) {
	r := open(t)
	pointer := pointerStart + "oid sha256:" + strings.Repeat("a", 64) + "\nsize 12345\n"
	dir, id := commit(t, files{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "data/model.bin": pointer, "f": "f"})
	_, err := r.FetchGit(context.Background(), Git{URL: dir, Commit: id})
	wantBad(t, err, "data/model.bin", "git-lfs")
	_, err = r.FetchGit(context.Background(), Git{URL: dir, Commit: id, Subdir: "data"})
	wantBad(t, err, "model.bin")
	dir, id = commit(t, files{"testdata/pointer": pointer})
	if _, err := r.FetchGit(context.Background(), Git{URL: dir, Commit: id}); err != nil {
		t.Errorf("a pointer that no attribute asks for: %v", err)
	}
}

// Trees of old or hostile makers: odd modes are made ordinary, names that enter .git are refused.
func TestFetchGitOddTrees(t *testing.T) {
	r := open(t)
	ctx := context.Background()
	dir, _ := commit(t, files{"f": "content"})
	make := func(raw string) string {
		cmd := exec.Command("git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(raw)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		id := git(t, dir, "commit-tree", "-m", "odd", strings.TrimSpace(string(out)))
		git(t, dir, "update-ref", "refs/heads/odd", id)
		return id
	}
	blob := digest.OfObject("blob", []byte("content"))
	raw := string(blob[len(blob)-20:])
	tree, err := r.FetchGit(ctx, Git{URL: dir, Commit: make("100664 f\x00" + raw)})
	if err != nil {
		t.Fatal(err)
	}
	if want := r.mustMake(t, files{"f": "content"}); tree != want {
		t.Errorf("got %s, want %s", tree, want)
	}
	_, err = r.FetchGit(ctx, Git{URL: dir, Commit: make("100644 .GIT\x00" + raw)})
	wantBad(t, err, ".GIT")
	_, err = r.FetchGit(ctx, Git{URL: dir, Commit: make("100644 ..\x00" + raw)})
	wantBad(t, err, "leaves the tree")
}

func TestFetchArchiveOverHTTP(t *testing.T) {
	r := open(t)
	archive := tarOf(t, entry{name: "a", content: "a"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/gone":
			http.NotFound(w, req)
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		case "/silent":
			<-req.Context().Done()
		case "/stalled":
			w.Write(archive[:10])
			http.NewResponseController(w).Flush()
			<-req.Context().Done()
		case "/cut":
			w.Header().Set("Content-Length", "999999")
			w.Write(archive)
		default:
			w.Write(archive)
		}
	}))
	defer server.Close()
	ctx := context.Background()
	tree, err := r.FetchArchive(ctx, Archive{URL: server.URL + "/ok", SHA256: sha(archive)})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, r, tree, files{"a": "a"})
	_, err = r.FetchArchive(ctx, Archive{URL: server.URL + "/gone", SHA256: sha(archive)})
	wantBad(t, err, "404")
	_, err = r.FetchArchive(ctx, Archive{URL: "ftp://x/y", SHA256: sha(archive)})
	wantBad(t, err, "neither http")
	r.limit = 1000 // bytes, of which the archive has more
	_, err = r.FetchArchive(ctx, Archive{URL: server.URL + "/cut", SHA256: sha(archive)})
	wantBad(t, err, "larger than 1000 bytes")
	r.limit = archiveLimit
	for _, path := range []string{"/broken", "/cut"} {
		_, err = r.FetchArchive(ctx, Archive{URL: server.URL + path, SHA256: sha(archive)})
		var bad *Bad
		if err == nil || errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a plain error", path, err)
		}
	}
	r.stall = 50 * time.Millisecond
	for _, path := range []string{"/silent", "/stalled"} {
		_, err = r.FetchArchive(ctx, Archive{URL: server.URL + path, SHA256: sha(archive)})
		var bad *Bad
		if err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), "sent nothing for 50ms") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
