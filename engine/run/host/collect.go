package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxReport is the size above which a report is not collected.
const maxReport = 64 << 20

// collect reads the declared reports after everything that could write them is dead. One that is not a plain file which the command made is refused:
// a report is believed, so it must not be a way to show something else.
func collect(root string, reports []string, started time.Time) (got map[string][]byte, refused map[string]string, err error) {
	got, refused = map[string][]byte{}, map[string]string{}
	for _, p := range reports {
		content, why, err := readReport(root, p, started)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, fs.ErrPermission):
			refused[p] = "it may not be read"
		case err != nil:
			return nil, nil, fmt.Errorf("collect the report %s: %w", p, err)
		case why != "":
			refused[p] = why
		default:
			got[p] = content
		}
	}
	return got, refused, nil
}

func readReport(root, p string, started time.Time) (content []byte, why string, err error) {
	parts := strings.Split(p, "/")
	dir := root
	for _, part := range parts[:len(parts)-1] {
		dir = filepath.Join(dir, part)
		fi, err := os.Lstat(dir)
		if err != nil {
			return nil, "", err
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			return nil, "it lies behind a link", nil
		}
		if !fi.IsDir() {
			return nil, "", fs.ErrNotExist
		}
	}
	full := filepath.Join(root, p)
	fi, err := os.Lstat(full)
	if err != nil {
		return nil, "", err
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		return nil, "it is a link", nil
	case !fi.Mode().IsRegular():
		return nil, "it is not a regular file", nil
	case hardLinks(fi) > 1:
		return nil, "it has other names (hard links)", nil
	case fi.Size() > maxReport:
		return nil, fmt.Sprintf("its %d bytes are more than %d", fi.Size(), maxReport), nil
	case fi.ModTime().Before(started.Add(-tick)):
		return nil, "it was written before the command started", nil
	}
	content, err = os.ReadFile(full)
	return content, "", err
}

// tick is the most by which a file's time may lag behind the clock.
const tick = 20 * time.Millisecond
