package host

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// An indexed is one path of a workspace that is not a directory. A file whose size and times are those of an older index has its digest too: the
// change time cannot be set, so equal times are equal content.
type indexed struct {
	Path   string
	Mode   uint32 // 0644, 0755 or task.ModeLink; 0 for a socket, pipe or device
	Size   int64
	Mtime  int64
	Ctime  int64
	Digest digest.Digest
	Hollow bool // known by its size alone
}

// index lists the files below root, sorted by path, with their digests, taking those it can from known.
func index(root string, known []indexed) ([]indexed, error) {
	var all []indexed
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case nameless(err):
			return fs.SkipDir
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		fi, err := d.Info()
		if nameless(err) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		all = append(all, indexed{Path: filepath.ToSlash(rel), Mode: treeMode(fi), Size: fi.Size(), Mtime: fi.ModTime().UnixNano(), Ctime: ctime(fi), Hollow: hollow(fi)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b indexed) int { return cmp.Compare(a.Path, b.Path) })
	var todo []int
	for i, j := 0, 0; i < len(all); i++ {
		for j < len(known) && known[j].Path < all[i].Path {
			j++
		}
		if j < len(known) && sameStat(&known[j], &all[i]) {
			all[i].Digest = known[j].Digest
		} else if all[i].Mode != 0 {
			todo = append(todo, i)
		}
	}
	return all, hashFiles(root, all, todo)
}

// nameless says whether err is that a path is longer than the kernel takes: a command can make such a one from inside, and nothing can name it.
func nameless(err error) bool { return errors.Is(err, syscall.ENAMETOOLONG) }

func sameStat(a, b *indexed) bool {
	return a.Path == b.Path && a.Mode == b.Mode && a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime
}

// treeMode is the mode that a git tree has for the file, 0 if it has none.
func treeMode(fi fs.FileInfo) uint32 {
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return task.ModeLink
	case !fi.Mode().IsRegular():
		return 0
	case fi.Mode()&0o100 != 0:
		return 0o755
	}
	return 0o644
}

// hashFiles fills in the digests of all[todo...], on every processor.
func hashFiles(root string, all []indexed, todo []int) error {
	const span = 16 // how many files a goroutine takes at a time
	var next atomic.Int64
	var g errgroup.Group
	for range min(runtime.GOMAXPROCS(0), 1+len(todo)/span) {
		g.Go(func() error {
			buf := make([]byte, 128<<10)
			for {
				at := int(next.Add(span)) - span
				if at >= len(todo) {
					return nil
				}
				for _, i := range todo[at:min(at+span, len(todo))] {
					d, err := hashFile(filepath.Join(root, all[i].Path), &all[i], buf)
					if err != nil {
						return err
					}
					all[i].Digest = d
				}
			}
		})
	}
	return g.Wait()
}

// A file above maxHashed bytes, and one above sparseFrom that is nearly all holes, is known by its size alone: a command makes terabytes of holes at once, and
// to read them takes hours.
const (
	maxHashed  = 1 << 30
	sparseFrom = 64 << 20
)

func hollow(fi fs.FileInfo) bool {
	return fi.Size() > maxHashed || fi.Size() > sparseFrom && allocated(fi) < fi.Size()/64
}

func hashFile(path string, x *indexed, buf []byte) (digest.Digest, error) {
	if x.Hollow {
		return digest.Of(fmt.Appendf(nil, "%d bytes", x.Size)), nil
	}
	if x.Mode == task.ModeLink {
		target, err := os.Readlink(path)
		return digest.Of([]byte(target)), err
	}
	f, err := os.Open(path)
	if err != nil {
		return digest.Digest{}, err
	}
	defer f.Close()
	h := sha256.New()
	for {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return digest.Digest(h.Sum(nil)), nil
		}
		if err != nil {
			return digest.Digest{}, err
		}
	}
}

