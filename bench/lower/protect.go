package lower

import (
	"path"
	"slices"
	"strings"
)

// protect are the globs of what is reset before a test: what the instance names, and what its format's runner reads that a candidate could use
// to win without fixing (spec/verdicts.md, "What protects a verdict").
func protect(format string, argv []string, cwd string, declared ...[]string) []string {
	globs := slices.Concat(declared...)
	program := ""
	if len(argv) > 0 {
		program = path.Base(argv[0])
	}
	switch {
	case format == "gotest":
		globs = append(globs, "**/*_test.go", "**/testdata/**", "go.work*", "~vendor/**")
	case format == "junit" && runsPytest(argv):
		globs = append(globs, "**/conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pytest.py", "_pytest/**", "sitecustomize.py", "usercustomize.py", "**/*.pth")
	}
	switch program {
	case "cargo":
		globs = append(globs, ".cargo/**")
	case "make", "gmake":
		globs = append(globs, makefiles(argv, cwd)...)
	}
	return sorted(globs)
}

func runsPytest(argv []string) bool {
	return slices.ContainsFunc(argv, func(a string) bool {
		base := path.Base(a)
		return base == "pytest" || base == "py.test" || strings.HasPrefix(base, "pytest-")
	})
}

// makefiles are those that make reads: the ones that -f names, else those that it looks for, in the directory that cwd and -C say.
func makefiles(argv []string, cwd string) []string {
	dir := cwd
	var named []string
	for i := 1; i < len(argv); i++ {
		value := func(short string, long ...string) (string, bool) {
			if argv[i] == short || slices.Contains(long, argv[i]) {
				if i++; i < len(argv) {
					return argv[i], true
				}
				return "", false
			}
			for _, l := range long {
				if v, ok := strings.CutPrefix(argv[i], l+"="); ok {
					return v, true
				}
			}
			if v, ok := strings.CutPrefix(argv[i], short); ok && v != "" {
				return v, true
			}
			return "", false
		}
		if v, ok := value("-f", "--file", "--makefile"); ok {
			named = append(named, v)
		} else if v, ok := value("-C", "--directory"); ok {
			dir = path.Join(dir, v)
		}
	}
	if named == nil {
		named = []string{"GNUmakefile", "makefile", "Makefile"}
	}
	for i, n := range named {
		named[i] = path.Join(dir, n)
	}
	return named
}
