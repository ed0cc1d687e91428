package store

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"pbuild/engine/digest"
)

// Check says whether a plan now would find what the snapshot holds: same binary, arguments and journal, everything that was read as it was,
// and every file of the workspace too. Else why names the first difference. Nothing is trusted by a directory's time: editing a file
// does not move it, so each file is statted.
func (s *Snapshot) Check(identity string, args digest.Digest, generation uint64) (fresh bool, why string) {
	switch {
	case s.ident() != digest.Of([]byte(identity)):
		return false, "another pbuild wrote the snapshot"
	case s.args() != args:
		return false, "the arguments or variables differ"
	case s.generation() != generation:
		return false, "the journal has grown"
	}
	for i := range len(s.reads) / readRow {
		if why := checkRead(s.readAt(i)); why != "" {
			return false, why
		}
	}
	why = s.checkFiles()
	return why == "", why
}

// checkRead says how what is at r.Path differs from what was read; "" if it does not.
func checkRead(r Read, was stat, racy bool) string {
	st, err := statPath(r.Path)
	switch {
	case r.Kind == ReadAbsent && isAbsent(err):
		return ""
	case r.Kind == ReadAbsent:
		return r.Path + " is new"
	case err != nil && isAbsent(err):
		return r.Path + " is gone"
	case err != nil:
		return err.Error()
	case st == was && !racy:
		return ""
	case r.Digest.IsZero():
		return r.Path + " has changed"
	}
	var now digest.Digest
	if r.Kind == ReadDir {
		now, err = readListing(r.Path, r.Match)
	} else {
		now, err = hashPath(r.Path)
	}
	switch {
	case err != nil:
		return err.Error()
	case now != r.Digest:
		return r.Path + " has changed"
	}
	return ""
}

func hashPath(path string) (digest.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return digest.Digest{}, err
	}
	defer f.Close()
	return digest.From(f)
}

// checkSpan is how many files a goroutine takes at a time.
const checkSpan = 1024

// A difference is the first file that differs from the snapshot.
type difference struct {
	mu   sync.Mutex
	file int
	why  string
}

func (d *difference) add(file int, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == "" || file < d.file {
		d.file, d.why = file, why
	}
}

// checkFiles compares all files with their rows, several spans of rows at once.
func (s *Snapshot) checkFiles() string {
	root, err := openDir(s.root)
	if err != nil {
		return err.Error()
	}
	defer root.close()
	var next atomic.Int64
	var stop atomic.Bool
	var found difference
	var group sync.WaitGroup
	for range min(2*runtime.GOMAXPROCS(0), s.Files()/checkSpan+1) {
		group.Go(func() {
			for !stop.Load() {
				from := int(next.Add(1)-1) * checkSpan
				if from >= s.Files() {
					return
				}
				if i, why := s.checkSpan(root, from, min(from+checkSpan, s.Files())); why != "" {
					found.add(i, why)
					stop.Store(true)
				}
			}
		})
	}
	group.Wait()
	return found.why
}

// checkSpan compares the files from <= i < to, directory by directory.
func (s *Snapshot) checkSpan(root dirHandle, from, to int) (int, string) {
	at := sort.Search(s.numDirs(), func(i int) bool { d := s.dirAt(i); return d.first+d.count > from })
	for ; from < to && at < s.numDirs(); at++ {
		d := s.dirAt(at)
		end := min(to, d.first+d.count)
		if d.first > from || end <= from {
			return from, "the snapshot is damaged"
		}
		if i, why := s.checkDir(root, d, from, end); why != "" {
			return i, why
		}
		from = end
	}
	if from < to {
		return from, "the snapshot is damaged"
	}
	return 0, ""
}

func (s *Snapshot) checkDir(root dirHandle, d dirRow, from, to int) (int, string) {
	dir, err := root.open(d.name)
	if err != nil && !isAbsent(err) {
		return from, err.Error()
	}
	if err == nil {
		defer dir.close()
	}
	for i := from; i < to; i++ {
		was := s.fileAt(i)
		var st stat
		kind := kindAbsent
		if err == nil {
			var statErr error
			if st, kind, statErr = dir.stat(s.fileName(i)); statErr != nil && !isAbsent(statErr) {
				return i, statErr.Error()
			}
		}
		same := kind == was.kind && (st == was.stat || kind == kindOther)
		if same && was.racy {
			now := dir.look(s.fileName(i), fileState{}, time.Now().UnixNano(), make([]byte, hashBuffer))
			same = now.err == nil && now.kind == was.kind && now.digest == was.digest
		}
		if !same {
			return i, s.describe(d, i, was, kind)
		}
	}
	return 0, ""
}

func (s *Snapshot) describe(d dirRow, i int, was fileState, now fileKind) string {
	role := "input"
	if was.output {
		role = "output"
	}
	path := s.fileName(i)
	if d.name != "" {
		path = d.name + "/" + path
	}
	switch {
	case now == kindAbsent:
		return fmt.Sprintf("%s %s is gone", role, path)
	case was.kind == kindAbsent:
		return fmt.Sprintf("%s %s is new", role, path)
	}
	return fmt.Sprintf("%s %s has changed", role, path)
}
