package verdict

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// Absolute paths become relative where a path begins with the workspace, and only there.
func TestRelative(t *testing.T) {
	for in, want := range map[string]string{
		"/w/s/a.js":            "a.js",
		"file:///w/s/a.js":     "a.js",
		"/other/w/s/a.js":      "/other/w/s/a.js",
		"test [/w/s/a] /w/s/b": "test [a] b",
		"/w/s2/a.js":           "/w/s2/a.js",
		"/w/s":                 "/w/s",
		"a/w/s//w/s/b":         "a/w/s//w/s/b",
	} {
		for _, workspace := range []string{"/w/s", "/w/s/"} {
			if got := relative(in, workspace); got != want {
				t.Errorf("%s below %s: %s, want %s", in, workspace, got, want)
			}
		}
	}
	if relative("/a", "") != "/a" || relative("/a", "/") != "/a" {
		t.Error("no workspace, no change")
	}
}

// A package's directory is found from the module, or from what older and odder ways of running `go test` print instead.
func TestPackageDir(t *testing.T) {
	in := Input{Modules: map[string]string{"example.com/m": ".", "example.com/m/tools": "internal/tools", "fix": "sub/fix"}, Workspace: "/workspace"}
	for pkg, want := range map[string]string{
		"example.com/m":                               ".",
		"example.com/m/a/b":                           "a/b",
		"example.com/m/a [example.com/m/a.test]":      "a",
		"example.com/m2":                              "example.com/m2",
		"example.com/m/tools":                         "internal/tools",
		"example.com/m/tools/a":                       "internal/tools/a",
		"example.com/m/toolset":                       "toolset",
		"fix/a":                                       "sub/fix/a",
		"command-line-arguments":                      "sub",
		"_/workspace/old":                             "old",
		"_/workspace":                                 ".",
		"example.com/other/vendored":                  "example.com/other/vendored",
		"example.com/m/x_test [example.com/m/x.test]": "x_test",
		"example.com/m/v2 [example.com/m/v2.test] something": "v2",
	} {
		if got := packageDir(pkg, in, []string{"go", "test", "-json", "/workspace/sub/x_test.go"}); got != want {
			t.Errorf("%s: %s, want %s", pkg, got, want)
		}
	}
	in.Cwd = "sub"
	for file, want := range map[string]string{"x_test.go": "sub", "./a/x_test.go": "sub/a", "../x_test.go": ".", "/workspace/a/x_test.go": "a"} {
		if got := packageDir("command-line-arguments", in, []string{"go", "test", file}); got != want {
			t.Errorf("%s in sub: %s, want %s", file, got, want)
		}
	}
	for id, want := range map[string]string{
		"example.com/m:TestA": "TestA", "example.com/m/a:TestA": "a:TestA", "example.com/m/tools:TestA/x y": "internal/tools:TestA/x_y", "example.com/m/tools/a:TestA": "internal/tools/a:TestA",
		"fix:TestA": "fix:TestA", "TestA": "TestA", "sub/fix:TestA": "sub/fix:TestA", "./example.com/m:TestA": "example.com/m:TestA",
	} {
		if got := normalize("gotest", id, in); got != want {
			t.Errorf("id %s: %s, want %s", id, got, want)
		}
	}
}

// goPasses is a package of Go whose tests all pass.
func goPasses(pkg string, tests ...string) string {
	var b strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&b, "{\"Action\":\"run\",\"Package\":%q,\"Test\":%q}\n{\"Action\":\"pass\",\"Package\":%[1]q,\"Test\":%[2]q}\n", pkg, test)
	}
	fmt.Fprintf(&b, "{\"Action\":\"pass\",\"Package\":%q}\n", pkg)
	return b.String()
}

