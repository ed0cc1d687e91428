package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// A layer lays a tree over what a state left: nothing runs in the workspace meanwhile, so what it sees by lstat stays true.
type layer struct {
	root   string // the workspace
	home   string
	stamp  time.Time // laid files are at least as new: make and cargo compare times
	newest time.Time // of laid files, where that may be in the future
	blobs  func([]digest.Digest) ([][]byte, error)
	reset  []string
}

// lay makes the workspace what s wants, in the order that protects a verdict: the tree, the protected paths, the reports, the files.
func (l *layer) lay(s *spec) error {
	if err := l.differing(s); err != nil {
		return fmt.Errorf("look at protected paths: %w", err)
	}
	if err := l.write(s.Lay); err != nil {
		return fmt.Errorf("lay the tree: %w", err)
	}
	if len(s.Reset.Patterns)+len(s.Wanted) > 0 {
		if err := l.resetPaths(s); err != nil {
			return fmt.Errorf("reset protected paths: %w", err)
		}
	}
	for _, p := range s.Reports {
		if err := l.remove(p); err != nil {
			return fmt.Errorf("remove the report %s: %w", p, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		root, p := l.root, name
		if below, ok := belowHome(name); ok {
			root, p = l.home, below
		}
		if err := l.put(root, p, 0o644, s.Files[name]); err != nil {
			return fmt.Errorf("lay %s: %w", name, err)
		}
	}
	time.Sleep(min(time.Until(l.newest), time.Second)) // what is made of these files is to be newer
	return nil
}

// differing records the protected paths that are about to be laid over something else than the state was made of.
func (l *layer) differing(s *spec) error {
	for _, e := range s.Laid {
		if slices.Contains(s.Exempt, e.Path) {
			continue
		}
		same, err := sameAsTree(l.root, e)
		if err != nil {
			return err
		}
		if !same {
			l.reset = append(l.reset, e.Path)
		}
	}
	return nil
}

// has says whether there can be anything that matches a glob.
func (l *layer) has(globs []string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		base, _ := doublestar.SplitPattern(g)
		_, err := os.Lstat(filepath.Join(l.root, base))
		return err == nil
	})
}

// overlaid are the paths at which the tree that is to be laid has something in the place of what s.Watch matches.
func (l *layer) overlaid(s *spec) (paths []string) {
	for _, e := range s.Lay {
		watched := func(g string) bool {
			base, _ := doublestar.SplitPattern(g)
			return doublestar.MatchUnvalidated(g, e.Path) || base == e.Path || strings.HasPrefix(base, e.Path+"/")
		}
		if e.Mode == 0 || !slices.ContainsFunc(s.Watch, watched) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(l.root, e.Path)); err == nil {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// batch bounds how many blobs are in memory at once.
const batch = 64

// write writes or removes exactly the given paths.
func (l *layer) write(entries []entry) error {
	// Removals come first: a directory may give way to a file, and a file to a directory.
	var writes []entry
	for _, e := range entries {
		if e.Mode != 0 {
			writes = append(writes, e)
			continue
		}
		if err := l.remove(e.Path); err != nil {
			return err
		}
		l.prune(e.Path)
	}
	for len(writes) > 0 {
		n := min(batch, len(writes))
		ids := make([]digest.Digest, n)
		for i, e := range writes[:n] {
			ids[i] = e.Blob
		}
		contents, err := l.blobs(ids)
		if err != nil {
			return err
		}
		for i, e := range writes[:n] {
			if err := l.put(l.root, e.Path, e.Mode, contents[i]); err != nil {
				return err
			}
		}
		writes = writes[n:]
	}
	return nil
}

// remove removes one path, if no link leads to it.
func (l *layer) remove(path string) error {
	if throughLink(l.root, path) {
		return nil
	}
	return removeAll(filepath.Join(l.root, path))
}

// prune removes the directories above path that hold nothing any more: a tree has no empty ones.
func (l *layer) prune(path string) {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(l.root, dir)) != nil {
			return
		}
	}
}

