package tree

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"pbuild/engine/digest"
)

// An item is one line of a git tree object. Directories have mode modeDir here and nowhere else.
type item struct {
	name string
	mode uint32
	id   digest.Digest
}

const modeDir = 0o40000

// modeOf maps git's modes, of which old histories hold more than today's git writes.
func modeOf(git uint32) uint32 {
	switch git & 0o170000 {
	case modeDir, modeLink, modeSubmodule:
		return git & 0o170000
	}
	if git&0o100 != 0 {
		return modeExecutable
	}
	return modeFile
}

// gitMode is how a tree object spells a mode.
func gitMode(mode uint32) string {
	switch mode {
	case modeDir:
		return "40000"
	case modeLink:
		return "120000"
	case modeSubmodule:
		return "160000"
	case modeExecutable:
		return "100755"
	}
	return "100644"
}

// parseTree reads a tree object. odd says that git would write the same tree otherwise today.
func parseTree(b []byte) (items []item, odd bool, err error) {
	for len(b) > 0 {
		space, nul := bytes.IndexByte(b, ' '), bytes.IndexByte(b, 0)
		if space < 0 || nul < space || len(b) < nul+21 {
			return nil, false, fmt.Errorf("a tree object is cut short")
		}
		mode, err := strconv.ParseUint(string(b[:space]), 8, 32)
		if err != nil {
			return nil, false, fmt.Errorf("a tree object has mode %q", b[:space])
		}
		it := item{name: string(b[space+1 : nul]), mode: modeOf(uint32(mode))}
		copy(it.id[len(it.id)-sha1.Size:], b[nul+1:])
		odd = odd || gitMode(it.mode) != string(b[:space])
		items = append(items, it)
		b = b[nul+1+sha1.Size:]
	}
	return items, odd, nil
}

// formatTree writes a tree object; git sorts a directory as if its name ended in a slash.
func formatTree(items []item) []byte {
	key := func(it item) string {
		if it.mode == modeDir {
			return it.name + "/"
		}
		return it.name
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, it := range items {
		b.WriteString(gitMode(it.mode) + " " + it.name + "\x00")
		b.Write(it.id[len(it.id)-sha1.Size:])
	}
	return b.Bytes()
}

// A rawObject is an object that is to be stored.
type rawObject struct {
	id      digest.Digest
	kind    string
	content []byte
}

func newObject(kind string, content []byte) rawObject {
	return rawObject{digest.OfObject(kind, content), kind, content}
}

// put stores objects as git would, those that are not there, in the given order: what an object names comes before it. A loose file appears whole, by
// rename; no process is started for it.
func (r *Repo) put(ctx context.Context, objects ...rawObject) error {
	ids := make([]digest.Digest, len(objects))
	for i, o := range objects {
		ids[i] = o.id
	}
	absent, err := r.absent(ctx, ids)
	if err != nil {
		return err
	}
	var z deflater
	for _, o := range objects {
		if len(absent) == 0 {
			return nil
		}
		if o.id != absent[0] {
			continue
		}
		absent = absent[1:]
		if err := r.putLoose(o, &z); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) putLoose(o rawObject, z *deflater) error {
	hexID := name(o.id)
	dir := filepath.Join(r.dir, "objects", hexID[:2])
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	return replace(filepath.Join(dir, hexID[2:]), z.object(o), 0o444)
}

// A deflater writes objects as loose files hold them. Its memory, near a megabyte, serves one after the other.
type deflater struct {
	w   *zlib.Writer
	out bytes.Buffer
}

// object returns o deflated, valid until the next call.
func (z *deflater) object(o rawObject) []byte {
	z.out.Reset()
	if z.w == nil {
		z.w, _ = zlib.NewWriterLevel(&z.out, zlib.BestSpeed)
	} else {
		z.w.Reset(&z.out)
	}
	fmt.Fprintf(z.w, "%s %d\x00", o.kind, len(o.content))
	z.w.Write(o.content)
	z.w.Close()
	return z.out.Bytes()
}

// absent returns those of ids that are not there, in order.
func (r *Repo) absent(ctx context.Context, ids []digest.Digest) ([]digest.Digest, error) {
	ask, err := names(ids)
	if err != nil {
		return nil, err
	}
	var out []digest.Digest
	err = r.infos.each(ctx, ask, func(i int, o object) error {
		if o.kind == "missing" {
			out = append(out, ids[i])
		}
		return nil
	})
	return out, err
}

// items returns the content of each of the given trees, in order. The results are shared: they must not be changed.
func (r *Repo) items(ctx context.Context, ids []digest.Digest) ([][]item, error) {
	out := make([][]item, len(ids))
	var ask []digest.Digest
	var where []int
	for i, id := range ids {
		if have, ok := r.dirs.get(id); ok {
			out[i] = have
		} else {
			ask, where = append(ask, id), append(where, i)
		}
	}
	err := r.readTrees(ctx, ask, func(i int, items []item, _ bool) {
		out[where[i]] = items
		r.dirs.put(ask[i], items)
	})
	return out, err
}

// readTrees reads tree objects from the disk.
func (r *Repo) readTrees(ctx context.Context, ids []digest.Digest, f func(i int, items []item, odd bool)) error {
	ask, err := names(ids)
	if err != nil {
		return err
	}
	return r.objects.each(ctx, ask, func(i int, o object) error {
		if o.kind != "tree" {
			return fmt.Errorf("object %s is %s, not a tree", ids[i], o.kind)
		}
		b, err := io.ReadAll(o.body)
		if err != nil {
			return err
		}
		items, odd, err := parseTree(b)
		if err != nil {
			return fmt.Errorf("%s: %w", ids[i], err)
		}
		f(i, items, odd)
		return nil
	})
}

// eachDir reads every directory of a tree from the disk, equal ones once.
func (r *Repo) eachDir(ctx context.Context, tree digest.Digest, f func(items []item, odd bool)) error {
	seen := map[digest.Digest]bool{}
	for level := []digest.Digest{tree}; len(level) > 0; {
		var next []digest.Digest
		err := r.readTrees(ctx, level, func(_ int, items []item, odd bool) {
			for _, it := range items {
				if it.mode == modeDir && !seen[it.id] {
					seen[it.id] = true
					next = append(next, it.id)
				}
			}
			f(items, odd)
		})
		if err != nil {
			return err
		}
		level = next
	}
	return nil
}

// emptyTree is the id of the tree with nothing in it.
var emptyTree = digest.OfObject("tree", nil)

// parseID reads an id that git printed.
func parseID(out []byte) (digest.Digest, error) {
	d, err := digest.OfGit(string(bytes.TrimSpace(out)))
	if err != nil {
		return d, fmt.Errorf("git printed: %w", err)
	}
	return d, nil
}
