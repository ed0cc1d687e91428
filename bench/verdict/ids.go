package verdict

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// normalize makes an id that a benchmark gives canonical as far as that needs no results: absolute paths become relative to the workspace,
// and a Go import path below a module becomes a directory.
func normalize(format, id string, in Input) string {
	id = plain(id, in.Workspace)
	if format == "tap" {
		return id
	}
	id, isDir := strings.CutPrefix(id, "./")
	if format == "gotest" {
		if dir, rest, ok := in.module(id); ok && rest != "" && !isDir && hasDomain(id) {
			id = strings.TrimPrefix(dir+rest, "./")
		}
		id = strings.ReplaceAll(strings.TrimPrefix(id, ".:"), " ", "_") // as testing names subtests
	}
	return id
}

// hasDomain says that an id begins with an import path that can be downloaded. Any other could as well be a directory, and then is one.
func hasDomain(id string) bool {
	first := id[:max(0, strings.IndexAny(id, "/:"))]
	return strings.Contains(first, ".")
}

// plain makes names comparable: absolute paths are relative to the workspace, and letters are composed (NFC), as HCL has them.
func plain(s, workspace string) string { return norm.NFC.String(relative(s, workspace)) }

// relative takes workspace away wherever a path in s begins with it.
func relative(s, workspace string) string {
	workspace = strings.TrimRight(workspace, "/") + "/"
	if workspace == "/" || !strings.Contains(s, workspace) {
		return s
	}
	s = strings.ReplaceAll(s, "file://"+workspace, workspace)
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(s[from:], workspace)
		if i < 0 {
			b.WriteString(s[from:])
			return b.String()
		}
		at := from + i
		b.WriteString(s[from:at])
		from = at + len(workspace)
		if at > 0 && inPath(s[at-1]) { // /other/workspace/
			b.WriteString(workspace)
		}
	}
}

func inPath(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-/~", c) >= 0
}

// module is the directory of the module, of those that hold the package with which name begins the one with the longest path, and what follows its path.
func (in *Input) module(name string) (dir, rest string, ok bool) {
	for i := len(name); i > 0; i-- {
		if i < len(name) && name[i] != '/' && name[i] != ':' {
			continue
		}
		if dir, ok = in.Modules[name[:i]]; ok {
			return dir, name[i:], true
		}
	}
	return "", "", false
}

// goID is the canonical id of a Go test: TestX for the package at the root of the workspace, dir:TestX for one below it.
func goID(pkg, test string, in Input, command []string) string {
	test = plain(test, in.Workspace)
	if dir := packageDir(pkg, in, command); dir != "." {
		return dir + ":" + test
	}
	return test
}

// packageDir is where a package lies, relative to the workspace. A package outside its modules keeps its import path, and so can be taken for no other.
func packageDir(pkg string, in Input, command []string) string {
	pkg = norm.NFC.String(pkg)
	if i := strings.Index(pkg, " ["); i >= 0 { // "p [p.test]"
		pkg = pkg[:i]
	}
	dir, rest, ok := in.module(pkg)
	switch {
	case ok:
		return path.Join(dir, rest)
	case pkg == "command-line-arguments": // files were named
		for _, arg := range command {
			if strings.HasSuffix(arg, ".go") {
				if below := relative(arg, in.Workspace); below != arg {
					return path.Dir(below)
				}
				return path.Join(in.Cwd, path.Dir(arg))
			}
		}
	case in.Workspace != "" && strings.HasPrefix(pkg, "_"+in.Workspace): // outside any module
		return path.Join(".", strings.TrimPrefix(strings.TrimPrefix(pkg, "_"+in.Workspace), "/"))
	}
	return pkg
}

// goDir is the directory that a canonical Go id names. A subtest's name may hold colons, so what follows the colon must look like a test.
func goDir(id string) string {
	dir, test, ok := strings.Cut(id, ":")
	if !ok {
		return "."
	}
	for _, prefix := range []string{"Test", "Example", "Fuzz", "Benchmark"} {
		if strings.HasPrefix(test, prefix) {
			return dir
		}
	}
	return "."
}