// put writes one path anew, whatever was there.
func (l *layer) put(root, path string, mode uint32, content []byte) error {
	if !filepath.IsLocal(path) {
		return fmt.Errorf("%q leaves its directory", path)
	}
	if err := makeParents(root, path); err != nil {
		return err
	}
	full := filepath.Join(root, path)
	was, _ := os.Lstat(full)
	if err := removeAll(full); err != nil {
		return err
	}
	if mode == task.ModeLink {
		return os.Symlink(string(content), full)
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if cerr := f.Chmod(fs.FileMode(mode) & 0o777); err == nil {
		err = cerr
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	// The kernel stamps files with its last tick, which an object built in that tick would equal.
	now := time.Now()
	if now.Before(l.stamp) {
		now = l.stamp
	}
	if was != nil && was.Size() == int64(len(content)) && was.ModTime().Unix() == now.Unix() { // Python would take the bytecode of what was there
		now = time.Unix(now.Unix()+1, 0)
		l.newest = now
	}
	return os.Chtimes(full, now, now)
}

// resetPaths makes every path that matches s.Reset what it is in the tree.
func (l *layer) resetPaths(s *spec) error {
	r := resetter{spec: s, exempt: map[string]bool{}}
	for _, p := range s.Exempt {
		r.exempt[p] = true
	}
	if err := r.find(l.root, ""); err != nil {
		return err
	}
	for _, p := range r.additions {
		// The directories around it stay: they are the build's.
		if err := l.remove(p); err != nil {
			return err
		}
	}
	l.reset = append(l.reset, r.additions...)
	for _, p := range r.bytecode { // nothing is lost, so that nothing is said
		if err := l.remove(p); err != nil {
			return err
		}
	}
	var wrong []entry
	for _, e := range s.Wanted {
		if r.exempt[e.Path] {
			continue
		}
		same, err := sameAsTree(l.root, e)
		if err != nil {
			return err
		}
		if !same {
			wrong = append(wrong, e)
			l.reset = append(l.reset, e.Path)
		}
	}
	slices.Sort(l.reset)
	l.reset = slices.Compact(l.reset)
	return l.write(wrong)
}

// A resetter finds the additions that are to go.
type resetter struct {
	spec      *spec
	exempt    map[string]bool
	additions []string
	bytecode  []string // of protected sources, which may be another's
}

// find looks below dir. A directory that matches goes as a whole if neither the tree nor an exemption has anything in it.
func (r *resetter) find(root, dir string) error {
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if nameless(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := e.Name()
		if dir != "" {
			p = dir + "/" + p
		}
		if !e.IsDir() {
			r.look(p, e.Type()&fs.ModeSymlink != 0)
			continue
		}
		if r.matches(p) && !r.inside(p) {
			r.additions = append(r.additions, p)
			continue
		}
		if err := r.find(root, p); err != nil {
			return err
		}
	}
	return nil
}

// look finds what is to become of a file or link.
func (r *resetter) look(p string, link bool) {
	source, bytecode := run.Shadowed(p, link)
	switch {
	case r.wanted(p) || r.exempt[p]:
	case r.matches(p):
		r.additions = append(r.additions, p)
	case link && path.Base(p) == "__pycache__" && r.inside(path.Dir(p)):
		r.bytecode = append(r.bytecode, p)
	case !r.wanted(source) || r.exempt[source]:
	case bytecode:
		r.bytecode = append(r.bytecode, p)
	default:
		r.additions = append(r.additions, p)
	}
}

func (r *resetter) matches(p string) bool {
	return !r.exempt[p] && r.spec.Reset.Match(p)
}

func (r *resetter) wanted(p string) bool {
	_, ok := slices.BinarySearchFunc(r.spec.Wanted, p, func(e entry, p string) int { return cmp.Compare(e.Path, p) })
	return ok
}

// inside says whether the tree, among the protected paths, or an exemption has something below p.
func (r *resetter) inside(p string) bool {
	p += "/"
	i, _ := slices.BinarySearchFunc(r.spec.Wanted, p, func(e entry, p string) int { return cmp.Compare(e.Path, p) })
	if i < len(r.spec.Wanted) && strings.HasPrefix(r.spec.Wanted[i].Path, p) {
		return true
	}
	return slices.ContainsFunc(r.spec.Exempt, func(x string) bool { return strings.HasPrefix(x, p) })
}

// sameAsTree compares a path of the workspace with the tree, by content. Mode 0 stands for nothing.
func sameAsTree(root string, e entry) (bool, error) {
	if e.Mode == 0 {
		return vacant(root, e.Path)
	}
	if throughLink(root, e.Path) {
		return false, nil
	}
	full := filepath.Join(root, e.Path)
	fi, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fi.IsDir() || treeMode(fi) != e.Mode || hollow(fi) {
		return false, nil
	}
	content, err := readEntry(full, e.Mode)
	if err != nil {
		return false, err
	}
	return digest.OfObject("blob", content) == e.Blob, nil
}

// vacant says whether nothing is at a path, and no link or file on the way to it.
func vacant(root, path string) (bool, error) {
	at := root
	for part := range strings.SplitSeq(path, "/") {
		at = filepath.Join(at, part)
		fi, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil || !fi.IsDir() {
			return false, err
		}
	}
	return false, nil
}