// A directory may have the name of the root's module: an id means the directory, whether it is given or derived, and is never the root's test.
func TestDirectoryNamedAsModule(t *testing.T) {
	in := Input{Modules: map[string]string{"calc": "."}, Stdout: []byte(goPasses("calc", "TestAdd"))}
	given, derived := &kind.ScoreSpec{Format: "gotest", FailToPass: []string{"calc:TestAdd"}}, &Expected{FailToPass: []string{"calc:TestAdd"}}
	for range 2 {
		for _, s := range []Score{Parse(given, in, nil), Parse(&kind.ScoreSpec{Format: "gotest"}, in, derived)} {
			if got := s.FailToPass[0].Result; (got == Passed) != strings.Contains(string(in.Stdout), "calc/calc") {
				t.Errorf("calc:TestAdd is %s in\n%s", got, in.Stdout)
			}
		}
		in.Stdout = append(in.Stdout, goPasses("calc/calc", "TestAdd")...)
	}
}

// Every id that is derived from a report finds what it was derived from, whatever the names hold; so does one of junit that a benchmark copies from it.
func TestDerivedIDsAreFound(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", ".", "/", "::", "[", "]", " ", ".py", "#", " > ", ":", "Test", "/workspace/", "./", "e\u0301", "\\", "file://", "-", "_"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(part, 0, 5).Draw(t, "parts"), "") })
	name := rapid.OneOf(text, rapid.SampledFrom([]string{"test/foo.test.ts", "example.com/m/pkg", "example.com/m", "m", "m/m", "x.py", "a.B", ".a", "test/foo", "TestA", "adds"}))
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"gotest", "junit", "tap"}).Draw(t, "format")
		in := Input{Workspace: "/workspace", Modules: map[string]string{"m": ".", "example.com/m": "sub", "a": "b"}, Reports: map[string][]byte{}}
		report := &junitReport{}
		var out strings.Builder
		n := rapid.IntRange(1, 4).Draw(t, "tests")
		for range n {
			where, test := name.Draw(t, "where"), name.Draw(t, "test")
			out.WriteString(map[string]string{"gotest": goPasses("x"+where, "Test"+test), "tap": "ok - " + where + test + "\n"}[format])
			report.Cases = append(report.Cases, junitAttrs{where, test})
		}
		if format == "tap" {
			fmt.Fprintf(&out, "1..%d\n", n)
		}
		in.Stdout = []byte(out.String())
		var err error
		if in.Reports["r.xml"], err = xml.Marshal(report); err != nil {
			t.Fatal(err)
		}
		ids := passedIDs(Parse(&kind.ScoreSpec{Format: format, Derive: true}, in, nil))
		if len(ids) == 0 {
			return
		}
		if s := Parse(&kind.ScoreSpec{Format: format}, in, &Expected{FailToPass: ids}); s.Passed != len(ids) {
			t.Fatalf("derived: %s", s.Detail)
		}
		if format != "junit" || strings.Contains(strings.Join(ids, ""), in.Workspace) { // what is relative already would be made so again
			return
		}
		if s := Parse(&kind.ScoreSpec{Format: format, FailToPass: ids}, in, nil); s.Passed != len(ids) {
			t.Fatalf("given: %s", s.Detail)
		}
	})
}

type junitReport struct {
	XMLName xml.Name     `xml:"testsuite"`
	Cases   []junitAttrs `xml:"testcase"`
}

type junitAttrs struct {
	Class string `xml:"classname,attr"`
	Name  string `xml:"name,attr"`
}

