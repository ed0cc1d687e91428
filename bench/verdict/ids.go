package verdict

import (
	"path"
	"strings"
)

// normalize makes an expected id canonical as far as that needs no results: absolute paths become relative to the workspace, and a Go
// import path below the module becomes a directory.
func normalize(format, id string, in Input) string {
	id = relative(id, in.Workspace)
	if format == "tap" {
		return id
	}
	id = strings.TrimPrefix(id, "./")
	if format == "gotest" {
		if in.Module != "" {
			if rest, ok := strings.CutPrefix(id, in.Module+":"); ok {
				return rest
			}
			id = strings.TrimPrefix(id, in.Module+"/")
		}
		id = strings.ReplaceAll(strings.TrimPrefix(id, ".:"), " ", "_") // as testing names subtests
	}
	return id
}

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

// goID is the canonical id of a Go test: TestX for the package at the root of the module, dir:TestX for one below it.
func goID(pkg, test string, in Input, command []string) string {
	if dir := packageDir(pkg, in, command); dir != "." {
		return dir + ":" + test
	}
	return test
}

// packageDir is where a package lies, relative to the workspace. A package outside the module keeps its import path, and so can be taken for no other.
func packageDir(pkg string, in Input, command []string) string {
	if i := strings.Index(pkg, " ["); i >= 0 { // "p [p.test]"
		pkg = pkg[:i]
	}
	switch {
	case pkg == in.Module:
		return "."
	case in.Module != "" && strings.HasPrefix(pkg, in.Module+"/"):
		return pkg[len(in.Module)+1:]
	case pkg == "command-line-arguments": // files were named
		for _, arg := range command {
			if strings.HasSuffix(arg, ".go") {
				return path.Dir(relative(arg, in.Workspace))
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
