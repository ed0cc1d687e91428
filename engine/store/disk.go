package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// A disk makes every change that must survive a crash, so that a test can fail or cut short any of them.
type disk struct {
	// fault, if set, is asked before each change. An error stops it; of a write, the first n bytes are still made. errSkip passes for
	// success without the change being made: of a sync, whose cost a test may not want.
	fault func(op, path string, size int) (n int, err error)
}

func (d *disk) check(op, path string) error {
	if d.fault == nil {
		return nil
	}
	_, err := d.fault(op, path, 0)
	return err
}

var errSkip = errors.New("skip")

func (d *disk) writeAt(f *os.File, b []byte, off int64) error {
	if d.fault != nil {
		if n, err := d.fault("write", f.Name(), len(b)); err != nil {
			_, werr := f.WriteAt(b[:n], off)
			return errors.Join(err, werr)
		}
	}
	_, err := f.WriteAt(b, off)
	return err
}

func (d *disk) sync(f *os.File) error {
	switch err := d.check("sync", f.Name()); err {
	case nil:
		return f.Sync()
	case errSkip:
		return nil
	default:
		return err
	}
}

func (d *disk) truncate(f *os.File, size int64) error {
	if err := d.check("truncate", f.Name()); err != nil {
		return err
	}
	return f.Truncate(size)
}

func (d *disk) create(path string) (*os.File, error) {
	if err := d.check("create", path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
}

func (d *disk) rename(from, to string) error {
	if err := d.check("rename", to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d *disk) remove(path string) error {
	if err := d.check("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

// syncDir makes names durable that were made, renamed or removed in dir.
func (d *disk) syncDir(dir string) error {
	switch err := d.check("syncdir", dir); {
	case err == errSkip, err == nil && runtime.GOOS == "windows": // where no directory can be opened, and names are journalled
		return nil
	case err != nil:
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// makeDirs makes dir and whatever above it is absent, and makes their names durable.
func (d *disk) makeDirs(dir string) error {
	made, err := makeDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.makeDirs(filepath.Dir(dir)); err == nil {
			made, err = makeDir(dir)
		}
	}
	if err != nil || !made {
		return err
	}
	return d.syncDir(filepath.Dir(dir))
}

func makeDir(dir string) (made bool, err error) {
	if err = os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// replace gives path the content that write makes: aside, sync, rename, sync the directory. At no moment is path
// neither the old nor the new file. durable is false where losing the new file costs nothing.
func (d *disk) replace(path string, durable bool, write func(f *os.File) error) (err error) {
	f, err := d.aside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			d.remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if durable {
		if err = d.sync(f); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = d.rename(f.Name(), path); err != nil || !durable {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// aside creates the file that is to replace path.
func (d *disk) aside(path string) (*os.File, error) {
	if err := d.check("create", path); err != nil {
		return nil, err
	}
	var b [8]byte
	rand.Read(b[:])
	return os.OpenFile(path+"."+hex.EncodeToString(b[:])+tempExt, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// tempExt ends the names of files that are written aside. Whoever holds the lock may remove them.
const tempExt = ".tmp"
