package host

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"
)

// A scratch is the directory of one run, below the store or elsewhere. It is removed by close.
type scratch struct {
	dir  string
	lock *os.File
}

// newScratch makes a directory below parent. Its lock tells a later collection that it is in use, and dies with this process.
func newScratch(parent string) (*scratch, error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	dir := filepath.Join(parent, newID())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		if err = tryLock(lock); err != nil {
			lock.Close()
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &scratch{dir: dir, lock: lock}, nil
}

func (s *scratch) close() error {
	err := removeAll(s.dir)
	s.lock.Close()
	return err
}

func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// sweepScratch removes the scratch directories whose process is gone.
func sweepScratch(parent string) error {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		dir := filepath.Join(parent, e.Name())
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err == nil {
			held := tryLock(lock) != nil
			lock.Close()
			if held {
				continue
			}
		} else if fi, err := e.Info(); err != nil || time.Since(fi.ModTime()) < time.Minute {
			continue // it is being made
		}
		if err := removeAll(dir); err != nil {
			return err
		}
	}
	return nil
}
