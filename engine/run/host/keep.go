package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pbuild/engine/run"
)

// keep publishes the state that the command is to leave, and says in res what its workspace holds.
func (s *session) keep(res *run.Result) error {
	k := s.c.Keep
	m := &meta{Name: k.State.String(), Path: s.path}
	fresh := map[string]string{}
	indexFile := ""
	switch k.Workspace {
	case run.FromStart:
		m.Workspace, m.Tree = &chain{}, s.from
		if s.start != nil {
			m.Workspace, m.Tree, m.Manifest = s.start.Workspace, s.start.Tree, s.start.Manifest
			indexFile = s.copyIndex()
		} else if s.base != nil {
			m.Workspace = s.base.Workspace
		}
	case run.FromCommand:
		c, err := s.layer("w", s.workspace, fresh)
		if err != nil {
			return err
		}
		m.Workspace, m.Tree, m.Manifest, indexFile = c, s.tree(), res.Manifest, s.indexOut()
	}
	var err error
	switch k.Home {
	case run.FromStart:
		m.Home = &chain{}
		if s.start != nil && s.start.Home != nil {
			m.Home = s.start.Home
		}
		if len(k.HomePaths) > 0 {
			m.Home, err = s.keepHomePaths(k.HomePaths, fresh)
		}
	case run.FromCommand:
		m.Home, err = s.layer("h", s.home, fresh)
	}
	if err != nil {
		return err
	}
	res.Manifest = m.Manifest
	return s.r.states.publish(m, fresh, indexFile)
}

// layer makes a layer of what the command left in one of the two directories.
func (s *session) layer(dir string, below chain, fresh map[string]string) (*chain, error) {
	full := filepath.Join(s.scratch.dir, dir)
	if s.path != "" {
		if err := move(full, filepath.Join(s.path, dir)); err != nil {
			return nil, err
		}
	}
	return s.newLayer(full, below, fresh), nil
}

// newLayer makes a layer of dir. Where there are overlays it lies over those below it; else it holds all of them.
func (s *session) newLayer(dir string, below chain, fresh map[string]string) *chain {
	c := chain{newID()}
	fresh[c[0]] = dir
	if s.overlay {
		c = append(c, below...)
	}
	return &c
}

// keepHomePaths makes a layer that holds, over the home that the command started with, only the given paths as the command left them.
func (s *session) keepHomePaths(paths []string, fresh map[string]string) (*chain, error) {
	dir := filepath.Join(s.scratch.dir, "kept")
	var below []string
	if !s.overlay {
		below = s.lowestFirst(s.home)
	}
	if err := merge(dir, below); err != nil {
		return nil, err
	}
	from := filepath.Join(s.room(), "h")
	// A path comes before those below it, which then move with it.
	for _, p := range slices.Sorted(slices.Values(paths)) {
		p = filepath.Clean(p)
		openWay(from, p)
		if _, err := os.Lstat(filepath.Join(from, p)); errors.Is(err, fs.ErrNotExist) && s.overlay || throughLink(from, p) {
			continue
		}
		opaque, err := copyParents(dir, from, p)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(dir, p)
		if err := removeAll(to); err != nil {
			return nil, err
		}
		if err := move(to, filepath.Join(from, p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if fi, err := os.Lstat(to); err == nil && opaque && fi.IsDir() {
			if err := setOpaque(to); err != nil {
				return nil, err
			}
		}
	}
	return s.newLayer(dir, s.home, fresh), nil
}

// copyParents makes the directories above path in dst as they are in src, and says whether one of them hides what lower layers have.
func copyParents(dst, src, path string) (opaque bool, err error) {
	if dir := filepath.Dir(path); dir != "." {
		if opaque, err = copyParents(dst, src, dir); err != nil {
			return false, err
		}
		fi, err := os.Lstat(filepath.Join(src, dir))
		if err != nil {
			return false, err
		}
		to := filepath.Join(dst, dir)
		err = os.Mkdir(to, 0o700)
		if err == nil {
			err = os.Chmod(to, fi.Mode().Perm()|0o700) // Mkdir would obey the umask
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		return opaque || isOpaque(filepath.Join(src, dir)), nil
	}
	return false, nil
}

// move renames, or copies where the two are on different file systems.
func move(to, from string) error {
	if err := rename(from, to); err == nil || !isCrossDevice(err) {
		return err
	}
	fi, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return copyFile(to, from, fi)
	}
	return mergeSubdir(to, from, fi)
}

func (s *session) indexOut() string { return filepath.Join(s.scratch.dir, "index") }

// copyIndex copies the index of the state below for a state that has the same workspace. An index is a help, not a need.
func (s *session) copyIndex() string {
	b, err := os.ReadFile(s.r.states.path(s.start.Name, "index"))
	if err != nil || os.WriteFile(s.indexOut(), b, 0o644) != nil {
		return ""
	}
	return s.indexOut()
}