// dateBack makes what a command dated in the future as new as now: what is laid over it is to be newer, or make and cargo would take a test that the
// command made for up to date.
func dateBack(root string, all []indexed) error {
	now := time.Now()
	for i := range all {
		if all[i].Mtime <= now.UnixNano() || all[i].Mode == 0 || all[i].Mode == task.ModeLink {
			continue
		}
		if err := os.Chtimes(filepath.Join(root, all[i].Path), now, now); err != nil {
			return err
		}
	}
	return nil
}

// manifest is the digest of sorted path, mode, size and content. Times are not in it.
func manifest(all []indexed) digest.Digest {
	var e digest.Encoder
	for i := range all {
		e.String("path", all[i].Path)
		e.Int("mode", int64(all[i].Mode))
		e.Int("size", all[i].Size)
		e.Digest("content", all[i].Digest)
	}
	return e.Sum()
}

// maxChanges bounds how many bytes a command may add to a tree in all: they are held in memory.
const maxChanges = 512 << 20

// changes says what became of before. A path that is no file nor link, whether it is new or took the place of one, is in skipped, with the reason; so is
// a file that is too large.
func changes(root string, before, after []indexed) (out []run.Change, skipped map[string]string, err error) {
	skipped = map[string]string{}
	var total int64
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case j == len(after) || i < len(before) && before[i].Path < after[j].Path:
			if before[i].Mode != 0 && !inGit(before[i].Path) {
				out = append(out, run.Change{Path: before[i].Path})
			}
			i++
			continue
		case i < len(before) && before[i].Path == after[j].Path:
			same := before[i].Mode == after[j].Mode && before[i].Digest == after[j].Digest
			was := before[i].Mode
			i++
			if same {
				j++
				continue
			}
			if after[j].Mode == 0 && was != 0 {
				out = append(out, run.Change{Path: after[j].Path})
			}
		}
		now := after[j]
		j++
		if inGit(now.Path) {
			continue
		}
		if now.Mode == 0 {
			skipped[now.Path] = "it is neither a file nor a link"
			continue
		}
		if total+now.Size > maxChanges {
			skipped[now.Path] = fmt.Sprintf("its %d bytes are more than a candidate may have (%d in all)", now.Size, maxChanges)
			continue
		}
		total += now.Size
		content, err := readEntry(filepath.Join(root, now.Path), now.Mode)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, run.Change{Path: now.Path, Mode: now.Mode, Content: content})
	}
	return out, skipped, nil
}

// altered are the paths of before that match a glob and are gone or have other content after.
func altered(before, after []indexed, globs []string) (paths []string) {
	if len(globs) == 0 {
		return nil
	}
	watched := run.Globs{Patterns: globs}
	j := 0
	for _, b := range before {
		for j < len(after) && after[j].Path < b.Path {
			j++
		}
		same := j < len(after) && after[j].Path == b.Path && after[j].Mode == b.Mode && after[j].Digest == b.Digest
		if !same && watched.Match(b.Path) {
			paths = append(paths, b.Path)
		}
	}
	return paths
}

// inGit says whether path is part of a git repository's own files, which no tree holds.
func inGit(path string) bool { return slices.Contains(strings.Split(path, "/"), ".git") }

func readEntry(path string, mode uint32) ([]byte, error) {
	if mode == task.ModeLink {
		target, err := os.Readlink(path)
		return []byte(target), err
	}
	return os.ReadFile(path)
}

// readIndex and writeIndex keep an index in a file. One that cannot be read is an empty one: the digests are computed again.
func readIndex(f *os.File) []indexed {
	var all []indexed
	if gob.NewDecoder(bufio.NewReader(f)).Decode(&all) != nil {
		return nil
	}
	return all
}

func writeIndex(f *os.File, all []indexed) error {
	w := bufio.NewWriter(f)
	if err := gob.NewEncoder(w).Encode(all); err != nil {
		return err
	}
	return w.Flush()
}
