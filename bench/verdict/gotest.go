package verdict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A goEvent is one line of `go test -json` (go doc cmd/test2json).
type goEvent struct {
	Action, Package, Test, Output string
	ImportPath, FailedBuild       string // of what was built, since Go 1.24
}

// goName is a test within its package.
type goName struct{ pkg, test string }

type goTest struct {
	began    bool
	ends     int
	result   Result // of the first end
	panicked bool   // its own output has begun to tell of a panic
	culprit  bool   // and has a stack trace after that
	glued    Result // an end that only its output tells of: see gluedEnd
	last     Result // of a later end that differs
}

type goPackage struct {
	end         string // action of its last end
	failedTests int
	ran         bool
	forged      string  // the first test that has passed and never began
	unbuilt     string  // "build", "setup" or "vet"
	blamed      *goName // the test whose output told of a panic last
}

// A goBuild is what the toolchain printed of one thing that it built.
type goBuild struct{ vetting, vet, compiler bool }

// goStream collects the events of a run. Results come from events alone: whatever a test prints is inside Output.
type goStream struct {
	tests    map[goName]*goTest
	packages map[string]*goPackage
	builds   map[string]*goBuild
	order    []goName
	events   int
	text     bool // lines as `go test` prints them without -json
}

func parseGoTest(in Input, command []string) suite {
	g := goStream{tests: map[goName]*goTest{}, packages: map[string]*goPackage{}, builds: map[string]*goBuild{}}
	for line := range bytes.Lines(in.Stdout) {
		var e goEvent
		if line = bytes.TrimSpace(line); dull(line) {
			g.events++
		} else if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
			g.events++
			g.event(&e)
		} else {
			g.plain(string(line))
		}
	}
	g.vetted(in.Stderr)
	g.settle()
	return g.suite(in, command)
}

// telling are what output must hold to be looked at.
var telling = [][]byte{[]byte("panic: "), []byte("fatal error: "), []byte("goroutine "), []byte("--- "), []byte(" failed]")}

// goRuns is what the line begins with by which a test does.
var goRuns = []byte("=== RUN   ")

// dull says without decoding it that a line is output which tells nothing: most of a log is. What a test prints cannot look so, as its quotes are escaped.
func dull(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`,"Action":"output",`)) {
		return false
	}
	if i := bytes.Index(line, goRuns); i > 0 && line[i-1] != '"' { // behind text: see gluedRun
		return false
	}
	return !slices.ContainsFunc(telling, func(t []byte) bool { return bytes.Contains(line, t) })
}

func (g *goStream) pkg(name string) *goPackage {
	p := g.packages[name]
	if p == nil {
		p = &goPackage{}
		g.packages[name] = p
	}
	return p
}

func (g *goStream) test(n goName) *goTest {
	t := g.tests[n]
	if t == nil {
		t = &goTest{}
		g.tests[n] = t
		g.order = append(g.order, n)
	}
	return t
}

var goEnds = map[string]Result{"pass": Passed, "fail": Failed, "skip": Skipped}

func (g *goStream) event(e *goEvent) {
	if e.Package == "" {
		if e.Action == "build-output" {
			g.built(e.ImportPath, e.Output)
		}
		return // the package's own events say what that meant
	}
	p := g.pkg(e.Package)
	if b := g.builds[e.FailedBuild]; b != nil && p.unbuilt == "build" {
		p.unbuilt = b.stopped()
	}
	if name := gluedRun(e.Output); name != "" {
		g.test(goName{e.Package, name}).began = true
	}
	if e.Test == "" {
		switch e.Action {
		case "pass", "fail", "skip":
			p.end = e.Action
		case "output":
			g.unbuilt(e.Package, strings.TrimSpace(e.Output))
		}
		return
	}
	p.ran = true
	n := goName{e.Package, e.Test}
	t := g.test(n)
	t.began = t.began || e.Action == "run"
	if b := p.blamed; b != nil && goLives[e.Action] && (b.test == e.Test || strings.HasPrefix(e.Test, b.test+"/")) {
		g.tests[*b].panicked, g.tests[*b].culprit, p.blamed = false, false, nil // it printed the stack of a panic from which it recovered
	}
	if r, ok := goEnds[e.Action]; ok {
		if t.ends++; t.ends == 1 {
			t.result = r
		} else if r != t.result {
			t.last = r
		}
	} else if e.Action == "output" {
		was := t.culprit
		if t.output(e); t.culprit && !was {
			if p.blamed != nil { // a process dies once
				g.tests[*p.blamed].culprit = false
			}
			p.blamed = &n
		}
	}
}