// A Go test that passed has begun, and its package has ended.
func TestForgedGoResults(t *testing.T) {
	event := func(action, test, output string) string {
		b, _ := json.Marshal(map[string]string{"Action": action, "Package": "m", "Test": test, "Output": output})
		return string(b) + "\n"
	}
	const end = "{\"Action\":\"pass\",\"Package\":\"m\"}\n"
	for _, c := range []struct{ name, stdout, detail string }{
		{"honest", event("run", "TestA", "") + event("pass", "TestA", "") + end, ""},
		{"no beginning", event("output", "TestA", "--- PASS: TestA (0.00s)\n") + event("pass", "TestA", "") + end, "TestA of package . passed, but did not begin"},
		{"only another begins", event("run", "TestB", "") + event("pass", "TestB", "") + event("pass", "TestA", "") + end, "TestA of package . passed, but did not begin"},
		{"no end", event("run", "TestA", "") + event("pass", "TestA", ""), "package . has tests that passed, but did not end"},
		{"in another package", event("run", "TestA", "") + event("pass", "TestA", "") + end + strings.ReplaceAll(event("pass", "TestB", "")+end, `"m"`, `"m/sub"`), ""},
		{"it begins behind text", event("output", "", "text=== RUN   TestA\n") + event("pass", "TestA", "") + end, ""},
		{"another begins behind text", event("output", "", "text=== RUN   TestAB\n") + event("pass", "TestA", "") + end, "TestA of package . passed, but did not begin"},
	} {
		s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA"}}, Input{Modules: map[string]string{"m": "."}, Stdout: []byte(c.stdout)}, nil)
		if s.Detail != c.detail || (s.Reason == ReportMismatch) != (c.detail != "") {
			t.Errorf("%s: %s, %s", c.name, s.Reason, s.Detail)
		}
	}
}

// Names are compared composed, as HCL has them, whichever way a report or a benchmark writes them; what then is one name twice is a duplicate.
func TestComposedNames(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	report := func(names ...string) map[string][]byte {
		r := &junitReport{}
		for _, n := range names {
			r.Cases = append(r.Cases, junitAttrs{"t", n})
		}
		b, _ := xml.Marshal(r)
		return map[string][]byte{"r.xml": b}
	}
	for _, in := range []string{composed, decomposed} {
		for _, id := range []string{composed, decomposed} {
			for format, c := range map[string]struct {
				id string
				in Input
			}{
				"gotest": {in + ":Test/" + id, Input{Modules: map[string]string{"m": "."}, Stdout: []byte(goPasses("m/"+in, "Test/"+in))}},
				"junit":  {"t::" + id, Input{Reports: report(in)}},
				"tap":    {id, Input{Stdout: []byte("1..1\nok 1 - " + in + "\n")}},
			} {
				if s := Parse(&kind.ScoreSpec{Format: format, FailToPass: []string{c.id}}, c.in, nil); s.Verdict != task.Pass {
					t.Errorf("%s: %+q in a report of %+q: %s", format, id, in, s.Detail)
				}
			}
		}
	}
	if s := Parse(&kind.ScoreSpec{Format: "junit", FailToPass: []string{"t::" + composed}}, Input{Reports: report(composed, decomposed)}, nil); s.Reason != DuplicateID {
		t.Errorf("both: %s, %s", s.Reason, s.Detail)
	}
}

