package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"pbuild/engine/run"
)

// maxLayers bounds a chain that is still mounted as an overlay; a longer one is copied into one layer.
const maxLayers = 60

// makeRoom makes the directories in which the command's workspace and home come to lie.
func (s *session) makeRoom(ctx context.Context) (err error) {
	r := s.r
	s.overlay = r.overlay && len(s.workspace) < maxLayers && len(s.home) < maxLayers
	parent := r.states.path("tmp") // a layer is kept by renaming it
	if s.c.Keep == nil && !s.overlay {
		parent = r.runs()
	}
	if s.scratch, err = newScratch(parent); err != nil {
		return err
	}
	room := s.scratch.dir
	if r.level < run.IsolationSealed {
		if room, err = s.takePath(ctx); err != nil {
			return err
		}
	}
	for _, d := range []string{"w", "h"} {
		if err := makeDir(filepath.Join(room, d)); err != nil {
			return err
		}
	}
	if s.overlay {
		for _, d := range []string{"w.work", "h.work", "root"} {
			if err := os.Mkdir(filepath.Join(room, d), 0o755); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Join(s.scratch.dir, "root"), 0o755); err != nil {
		return err
	}
	if err := merge(filepath.Join(room, "w"), s.lowestFirst(s.workspace)); err != nil {
		return err
	}
	return merge(filepath.Join(room, "h"), s.lowestFirst(s.home))
}

func (s *session) lowestFirst(c chain) []string {
	var dirs []string
	for _, id := range slices.Backward(c) {
		dirs = append(dirs, s.r.states.layer(id))
	}
	return dirs
}

// layers are what the init mounts for one of the two directories.
func (s *session) layers(dir string, below chain) layers {
	l := layers{Upper: dir, Work: dir + ".work"}
	if s.overlay {
		l.Lower = below
	}
	return l
}

// takePath takes the path that workspace and home have without a mount namespace: that of the state below, or else one that depends on what is kept. What
// was built holds absolute paths, so a state and all that start from it share one, and run one after the other.
func (s *session) takePath(ctx context.Context) (string, error) {
	parent, err := s.r.outside()
	if err != nil {
		return "", err
	}
	var path string
	switch {
	case s.start != nil && s.start.Path != "":
		path = s.start.Path
	case s.start != nil:
		path = filepath.Join(parent, "u", s.start.Name[:min(24, len(s.start.Name))])
	case s.c.Keep != nil:
		path = filepath.Join(parent, "u", s.c.Keep.State.String()[:24])
	default:
		h := sha256.Sum256([]byte(s.c.Start.Tree.Hex()))
		path = filepath.Join(parent, "u", hex.EncodeToString(h[:12]))
	}
	unlock, err := s.r.lock(ctx, path)
	if err != nil {
		return "", err
	}
	s.unlocks = append(s.unlocks, unlock)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	s.unlocks = append(s.unlocks, func() { lock.Close() })
	if err := waitLock(ctx, lock); err != nil {
		return "", err
	}
	s.path = path // from here on close empties it
	for _, d := range []string{"w", "h", "t"} {
		if err := removeAll(filepath.Join(s.path, d)); err != nil {
			return "", err
		}
	}
	return s.path, makeDir(filepath.Join(s.path, "t"))
}

// temp is the command's TMPDIR: its own /tmp, or where it has none a directory of its own.
func (s *session) temp() string {
	if s.path != "" {
		return filepath.Join(s.path, "t")
	}
	return "/tmp"
}

// room is where the directories "w" and "h" lie.
func (s *session) room() string {
	if s.path != "" {
		return s.path
	}
	return s.scratch.dir
}

func (s *session) close() error {
	var errs []error
	if s.path != "" {
		for _, d := range []string{"w", "h", "t"} {
			errs = append(errs, removeAll(filepath.Join(s.path, d)))
		}
	}
	if s.scratch != nil {
		errs = append(errs, s.scratch.close())
	}
	for _, unlock := range slices.Backward(s.unlocks) {
		unlock()
	}
	s.r.states.unpin(s.start)
	s.r.states.unpin(s.base)
	return errors.Join(errs...)
}
