package tree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pbuild/engine/digest"
)

// Patch returns the difference from a to b, over only the paths that keep accepts (nil: all), as `git diff --binary --full-index` writes it, renames not detected.
func (r *Repo) Patch(ctx context.Context, a, b digest.Digest, keep func(path string) bool) ([]byte, error) {
	out, err := r.patch(ctx, a, b, keep)
	if err != nil {
		return nil, fmt.Errorf("tree: difference from %s to %s: %w", a, b, err)
	}
	return out, nil
}

func (r *Repo) patch(ctx context.Context, a, b digest.Digest, keep func(path string) bool) ([]byte, error) {
	if keep != nil {
		all, err := r.diff(ctx, a, b)
		if err != nil {
			return nil, err
		}
		// The tree between a and b that has just the accepted changes: what git prints of it needs no cutting.
		kept := slices.DeleteFunc(all, func(e Entry) bool { return !keep(e.Path) })
		if b, err = r.change(ctx, a, kept); err != nil {
			return nil, err
		}
	}
	if a == b {
		return []byte{}, nil
	}
	out, err := r.run(ctx, call{}, "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", name(a), name(b))
	if err != nil || !bytes.Contains(out, []byte(" /")) {
		return out, err
	}
	changed, err := r.diff(ctx, a, b)
	return quoteHeaders(out, changed), err
}

// quoteHeaders puts quotes around names with a space before a slash. git writes them without, and cannot read its own header where the lines with --- and +++
// are missing (an empty file, a binary one, a change of mode). A line of content never begins like a header.
func quoteHeaders(patch []byte, changed []Entry) []byte {
	for _, e := range changed {
		if !strings.Contains(e.Path, " /") {
			continue
		}
		bare := []byte("diff --git a/" + e.Path + " b/" + e.Path + "\n")
		quoted := []byte(`diff --git "a/` + e.Path + `" "b/` + e.Path + "\"\n")
		if rest, ok := bytes.CutPrefix(patch, bare); ok {
			patch = slices.Concat(quoted, rest)
		}
		patch = bytes.ReplaceAll(patch, slices.Concat([]byte("\n"), bare), slices.Concat([]byte("\n"), quoted))
	}
	return patch
}

// Apply applies a patch strictly, as `git apply --cached`: offsets yes, fuzz no. A patch that does not apply is a *Rejection, as is one that
// would make a path or link that no checkout could lay out where it says.
func (r *Repo) Apply(ctx context.Context, base digest.Digest, patch []byte) (digest.Digest, error) {
	id, err := r.apply(ctx, base, patch)
	var rejected *Rejection
	if err != nil && !errors.As(err, &rejected) {
		err = fmt.Errorf("tree: apply a patch to %s: %w", base, err)
	}
	return id, err
}

func (r *Repo) apply(ctx context.Context, base digest.Digest, patch []byte) (digest.Digest, error) {
	var none digest.Digest
	if err := checkBinary(patch); err != nil {
		return none, err
	}
	index, err := r.index(ctx, base)
	if err != nil {
		return none, err
	}
	dir, err := r.scratch()
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "index")
	if err := os.WriteFile(file, index, 0o600); err != nil {
		return none, err
	}
	env := []string{"GIT_INDEX_FILE=" + file}
	if _, err := r.run(ctx, call{env: env, stdin: bytes.NewReader(patch)}, "apply", "--cached", "--whitespace=nowarn", "-"); err != nil {
		return none, rejection(err)
	}
	out, err := r.run(ctx, call{env: env}, "write-tree")
	if err != nil {
		return none, err
	}
	id, err := parseID(out)
	if err != nil {
		return none, err
	}
	if err := r.checkChange(ctx, base, id); err != nil {
		return none, err
	}
	r.from(base, id)
	return id, nil
}