// A test of the same name in another package, class or file is not the one that is asked for.
func TestNoShadowing(t *testing.T) {
	event := func(pkg, test, action string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":%q,\"Test\":%q}\n", action, pkg, test)
	}
	const done = "{\"Action\":\"pass\",\"Package\":\"m\"}\n{\"Action\":\"pass\",\"Package\":\"m/sub\"}\n"
	xml := func(cases ...string) map[string][]byte {
		s := "<testsuite>"
		for _, c := range cases {
			class, name, _ := strings.Cut(c, "|")
			s += fmt.Sprintf("<testcase classname=%q name=%q/>", class, name)
		}
		return map[string][]byte{"r.xml": []byte(s + "</testsuite>")}
	}
	for _, c := range []struct {
		name, format, id string
		in               Input
		want             Result
	}{
		{"another package", "gotest", "TestA", Input{Stdout: []byte(event("m/sub", "TestA", "pass") + done)}, Absent},
		{"another module", "gotest", "TestA", Input{Stdout: []byte(event("evil/m", "TestA", "pass") + done)}, Absent},
		{"the root's for the package's", "gotest", "sub:TestA", Input{Stdout: []byte(event("m", "TestA", "pass") + done)}, Absent},
		{"a subtest for its parent", "gotest", "TestA", Input{Stdout: []byte(event("m", "TestA/TestA", "pass") + done)}, Absent},
		{"another file", "junit", "tests/test_a.py::test_x", Input{Reports: xml("tests.test_b|test_x")}, Absent},
		{"a deeper file", "junit", "tests/test_a.py::test_x", Input{Reports: xml("evil.tests.test_a|test_x")}, Absent},
		{"a class for a function", "junit", "tests/test_a.py::test_x", Input{Reports: xml("tests.test_a.TestEvil|test_x")}, Absent},
		{"a second class of that name", "junit", "FooTest::adds", Input{Reports: xml("org.FooTest|adds", "FooTest|adds")}, Ambiguous},
		{"a second test of that name", "junit", "adds", Input{Reports: xml("org.FooTest|adds", "|adds")}, Ambiguous},
		{"the whole classname", "junit", "org.FooTest::adds", Input{Reports: xml("org.FooTest|adds", "evil.org.FooTest|adds")}, Passed},
		{"without a package", "junit", ".FooTest::adds", Input{Reports: xml("FooTest|adds", "evil.FooTest|adds")}, Passed},
		{"a path as the classname", "junit", "test/foo.test.ts::adds", Input{Reports: xml("test/foo.test.ts|adds", "test.foo.test|adds")}, Passed},
		{"a path without a dot", "junit", "test/foo::adds", Input{Reports: xml("test/foo|adds", "test.foo|adds")}, Passed},
		{"another path as the classname", "junit", "test/foo.test.ts::adds", Input{Reports: xml("evil/test/foo.test.ts|adds")}, Absent},
		{"a cut id", "junit", "t.py::test_x[a", Input{Reports: xml("t|test_x[a b]", "t|test_x[ b]", "u|test_x[a c]")}, Passed},
		{"a cut id of two", "junit", "t.py::test_x[a", Input{Reports: xml("t|test_x[a b]", "t|test_x[a c]")}, Ambiguous},
		{"no cut id", "junit", "t.py::test_x[a]", Input{Reports: xml("t|test_x[a]b]")}, Absent},
		{"a deeper description", "tap", "a", Input{Stdout: []byte("    ok 1 - a\nok 1 - evil\n1..1\n")}, Absent},
		{"a shallower description", "tap", "suite > a", Input{Stdout: []byte("ok 1 - a\n1..1\n")}, Absent},
	} {
		c.in.Modules = map[string]string{"m": "."}
		s := Parse(&kind.ScoreSpec{Format: c.format, FailToPass: []string{c.id}}, c.in, nil)
		if got := s.FailToPass[0].Result; got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.name, c.id, got, c.want)
		}
		if (s.Verdict == task.Pass) != (c.want == Passed) {
			t.Errorf("%s: verdict %s: %s", c.name, s.Verdict, s.Detail)
		}
	}
}

