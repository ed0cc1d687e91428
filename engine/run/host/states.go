package host

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A store keeps states below one directory:
//
//	<key>/meta     what the state is; its modification time is the last use
//	<key>/index    the index of its workspace, to hash less the next time
//	layers/<id>/   directories that states are made of, shared: a state adds one to those of the state below it
//	tmp/<run>/     what is being made; held by a lock on its file `lock`
//
// A checkout of a tree is a state too, named tree-<id>. A state counts once its meta is there, which is renamed into place after its layers. A
// layer lives as long as a meta names it. The directory is disposable: whatever is missing is a lost state.
type store struct {
	dir   string
	clock func() time.Time

	mu     sync.Mutex // held while metas and layers are published or removed
	pinned map[string]int
}

// A meta is what a state is. The chains are layer ids, uppermost first; nil is none, and an empty chain an empty directory.
type meta struct {
	Name      string           `json:"name"`
	Tree      digest.Digest    `json:"tree"` // what the workspace was laid from
	Workspace *chain           `json:"workspace,omitempty"`
	Home      *chain           `json:"home,omitempty"`
	Path      string           `json:"path,omitempty"` // where it was made, without a mount namespace
	Manifest  digest.Digest    `json:"manifest"`
	Sizes     map[string]int64 `json:"sizes"` // of the layers that this state brought, bytes
	Made      time.Time        `json:"made"`
}

type chain []string

func (c *chain) layers() []string {
	if c == nil {
		return nil
	}
	return *c
}

func (s *store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *store) layer(id string) string { return filepath.Join(s.dir, "layers", id) }

func treeName(tree digest.Digest) string {
	id, _ := tree.Git()
	return "tree-" + id
}

// load reads a state's meta; ok is false if it is not there, whole.
func (s *store) load(name string) (m *meta, ok bool) {
	b, err := os.ReadFile(s.path(name, "meta"))
	if err != nil {
		return nil, false
	}
	m = &meta{}
	if json.Unmarshal(b, m) != nil || m.Name != name {
		return nil, false
	}
	for _, id := range m.all() {
		if fi, err := os.Lstat(s.layer(id)); err != nil || !fi.IsDir() {
			return nil, false
		}
	}
	return m, true
}

func (m *meta) all() []string { return slices.Concat(m.Workspace.layers(), m.Home.layers()) }

// pin loads a state and holds its layers until unpin, and notes the use.
func (s *store) pin(name string) (*meta, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.load(name)
	if !ok {
		return nil, false
	}
	for _, id := range m.all() {
		s.pinned[id]++
	}
	s.pinned[name]++
	now := s.clock()
	os.Chtimes(s.path(name, "meta"), now, now)
	return m, true
}

func (s *store) unpin(m *meta) {
	if m == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range append(m.all(), m.Name) {
		if s.pinned[id]--; s.pinned[id] <= 0 {
			delete(s.pinned, id)
		}
	}
}

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
		err = tryLock(lock)
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

// publish makes a state of m and the directories that become its layers (id -> directory, on the store's file system), and of its index, if there is one.
func (s *store) publish(m *meta, fresh map[string]string, indexFile string) error {
	m.Made = s.clock()
	m.Sizes = map[string]int64{}
	for id, dir := range fresh {
		m.Sizes[id] = diskUse(dir)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.path("layers"), 0o700); err != nil {
		return err
	}
	for id, dir := range fresh {
		if err := os.Rename(dir, s.layer(id)); err != nil {
			return fmt.Errorf("move a layer: %w", err)
		}
	}
	if err := os.MkdirAll(s.path(m.Name), 0o700); err != nil {
		return err
	}
	os.Remove(s.path(m.Name, "index"))
	if indexFile != "" {
		if err := os.Rename(indexFile, s.path(m.Name, "index")); err != nil {
			return fmt.Errorf("move the index: %w", err)
		}
	}
	aside := s.path(m.Name, "meta."+newID())
	if err := os.WriteFile(aside, b, 0o644); err != nil {
		return err
	}
	return os.Rename(aside, s.path(m.Name, "meta"))
}

// A Stat is what one state, or one checkout of a tree (State zero), holds on disk.
type Stat struct {
	State task.Key
	Tree  digest.Digest
	Size  int64 // bytes of the layers that only it and states above it need
	Used  time.Time
	InUse bool
}

// list reads all metas, with their last use, least recently used first.
func (s *store) list() ([]*meta, map[string]time.Time, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var metas []*meta
	used := map[string]time.Time{}
	for _, e := range entries {
		if m, ok := s.load(e.Name()); ok {
			if fi, err := os.Stat(s.path(m.Name, "meta")); err == nil {
				used[m.Name] = fi.ModTime()
				metas = append(metas, m)
			}
		}
	}
	slices.SortStableFunc(metas, func(a, b *meta) int { return used[a.Name].Compare(used[b.Name]) })
	return metas, used, nil
}

// stat lists what there is, least recently used first.
func (s *store) stat() ([]Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metas, used, err := s.list()
	if err != nil {
		return nil, err
	}
	out := make([]Stat, 0, len(metas))
	for _, m := range metas {
		st := Stat{Tree: m.Tree, Used: used[m.Name], InUse: s.pinned[m.Name] > 0}
		if k, err := hex.DecodeString(m.Name); err == nil && len(k) == len(st.State) {
			st.State = task.Key(k)
		}
		for _, n := range m.Sizes {
			st.Size += n
		}
		out = append(out, st)
	}
	return out, nil
}

// remove forgets a state that is not in use. Layers that other states need stay.
func (s *store) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned[name] > 0 {
		return fmt.Errorf("host: state %s is in use", name)
	}
	if err := s.forget(name); err != nil {
		return err
	}
	_, err := s.sweep()
	return err
}

func (s *store) forget(name string) error {
	// The meta goes first: without it the rest is nothing.
	if err := os.Remove(s.path(name, "meta")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeAll(s.path(name))
}

// trim removes states, least recently used first, until what is left holds at most budget bytes, and whatever no state needs. It returns the bytes freed.
func (s *store) trim(budget int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metas, _, err := s.list()
	if err != nil {
		return 0, err
	}
	sizes, needed := map[string]int64{}, map[string]int{}
	var total int64
	for _, m := range metas {
		for id, n := range m.Sizes {
			sizes[id] = n
		}
		for _, id := range m.all() {
			needed[id]++
		}
	}
	for id := range needed {
		total += sizes[id]
	}
	for _, m := range metas {
		if total <= budget {
			break
		}
		if s.pinned[m.Name] > 0 {
			continue
		}
		if err := s.forget(m.Name); err != nil {
			return 0, err
		}
		for _, id := range m.all() {
			if needed[id]--; needed[id] == 0 {
				total -= sizes[id]
			}
		}
	}
	return s.sweep()
}

// sweep removes layers that no state names and nobody uses, and what killed runs left.
func (s *store) sweep() (freed int64, err error) {
	metas, _, err := s.list()
	if err != nil {
		return 0, err
	}
	needed := map[string]bool{}
	for _, m := range metas {
		for _, id := range m.all() {
			needed[id] = true
		}
	}
	layers, _ := os.ReadDir(s.path("layers"))
	for _, l := range layers {
		if needed[l.Name()] || s.pinned[l.Name()] > 0 {
			continue
		}
		freed += diskUse(s.layer(l.Name()))
		if err := removeAll(s.layer(l.Name())); err != nil {
			return freed, err
		}
	}
	return freed, sweepScratch(s.path("tmp"))
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
