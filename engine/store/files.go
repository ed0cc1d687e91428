package store

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pbuild/engine/task"
)

// Files is the stat cache: it tells mode and digest of workspace files, and reads only those whose stat differs from the snapshot's. Its methods may
// be called from many goroutines at once. What it was asked once it answers from memory, until Refresh.
type Files struct {
	root string
	prev *Snapshot // nil: nothing is known

	mu      sync.RWMutex
	dirs    map[string]*filesDir
	buffers sync.Pool // of *[]byte, to read files into
}

type filesDir struct {
	mu      sync.Mutex
	index   map[string]int // into files
	files   []namedState
	forgets int // how often something was forgotten, so that a look that began before is not remembered
}

type namedState struct {
	name string
	fileState
	asked bool // by whoever makes a plan
}

// A role says what a file is looked at for.
type role uint8

const (
	asInput role = iota
	asOutput
	unasked // for nothing yet
)

// ask notes that a plan asked for a file. Who asks first says whether it is an output.
func (s *namedState) ask(r role) {
	if !s.asked && r != unasked {
		s.asked, s.output = true, r == asOutput
	}
}

const hashBuffer = 64 << 10

// NewFiles looks at the files below root. prev may be nil.
func NewFiles(root string, prev *Snapshot) *Files {
	f := &Files{root: root, prev: prev, dirs: map[string]*filesDir{}}
	f.buffers.New = func() any { b := make([]byte, hashBuffer); return &b }
	return f
}

// Input returns mode and digest of a file of the workspace; ok is false if there is no regular file nor link.
func (f *Files) Input(path string) (in task.FileInput, ok bool, err error) {
	dir, name := splitPath(path)
	s, known := f.known(dir, name)
	if !known {
		s = f.lookAll(chunk{dir: dir, names: []string{name}}, asInput)[0].fileState
	}
	if s.err != nil {
		return in, false, fmt.Errorf("store: read %s: %w", path, s.err)
	}
	if s.kind == kindAbsent || s.kind == kindOther {
		return in, false, nil
	}
	return task.FileInput{Path: path, Mode: kindModes[s.kind], Digest: s.digest}, true, nil
}

// Leads returns the path that a link names: below root if it is there, else absolute. ok is false if there is no link.
func (f *Files) Leads(path string) (to string, ok bool) {
	dir, name := splitPath(path)
	from := f.path(dir)
	to, err := os.Readlink(filepath.Join(from, name))
	if err != nil {
		return "", false
	}
	if !filepath.IsAbs(to) {
		if real, err := filepath.EvalSymlinks(from); err == nil {
			from = real // else ".." would be taken from where a link to a directory stands
		}
		to = filepath.Join(from, to)
	}
	roots := []string{f.root}
	if real, err := filepath.EvalSymlinks(f.root); err == nil {
		roots = append(roots, real)
	}
	for _, root := range roots {
		if rel, err := filepath.Rel(root, to); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return to, true
}

// Prefetch looks at many inputs at once, in parallel by directory. What fails to be read is told by Input.
func (f *Files) Prefetch(paths []string) { f.prefetch(paths, asInput) }

// PrefetchOutputs is Prefetch for files that tasks make. The snapshot tells them apart.
func (f *Files) PrefetchOutputs(paths []string) { f.prefetch(paths, asOutput) }

// PrefetchKnown looks at every file of the snapshot. Those that are asked for afterwards cost nothing more; the others stay out of Table.
func (f *Files) PrefetchKnown() {
	if f.prev == nil {
		return
	}
	var chunks []chunk
	for i := range f.prev.numDirs() {
		d := f.prev.dirAt(i)
		names := make([]string, d.count)
		for j := range names {
			names[j] = f.prev.fileName(d.first + j)
		}
		for part := range slices.Chunk(names, chunkSize) {
			chunks = append(chunks, chunk{d.name, part})
		}
	}
	f.lookChunks(chunks, unasked)
}

// Refresh makes the next look at a path a new one: a task may have written it.
func (f *Files) Refresh(path string) {
	dir, name := splitPath(path)
	d := f.dir(dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgets++
	if i, ok := d.index[name]; ok {
		last := len(d.files) - 1
		d.files[i] = d.files[last]
		d.index[d.files[i].name] = i
		d.files = d.files[:last]
		delete(d.index, name)
	}
}

// splitPath cuts a path into directory, "" for the root, and name.
func splitPath(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:max(i, 0)], path[i+1:]
}

func (f *Files) known(dir, name string) (fileState, bool) {
	f.mu.RLock()
	d := f.dirs[dir]
	f.mu.RUnlock()
	if d == nil {
		return fileState{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i, ok := d.index[name]; ok {
		d.files[i].ask(asInput)
		return d.files[i].fileState, true
	}
	return fileState{}, false
}

// A chunk is some names of one directory: the work of one goroutine at a time.
type chunk struct {
	dir   string
	names []string
}

const chunkSize = 256

func (f *Files) prefetch(paths []string, r role) {
	f.lookChunks(f.unknown(paths, r), r)
}

// lookChunks works through chunks, several at once.
func (f *Files) lookChunks(chunks []chunk, r role) {
	workers := min(len(chunks), 2*runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(chunks) {
					return
				}
				f.lookAll(chunks[i], r)
			}
		})
	}
	group.Wait()
}

