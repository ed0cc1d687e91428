package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the house's import table: which of the project's packages each package may import. A name ending in "/..." stands for all
// below it. Tests are free. A package that is not listed fails the test: it is to be placed first.
//
// The direction is always: text -> declarations -> tasks -> plan -> events -> records -> reports.
var mayImport = map[string][]string{
	".":   {"..."},
	"cli": {"hcl", "bench/...", "engine/..."},
	"hcl": {"bench/decl", "bench/rows", "engine/digest"},

	"bench/decl":    {"engine/digest"},
	"bench/kind":    {"engine/digest", "engine/task"},
	"bench/rows":    {"bench/decl", "engine/digest"},
	"bench/lower":   {"bench/decl", "bench/kind", "bench/report", "bench/rows", "bench/verdict", "engine/digest", "engine/task"}, // of the two, versions
	"bench/verdict": {"bench/decl", "bench/kind", "engine/digest", "engine/task"},
	"bench/stats":   {},
	"bench/report":  {"bench/verdict", "bench/rows", "bench/kind", "bench/stats", "engine/digest"},
	"bench/formats": {"bench/decl"},
	"bench/agent":   {"bench/decl", "bench/kind", "engine/digest", "engine/run", "engine/task"},
	"bench/exec":    {"bench/...", "engine/digest", "engine/task", "engine/tree", "engine/run"},

	"engine/digest":   {},
	"engine/task":     {"engine/digest"},
	"engine/plan":     {"engine/digest", "engine/task"},
	"engine/sched":    {"engine/task"},
	"engine/store":    {"engine/digest", "engine/task"},
	"engine/apply":    {"engine/digest", "engine/plan", "engine/sched", "engine/store", "engine/task"},
	"engine/tree":     {"engine/digest"},
	"engine/run":      {"engine/digest", "engine/task", "engine/tree"},
	"engine/run/host": {"engine/digest", "engine/run", "engine/task", "engine/tree"},

	"engine/store/storetest": {"engine/digest", "engine/store", "engine/task"},
	"benchmarks":             {}, // a program beside the house: it measures the built binary

	"engine/run/runtest": {"engine/digest", "engine/run", "engine/task", "engine/tree"},
}

// pure packages compute. They reach no process, no network and no clock: of time only durations.
var pure = []string{
	"bench/decl", "bench/kind", "bench/rows", "bench/lower", "bench/verdict", "bench/stats", "bench/report", "bench/formats",
	"engine/digest", "engine/task", "engine/plan", "engine/sched",
}

// impure are the imports that no pure package has.
var impure = []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "math/rand", "math/rand/v2", "golang.org/x/sys/unix"}

// durations is what a pure package may use of time.
var durations = []string{"Duration", "ParseDuration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour"}

// foreign modules are kept behind the one package that needs them.
var foreign = map[string][]string{
	"github.com/hashicorp/hcl/":  {"hcl"},
	"github.com/zclconf/go-cty/": {"hcl"},
	"github.com/spf13/":          {"cli"},
	"golang.org/x/term":          {"cli", "."},
	"github.com/docker/":         {"engine/run/docker"},
}

// printers are what only cli may say something with; main hands it the streams.
var printers = map[string][]string{
	"fmt": {"Print", "Printf", "Println"},
	"os":  {"Stdout", "Stderr"},
	"log": nil, // nothing of it at all
}

// mayPrint are the packages to which printers does not apply: the view, and programs.
var mayPrint = []string{"cli", ".", "benchmarks"}

const module = "pbuild"

func TestImports(t *testing.T) {
	files := parseHouse(t)
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.pkg] = true
		allowed, ok := mayImport[f.pkg]
		if !ok {
			t.Errorf("package %s is not in the import table", f.pkg)
			continue
		}
		for _, imp := range f.imports {
			own, isOwn := strings.CutPrefix(imp, module+"/")
			switch {
			case isOwn && !allows(allowed, own):
				t.Errorf("%s: package %s may not import %s", f.path, f.pkg, own)
			case strings.HasPrefix(f.pkg, "engine/") && (strings.HasPrefix(own, "bench/") || own == "hcl"):
				t.Errorf("%s: the engine knows no HCL and no benchmark, and imports %s", f.path, own)
			case slices.Contains(pure, f.pkg) && slices.Contains(impure, imp):
				t.Errorf("%s: package %s is pure and may not import %s", f.path, f.pkg, imp)
			}
			for prefix, homes := range foreign {
				if strings.HasPrefix(imp, prefix) && !slices.Contains(homes, f.pkg) {
					t.Errorf("%s: only %v may import %s", f.path, homes, imp)
				}
			}
		}
	}
	for _, p := range []string{".", "cli", "engine/task"} {
		if !seen[p] {
			t.Errorf("package %s was not looked at: the test reads the wrong directory", p)
		}
	}
}

func TestPurePackagesKnowNoClock(t *testing.T) {
	for _, f := range parseHouse(t) {
		if !slices.Contains(pure, f.pkg) {
			continue
		}
		for name, pos := range f.uses("time") {
			if !slices.Contains(durations, name) {
				t.Errorf("%s: a pure package may not use time.%s", pos, name)
			}
		}
	}
}

func TestOnlyTheViewPrints(t *testing.T) {
	for _, f := range parseHouse(t) {
		if slices.Contains(mayPrint, f.pkg) {
			continue
		}
		for imp, names := range printers {
			for name, pos := range f.uses(imp) {
				if names == nil || slices.Contains(names, name) {
					t.Errorf("%s: only cli prints, and this is %s.%s", pos, imp, name)
				}
			}
		}
	}
}

// A sourceFile is one Go file that is not a test.
type sourceFile struct {
	pkg, path string
	imports   []string
	syntax    *ast.File
	fset      *token.FileSet
}

// uses returns the names of a package of the standard library that the file uses, with where.
func (f *sourceFile) uses(pkg string) map[string]string {
	local := ""
	for _, imp := range f.syntax.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); path == pkg {
			local = filepath.Base(pkg)
			if imp.Name != nil {
				local = imp.Name.Name
			}
		}
	}
	out := map[string]string{}
	if local == "" {
		return out
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == local {
				out[sel.Sel.Name] = fmt.Sprint(f.fset.Position(sel.Pos()))
			}
		}
		return true
	})
	return out
}

// parseHouse reads every Go file of the module but tests, fixtures and examples.
func parseHouse(t *testing.T) []*sourceFile {
	t.Helper()
	var out []*sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != "." && (name == "testdata" || name == "examples" || name == "zdeps" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := &sourceFile{pkg: filepath.ToSlash(filepath.Dir(path)), path: path, syntax: syntax, fset: fset}
		for _, imp := range syntax.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		out = append(out, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func allows(allowed []string, pkg string) bool {
	for _, a := range allowed {
		if a == pkg || a == "..." {
			return true
		}
		if below, ok := strings.CutSuffix(a, "..."); ok && strings.HasPrefix(pkg, below) {
			return true
		}
	}
	return false
}