// vetted reads from stderr what vet has against packages: before Go 1.24 builds had no events.
func (g *goStream) vetted(stderr []byte) {
	pkg := ""
	for line := range strings.Lines(string(stderr)) {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			pkg, _, _ = strings.Cut(strings.Trim(name, "[]\n"), " ")
		}
		if pkg != "" {
			g.built(pkg, line)
		}
	}
	for name, p := range g.packages {
		if b := g.builds[name]; b != nil && p.unbuilt == "build" {
			p.unbuilt = b.stopped()
		}
	}
}

// stopped is the step at which the package was given up.
func (b *goBuild) stopped() string {
	if b.vet && !b.compiler {
		return "vet"
	}
	return "build"
}

// goLives are the actions of a test that lives on.
var goLives = map[string]bool{"run": true, "pause": true, "cont": true}

// built reads what was printed of a build: "# [p]" begins what vet has against p, which was compiled then, unless vet itself could not read it.
func (g *goStream) built(path, line string) {
	b := g.builds[path]
	if b == nil {
		b = &goBuild{}
		g.builds[path] = b
	}
	switch {
	case strings.HasPrefix(line, "# "):
		b.vetting = strings.HasPrefix(line, "# [")
	case b.vetting && !strings.HasPrefix(line, "vet: "):
		b.vet = true
	default:
		b.compiler = true
	}
}

// output looks for a panic, or for an end that the toolchain itself did not see.
func (t *goTest) output(e *goEvent) {
	o := e.Output
	switch {
	case strings.Contains(o, "panic: ") || strings.Contains(o, "fatal error: "):
		t.panicked = true
	case t.panicked && strings.HasPrefix(o, "goroutine ") && strings.Contains(o, " ["):
		t.culprit = true
	}
	if t.glued == "" {
		t.glued = gluedEnd(o, e.Test)
	}
}

// gluedEnd reads "text--- PASS: TestX (0.00s)": before Go 1.20 a test that printed text without a line break had no end event
// (golang.org/issue/26325). Only the test's own name counts.
func gluedEnd(output, test string) Result {
	s := strings.TrimRight(output, "\n")
	i := strings.LastIndex(s, "--- ")
	if i <= 0 || !strings.HasSuffix(s, "s)") {
		return ""
	}
	end, rest, _ := strings.Cut(s[i+4:], ": ")
	if !strings.HasPrefix(rest, test+" (") {
		return ""
	}
	return goEnds[strings.ToLower(end)]
}

// gluedRun is the test that "text=== RUN   TestX" begins: before Go 1.20 it had no event either.
func gluedRun(output string) string {
	before, test, _ := strings.Cut(output, string(goRuns))
	if before == "" {
		return ""
	}
	return strings.TrimSuffix(test, "\n")
}

// plain reads a line that is no event. Before Go 1.24 a build failure was one.
func (g *goStream) plain(line string) {
	if name, _, ok := strings.Cut(strings.TrimPrefix(line, "FAIL\t"), " ["); ok && strings.HasPrefix(line, "FAIL\t") && g.unbuilt(name, line) {
		return
	}
	for _, prefix := range []string{"ok  \t", "--- PASS", "--- FAIL", "FAIL\t", "PASS"} {
		g.text = g.text || strings.HasPrefix(line, prefix)
	}
}

// unbuilt notes "FAIL\tPKG [build failed]" and "[setup failed]", for a package in which no test has run.
func (g *goStream) unbuilt(pkg, line string) bool {
	for _, what := range []string{"build", "setup"} {
		if line == "FAIL\t"+pkg+" ["+what+" failed]" && !g.pkg(pkg).ran {
			g.pkg(pkg).unbuilt = what
			return true
		}
	}
	return false
}

