package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"pbuild/engine/digest"
)

// A large blob's file is 8 header ("pbuildB", coding) and the content as coding says. It is named by its digest.
const largeMagic = "pbuildB"

func (b *blobs) largePath(d digest.Digest) string {
	name := d.Hex()
	return filepath.Join(b.dir, name[:2], name)
}

func (b *blobs) putLarge(d digest.Digest, content []byte) (digest.Digest, error) {
	if b.hasLarge(d) {
		return d, nil
	}
	err := b.writeLarge(b.compressible(content[:smallLimit]), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}, func() digest.Digest { return d })
	return d, err
}

func (b *blobs) putStream(first []byte, r io.Reader) (d digest.Digest, size int64, err error) {
	h := sha256.New()
	err = b.writeLarge(b.compressible(first), func(w io.Writer) error {
		w = io.MultiWriter(w, h)
		if _, err := w.Write(first); err != nil {
			return err
		}
		n, err := io.Copy(w, r)
		size = int64(len(first)) + n
		return err
	}, func() digest.Digest {
		d = digest.Digest(h.Sum(nil))
		return d
	})
	return d, size, err
}

// compressible guesses from its beginning whether compressing a blob helps.
func (b *blobs) compressible(first []byte) bool {
	return len(b.codec.compress(nil, first)) < len(first)-len(first)/8
}

// writeLarge writes a file aside, syncs it, and gives it the name that its digest has once fill has returned.
func (b *blobs) writeLarge(compress bool, fill func(io.Writer) error, name func() digest.Digest) (err error) {
	d := b.store.disk
	defer func() {
		if err != nil {
			err = fmt.Errorf("store: put a large blob: %w", err)
		}
	}()
	if b.store.lock == nil {
		return errReader
	}
	f, err := d.aside(filepath.Join(b.dir, "new", "blob"))
	if err != nil {
		return err
	}
	defer func() {
		if f != nil {
			f.Close()
			d.remove(f.Name())
		}
	}()
	if err := writeCoded(&diskWriter{disk: d, f: f}, compress, fill); err != nil {
		return err
	}
	dig := name()
	if b.hasLarge(dig) {
		return nil
	}
	if err := d.sync(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	path := b.largePath(dig)
	dir := filepath.Dir(path)
	made, err := makeDir(dir)
	if err != nil {
		return err
	}
	if err := d.rename(f.Name(), path); err != nil {
		return err
	}
	f = nil
	b.mu.Lock()
	b.dirty[dir] = true
	if made {
		b.dirty[b.dir] = true
	}
	delete(b.bad, dig)
	b.mu.Unlock()
	return nil
}

// hasLarge says whether a blob that is put is there. Who gave it its name may have been killed before syncing that, so it is done with this batch.
func (b *blobs) hasLarge(d digest.Digest) bool {
	if !b.Has(d) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty[filepath.Dir(b.largePath(d))] = true
	b.dirty[b.dir] = true
	return true
}

func writeCoded(w io.Writer, compress bool, fill func(io.Writer) error) error {
	coding := byte(codingRaw)
	if compress {
		coding = codingZstd
	}
	if _, err := w.Write(append([]byte(largeMagic), coding)); err != nil {
		return err
	}
	if !compress {
		return fill(w)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	if err := fill(z); err != nil {
		z.Close()
		return err
	}
	return z.Close()
}

// A diskWriter appends to a file through a disk.
type diskWriter struct {
	disk *disk
	f    *os.File
	off  int64
}

func (w *diskWriter) Write(p []byte) (int, error) {
	if err := w.disk.writeAt(w.f, p, w.off); err != nil {
		return 0, err
	}
	w.off += int64(len(p))
	return len(p), nil
}

// openLarge opens a blob that has its own file.
func (b *blobs) openLarge(d digest.Digest) (io.ReadCloser, error) {
	path := b.largePath(d)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &blobError{Digest: d, Missing: true}
	}
	if err != nil {
		return nil, fmt.Errorf("store: open blob %s: %w", d.Short(), err)
	}
	r := &largeReader{blobs: b, want: d, f: f, h: sha256.New()}
	var head [len(largeMagic) + 1]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:len(largeMagic)]) != largeMagic {
		r.Close()
		return nil, b.damaged(d, path, 0, errHeader)
	}
	switch head[len(largeMagic)] {
	case codingRaw:
		r.content = f
	case codingZstd:
		if r.zstd, err = zstd.NewReader(f, zstd.WithDecoderConcurrency(1)); err != nil {
			r.Close()
			return nil, b.damaged(d, path, 0, err)
		}
		r.content = r.zstd
	default:
		r.Close()
		return nil, b.damaged(d, path, 0, errVersion)
	}
	return r, nil
}

// A largeReader hashes what it reads, and at the end compares.
type largeReader struct {
	blobs   *blobs
	want    digest.Digest
	f       *os.File
	zstd    *zstd.Decoder
	content io.Reader
	h       hash.Hash
}

func (r *largeReader) Read(p []byte) (int, error) {
	n, err := r.content.Read(p)
	r.h.Write(p[:n])
	switch {
	case err == io.EOF && digest.Digest(r.h.Sum(nil)) != r.want:
		return n, r.blobs.damaged(r.want, r.f.Name(), 0, errContent)
	case err != nil && err != io.EOF:
		return n, r.blobs.damaged(r.want, r.f.Name(), 0, err)
	}
	return n, err
}

func (r *largeReader) Close() error {
	if r.zstd != nil {
		r.zstd.Close()
	}
	return r.f.Close()
}

// sweep removes what a dead writer left aside.
func (b *blobs) sweep() error { return sweep(b.store.disk, filepath.Join(b.dir, "new")) }
