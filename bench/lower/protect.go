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
		globs = append(globs, "**/*_test.go", "**/testdata/**")
		for _, dir := range upwards(cwd) {
			globs = append(globs, path.Join(dir, "go.work*"), "~"+path.Join(dir, "vendor/**"))
		}
	case format == "junit" && (names(argv, "pytest") || names(argv, "py.test")):
		globs = append(globs, pytestFiles...)
		for _, dir := range slices.Compact([]string{"", cwd}) {
			for _, module := range pytestModules {
				globs = append(globs, path.Join(dir, module+".*"), path.Join(dir, module, "**"))
			}
		}
	}
	switch {
	case program == "cargo":
		globs = append(globs, in(upwards(cwd), ".cargo/**", "rust-toolchain", "rust-toolchain.toml")...)
	case program == "make" || program == "gmake":
		globs = append(globs, makefiles(argv, cwd)...)
	case names(argv, "cargo"): // a shell's text, which may go anywhere first; make's there may be generated, and is left alone
		globs = append(globs, "**/.cargo/**")
	}
	if slices.ContainsFunc(nodePrograms, func(p string) bool { return names(argv, p) }) {
		globs = append(globs, in(upwards(cwd), nodeFiles...)...)
	}
	if names(argv, "mvn") {
		globs = append(globs, in(upwards(cwd), ".mvn/**")...)
	}
	return sorted(globs)
}

// in are the files in each of the directories.
func in(dirs []string, files ...string) []string {
	var globs []string
	for _, dir := range dirs {
		for _, f := range files {
			globs = append(globs, path.Join(dir, f))
		}
	}
	return globs
}

// nodePrograms run what package.json names; nodeFiles are where they and the test runners that they start take options from: another shell, modules to load first.
var (
	nodePrograms = []string{"npm", "npx", "yarn", "mocha", "jest", "vitest"} // npm is in pnpm too
	nodeFiles    = []string{
		".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/plugins/**", ".yarn/releases/**", ".pnpmfile.*", "pnpm-workspace.yaml",
		".mocharc.*", "jest.config.*", "vitest.config.*", "ava.config.*",
	}
)

// installed are the globs of the tools with which prepare may have filled the workspace and which the test runs, and of the program of the command itself, where it
// is no tool of the machine: base's tree has none of them, and so nothing to put back. What tools write for themselves is not among them (node_modules/.cache).
func installed(argv []string, cwd string) []string {
	globs := in(upwards(cwd), "node_modules/.bin/**", "node_modules/[^.]*/**")
	for _, venv := range []string{".venv", "venv"} {
		globs = append(globs, in(upwards(cwd), venv+"/bin/**", venv+"/lib/python*/site-packages/{pytest,_pytest,pluggy}/**")...)
	}
	if len(argv) > 0 && strings.Contains(argv[0], "/") && !path.IsAbs(argv[0]) && !isGlob(argv[0]) {
		globs = append(globs, path.Join(cwd, argv[0]))
	}
	return sorted(globs)
}

// pytestFiles are what pytest takes its configuration and hooks from: it looks for them beside the tests that it is given, and upwards from there.
var pytestFiles = []string{
	"**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml", "**/tox.ini", "**/setup.cfg", "**/*.pth",
}

// pytestModules are loaded before any test is, from the directory in which Python starts before any other: as a source, a compiled file or a package.
var pytestModules = []string{"pytest", "_pytest", "sitecustomize", "usercustomize"}

// upwards are cwd and the directories above it up to the workspace, in which go and cargo look for their configuration.
func upwards(cwd string) []string {
	dirs := []string{""}
	for dir := path.Clean(cwd); dir != "." && dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// names says whether a command names a program, in a shell's text too. To take another for it costs little: a candidate's own configuration of it.
func names(argv []string, program string) bool {
	return slices.ContainsFunc(argv, func(a string) bool { return strings.Contains(a, program) })
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
