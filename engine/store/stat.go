package store

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A stat is what stands for a file's content: while it does not change, neither does the content, but for the racy rule. The
// status-change time is the kernel's own, so setting a file's mtime back does not hide an edit.
type stat struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // Unix nanoseconds
}

// A fileKind is what stands at a path.
type fileKind uint8

const (
	kindAbsent fileKind = iota
	kindRegular
	kindExecutable
	kindLink
	kindOther // a directory, a device
)

var kindModes = [...]uint32{kindRegular: 0o644, kindExecutable: 0o755, kindLink: task.ModeLink, kindOther: 0}

// A fileState is what is known of a path.
type fileState struct {
	stat
	kind   fileKind
	racy   bool // see isRacy
	output bool
	digest digest.Digest
	err    error // it could not be read
}

const (
	// tick is more than the coarsest clock by which a kernel stamps files.
	tick = int64(20 * time.Millisecond)
	// coarseTick is that of file systems that keep whole seconds, FAT even pairs of them.
	coarseTick = int64(2 * time.Second)
)

// isRacy is git's racy rule, told of one file: it was looked at no more than a tick after it had changed, so it may have changed
// once more in the same tick, and its stat would be the same. Its content must be hashed again, never trusted by stat. looked is when
// its stat was taken, before its content was read. A rule by the snapshot's own time would not do: the snapshot may be written long after the look.
func isRacy(st stat, looked int64) bool {
	changed := max(st.mtime, st.ctime)
	if changed%int64(time.Second) == 0 {
		return changed >= looked-coarseTick
	}
	return changed >= looked-tick
}

// isAbsent says whether an error means that nothing stands at a path.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// look returns the state of name in d, of which prev is what was known. It reads content only where prev's stat cannot stand for it.
// buf is scratch memory.
func (d dirHandle) look(name string, prev fileState, looked int64, buf []byte) fileState {
	for try := 0; ; try++ {
		st, kind, err := d.stat(name)
		switch {
		case err != nil && isAbsent(err):
			return fileState{}
		case err != nil:
			return fileState{err: err}
		case kind == kindOther:
			return fileState{kind: kind}
		case !prev.racy && prev.kind == kind && prev.stat == st:
			return prev
		}
		s := fileState{stat: st, kind: kind, racy: isRacy(st, looked)}
		after := st
		if kind == kindLink {
			var target string
			target, err = d.readLink(name)
			s.digest = digest.Of([]byte(target))
		} else {
			s.digest, after, err = d.hash(name, st.size, buf)
		}
		switch {
		case err == nil && after == st:
			return s
		case err != nil && !isAbsent(err) && !errors.Is(err, syscall.ELOOP):
			return fileState{err: err}
		case err == nil && try == 3: // it is being written to without pause
			s.racy = true
			return s
		case try == 10:
			return fileState{err: err}
		}
		looked = time.Now().UnixNano()
	}
}