// unknown groups those of paths that were not looked at yet.
func (f *Files) unknown(paths []string, r role) []chunk {
	byDir := map[string][]string{}
	last, names := "", []string(nil) // paths of one directory tend to stand together
	for _, path := range paths {
		dir, name := splitPath(path)
		if dir != last {
			byDir[last] = names
			last, names = dir, byDir[dir]
		}
		names = append(names, name)
	}
	byDir[last] = names

	var chunks []chunk
	for dir, names := range byDir {
		slices.Sort(names)
		names = slices.Compact(names)
		f.mu.RLock()
		d := f.dirs[dir]
		f.mu.RUnlock()
		if d != nil {
			d.mu.Lock()
			names = slices.DeleteFunc(names, func(name string) bool {
				i, ok := d.index[name]
				if ok {
					d.files[i].ask(r)
				}
				return ok
			})
			d.mu.Unlock()
		}
		for part := range slices.Chunk(names, chunkSize) {
			chunks = append(chunks, chunk{dir, part})
		}
	}
	return chunks
}

// lookAll finds out about the names of c, and remembers it, unless something was forgotten meanwhile: then it looks again.
func (f *Files) lookAll(c chunk, r role) []namedState {
	d := f.dir(c.dir)
	for {
		d.mu.Lock()
		forgets := d.forgets
		d.mu.Unlock()
		states := f.look(c)
		d.mu.Lock()
		if d.forgets == forgets {
			d.remember(states, r)
			d.mu.Unlock()
			return states
		}
		d.mu.Unlock()
	}
}

func (f *Files) look(c chunk) []namedState {
	looked := time.Now().UnixNano()
	states := make([]namedState, len(c.names))
	dir, err := openDir(f.path(c.dir))
	var prev dirRow
	if err == nil {
		defer dir.close()
		prev = f.prev.dir(c.dir)
	}
	buf := f.buffers.Get().(*[]byte)
	defer f.buffers.Put(buf)
	for i, name := range c.names {
		s := namedState{name: strings.Clone(name)}
		switch {
		case err == nil:
			s.fileState = dir.look(name, prev.find(name), looked, *buf)
		case !isAbsent(err):
			s.err = err
		}
		states[i] = s
	}
	return states
}

// dir returns what is known of a directory, which may be nothing.
func (f *Files) dir(name string) *filesDir {
	f.mu.RLock()
	d := f.dirs[name]
	f.mu.RUnlock()
	if d != nil {
		return d
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if d = f.dirs[name]; d == nil {
		n := f.prev.dir(name).count // about as many as last time
		d = &filesDir{index: make(map[string]int, n), files: make([]namedState, 0, n)}
		f.dirs[strings.Clone(name)] = d
	}
	return d
}

func (f *Files) path(dir string) string {
	if strings.HasPrefix(dir, "/") {
		return dir
	}
	return filepath.Join(f.root, filepath.FromSlash(dir))
}

func (d *filesDir) remember(states []namedState, r role) {
	for _, s := range states {
		if i, ok := d.index[s.name]; ok {
			s.asked, s.output = d.files[i].asked, d.files[i].output
			s.ask(r)
			d.files[i] = s
			continue
		}
		s.ask(r)
		d.index[s.name] = len(d.files)
		d.files = append(d.files, s)
	}
}

// A Table is what Files has found out: directories, each with its files, all sorted.
type Table struct {
	root string
	dirs []tableDir
}

type tableDir struct {
	name  string
	files []namedState
}

// Table returns what is known now of the files that were asked for, for WriteSnapshot. A path that was looked for and is not there is in it too.
func (f *Files) Table() *Table {
	t := &Table{root: f.root}
	f.mu.RLock()
	defer f.mu.RUnlock()
	for name, d := range f.dirs {
		d.mu.Lock()
		files := slices.DeleteFunc(slices.Clone(d.files), func(s namedState) bool { return !s.asked })
		d.mu.Unlock()
		if len(files) == 0 {
			continue
		}
		slices.SortFunc(files, func(a, b namedState) int { return cmp.Compare(a.name, b.name) })
		t.dirs = append(t.dirs, tableDir{name, files})
	}
	slices.SortFunc(t.dirs, func(a, b tableDir) int { return cmp.Compare(a.name, b.name) })
	return t
}
