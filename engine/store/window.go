package store

import (
	"io"
	"os"
	"sync"
)

// A window is a stretch of a segment in memory. Tasks are looked up mostly in the order in which they once ran, so whoever asks for a frame just
// behind the last one is given what follows it too, and most looks cost no system call. What a window holds cannot grow old: below the
// end of its last sound frame a segment never changes.
type window struct {
	buf []byte
	f   *os.File
	off int64 // of buf's first byte in f
	n   int   // how much of buf is read
}

const (
	firstRead = 4 << 10  // how much is read of a frame at first: most are no longer
	aheadRead = 64 << 10 // the same, of one just behind the last
)

func newWindows() *sync.Pool {
	return &sync.Pool{New: func() any { return &window{buf: make([]byte, aheadRead)} }}
}

// frame returns the payload of the frame at off, of a file that is sound up to size. It is valid until the next call.
func (w *window) frame(f *os.File, m mark, off, size int64) ([]byte, error) {
	b, ahead := w.have(f, off)
	if length, ok := frameLength(b, m); !ok || frameSize+length > len(b) {
		var err error
		want := int64(firstRead)
		if ahead {
			want = aheadRead
		}
		if b, err = w.fill(f, off, min(want, size-off)); err != nil {
			return nil, err
		}
		if length, ok = frameLength(b, m); !ok || off+int64(frameSize+length) > size {
			return nil, errDamaged
		}
		if frameSize+length > len(b) {
			if b, err = w.fill(f, off, int64(frameSize+length)); err != nil {
				return nil, err
			}
		}
	}
	payload, _, ok := cutFrame(b, m)
	if !ok {
		return nil, errDamaged
	}
	return payload, nil
}

// have returns what is known of f from off on, and whether off lies in or just behind the window.
func (w *window) have(f *os.File, off int64) (b []byte, ahead bool) {
	if at := off - w.off; w.f == f && at >= 0 && at <= int64(w.n)+firstRead {
		return w.buf[min(at, int64(w.n)):w.n], true
	}
	return nil, false
}

func (w *window) fill(f *os.File, off, n int64) ([]byte, error) {
	w.f, w.off, w.n = f, off, 0
	if n < frameSize {
		return nil, errDamaged
	}
	if n > int64(len(w.buf)) {
		w.buf = make([]byte, n)
	}
	got, err := f.ReadAt(w.buf[:n], off)
	if err != nil && err != io.EOF {
		return nil, err
	}
	w.n = got
	return w.buf[:got], nil
}
