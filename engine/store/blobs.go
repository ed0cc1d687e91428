package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"pbuild/engine/digest"
)

// blobs is content by its SHA-256. Small ones are appended to the open pack, large ones have a file of their own. Putting what
// is there writes nothing. Get and Open verify what they return.
type blobs struct {
	store *Store
	packs *segments
	dir   string
	codec codec

	syncing sync.Mutex // held by sync: what one has begun to sync another must not take for synced

	mu    sync.Mutex
	dirty map[string]bool        // directories with new names that are not synced
	bad   map[digest.Digest]bool // found damaged: they count as absent, so that Put makes them again
}

const (
	smallLimit = 64 << 10 // larger blobs have their own file
	zstdFrom   = 4 << 10  // smaller ones are not worth compressing
)

// A blobError says that a blob is missing or damaged.
type blobError struct {
	Digest  digest.Digest
	File    string // "" where it is missing
	Missing bool
	Reason  string
}

func (e *blobError) Error() string {
	if e.Missing {
		return fmt.Sprintf("store: blob %s is not stored; run again what made it (`pbuild apply --replace ADDRESS`)", e.Digest)
	}
	return fmt.Sprintf("store: blob %s in %s is damaged: %s; `pbuild cache verify` drops it, and the next apply makes it again", e.Digest, e.File, e.Reason)
}

var (
	errBlob    = errors.New("the blob cannot be decoded")
	errContent = errors.New("its content has another digest")
)

func newBlobs(s *Store) *blobs {
	return &blobs{store: s, packs: s.packs, dir: filepath.Join(s.dir, "blobs"), dirty: map[string]bool{}, bad: map[digest.Digest]bool{}}
}

// load looks at the packs, and at the journal first: so every record that is seen has its blobs seen.
func (b *blobs) load() {
	b.store.journal.load()
	b.packs.load()
}

// Put stores content. It is durable once Append has returned.
func (b *blobs) Put(content []byte) (digest.Digest, error) {
	d := digest.Of(content)
	if len(content) > smallLimit {
		return b.putLarge(d, content)
	}
	if b.store.lock == nil {
		return d, fmt.Errorf("store: put %s: %w", d.Short(), errReader)
	}
	if b.Has(d) {
		return d, nil
	}
	payload := encodeBlob(&b.codec, d, content)
	b.packs.mu.Lock()
	defer b.packs.mu.Unlock()
	if !b.isBad(d) && b.packs.holds(d) {
		return d, nil
	}
	if err := b.packs.buffer(payload); err != nil {
		return d, fmt.Errorf("store: put %s: %w", d.Short(), err)
	}
	b.setBad(d, false)
	return d, nil
}

// PutFrom stores what r holds, and returns its digest and size. No more than a small blob of it is in memory.
func (b *blobs) PutFrom(r io.Reader) (digest.Digest, int64, error) {
	first := make([]byte, smallLimit+1)
	n, err := io.ReadFull(r, first)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		d, err := b.Put(first[:n])
		return d, int64(n), err
	case err != nil:
		return digest.Digest{}, 0, fmt.Errorf("store: put: read: %w", err)
	}
	return b.putStream(first, r)
}

