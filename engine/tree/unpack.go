package tree

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// An unpacker makes a tree of an archive's entries, in the order in which they come.
type unpacker struct {
	ctx     context.Context
	im      *importer
	strip   int
	left    int64 // bytes that may still come
	count   int
	entries map[string]Entry
	names   map[string]string // the archive's own names, for messages
	targets map[string]string // of links
}

func newUnpacker(ctx context.Context, r *Repo, strip int) *unpacker {
	return &unpacker{ctx: ctx, im: r.importer(ctx), strip: strip, left: r.limit,
		entries: map[string]Entry{}, names: map[string]string{}, targets: map[string]string{}}
}

// tar takes every entry of a tar.
func (u *unpacker) tar(t *tar.Reader) error {
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // no file: its name says where it was made
			continue
		}
		p, err := u.place(h.Name)
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
			mode := uint32(modeFile)
			if h.Mode&0o100 != 0 {
				mode = modeExecutable
			}
			err = u.file(p, mode, h.Size, t)
		case tar.TypeDir:
			err = nil // only files make directories
		case tar.TypeSymlink:
			err = u.link(p, h.Linkname)
		case tar.TypeLink:
			err = u.hardLink(p, h.Linkname)
		case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
			err = badf("entry %q is a device or pipe", h.Name)
		default:
			err = badf("entry %q is of type %q, which pbuild does not know", h.Name, h.Typeflag)
		}
		if err != nil {
			return u.about(h.Name, err)
		}
	}
}

// zipEntry takes one entry of a zip, under the given name.
func (u *unpacker) zipEntry(f *zip.File, as string) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	p, err := u.place(as)
	if err != nil || f.Mode().IsDir() || strings.HasSuffix(as, "/") {
		return err
	}
	if f.Flags&1 != 0 {
		return badf("entry %q is encrypted", f.Name)
	}
	kind := f.Mode().Type()
	if kind != 0 && kind != fs.ModeSymlink {
		return badf("entry %q is a device or pipe", f.Name)
	}
	if f.UncompressedSize64 > uint64(max(u.left, 0)) {
		return tooLarge(u.im.repo.limit)
	}
	rd, err := f.Open()
	if err != nil {
		return badf("entry %q cannot be read: %v", f.Name, err)
	}
	defer rd.Close()
	if kind == fs.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(rd, maxPath+1))
		if err != nil {
			return u.about(f.Name, unreadable(err))
		}
		return u.about(f.Name, u.link(p, string(target)))
	}
	mode := uint32(modeFile)
	if f.Mode()&0o100 != 0 {
		mode = modeExecutable
	}
	return u.about(f.Name, u.file(p, mode, int64(f.UncompressedSize64), rd))
}

// unreadable turns what a decoder says into a *Bad: the bytes are the right ones, for their digest was checked. What git or ctx says stays.
func unreadable(err error) error {
	var bad *Bad
	if errors.As(err, &bad) {
		return err
	}
	return badf("the archive cannot be read: %v", err)
}

// about names the entry in an error about it.
func (u *unpacker) about(entry string, err error) error {
	var bad *Bad
	if errors.As(err, &bad) && !strings.Contains(bad.Reason, fmt.Sprintf("%q", entry)) {
		return badf("entry %q: %s", entry, bad.Reason)
	}
	return err
}

// place returns where an entry goes in the tree; "" is nowhere, for it is stripped.
func (u *unpacker) place(name string) (string, error) {
	if u.count++; u.count > archiveEntries {
		return "", badf("the archive has more than %d entries", archiveEntries)
	}
	return u.strippedPath(name)
}

func (u *unpacker) strippedPath(name string) (string, error) {
	if strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' && (len(name) == 2 || name[2] == '/' || name[2] == '\\') {
		return "", badf("entry %q has an absolute name", name)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", badf("entry %q leaves the tree", name)
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) <= u.strip {
		return "", nil
	}
	p := strings.Join(parts[u.strip:], "/")
	if err := checkPath(p); err != nil {
		return "", badf("entry %q: %v", name, err)
	}
	if u.names[p] == "" {
		u.names[p] = name
	}
	return p, nil
}

