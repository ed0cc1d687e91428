package tree

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"pbuild/engine/digest"
)

// An importer stores many blobs with one `git fast-import`, which leaves one pack. Its methods are called from one goroutine.
type importer struct {
	repo *Repo
	ctx  context.Context
	seen map[digest.Digest]bool

	cmd *exec.Cmd // nil until there is something to store
	in  io.WriteCloser
	out *bufio.Writer
	bad bytes.Buffer
}

func (r *Repo) importer(ctx context.Context) *importer {
	return &importer{repo: r, ctx: ctx, seen: make(map[digest.Digest]bool)}
}

// small is the size up to which a blob is read whole, so that one that came already is not sent again.
const small = 1 << 20

// blob stores size bytes of content. Content that is shorter or longer is an error, after which the importer is of no use but to be aborted.
func (im *importer) blob(size int64, content io.Reader) (digest.Digest, error) {
	var id digest.Digest
	if size <= small {
		b := make([]byte, size)
		if _, err := io.ReadFull(content, b); err != nil {
			return id, shorter(err)
		}
		id = digest.OfObject("blob", b)
		if im.seen[id] {
			return id, atEnd(content)
		}
		if err := im.send(size, bytes.NewReader(b)); err != nil {
			return id, err
		}
		im.seen[id] = true
		return id, atEnd(content)
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	if err := im.send(size, io.TeeReader(io.LimitReader(content, size), h)); err != nil {
		return id, err
	}
	h.Sum(id[:len(id)-sha1.Size]) // appends within id
	im.seen[id] = true
	return id, atEnd(content)
}

func shorter(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errShort
	}
	return err
}

var (
	errShort = badf("the content is shorter than its stated size")
	errLong  = badf("the content is longer than its stated size")
)

// atEnd demands that nothing is left: it makes a zip verify its sum, too.
func atEnd(content io.Reader) error {
	var one [1]byte
	n, err := io.ReadFull(content, one[:])
	if n > 0 {
		return errLong
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func (im *importer) send(size int64, content io.Reader) error {
	if err := im.start(); err != nil {
		return err
	}
	fmt.Fprintf(im.out, "blob\ndata %d\n", size)
	n, err := io.Copy(im.out, content)
	if err != nil {
		return im.failed(err)
	}
	if n != size {
		return errShort
	}
	return im.out.WriteByte('\n')
}

func (im *importer) start() error {
	if im.cmd != nil {
		return nil
	}
	cmd := im.repo.command(im.ctx, call{}, "fast-import", "--quiet", "--done", "--depth=0")
	unbind(cmd) // it ends with its input
	cmd.Stderr = &limited{&im.bad, 16 << 10}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	im.cmd, im.in, im.out = cmd, in, bufio.NewWriterSize(in, 64<<10)
	return nil
}

// failed ends git, and prefers what it said to the broken pipe that it left.
func (im *importer) failed(err error) error {
	im.abort()
	if text := strings.TrimSpace(im.bad.String()); text != "" {
		return fmt.Errorf("git fast-import: %s", im.repo.clean(text))
	}
	return err
}

// finish waits until everything is stored.
func (im *importer) finish() error {
	if im.cmd == nil {
		return im.ctx.Err()
	}
	im.out.WriteString("done\n")
	err := im.out.Flush()
	im.in.Close()
	werr := im.cmd.Wait()
	im.cmd = nil
	if werr != nil {
		err = im.failed(werr)
	}
	if im.ctx.Err() != nil {
		return im.ctx.Err()
	}
	if err == nil {
		err = im.repo.packed(im.ctx)
	}
	return err
}

// abort throws away what finish has not stored; after finish it does nothing.
func (im *importer) abort() {
	if im.cmd == nil {
		return
	}
	im.cmd.Process.Kill()
	im.in.Close()
	im.cmd.Wait()
	im.cmd = nil
}

// packsTogether is how many packs come before they are indexed together: git looks an object that is not there up in every one.
const packsTogether = 24

// packed notes that a pack may have been made.
func (r *Repo) packed(ctx context.Context) error {
	r.packs.Lock()
	defer r.packs.Unlock()
	r.packs.fresh++
	if r.packs.fresh < packsTogether {
		return nil
	}
	r.packs.fresh = 0
	return r.indexPacks(ctx)
}

// indexPacks indexes packs together, if there are many.
func (r *Repo) indexPacks(ctx context.Context) error {
	packs, err := filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) < packsTogether {
		return err
	}
	if _, err := r.run(ctx, call{}, "multi-pack-index", "write"); err != nil {
		if _, locked := os.Stat(filepath.Join(r.dir, "objects", "pack", "multi-pack-index.lock")); locked == nil {
			return nil // another process does it
		}
		return err
	}
	return nil
}
