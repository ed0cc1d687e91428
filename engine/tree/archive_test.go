package tree

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// An entry is one entry of a tar or zip that a test makes; kind 0 is a regular file.
type entry struct {
	name, content string
	kind          byte
	mode          int64
	link          string
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if e.mode == 0 {
			e.mode = 0o644
		}
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Size: int64(len(e.content)), Linkname: e.link}
		if e.kind == tar.TypeXGlobalHeader {
			h = &tar.Header{Name: e.name, Typeflag: e.kind, PAXRecords: map[string]string{"comment": e.content}}
			e.content = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, e.content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		mode := fs.FileMode(0o644)
		if e.mode != 0 {
			mode = fs.FileMode(e.mode)
		}
		if e.kind == tar.TypeSymlink {
			mode, e.content = mode|fs.ModeSymlink, e.link
		} else if e.kind != 0 {
			mode |= fs.ModeDevice
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, e.content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sha(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

func fetchBytes(t testing.TB, r *Repo, content []byte, strip int) (files, error) {
	t.Helper()
	file := filepath.Join(r.tmp, "given")
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := r.FetchArchive(context.Background(), Archive{Path: file, SHA256: sha(content), Strip: strip})
	if err != nil {
		return nil, err
	}
	return r.read(t, tree), nil
}

func TestFetchArchiveKinds(t *testing.T) {
	r := open(t)
	entries := []entry{{name: "./"}, {name: "p-1/"}, {name: "p-1/a", content: "a\r\n"}, {name: "p-1/run", content: "r", mode: 0o755}, {name: "p-1/l", kind: tar.TypeSymlink, link: "sub/../a"}, {name: "p-1/sub/e"}}
	entries[0].kind, entries[1].kind = tar.TypeDir, tar.TypeDir
	plain := tarOf(t, entries...)
	compress := func(w io.WriteCloser, b *bytes.Buffer, err error) []byte {
		if err == nil {
			_, err = w.Write(plain)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	kinds := map[string][]byte{"tar": plain, "zip": zipOf(t, entries[2:]...)}
	var gz, xzb, zs bytes.Buffer
	kinds["gzip"] = compress(gzip.NewWriter(&gz), &gz, nil)
	xw, err := xz.NewWriter(&xzb)
	kinds["xz"] = compress(xw, &xzb, err)
	zw, err := zstd.NewWriter(&zs)
	kinds["zstd"] = compress(zw, &zs, err)
	kinds["bzip2"] = bzip2Fixture(t)
	for name, content := range kinds {
		t.Run(name, func(t *testing.T) {
			got, err := fetchBytes(t, r, content, 1)
			if err != nil {
				t.Fatal(err)
			}
			want := files{"a": "a\r\n", "x:run": "r", "l:l": "sub/../a", "sub/e": ""}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// bzip2Fixture is the tar of TestFetchArchiveKinds (made by GNU tar and bzip2), for Go cannot write bzip2.
func bzip2Fixture(t *testing.T) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", "p-1.tar.bz2.base64"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(b)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFetchArchiveBad(t *testing.T) {
	r := open(t)
	r.limit = 1 << 20
	link := func(name, to string) entry { return entry{name: name, kind: tar.TypeSymlink, link: to} }
	file := func(name string) entry { return entry{name: name, content: "x"} }
	for _, c := range []struct {
		name    string
		entries []entry
		says    []string
		tarOnly bool
	}{
		{"leaves", []entry{file("ok"), file("a/../../x")}, []string{"a/../../x", "leaves"}, false},
		{"leaves at once", []entry{file("../x")}, []string{"../x", "leaves"}, false},
		{"absolute", []entry{file("/etc/x")}, []string{"/etc/x", "absolute"}, false},
		{"a drive", []entry{file("C:/x")}, []string{"C:/x", "absolute"}, false},
		{".git", []entry{file("p/.git/hooks/x")}, []string{"p/.git/hooks/x", "enters .git"}, false},
		{"absolute link", []entry{link("l", "/etc")}, []string{`"l"`, "out of the tree"}, false},
		{"link out", []entry{link("a/l", "../../x")}, []string{"a/l", "out of the tree"}, false},
		{"link out by a link", []entry{link("d/r", "../e"), link("e", "."), link("l", "d/r/../x")}, []string{`"l"`, "out of the tree"}, false},
		{"through a link", []entry{link("l", "sub"), file("l/x")}, []string{"l/x", "passes"}, false},
		{"through a later link", []entry{file("l/x"), link("l", "sub")}, []string{"l/x", "passes"}, false},
		{"empty link", []entry{link("l", "")}, []string{`"l"`, "no target"}, false},
		{"differs", []entry{{name: "f", content: "1"}, {name: "./f", content: "2"}}, []string{"f", "twice"}, false},
		{"differs in mode", []entry{{name: "f", content: "1"}, {name: "f", content: "1", mode: 0o755}}, []string{"f", "twice"}, false},
		{"device", []entry{{name: "dev", kind: tar.TypeChar}}, []string{"dev", "device"}, false},
		{"pipe", []entry{{name: "fifo", kind: tar.TypeFifo}}, []string{"fifo", "device"}, true},
		{"hard link to nothing", []entry{{name: "h", kind: tar.TypeLink, link: "none"}}, []string{"h", "none"}, true},
		{"hard link out", []entry{{name: "h", kind: tar.TypeLink, link: "../x"}}, []string{"../x", "leaves"}, true},
		{"too much", []entry{{name: "a", content: strings.Repeat("a", 1<<19)}, {name: "b", content: strings.Repeat("b", 1<<19+1)}}, []string{"1048576 bytes"}, false},
		{"a long name", []entry{file(strings.Repeat("n", 300))}, []string{"longer than 255"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := fetchBytes(t, r, tarOf(t, c.entries...), 0)
			wantBad(t, err, c.says...)
			if !c.tarOnly {
				_, err = fetchBytes(t, r, zipOf(t, c.entries...), 0)
				wantBad(t, err, c.says...)
			}
		})
	}
	_, err := fetchBytes(t, r, tarOf(t, entry{name: "f", content: strings.Repeat("x", 5000)})[:2000], 0)
	wantBad(t, err, "cannot be read")
	_, err = fetchBytes(t, r, []byte("no archive at all, but more than a block of tar is long"+strings.Repeat(".", 1000)), 0)
	wantBad(t, err, "cannot be read")
	_, err = fetchBytes(t, r, []byte("PK\x03\x04 and nonsense"), 0)
	wantBad(t, err, "zip")
	ctx := context.Background()
	_, err = r.FetchArchive(ctx, Archive{Path: filepath.Join(r.tmp, "none"), SHA256: sha(nil)})
	wantBad(t, err, "no such file")
	_, err = r.FetchArchive(ctx, Archive{Path: filepath.Join(r.tmp, "given"), SHA256: sha(nil)})
	wantBad(t, err, "sha256")
	_, err = r.FetchArchive(ctx, Archive{Path: filepath.Join(r.tmp, "given"), SHA256: "abc"})
	wantBad(t, err, "64 hexadecimal digits")
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	w.Write(make([]byte, 4<<20))
	w.Close()
	_, err = fetchBytes(t, r, bomb.Bytes(), 0)
	if err != nil { // a tar of zero blocks alone is empty
		t.Error(err)
	}
	long := tarOf(t, entry{name: "big", content: strings.Repeat("x", 2<<20)})
	bomb.Reset()
	w = gzip.NewWriter(&bomb)
	w.Write(long)
	w.Close()
	_, err = fetchBytes(t, r, bomb.Bytes(), 0)
	wantBad(t, err, "more than 1048576 bytes")
}

func TestFetchArchiveGood(t *testing.T) {
	r := open(t)
	for _, c := range []struct {
		name    string
		entries []entry
		strip   int
		want    files
	}{
		{"the same twice", []entry{{name: "f", content: "1"}, {name: "f", content: "1"}}, 0, files{"f": "1"}},
		{"hard link", []entry{{name: "p/f", content: "1", mode: 0o755}, {name: "p/h", kind: tar.TypeLink, link: "p/f"}}, 1, files{"x:f": "1", "x:h": "1"}},
		{"stripped away", []entry{{name: "top", content: "1"}, {name: "p/f", content: "2"}}, 1, files{"f": "2"}},
		{"links within", []entry{{name: "a/b/l", kind: tar.TypeSymlink, link: "../../c"}, {name: "l2", kind: tar.TypeSymlink, link: "a/b/l/x"}, {name: "c/x", content: "x"}, {name: "round", kind: tar.TypeSymlink, link: "round"}}, 0,
			files{"l:a/b/l": "../../c", "l:l2": "a/b/l/x", "c/x": "x", "l:round": "round"}},
		{"setuid is no more than executable", []entry{{name: "s", content: "s", mode: 0o4755}}, 0, files{"x:s": "s"}},
		{"what GNU tar says of the whole", []entry{{name: "/tmp/GlobalHead.1.1", kind: tar.TypeXGlobalHeader, content: "a comment"}, {name: "f", content: "1"}}, 0, files{"f": "1"}},
		{"empty", nil, 0, files{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := fetchBytes(t, r, tarOf(t, c.entries...), c.strip)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(tarOf(f, entry{name: "a/b", content: "x"}, entry{name: "l", kind: tar.TypeSymlink, link: "a"}), 0)
	f.Add(zipOf(f, entry{name: "a/b", content: "x"}, entry{name: "../x"}), 1)
	f.Add([]byte("\x1f\x8b\x08\x00"), 0)
	f.Add([]byte("BZh91AY&SY"), 0)
	f.Add([]byte("\xfd7zXZ\x00\x00\x04"), 0)
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"), 0)
	r := open(f)
	r.limit = 1 << 20
	f.Fuzz(func(t *testing.T, content []byte, strip int) {
		got, err := fetchBytes(t, r, content, strip&3)
		if err != nil {
			wantBad(t, err)
			return
		}
		for p := range got {
			if err := checkPath(strings.TrimPrefix(strings.TrimPrefix(p, "x:"), "l:")); err != nil {
				t.Error(err)
			}
		}
	})
}

// moduleProxy lays out a GOPROXY of one module version; it returns the module's sum as go sees it.
func moduleProxy(t *testing.T, zipped []byte, gomod string) {
	t.Helper()
	dir := t.TempDir()
	layOut(t, dir, files{
		"example.com/!mod/@v/v1.0.0.info": `{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}`,
		"example.com/!mod/@v/v1.0.0.mod":  gomod,
		"example.com/!mod/@v/v1.0.0.zip":  string(zipped),
		"example.com/!mod/@v/list":        "v1.0.0\n",
	})
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Setenv("GOPROXY", "file://"+dir)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GONOSUMCHECK", "1")
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Cleanup(func() {
		cmd := exec.Command("go", "clean", "-modcache")
		cmd.Env = append(os.Environ(), "GOMODCACHE="+cache, "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestFetchGoMod(t *testing.T) {
	ctx := context.Background()
	module := GoMod{Path: "example.com/Mod", Version: "v1.0.0"}
	for _, c := range []struct {
		name    string
		entries []entry
		want    files
	}{
		{"with go.mod", []entry{{name: "go.mod", content: "module example.com/Mod\n\ngo 1.20\n"}, {name: "a/a.go", content: "package a\r\n"}}, files{"go.mod": "module example.com/Mod\n\ngo 1.20\n", "a/a.go": "package a\r\n"}},
		{"without", []entry{{name: "a.go", content: "package a\n"}}, files{"go.mod": "module example.com/Mod\n", "a.go": "package a\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.entries {
				c.entries[i].name = "example.com/Mod@v1.0.0/" + c.entries[i].name
			}
			gomod := "module example.com/Mod\n"
			if have, ok := c.want["go.mod"]; ok {
				gomod = have
			}
			moduleProxy(t, zipOf(t, c.entries...), gomod)
			r := open(t)
			tree, sum, err := r.FetchGoMod(ctx, module)
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, r, tree, c.want)
			m := module
			m.Sum = sum
			if again, _, err := r.FetchGoMod(ctx, m); err != nil || again != tree {
				t.Errorf("again: %s, %v", again, err)
			}
			m.Sum = "h1:" + base64.StdEncoding.EncodeToString(make([]byte, 32))
			_, _, err = r.FetchGoMod(ctx, m)
			wantBad(t, err, "sum", sum)
			m = module
			m.Version = "v1.0.1"
			_, _, err = r.FetchGoMod(ctx, m)
			wantBad(t, err, "v1.0.1")
			for _, m := range []GoMod{{Path: "example.com/Mod", Version: "latest"}, {Path: "../x", Version: "v1.0.0"}, {Path: "example.com/Mod", Version: "v1.0.0", Sum: "md5:x"}} {
				_, _, err = r.FetchGoMod(ctx, m)
				wantBad(t, err)
			}
		})
	}
}

func TestFetchGoModEnds(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	defer silent.Close()
	moduleProxy(t, nil, "")
	t.Setenv("GOPROXY", silent.URL)
	r := open(t)
	r.stall = 20 * time.Millisecond
	_, _, err := r.FetchGoMod(t.Context(), GoMod{Path: "example.com/Mod", Version: "v1.0.0"})
	var bad *Bad
	if err == nil || errors.As(err, &bad) || !strings.Contains(err.Error(), "not done within 200ms") {
		t.Errorf("got %v", err)
	}
}