// file takes a regular file's content; p "" throws it away.
func (u *unpacker) file(p string, mode uint32, size int64, content io.Reader) error {
	if size < 0 || size > u.left {
		return tooLarge(u.im.repo.limit)
	}
	u.left -= size
	if p == "" {
		return nil
	}
	guarded := &sourceReader{r: content}
	id, err := u.im.blob(size, guarded)
	if guarded.err != nil && guarded.err != io.EOF {
		return unreadable(guarded.err)
	}
	if err != nil {
		return err
	}
	return u.add(Entry{p, mode, id})
}

// A sourceReader remembers that it was the archive that failed, and not git.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}

func (u *unpacker) link(p, target string) error {
	if p == "" {
		return nil
	}
	if err := checkLink(p, []byte(target)); err != nil {
		return err
	}
	if strings.HasPrefix(target, "/") {
		return badf("link %q points to %q, out of the tree", p, target)
	}
	id, err := u.im.blob(int64(len(target)), strings.NewReader(target))
	if err != nil {
		return err
	}
	if err := u.add(Entry{p, modeLink, id}); err != nil {
		return err
	}
	u.targets[p] = target
	return nil
}

// hardLink makes a second entry of one that came before.
func (u *unpacker) hardLink(p, name string) error {
	to, err := u.strippedPath(name)
	if err != nil || p == "" {
		return err
	}
	e, ok := u.entries[to]
	if !ok {
		return badf("hard link %q is to %q, which did not come before it", p, name)
	}
	if e.Mode == modeLink {
		u.targets[p] = u.targets[to]
	}
	return u.add(Entry{p, e.Mode, e.Blob})
}

func (u *unpacker) add(e Entry) error {
	if have, ok := u.entries[e.Path]; ok && have != e {
		return badf("entry %q comes twice, with different content", u.names[e.Path])
	}
	u.entries[e.Path] = e
	return nil
}

// finish looks at the whole, which no entry alone shows, and makes the tree.
func (u *unpacker) finish() (digest.Digest, error) {
	var none digest.Digest
	entries := make([]Entry, 0, len(u.entries))
	for p, e := range u.entries {
		entries = append(entries, e)
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, ok := u.entries[dir]; ok {
				return none, badf("entry %q passes %q, which is a file or link", u.names[p], dir)
			}
		}
	}
	if len(entries) == 0 && u.strip > 0 {
		return none, badf("strip = %d leaves nothing of the archive", u.strip)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	for _, e := range entries {
		if e.Mode == modeLink && !u.stays(path.Dir(e.Path), u.targets[e.Path], 0) {
			return none, badf("link %q points to %q, out of the tree", u.names[e.Path], u.targets[e.Path])
		}
	}
	if err := u.im.finish(); err != nil {
		return none, err
	}
	tree, err := u.im.repo.change(u.ctx, emptyTree, entries)
	if err != nil {
		return none, err
	}
	return tree, u.im.repo.checkLFS(u.ctx, tree, tree)
}

// stays says whether a target, seen from dir, leads nowhere outside, over whatever links it passes. A circle leads nowhere.
func (u *unpacker) stays(dir, target string, depth int) bool {
	_, ok := u.follow(dir, target, &depth)
	return ok
}

const maxLinks = 40

func (u *unpacker) follow(dir, target string, passed *int) (string, bool) {
	if strings.HasPrefix(target, "/") {
		return "", false
	}
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
			continue
		case "..":
			if dir == "." {
				return "", false
			}
			dir = path.Dir(dir)
			continue
		}
		next := path.Join(dir, part)
		to, isLink := u.targets[next]
		if !isLink {
			dir = next
			continue
		}
		if *passed++; *passed > maxLinks {
			return dir, true // no file system follows so many
		}
		var ok bool
		if dir, ok = u.follow(dir, to, passed); !ok {
			return "", false
		}
	}
	return dir, true
}
