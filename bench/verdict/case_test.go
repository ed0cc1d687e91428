package verdict

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"pbuild/bench/kind"
)

var (
	update  = flag.Bool("update", false, "write what the parsers say into testdata")
	capture = flag.Bool("capture", false, "run each case's own command again and record what it prints")
)

// A testCase is one file of testdata/cases: src/* is a small project, `case` says how it is run and read, exit, stdout and report/* are what the
// real tool did, and want is the score. A case without src was written by hand, as its comment says.
type testCase struct {
	path    string
	archive *txtar.Archive
	spec    kind.ScoreSpec
	in      Input
	run     []string
	reports []string
}

func readCase(t *testing.T, path string) *testCase {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &testCase{path: path, archive: a}
	c.in.Reports, c.in.Workspace = map[string][]byte{}, "/workspace"
	for _, f := range a.Files {
		switch {
		case f.Name == "case":
			for _, line := range strings.Split(strings.TrimSpace(string(f.Data)), "\n") {
				c.setting(t, line)
			}
		case f.Name == "exit":
			if c.in.Exit, err = strconv.Atoi(strings.TrimSpace(string(f.Data))); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		case f.Name == "stdout":
			c.in.Stdout = f.Data
		case strings.HasPrefix(f.Name, "report/"):
			c.in.Reports[strings.TrimPrefix(f.Name, "report/")] = f.Data
		}
	}
	return c
}

func (c *testCase) setting(t *testing.T, line string) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "format":
		c.spec.Format = value
	case "module":
		module, dir, _ := strings.Cut(value, " ")
		if c.in.Modules == nil {
			c.in.Modules = map[string]string{}
		}
		c.in.Modules[module] = cmp.Or(dir, ".")
	case "f2p":
		c.spec.FailToPass = append(c.spec.FailToPass, value)
	case "p2p":
		c.spec.PassToPass = append(c.spec.PassToPass, value)
	case "derive":
		c.spec.Derive = true
	case "truncated":
		c.in.Truncated = true
	case "timed_out":
		c.in.TimedOut = value
	case "refused":
		path, why, _ := strings.Cut(value, " ")
		c.in.Refused = map[string]string{path: why}
	case "run":
		c.run = strings.Fields(value)
	case "report":
		c.reports = append(c.reports, value)
	default:
		t.Fatalf("%s: unknown setting %q", c.path, line)
	}
}

func (c *testCase) set(name string, data []byte) {
	i := slices.IndexFunc(c.archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		i = len(c.archive.Files)
		c.archive.Files = append(c.archive.Files, txtar.File{Name: name})
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	c.archive.Files[i].Data = data
}

func (c *testCase) write(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

var scrubs = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"Time":"[^"]*"`), `"Time":"2026-01-01T00:00:00Z"`},
	{regexp.MustCompile(`timestamp="[^"]*"`), `timestamp="2026-01-01T00:00:00"`},
	{regexp.MustCompile(`hostname="[^"]*"`), `hostname="host"`},
	{regexp.MustCompile(`[^\s"'(]*/site-packages/`), `/site-packages/`},
	{regexp.MustCompile(`[^\s"'(]*/lib/python3`), `/lib/python3`},
}

// record runs the case's command over its src and stores what came of it, without paths of the machine.
func (c *testCase) record(t *testing.T) {
	t.Helper()
	if len(c.run) == 0 {
		return
	}
	dir := t.TempDir()
	for _, f := range c.archive.Files {
		if rel, ok := strings.CutPrefix(f.Name, "src/"); ok {
			p := filepath.Join(dir, rel)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, f.Data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.Command(c.run[0], c.run[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "NO_COLOR=1")
	out, err := cmd.Output()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Skipf("%s: %v", c.run[0], err)
	}
	goroot, _ := exec.Command("go", "env", "GOROOT").Output()
	scrub := func(b []byte) []byte {
		s := strings.ReplaceAll(string(b), dir, "/workspace")
		s = strings.ReplaceAll(s, strings.TrimSpace(string(goroot))+"/", "/goroot/")
		for _, r := range scrubs {
			s = r.re.ReplaceAllString(s, r.with)
		}
		return []byte(s)
	}
	c.set("exit", []byte(strconv.Itoa(cmd.ProcessState.ExitCode())))
	c.set("stdout", scrub(out))
	for _, r := range c.reports {
		if b, err := os.ReadFile(filepath.Join(dir, r)); err == nil {
			c.set("report/"+r, scrub(b))
		}
	}
	c.write(t)
}

// Every case's score is what its file says. A parser that changes its mind must raise ParserVersion.
func TestCases(t *testing.T) {
	paths, _ := filepath.Glob("testdata/cases/*.txtar")
	if len(paths) == 0 {
		t.Fatal("no cases")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			c := readCase(t, path)
			if *capture {
				c.record(t)
				c = readCase(t, path)
			}
			got, err := json.MarshalIndent(Parse(&c.spec, c.in, nil), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			if *update {
				c.set("want", got)
				c.write(t)
				return
			}
			for _, f := range c.archive.Files {
				if f.Name == "want" {
					if string(f.Data) != string(got) {
						t.Errorf("got\n%s\nwant\n%s", got, f.Data)
					}
					return
				}
			}
			t.Errorf("the case has no want; run with -update and read it")
		})
	}
}
