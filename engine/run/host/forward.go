//go:build unix

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// forwardCopies copies the user's client configuration into HOME where nothing can be mounted, and returns what takes it away again: it
// is the user's, and no state may keep it.
func forwardCopies(s *spec) (cleanUp func() error, err error) {
	var made [][]string // of each file: itself, and the directories above it that were made for it
	for _, f := range s.Forward {
		if filepath.IsAbs(f.To) {
			continue // it is where it is
		}
		to := filepath.Join(s.Home, f.To)
		fi, err := os.Stat(f.From)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		fresh := missing(s.Home, to)
		if len(fresh) == 0 {
			continue
		}
		made = append(made, fresh)
		if fi.IsDir() {
			err = merge(to, []string{f.From})
		} else if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
			err = copyFile(to, f.From, fi)
		}
		if err != nil {
			return nil, err
		}
	}
	return func() error {
		for _, fresh := range slices.Backward(made) { // the first may have made directories that others lie in
			if err := removeAll(fresh[0]); err != nil {
				return err
			}
			for _, dir := range fresh[1:] {
				os.Remove(dir) // if nothing else is in it
			}
		}
		return nil
	}, nil
}

// missing lists what is not there of path and the directories between it and top, innermost first.
func missing(top, path string) []string {
	var made []string
	for p := path; p != top && p != "/"; p = filepath.Dir(p) {
		if _, err := os.Lstat(p); err == nil {
			break
		}
		made = append(made, p)
	}
	return made
}