// checkChange looks at what a patch made, not at what it says: however git reads a patch, nothing else can be in the tree.
func (r *Repo) checkChange(ctx context.Context, base, tree digest.Digest) error {
	changed, err := r.diff(ctx, base, tree)
	if err != nil {
		return err
	}
	var reasons []string
	var links []Entry
	for _, e := range changed {
		if e.Mode == 0 {
			continue
		}
		if err := checkPath(e.Path); err != nil {
			reasons = append(reasons, err.Error())
		}
		switch e.Mode {
		case modeSubmodule:
			reasons = append(reasons, fmt.Sprintf("path %q is a submodule", e.Path))
		case modeLink:
			links = append(links, e)
		}
	}
	targets, err := r.readAll(ctx, blobs(links))
	if err != nil {
		return err
	}
	for i, e := range links {
		if err := checkLink(e.Path, targets[i]); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	if reasons != nil {
		return &Rejection{reasons}
	}
	return nil
}

// maxBinary bounds what one binary hunk may unpack to: git takes that much memory at once, on the patch's word.
const maxBinary = 1 << 30

// checkBinary refuses binary hunks over maxBinary. Lines of text hunks never begin with a letter.
func checkBinary(patch []byte) error {
	for line := range bytes.Lines(patch) {
		for _, word := range []string{"literal ", "delta "} {
			size, ok := bytes.CutPrefix(line, []byte(word))
			if !ok {
				continue
			}
			n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 10, 64)
			if n > maxBinary || errors.Is(err, strconv.ErrRange) {
				return &Rejection{[]string{fmt.Sprintf("a binary hunk of %s bytes is larger than %d", bytes.TrimSpace(size), maxBinary)}}
			}
		}
	}
	return nil
}

// worldly begins git's errors where the machine is to blame, not the patch. So it is wherever git dies of one that is fatal: it only errs over patches.
var worldly = []string{"failed to read", "the necessary postimage", "unable to write", "unable to create", "unable to open object", "unable to read", "unable to append", "failed to write", "insufficient permission",
	"out of memory", "unable to normalize object directory", "cannot create", "not a git repository", "index file", "bad index file", "repository version"}

// ofPaths ends errors over a patch that begin with a path, which may begin like those.
var ofPaths = []string{": patch does not apply", ": does not exist in index", ": already exists in index", ": does not match index"}

// rejection turns git's refusal of a patch into a *Rejection, and passes on what is not one.
func rejection(err error) error {
	var g *gitError
	if !errors.As(err, &g) {
		return err
	}
	if g.exit < 0 { // a signal: some patches trip git's own assertions, but a kill is the world's
		if how := g.err.Error(); strings.Contains(how, "aborted") || strings.Contains(how, "segmentation fault") {
			return &Rejection{[]string{"git apply breaks down over this patch"}}
		}
		return err
	}
	var reasons []string
	for line := range strings.Lines(g.stderr) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal: ") {
			return err
		}
		text, ok := strings.CutPrefix(line, "error: ")
		if !ok {
			continue
		}
		lower := strings.ToLower(text)
		if slices.ContainsFunc(worldly, func(w string) bool { return strings.HasPrefix(lower, w) }) &&
			!slices.ContainsFunc(ofPaths, func(w string) bool { return strings.HasSuffix(text, w) }) {
			return err
		}
		reasons = append(reasons, strings.ToValidUTF8(text, "\uFFFD"))
	}
	if reasons == nil {
		return err
	}
	const most = 50
	if len(reasons) > most {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", len(reasons)-most))
	}
	return &Rejection{reasons}
}

// indexCache keeps the index files of the last few base trees: a candidate's private index is a copy.
type indexCache struct {
	sync.Mutex
	uses  int
	slots map[digest.Digest]*indexSlot
}

type indexSlot struct {
	sync.Mutex // held while the file is made, so that it is made once
	file       []byte
	used       int
}

const indexCacheSize = 32

// index returns the bytes of an index file that holds a tree. They are shared: they must not be changed.
func (r *Repo) index(ctx context.Context, base digest.Digest) ([]byte, error) {
	slot := r.indexes.slot(base)
	slot.Lock()
	defer slot.Unlock()
	if slot.file != nil {
		return slot.file, nil
	}
	dir, err := r.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "index")
	if _, err := r.run(ctx, call{env: []string{"GIT_INDEX_FILE=" + file}}, "read-tree", name(base)); err != nil {
		return nil, err
	}
	slot.file, err = os.ReadFile(file)
	return slot.file, err
}

func (c *indexCache) slot(base digest.Digest) *indexSlot {
	c.Lock()
	defer c.Unlock()
	s := c.slots[base]
	if s == nil {
		if c.slots == nil {
			c.slots = make(map[digest.Digest]*indexSlot)
		}
		if len(c.slots) >= indexCacheSize {
			var oldest digest.Digest
			for id, s := range c.slots {
				if o := c.slots[oldest]; o == nil || cmp.Less(s.used, o.used) {
					oldest = id
				}
			}
			delete(c.slots, oldest)
		}
		s = new(indexSlot)
		c.slots[base] = s
	}
	c.uses++
	s.used = c.uses
	return s
}
