package tree

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pbuild/engine/digest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// An Archive is a tar or zip, plain or compressed with gzip, bzip2, xz or zstd.
type Archive struct {
	URL    string // one of URL and Path
	Path   string
	SHA256 string
	Strip  int
}

// What an archive may unpack to at most, and how many entries it may have.
const (
	archiveLimit   = 8 << 30
	archiveEntries = 1 << 20
)

// FetchArchive brings an archive's tree. The kind is told from the content, whatever the name. An entry that would leave the tree, a link that points out of
// it, a device, and a checksum that differs are *Bad.
func (r *Repo) FetchArchive(ctx context.Context, a Archive) (digest.Digest, error) {
	id, err := r.fetchArchive(ctx, a)
	if err != nil {
		from := a.Path
		if a.URL != "" {
			from = redact(a.URL)
		}
		return digest.Digest{}, fmt.Errorf("tree: fetch archive %s: %w", from, err)
	}
	return id, nil
}

func (r *Repo) fetchArchive(ctx context.Context, a Archive) (digest.Digest, error) {
	var none digest.Digest
	want, err := hex.DecodeString(a.SHA256)
	if err != nil || len(want) != sha256.Size {
		return none, badf("sha256 %q is not 64 hexadecimal digits", a.SHA256)
	}
	if a.Strip < 0 {
		return none, badf("strip is %d", a.Strip)
	}
	src, size, err := r.openArchive(ctx, a)
	if err != nil {
		return none, err
	}
	defer src.Close()
	// What is read later is this copy, so the digest is that of what is unpacked.
	dir, err := r.scratch()
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	copied, err := os.Create(filepath.Join(dir, "archive"))
	if err != nil {
		return none, err
	}
	defer copied.Close()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(copied, h), io.LimitReader(src, r.limit+1))
	if err != nil {
		return none, err
	}
	if n > r.limit {
		return none, badf("the archive is larger than %d bytes", r.limit)
	}
	if size >= 0 && n < size {
		return none, fmt.Errorf("the connection ended after %d of %d bytes", n, size)
	}
	if got := h.Sum(nil); !bytes.Equal(got, want) {
		return none, badf("the sha256 is %x, not %s: correct sha256, or put back the file that it belongs to", got, strings.ToLower(a.SHA256))
	}
	return r.unpack(ctx, copied, n, a.Strip)
}

// openArchive opens what is to be unpacked; size is -1 where it is not known.
func (r *Repo) openArchive(ctx context.Context, a Archive) (src io.ReadCloser, size int64, err error) {
	file := a.Path
	if a.URL != "" {
		u, err := url.Parse(a.URL)
		if err != nil {
			return nil, 0, badf("%v", err)
		}
		switch u.Scheme {
		case "http", "https":
			return r.get(ctx, a.URL)
		case "file":
			file = filepath.FromSlash(u.Path)
		default:
			return nil, 0, badf("the URL begins with neither http, https nor file")
		}
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, badf("there is no such file")
	}
	return f, -1, err
}

// stall is how long a server may send nothing; git's configuration says the same to git.
const stall = 2 * time.Minute

func (r *Repo) get(ctx context.Context, from string) (_ io.ReadCloser, size int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(r.stall, func() { cancel(fmt.Errorf("the server sent nothing for %s", r.stall)) })
	defer func() {
		late.Stop()
		if err != nil {
			cancel(nil)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, 0, badf("%v", err)
	}
	// The digest is that of the file, which a helpful transport must not unpack.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
			return nil, 0, badf("the server says %s", resp.Status)
		}
		return nil, 0, fmt.Errorf("the server says %s", resp.Status)
	}
	return &answer{resp.Body, cancel, late, r.stall}, resp.ContentLength, nil
}

// An answer is what a server sends, as long as it does not stall.
type answer struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	late   *time.Timer // cancels
	stall  time.Duration
}

func (a *answer) Read(p []byte) (int, error) {
	a.late.Reset(a.stall)
	defer a.late.Stop()
	return a.body.Read(p)
}

func (a *answer) Close() error {
	a.cancel(nil)
	return a.body.Close()
}

// unpack tells an archive's kind by how it begins.
func (r *Repo) unpack(ctx context.Context, f *os.File, size int64, strip int) (digest.Digest, error) {
	var none digest.Digest
	u := newUnpacker(ctx, r, strip)
	defer u.im.abort()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return none, err
	}
	plain := bufio.NewReaderSize(f, 64<<10)
	head, _ := plain.Peek(6)
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		z, err := zip.NewReader(f, size)
		if err != nil {
			return none, badf("the zip cannot be read: %v", err)
		}
		for _, e := range z.File {
			if err := u.zipEntry(e, e.Name); err != nil {
				return none, err
			}
		}
		return u.finish()
	}
	rd, done, err := decompress(plain, head)
	if err != nil {
		return none, badf("the archive cannot be unpacked: %v", err)
	}
	defer done()
	if err := u.tar(tar.NewReader(&bounded{rd, r.limit + r.limit/8, r.limit})); err != nil {
		return none, err
	}
	return u.finish()
}

func decompress(plain *bufio.Reader, head []byte) (rd io.Reader, done func(), err error) {
	done = func() {}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		rd, err = gzip.NewReader(plain)
	case bytes.HasPrefix(head, []byte("BZh")):
		rd = bzip2.NewReader(plain)
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		rd, err = xz.NewReader(plain)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		var z *zstd.Decoder
		if z, err = zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(512<<20)); err == nil {
			rd, done = z, z.Close
		}
	default:
		rd = plain
	}
	return rd, done, err
}

// A bounded reader ends with a *Bad where an archive unpacks to more than it may, headers and padding included.
type bounded struct {
	r     io.Reader
	left  int64
	limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, tooLarge(b.limit)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func tooLarge(limit int64) error { return badf("the archive unpacks to more than %d bytes", limit) }
