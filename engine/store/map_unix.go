//go:build unix

package store

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps a file read-only. The file must only ever be replaced, never written or cut: a page that is gone is a fault.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() == 0 {
		return nil, func() error { return nil }, nil
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, &os.PathError{Op: "mmap", Path: path, Err: err}
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// viewString is b as a string, without a copy.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