// A second result of an id is a duplicate where ids name tests, and part of the one result where they are descriptions (docs/adr/0006).
func TestRepeatedResults(t *testing.T) {
	xml := func(second string) map[string][]byte {
		return map[string][]byte{"r.xml": []byte(`<testsuite><testcase classname="t" name="adds"/><testcase classname="t" name="adds">` + second + `</testcase></testsuite>`)}
	}
	tap := func(second string) []byte { return []byte("ok 1 - adds\n" + second + "\n1..2\n") }
	const once = "{\"Action\":\"pass\",\"Package\":\"m\",\"Test\":\"TestA\"}\n"
	for _, c := range []struct {
		name, format, id string
		in               Input
		want             Result
		reason           Reason
	}{
		{"gotest", "gotest", "TestA", Input{Modules: map[string]string{"m": "."}, Stdout: []byte(once + once + "{\"Action\":\"pass\",\"Package\":\"m\"}\n")}, Duplicate, DuplicateID},
		{"junit", "junit", "t::adds", Input{Reports: xml("")}, Duplicate, DuplicateID},
		{"junit, one fails, with exit 0", "junit", "t::adds", Input{Reports: xml("<failure/>")}, Duplicate, ReportMismatch},
		{"tap, both pass", "tap", "adds", Input{Stdout: tap("ok 2 - adds")}, Passed, ""},
		{"tap, one fails", "tap", "adds", Input{Stdout: tap("not ok 2 - adds"), Exit: 1}, Failed, FailedTest},
		{"tap, prove -v sums each file up", "tap", "adds", Input{Stdout: []byte("t/a.t ..\n1..1\nok 1 - adds\nok\nt/b.t ..\nok 1 - subtracts\n1..1\nok\nAll tests successful.\n")}, Passed, ""},
		{"tap, one is skipped", "tap", "adds", Input{Stdout: tap("ok 2 - adds # SKIP")}, Skipped, SkippedTest},
	} {
		s := Parse(&kind.ScoreSpec{Format: c.format, FailToPass: []string{c.id}}, c.in, nil)
		if got := s.FailToPass[0].Result; got != c.want || s.Reason != c.reason {
			t.Errorf("%s: %s, reason %q, want %s, %q", c.name, got, s.Reason, c.want, c.reason)
		}
		if s.Reason == ReportMismatch && s.Detail != "exit 0, but the report has failures: .t::adds" {
			t.Errorf("%s: %s", c.name, s.Detail)
		}
	}
}

// What a score by given lists needs besides a report.
func TestAbsentIDSaysWhatCame(t *testing.T) {
	events := `{"Action":"pass","Package":"example.com/m/sub","Test":"TestA"}` + "\n"
	for id, says := range map[string]string{
		"TestA": "no result of TestA; there is sub:TestA",
		"TestB": "no result of TestB; ids with a result: 1",
	} {
		in := Input{Modules: map[string]string{"example.com/m": "."}, Stdout: []byte(events)}
		if s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{id}}, in, nil); s.Detail != says {
			t.Errorf("%s: %q", id, s.Detail)
		}
	}
	s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA"}}, Input{Stdout: []byte("fine\n")}, nil)
	if s.Reason != NoTests || s.Detail != "no test ran, exit 0; stdout has no event of `go test -json`" {
		t.Errorf("%s: %q", s.Reason, s.Detail)
	}
}

func TestParseLists(t *testing.T) {
	pass := Input{Modules: map[string]string{"m": "."}, Stdout: []byte(goPasses("m", "TestA"))}
	if s := Parse(&kind.ScoreSpec{Format: "gotest"}, pass, nil); s.Reason != ToolError {
		t.Errorf("nothing is expected: %+v", s)
	}
	if s := Parse(&kind.ScoreSpec{Format: "gotest"}, pass, &Expected{FailToPass: []string{"TestA"}}); s.Verdict != task.Pass || s.Total != 1 || s.Found != nil {
		t.Errorf("derived lists: %+v", s)
	}
	if s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA", "TestA"}}, pass, nil); s.Total != 1 {
		t.Errorf("an id that is listed twice is one: %+v", s)
	}
	if s := Parse(&kind.ScoreSpec{Format: "nunit", FailToPass: []string{"a"}}, pass, nil); s.Reason != ToolError {
		t.Errorf("an unknown format: %+v", s)
	}
	for exit, want := range map[int]Reason{0: "", 1: NonzeroExit, 127: NonzeroExit, 139: NonzeroExit} {
		if s := Parse(&kind.ScoreSpec{Format: "exit"}, Input{Exit: exit, Truncated: true}, nil); s.Reason != want || (s.Verdict == task.Pass) != (exit == 0) {
			t.Errorf("exit %d: %+v", exit, s)
		}
	}
	if s := Parse(&kind.ScoreSpec{Format: "tap", FailToPass: []string{"a"}}, Input{Exit: 137, OutOfMem: true}, nil); s.Detail != "no test ran, exit 137; it met its memory limit" {
		t.Errorf("killed at its memory limit: %+v", s)
	}
	if s := Parse(&kind.ScoreSpec{Format: "exit"}, Input{TimedOut: "idle"}, nil); s.Verdict != task.Timeout || s.Reason != TimedOut {
		t.Errorf("an idle limit: %+v", s)
	}
	if s := Parse(&kind.ScoreSpec{Format: "junit", FailToPass: []string{"a"}}, Input{Exit: 127}, nil); s.Reason != NoTests || s.Detail != "no test ran, exit 127: the command or one of its libraries could not be started" {
		t.Errorf("a runner that could not start: %+v", s)
	}
	for stderr, want := range map[string]string{
		"pbuild: the workspace has no directory nope\n":       "exit 127: the workspace has no directory nope",
		"sh: foo: not found\n":                                "exit 127: the command or one of its libraries could not be started",
		"pbuild: the workspace has no directory nope\nmore\n": "exit 127: the command or one of its libraries could not be started",
	} {
		if s := Parse(&kind.ScoreSpec{Format: "exit"}, Input{Exit: 127, Stderr: []byte(stderr)}, nil); s.Detail != want {
			t.Errorf("%q: got %q, want %q", stderr, s.Detail, want)
		}
	}
}