// settle gives a result to tests that have no end event of their own but whose end is beyond doubt: the one whose output holds the panic, one whose
// end was glued to its output, and the parents of what failed. All others that did not end stay without a result: a panic
// elsewhere hid them.
func (g *goStream) settle() {
	for _, n := range g.order {
		t, p := g.tests[n], g.packages[n.pkg]
		switch {
		case t.ends > 0:
		case t.culprit && p.end != "pass", t.glued == Failed:
			t.ends, t.result = 1, Failed
		case t.glued != "" && p.end == "pass":
			t.ends, t.result = 1, t.glued
		}
	}
	for _, n := range g.order {
		t, p := g.tests[n], g.packages[n.pkg]
		if t.result == Passed && !t.began && p.forged == "" {
			p.forged = n.test
		}
		if t.result != Failed && t.last != Failed {
			continue
		}
		p.failedTests++
		parent := n.test
		for range 32 { // levels; what is nested deeper is not worth a walk that could be quadratic
			i := strings.LastIndexByte(parent, '/')
			if i < 0 {
				break
			}
			parent = parent[:i]
			if t := g.tests[goName{n.pkg, parent}]; t != nil && t.ends == 0 {
				t.ends, t.result = 1, Failed
			}
		}
	}
}

func (g *goStream) suite(in Input, command []string) suite {
	su := suite{onLog: true, doubts: map[string]string{}}
	index := map[string][]int{}
	for _, n := range g.order {
		t := g.tests[n]
		if t.culprit && t.result == Failed {
			su.culprits = append(su.culprits, goID(n.pkg, n.test, in, command))
		}
		if t.ends == 0 {
			continue
		}
		id := goID(n.pkg, n.test, in, command)
		index[id] = append(index[id], len(su.tests))
		su.tests = append(su.tests, found{id, t.result})
		if t.ends > 1 {
			if t.last == "" {
				t.last = t.result
			}
			su.tests = append(su.tests, found{id, t.last})
		}
	}
	slices.Sort(su.culprits)
	su.lookup = func(id string) []int { return index[id] }
	for name, p := range g.packages {
		g.judgePackage(&su, packageDir(name, in, command), p)
	}
	slices.Sort(su.buildFailed)
	slices.Sort(su.setupFailed)
	slices.Sort(su.outside)
	if g.events == 0 && g.text && len(su.buildFailed)+len(su.setupFailed) == 0 {
		su.broken = "stdout is the text of `go test`, not its events: the command needs -json"
	}
	if g.events == 0 {
		su.why = "; stdout has no event of `go test -json`"
	}
	return su
}

// judgePackage notes how a package failed other than by its tests, and where its end contradicts them: tests of it that
// all passed prove nothing if the process did not end well.
func (g *goStream) judgePackage(su *suite, dir string, p *goPackage) {
	switch {
	case p.unbuilt == "setup":
		su.setupFailed = append(su.setupFailed, dir)
		su.outside = append(su.outside, dir+" [setup failed]")
	case p.unbuilt == "vet": // the tests are as they should be, and did not run
		su.outside = append(su.outside, dir+" [vet failed]")
	case p.unbuilt == "build":
		su.buildFailed = append(su.buildFailed, dir)
		su.outside = append(su.outside, dir+" [build failed]")
	case p.end == "fail" && p.failedTests == 0:
		su.outside = append(su.outside, dir+" [failed outside its tests]")
		if p.ran {
			su.doubts[dir] = fmt.Sprintf("package %s failed, but none of its tests did", dir)
		}
	case p.end == "pass" && p.failedTests > 0:
		su.doubts[dir] = fmt.Sprintf("package %s passed, but %d of its tests failed", dir, p.failedTests)
	case p.forged != "":
		su.doubts[dir] = fmt.Sprintf("%s of package %s passed, but did not begin", p.forged, dir)
	case p.ran && p.end == "":
		su.doubts[dir] = fmt.Sprintf("package %s has tests that passed, but did not end", dir)
	}
}
