package tree

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pbuild/engine/digest"
)

// What is damaged in a pack is lost, and nothing else; a pack of which only the index is damaged loses nothing.
func TestVerifyMendsPacks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	first, second := files{"a/b": strings.Repeat("content", 100), "c": "shared"}, files{"d": "other", "c": "shared"}
	for _, c := range []struct {
		what   string
		hurt   func(t *testing.T, r *Repo, pack string)
		broken int
	}{
		{"nothing", func(*testing.T, *Repo, string) {}, 0},
		{"an object", func(t *testing.T, r *Repo, pack string) {
			flip(t, pack, offset(t, r, pack, digest.OfObject("blob", []byte(first["a/b"])))+8)
		}, 1},
		{"the trailer", func(t *testing.T, r *Repo, pack string) { flip(t, pack, fileSize(t, pack)-1) }, 0},
		{"the header", func(t *testing.T, r *Repo, pack string) { flip(t, pack, 0) }, 2},
		{"the end", func(t *testing.T, r *Repo, pack string) { truncate(t, pack, fileSize(t, pack)-8) }, 0},
		{"most", func(t *testing.T, r *Repo, pack string) { truncate(t, pack, 20) }, 2},
		{"the index", func(t *testing.T, r *Repo, pack string) {
			index := strings.TrimSuffix(pack, ".pack") + ".idx"
			flip(t, index, fileSize(t, index)/2)
		}, 0},
		{"no index", func(t *testing.T, r *Repo, pack string) {
			if err := os.Remove(strings.TrimSuffix(pack, ".pack") + ".idx"); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"a kill while it was unpacked", func(t *testing.T, r *Repo, pack string) {
			if err := os.Rename(pack, pack+away); err != nil {
				t.Fatal(err)
			}
		}, 0},
		{"the index of packs", func(t *testing.T, r *Repo, pack string) {
			git(t, r.dir, "multi-pack-index", "write")
			flip(t, filepath.Join(filepath.Dir(pack), "multi-pack-index"), 0)
		}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := open(t)
			trees := []digest.Digest{r.mustMake(t, first), r.mustMake(t, second)}
			if err := r.Keep(ctx, trees...); err != nil {
				t.Fatal(err)
			}
			if err := r.Drop(ctx, func(digest.Digest) bool { return true }); err != nil {
				t.Fatal(err)
			}
			packs, err := filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*.pack"))
			if err != nil || len(packs) != 1 {
				t.Fatalf("the packs are %v, %v", packs, err)
			}
			c.hurt(t, r, packs[0])
			r, err = Open(ctx, r.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			broken, err := r.Verify(ctx, trees)
			if err != nil || len(broken) != c.broken {
				t.Fatalf("broken are %v, %v; want %d", broken, err, c.broken)
			}
			for i, f := range []files{first, second} {
				if broken[trees[i]] == nil {
					wantFiles(t, r, trees[i], f)
				}
				if err := r.Keep(ctx, r.mustMake(t, f)); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := r.Shares(ctx, func(digest.Digest) bool { return true }); err != nil {
				t.Error(err)
			}
			if err := r.Drop(ctx, func(digest.Digest) bool { return true }); err != nil {
				t.Error(err)
			}
			git(t, r.dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// A pack is taken for spoiled only by what git says of its content: with the disk full it is kept.
func TestSpoiled(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{&gitError{exit: 1, stderr: "error: inflate: data stream error (incorrect data check)"}, true},
		{&gitError{exit: 128, stderr: "fatal: pack is corrupted (SHA1 mismatch)"}, true},
		{&gitError{exit: 128, stderr: "fatal: sha1 file '/x' write error. Out of diskspace: No space left on device"}, false},
		{&gitError{exit: 128, stderr: "fatal: unable to create '/x': Disk quota exceeded"}, false},
		{&gitError{exit: -1, stderr: "error: inflate"}, false},
		{os.ErrPermission, false},
	} {
		if got := spoiled(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

// offset is where an object begins in a pack.
func offset(t *testing.T, r *Repo, pack string, id digest.Digest) int64 {
	t.Helper()
	for line := range strings.Lines(git(t, r.dir, "verify-pack", "-v", pack)) { // name, kind, size, size in the pack, offset
		if f := strings.Fields(line); len(f) > 4 && f[0] == name(id) {
			at, err := strconv.ParseInt(f[4], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%s is not in %s", id, pack)
	return 0
}

func flip(t *testing.T, file string, at int64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		b[at] ^= 0xff
		err = replace(file, b, 0o444)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = replace(file, b[:size], 0o444)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func fileSize(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