// Without the report it is not known that no test ran.
func TestUnwrittenReport(t *testing.T) {
	one := map[string][]byte{"r.xml": []byte(`<testsuite><testcase classname="C" name="b"/></testsuite>`)}
	for _, c := range []struct {
		spec kind.ScoreSpec
		in   Input
		want string
	}{
		{kind.ScoreSpec{FailToPass: []string{"a"}}, Input{Exit: 1, Unwritten: []string{"out/r.xml"}}, "no report was written to out/r.xml, exit 1"},
		{kind.ScoreSpec{Derive: true}, Input{Unwritten: []string{"out/r.xml"}}, "no report was written to out/r.xml, exit 0"},
		{kind.ScoreSpec{FailToPass: []string{"a"}}, Input{Reports: one, Unwritten: []string{"s.xml"}}, "no result of a; ids with a result: 1; no report was written to s.xml"},
		{kind.ScoreSpec{FailToPass: []string{"a"}}, Input{Reports: map[string][]byte{"r.xml": []byte("<testsuite/>")}}, "no test ran, exit 0"},
	} {
		c.spec.Format = "junit"
		if s := Parse(&c.spec, c.in, nil); s.Detail != c.want || s.Reason == "" {
			t.Errorf("got %s %q, want %q", s.Reason, s.Detail, c.want)
		}
	}
}

// A pass needs every expected id to have exactly one result, a pass, and the exit to agree; a failure elsewhere only has to make the exit non-zero.
func TestPassing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := rapid.MapOfN(rapid.SampledFrom([]string{"TestA", "TestB", "TestC", "TestA/x"}), rapid.SampledFrom([]string{"pass", "fail", "skip", "", "pass pass", "fail pass"}), 0, 4).Draw(t, "results")
		exit := rapid.IntRange(0, 1).Draw(t, "exit")
		expected := []string{"TestA", "TestB"}[:rapid.IntRange(1, 2).Draw(t, "expected")]
		var out strings.Builder
		anyFailed := false
		for test, actions := range results {
			for _, a := range append([]string{"run"}, strings.Fields(actions)...) {
				fmt.Fprintf(&out, "{\"Action\":%q,\"Package\":\"m\",\"Test\":%q}\n", a, test)
			}
			anyFailed = anyFailed || strings.HasPrefix(actions, "fail")
		}
		end := map[bool]string{true: "fail", false: "pass"}[anyFailed]
		fmt.Fprintf(&out, "{\"Action\":%q,\"Package\":\"m\"}\n", end)
		want := anyFailed == (exit != 0)
		for _, id := range expected {
			want = want && results[id] == "pass"
		}
		s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: expected}, Input{Modules: map[string]string{"m": "."}, Exit: exit, Stdout: []byte(out.String())}, nil)
		if (s.Verdict == task.Pass) != want {
			t.Fatalf("%v with exit %d: %s, %s", results, exit, s.Verdict, s.Detail)
		}
		if (s.Verdict == task.Pass) != (s.Reason == "") {
			t.Fatalf("verdict %s with reason %q", s.Verdict, s.Reason)
		}
	})
}

