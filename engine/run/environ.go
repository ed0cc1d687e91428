package run

import (
	"path/filepath"
	"slices"
	"strings"
)

// Fixed is what the environment of every command holds, so that it says nothing of who runs it.
func Fixed(home, temp string) map[string]string {
	return map[string]string{"HOME": home, "TMPDIR": temp, "LANG": "C.UTF-8", "TZ": "UTC"}
}

// AbsolutePath drops the relative directories of a PATH: what they name depends on where one stands.
func AbsolutePath(path string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(path), func(d string) bool { return !filepath.IsAbs(d) })
	return strings.Join(dirs, string(filepath.ListSeparator))
}
