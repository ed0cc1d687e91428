package run

import (
	"path"
	"strings"
)

// Shadowed is the Python source in whose place a file would be loaded, by the file's name: the package d/x/__init__.py, a link d/x, which may lead to one, and
// the extension module d/x.abi3.so each for d/x.py. So would bytecode, d/__pycache__/x.cpython-312.pyc, which Python makes again where there is none.
func Shadowed(p string, link bool) (source string, bytecode bool) {
	dir, name := path.Split(p)
	stem, _, _ := strings.Cut(name, ".")
	above, last := path.Split(strings.TrimSuffix(dir, "/"))
	switch {
	case last == "__pycache__":
		return above + stem + ".py", true
	case stem == "__init__" && last != "":
		return above + last + ".py", false
	case strings.HasSuffix(name, ".so"), link && stem == name:
		return dir + stem + ".py", false
	}
	return "", false
}