// hostile inputs are such as make a careless parser quadratic. Each is about size bytes.
func hostile(size int) map[string]Input {
	var deep, slashes strings.Builder
	for i := 0; deep.Len() < size; i++ {
		fmt.Fprintf(&deep, "%sok 1 - %d\n", strings.Repeat(" ", 4*(i%2000)), i)
	}
	slashes.WriteString(`{"Action":"fail","Package":"m","Test":"TestA`)
	slashes.WriteString(strings.Repeat("/", size))
	slashes.WriteString("\"}\n")
	long := "# Subtest: " + strings.Repeat("n", size/2) + "\n" + strings.Repeat("    ok 1 - a\n", size/26)
	cases := strings.Repeat(`<testcase classname="t" name="x[a"/>`, size/36)
	return map[string]Input{
		"tap deep":        {Stdout: []byte(deep.String())},
		"tap long":        {Stdout: []byte(long)},
		"tap braces":      {Stdout: []byte(strings.Repeat("ok 1 - a {\n", size/11))},
		"tap yaml":        {Stdout: []byte("ok 1 - a\n  ---\n" + strings.Repeat("  x\n", size/4))},
		"tap colours":     {Stdout: []byte(strings.Repeat("\x1b[", size/2))},
		"tap hashes":      {Stdout: []byte("ok 1 - " + strings.Repeat(" #", size/2))},
		"gotest slashes":  {Stdout: []byte(slashes.String()), Modules: map[string]string{"m": "."}},
		"gotest panics":   {Stdout: []byte(strings.Repeat(`{"Action":"output","Package":"m","Test":"TestA","Output":"panic: x"}`+"\n", size/70)), Modules: map[string]string{"m": "."}},
		"gotest text":     {Stdout: []byte(strings.Repeat("FAIL\tm [build failed]\n", size/22)), Modules: map[string]string{"m": "."}},
		"junit nested":    {Reports: map[string][]byte{"r": []byte(strings.Repeat("<testsuite>", size/11))}},
		"junit same":      {Reports: map[string][]byte{"r": []byte("<testsuite>" + cases + "</testsuite>")}},
		"junit workspace": {Workspace: "/w", Reports: map[string][]byte{"r": []byte(`<testcase name="` + strings.Repeat("x/w/", size/4) + `"/>`)}},
	}
}

// A log of the usual limit is parsed at once, however it was made. The bound is a hundred times what it takes, and far below what quadratic time would.
func TestParsersAreLinear(t *testing.T) {
	for name, in := range hostile(512 << 10) {
		format, _, _ := strings.Cut(name, " ")
		var ids []string
		for i := range 2000 {
			ids = append(ids, fmt.Sprintf("t.py::x[a%d", i))
		}
		start := time.Now()
		s := Parse(&kind.ScoreSpec{Format: format, FailToPass: append(ids, "t::x[a")}, in, nil)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
		if s.Verdict == task.Pass {
			t.Errorf("%s passes", name)
		}
		if b, err := json.Marshal(s); err != nil || len(b) > 64<<20 {
			t.Errorf("%s: %d bytes of score, %v", name, len(b), err)
		}
	}
}

