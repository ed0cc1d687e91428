package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pbuild/engine/run"
)

// What README.md and the tutorial tell a reader to type is typed, and comes out as they say.
//
// A line that begins with four spaces and "$ " is a command of the shell; it must succeed, unless a comment behind it says `exit code N`. The indented
// lines after it, if there are any, are all that it prints. A fenced block is the file that the line before it names last: it is written, or, where it is there, compared.
func TestDocs(t *testing.T) {
	for _, page := range []string{"README.md", "docs/tutorial.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			if page != "README.md" && isolation() < run.IsolationSealed {
				t.Skip("its agent runs code and needs a sealed sandbox")
			}
			r := &reader{dir: t.TempDir()}
			r.home = r.dir
			r.read(t, read(t, ".", page))
			if r.commands == 0 {
				t.Fatal("it has no commands")
			}
		})
	}
}

// A reader follows a page.
type reader struct {
	dir, home string
	output    []string // of the last command, what is not yet accounted for
	shown     bool     // some of it is
	commands  int
}

var (
	namedFile    = regexp.MustCompile("`([\\w./-]+)`[^`]*:$")
	exitCode     = regexp.MustCompile(`# exit code (\d+)`)
	duration     = regexp.MustCompile(`\d+\.\d+s`)
	shellCommand = "    $ "
)

func (r *reader) read(t *testing.T, page string) {
	lines, prose := strings.Split(page, "\n"), ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "```"):
			begin := i + 1
			for i++; lines[i] != "```"; i++ {
			}
			name := namedFile.FindStringSubmatch(prose)
			if name == nil {
				t.Fatalf("%q names no file", prose)
			}
			r.file(t, name[1], strings.Join(lines[begin:i], "\n")+"\n")
		case strings.HasPrefix(line, shellCommand):
			r.command(t, strings.TrimPrefix(line, shellCommand))
		case strings.HasPrefix(line, "    ") && r.commands > 0:
			r.printed(t, strings.TrimPrefix(line, "    "))
		case line != "":
			r.whole(t)
			prose = line
		}
	}
	r.whole(t)
}

func (r *reader) file(t *testing.T, name, text string) {
	full := filepath.Join(r.dir, name)
	old, err := os.ReadFile(full)
	switch {
	case err == nil && string(old) != text:
		t.Fatalf("%s is\n%s\nand not\n%s", name, old, text)
	case errors.Is(err, os.ErrNotExist):
		if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatal(err)
	}
}

func (r *reader) command(t *testing.T, line string) {
	r.whole(t)
	r.commands++
	want := "0"
	if m := exitCode.FindStringSubmatch(line); m != nil {
		want = m[1]
	}
	place := filepath.Join(r.home, "pwd")
	cmd := exec.Command("sh", "-c", line+"\necho \"exit code $?\" && pwd > '"+place+"'")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.home, "PBUILD_SCRATCH="+filepath.Join(r.home, "scratch"), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	body, code, _ := cutLast(strings.TrimSuffix(string(out), "\n"), "exit code ")
	if code != want {
		t.Fatalf("%s: exit code %s, not %s\n%s", line, code, want, out)
	}
	for _, line := range strings.Split(duration.ReplaceAllString(body, "Ns"), "\n") {
		if line = strings.TrimRight(line, " "); line != "" {
			r.output = append(r.output, line)
		}
	}
	where, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	r.dir = strings.TrimSpace(string(where))
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// printed takes the next line of the output.
func (r *reader) printed(t *testing.T, line string) {
	want := duration.ReplaceAllString(line, "Ns")
	if len(r.output) == 0 || r.output[0] != want {
		t.Fatalf("%q was not printed; left of the output is\n%s", line, strings.Join(r.output, "\n"))
	}
	r.output, r.shown = r.output[1:], true
}

// whole checks that a page which shows output shows all of it.
func (r *reader) whole(t *testing.T) {
	if r.shown && len(r.output) > 0 {
		t.Fatalf("the page does not show\n%s", strings.Join(r.output, "\n"))
	}
	r.output, r.shown = nil, false
}
