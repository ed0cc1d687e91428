package lower

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// protect are the globs of what is reset before a test: what the instance names, and what its format's runner reads that a candidate could use
// to win without fixing (spec/verdicts.md, "What protects a verdict"). By name and wherever it is, for what a command's text says of where it goes is little.
func protect(format string, argv []string, cwd string, declared ...[]string) []string {
	globs := slices.Concat(declared...)
	dirs := places(argv, cwd)
	switch {
	case format == "gotest":
		globs = append(globs, "**/*_test.go", "**/testdata/**", "**/go.work", "**/go.work.sum", "~=**/vendor/**")
		for _, dir := range dirs {
			globs = append(globs, "~"+path.Join(dir, "vendor/**"))
		}
	case format == "junit" && (names(argv, "pytest") || names(argv, "py.test")):
		globs = append(append(globs, pytestFiles...), "!=**/site-packages/**") // of prepare, where installed watches what matters
		globs = append(globs, around(dirs, pythonModules...)...)
		// The code under test may be pytest itself.
		globs = append(append(globs, in(dirs, "pytest/**", "_pytest/**")...), "~=**/pytest/**", "~=**/_pytest/**")
	}
	if names(argv, "cargo") {
		globs = append(globs, around(dirs, ".cargo/**", "rust-toolchain", "rust-toolchain.toml")...)
	}
	if slices.ContainsFunc(nodePrograms, func(p string) bool { return names(argv, p) }) {
		globs = append(globs, around(dirs, nodeFiles...)...)
	}
	if names(argv, "mvn") {
		globs = append(globs, around(dirs, ".mvn/**")...)
	}
	return sorted(append(globs, makefiles(words(argv), dirs)...))
}

// around are the globs of files that a command reads in the directories in which it runs, or maybe elsewhere: there a patch's are put back, and what
// the build adds, or prepare installed, stays.
func around(dirs []string, files ...string) []string {
	globs := in(dirs, files...)
	for _, f := range files {
		globs = append(globs, "=**/"+f)
	}
	return globs
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

// installed are the globs of the tools with which prepare may have filled the workspace and which the test runs: base's tree has none of them, and so nothing to
// put back. What tools write for themselves is not among them (node_modules/.cache).
func installed(argv []string, cwd string) []string {
	dirs := places(argv, cwd)
	globs := in(dirs, "node_modules/.bin/**", "node_modules/[^.]*/**")
	for _, venv := range []string{".venv", "venv"} {
		globs = append(globs, in(dirs, venv+"/bin/**", venv+"/lib/python*/site-packages/{*.pth,{pytest,_pytest,pluggy}/**}")...)
	}
	return sorted(globs)
}

// programs are the globs of what a command may run that is no tool of the machine, each a path that it names.
func programs(argv []string, cwd string) []string {
	var globs []string
	dirs := places(argv, cwd)
	for _, w := range words(argv) {
		if !strings.Contains(w, "/") || path.IsAbs(w) || w[0] == '-' || !isPlain(w) || strings.Contains(w, "::") { // that is a test's id
			continue
		}
		for _, dir := range dirs {
			if p := path.Join(dir, w); filepath.IsLocal(p) && p != "." {
				globs = append(globs, p)
			}
		}
	}
	return sorted(globs)
}

// pytestFiles are what pytest takes its configuration and hooks from: it looks for them beside the tests that it is given, and upwards from there.
var pytestFiles = []string{
	"**/conftest.py", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml", "**/tox.ini", "**/setup.cfg", "**/*.pth",
}

// pythonModules are loaded before any test is, from the directory in which Python starts before any other: as a source, a compiled file or a package.
var pythonModules = []string{"{pytest,_pytest,sitecustomize,usercustomize}.{py*,*so}", "{site,user}customize/**"}

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

// words are the words of a command, and of the text that it has for a shell.
func words(argv []string) []string {
	return strings.FieldsFunc(strings.Join(argv, "\n"), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|()<>'\"`", r) })
}

// isPlain says whether a word is a path as it stands, to a shell and in a glob.
func isPlain(w string) bool { return !strings.ContainsAny(w, "*?[]{}~=$\\") }

// places are the directories in which a command may run, as far as its words say, with those above.
func places(argv []string, cwd string) []string {
	dirs := upwards(cwd)
	at := cwd
	text := words(argv)
	for i, w := range text {
		to, ok := option(text[i:], 'C', "--directory")
		if w == "cd" && i+1 < len(text) {
			to, ok = text[i+1], true
		}
		if !ok || !isPlain(to) {
			continue
		}
		at = path.Join(at, to)
		for _, dir := range []string{at, path.Join(cwd, to)} {
			if filepath.IsLocal(dir) {
				dirs = append(dirs, upwards(dir)...)
			}
		}
	}
	return sorted(dirs)
}

// makefiles are those that a make among the words reads (cmake may run one): the ones that it looks for, and those that -f names. A build that adds a Makefile is taken
// for one that generates it; of the other two, which make would rather read, it is not.
func makefiles(text, dirs []string) []string {
	if !slices.ContainsFunc(text, func(w string) bool { return strings.HasSuffix(path.Base(w), "make") }) {
		return nil
	}
	globs := append(around(dirs, "GNUmakefile", "makefile"), "=**/Makefile")
	for i := range text {
		if name, ok := option(text[i:], 'f', "--file", "--makefile"); ok && isPlain(name) {
			globs = append(globs, "=**/"+path.Base(name))
		}
	}
	return globs
}

// option is the value of an option with which text begins: "-C x", "-Cx", "-skC x", "-C=x", "--directory x" or "--directory=x".
func option(text []string, short byte, long ...string) (string, bool) {
	value, found := "", false
	for _, l := range long {
		if v, ok := strings.CutPrefix(text[0], l); ok && (v == "" || v[0] == '=') {
			value, found = v, true
		}
	}
	if !found {
		i := strings.IndexByte(text[0], short)
		if i < 1 || text[0][0] != '-' || strings.Trim(text[0][1:i], makeFlags) != "" {
			return "", false
		}
		value = text[0][i+1:]
	}
	switch {
	case value != "":
		return strings.TrimPrefix(value, "="), true
	case len(text) > 1:
		return text[1], true
	}
	return "", false
}

// makeFlags are the short options of make that take no value, so that another may stand behind them.
const makeFlags = "BLRSbdeikmnpqrstvw"