// Get returns a blob's content. A blob that is missing or damaged is a *blobError.
func (b *blobs) Get(d digest.Digest) ([]byte, error) {
	if content, err := b.getSmall(d); content != nil || err != nil {
		return content, err
	}
	r, err := b.openLarge(d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Open streams a blob's content. Its reader ends with a *blobError instead of io.EOF if the content is not what d names.
func (b *blobs) Open(d digest.Digest) (io.ReadCloser, error) {
	content, err := b.getSmall(d)
	if err != nil {
		return nil, err
	}
	if content != nil {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	return b.openLarge(d)
}

// Has says whether a blob is stored and not known to be damaged. It does not read it.
func (b *blobs) Has(d digest.Digest) bool {
	b.load()
	if b.isBad(d) {
		return false
	}
	b.packs.mu.RLock()
	have := b.packs.holds(d)
	b.packs.mu.RUnlock()
	if have {
		return true
	}
	_, err := os.Stat(b.largePath(d))
	return err == nil
}

// getSmall returns nil, nil where no pack has d.
func (b *blobs) getSmall(d digest.Digest) ([]byte, error) {
	b.load()
	content, err := b.fromPacks(d)
	if content == nil && err == nil && b.store.lock == nil {
		if _, statErr := os.Stat(b.largePath(d)); statErr != nil {
			b.packs.refresh() // a running writer may have put it since
			content, err = b.fromPacks(d)
		}
	}
	return content, err
}

func (b *blobs) fromPacks(d digest.Digest) ([]byte, error) {
	var failure error
	for _, i := range b.packs.withKey(d) {
		var content []byte
		p := b.packs.at(i)
		err := b.packs.read(p, func(payload []byte) (err error) {
			content, err = decodeBlob(&b.codec, payload)
			if err == nil && digest.Of(content) != d {
				err = errContent
			}
			return err
		})
		if err == nil {
			return content, nil
		}
		failure = b.damaged(d, b.packs.name(p), p.off, err)
	}
	return nil, failure
}

// damaged remembers that d cannot be read, and returns the error that says so.
func (b *blobs) damaged(d digest.Digest, file string, off int64, err error) error {
	b.setBad(d, true)
	b.store.ledger.add(Damage{File: file, Offset: off, Records: 1, Object: "blob " + d.String(), Reason: err.Error()})
	return &blobError{Digest: d, File: file, Reason: err.Error()}
}

func (b *blobs) isBad(d digest.Digest) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad[d]
}

func (b *blobs) setBad(d digest.Digest, bad bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bad {
		b.bad[d] = true
	} else {
		delete(b.bad, d)
	}
}

// sync makes everything that was put durable.
func (b *blobs) sync() error {
	b.syncing.Lock()
	defer b.syncing.Unlock()
	if err := b.packs.flush(); err != nil {
		return err
	}
	b.mu.Lock()
	dirs := b.dirty
	b.dirty = map[string]bool{}
	b.mu.Unlock()
	for dir := range dirs {
		if err := b.store.disk.syncDir(dir); err != nil {
			b.mu.Lock()
			for d := range dirs {
				b.dirty[d] = true
			}
			b.mu.Unlock()
			return err
		}
	}
	return nil
}

// A small blob's payload is 32 digest, 1 coding, 4 size, and the content as coding says.
const blobHead = 32 + 1 + 4

const (
	codingRaw  = 0
	codingZstd = 1
)

func encodeBlob(c *codec, d digest.Digest, content []byte) []byte {
	out := make([]byte, blobHead, blobHead+len(content))
	copy(out, d[:])
	binary.LittleEndian.PutUint32(out[33:], uint32(len(content)))
	if len(content) >= zstdFrom {
		if packed := c.compress(out, content); len(packed)-blobHead < len(content)-len(content)/16 {
			packed[32] = codingZstd
			return packed
		}
	}
	return append(out, content...)
}

// describeBlob gives the digest, and the content's size as the tag.
func describeBlob(payload []byte) (key [32]byte, tag uint64, err error) {
	if len(payload) < blobHead {
		return key, 0, errBlob
	}
	return [32]byte(payload), uint64(binary.LittleEndian.Uint32(payload[33:])), nil
}

// decodeBlob returns the content, never nil, in memory of its own.
func decodeBlob(c *codec, payload []byte) ([]byte, error) {
	_, size, err := describeBlob(payload)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, min(size, smallLimit))
	switch payload[32] {
	case codingRaw:
		out = append(out, payload[blobHead:]...)
	case codingZstd:
		if out, err = c.decompress(out, payload[blobHead:]); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w (coding %d)", errVersion, payload[32])
	}
	if uint64(len(out)) != size {
		return nil, errBlob
	}
	return out, nil
}
