package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pbuild/engine/digest"
)

// A store keeps states below one directory:
//
//	<key>/meta     what the state is; its modification time is the last use
//	<key>/index    the index of its workspace, to hash less the next time
//	layers/<id>/   directories that states are made of, shared: a state adds one to those of the state below it
//	tmp/<run>/     what is being made; held by a lock on its file `lock`
//
// A checkout of a tree is a state too, named tree-<id>. A state counts once its meta is there, which is renamed into place after its layers, and these
// after what is in them is on the disk: after a power cut too a state is whole or lost. A layer lives as long as a meta names it. The directory is
// disposable: whatever is missing is a lost state.
type store struct {
	dir    string
	clock  func() time.Time
	syncFS func(dir string) error // makes what was written to dir's file system durable

	mu     sync.Mutex // held while metas and layers are published or removed
	pinned map[string]int

	asked   atomic.Int64 // how often sync was called
	syncing sync.Mutex   // held while syncFS runs
	synced  int64        // how many of the calls it has served
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
	if err := s.sync(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.path("layers"), 0o700); err != nil {
		return err
	}
	for id, dir := range fresh {
		if err := rename(dir, s.layer(id)); err != nil {
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

// sync makes durable what was written before it was called. It does so once for all who call it while an earlier one is on its way.
func (s *store) sync() error {
	call := s.asked.Add(1)
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.synced >= call {
		return nil
	}
	serves := s.asked.Load()
	if err := s.syncFS(s.dir); err != nil {
		return err
	}
	s.synced = serves
	return nil
}

// list reads all metas, least recently used first.
func (s *store) list() ([]*meta, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
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
	return metas, nil
}

// forget removes a state. Its layers stay until sweep: other states may need them.
func (s *store) forget(name string) error {
	// The meta goes first: without it the rest is nothing.
	if err := os.Remove(s.path(name, "meta")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return removeAll(s.path(name))
}

// trim removes states, least recently used first, until what is left holds at most budget bytes, and whatever no state needs. It returns the bytes
// freed; where dry, those that it would free, and removes nothing. A state that is all below others stays as long as one of these: to remove it would
// free nothing.
func (s *store) trim(budget int64, dry bool) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metas, err := s.list()
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
		if _, known := sizes[id]; !known { // the state that brought it is gone
			sizes[id] = diskUse(s.layer(id))
		}
		total += sizes[id]
	}
	before := total
	only := func(id string) bool { return needed[id] == 1 }
	frees := func(m *meta) bool { return s.pinned[m.Name] == 0 && slices.ContainsFunc(m.all(), only) }
	for total > budget {
		i := slices.IndexFunc(metas, frees)
		if i < 0 {
			break
		}
		m := metas[i]
		metas = slices.Delete(metas, i, i+1)
		if !dry {
			if err := s.forget(m.Name); err != nil {
				return 0, err
			}
		}
		for _, id := range m.all() {
			if needed[id]--; needed[id] == 0 {
				total -= sizes[id]
			}
		}
	}
	if dry {
		return before - total + s.unnamed(needed), nil
	}
	return s.sweep()
}

// unnamed is the size of the layers that nobody uses and that are not in named.
func (s *store) unnamed(named map[string]int) (size int64) {
	layers, _ := os.ReadDir(s.path("layers"))
	for _, l := range layers {
		if _, ok := named[l.Name()]; !ok && s.pinned[l.Name()] == 0 {
			size += diskUse(s.layer(l.Name()))
		}
	}
	return size
}

// sweep removes layers that no state names and nobody uses, and what killed runs left.
func (s *store) sweep() (freed int64, err error) {
	metas, err := s.list()
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