// No bytes make a parser panic, pass without results, or say different things twice.
func FuzzParse(f *testing.F) {
	paths, _ := filepath.Glob("testdata/cases/*.txtar")
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		format, _, _ := strings.Cut(filepath.Base(p), "_")
		for _, file := range a.Files {
			if file.Name == "stdout" || strings.HasPrefix(file.Name, "report/") {
				f.Add(format, file.Data, 1)
			}
		}
	}
	for name, in := range hostile(512) {
		format, _, _ := strings.Cut(name, " ")
		f.Add(format, append(in.Stdout, in.Reports["r"]...), 0)
	}
	f.Fuzz(func(t *testing.T, format string, data []byte, exit int) {
		in := Input{Exit: exit, Stdout: data, Reports: map[string][]byte{"r": data}, Modules: map[string]string{"example.com/m": "."}, Workspace: "/workspace"}
		for _, derive := range []bool{false, true} {
			spec := &kind.ScoreSpec{Format: format, Derive: derive}
			if !derive {
				spec.FailToPass, spec.PassToPass = []string{"TestA", "a"}, []string{"tests/test_a.py::test_x[a", "sub:TestA"}
			}
			s := Parse(spec, in, nil)
			if s.Verdict == task.Pass && format != "exit" && (s.Counts.Passed == 0 || s.Passed != s.Total || s.Exit == 0 && s.Counts.Failed > 0) {
				t.Fatalf("passes: %+v", s)
			}
			a, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := json.Marshal(Parse(spec, in, nil)); string(a) != string(b) {
				t.Fatalf("%s\n%s", a, b)
			}
			if derive {
				again := Parse(spec, in, &Expected{FailToPass: passedIDs(s)})
				for _, r := range again.FailToPass {
					if r.Result != Passed {
						t.Fatalf("%q passed, and is %s when it is asked for", r.ID, r.Result)
					}
				}
			}
		}
	})
}

func passedIDs(s Score) []string {
	var ids []string
	for _, f := range s.Found {
		if f.Result == Passed {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// Scores of stored logs must not change unless ParserVersion does; testdata holds nothing of the machine that it was made on.
func TestCapturesAreScrubbed(t *testing.T) {
	paths, _ := filepath.Glob("testdata/cases/*.txtar")
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"/tmp/", "/home/", "/root/", "/usr/local/"} {
			if strings.Contains(string(b), s) {
				t.Errorf("%s holds %s", p, s)
			}
		}
	}
}

// Before Go 1.24 what vet or the compiler has to say is on stderr, and the event says [build failed] of either.
func TestOldVet(t *testing.T) {
	const stdout = "{\"Action\":\"output\",\"Package\":\"m\",\"Output\":\"FAIL\\tm [build failed]\\n\"}\n{\"Action\":\"fail\",\"Package\":\"m\"}\n"
	for stderr, want := range map[string]Result{
		"# m\n# [m]\n./m_test.go:3:28: fmt.Printf format %d has arg \"x\" of wrong type string\n":                 Absent,
		"go: downloading example.com/a v1.0.0\n# m\n# [m]\n./m_test.go:3:28: self-assignment of x to x\n":         Absent,
		"# m [m.test]\n./m_test.go:3:31: undefined: B\n":                                                          Unbuilt,
		"# m\n# [m]\nvet: ./m_test.go:3:31: undefined: B\n":                                                       Unbuilt,
		"# m [m.test]\n./m_test.go:3:31: undefined: B\n# m\n# [m]\n./m.go:3:28: self-assignment of x to x\n":      Unbuilt,
		"# other\n# [other]\n./o.go:3:28: self-assignment of x to x\n# m [m.test]\n./m_test.go:1: undefined: B\n": Unbuilt,
		"": Unbuilt,
	} {
		in := Input{Modules: map[string]string{"m": "."}, Exit: 1, Stdout: []byte(stdout), Stderr: []byte(stderr)}
		if got := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA"}}, in, nil).FailToPass[0].Result; got != want {
			t.Errorf("%q: %s, want %s", stderr, got, want)
		}
	}
}
