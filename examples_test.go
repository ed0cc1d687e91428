package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pbuild/engine/run"
)

// What the cells of an example end in, by instance and agent. An example without a report has none.
var exampleOutcomes = map[string][]string{
	"command-agent": {"example__greet-1 nop empty", "example__greet-1 sed resolved"},
	"exit":          {"greet nop empty", "greet oracle resolved"},
	"gotest":        {"area nop empty", "area oracle resolved"},
	"junit":         {"slug nop empty", "slug oracle resolved"},
	"predictions": {
		"example__greet-1 partial failed", "example__greet-1 right resolved",
		"example__greet-2 partial missing", "example__greet-2 right resolved",
	},
	"tap":   {"max nop empty", "max oracle resolved"},
	"tasks": nil,
}

// Every example is applied as a user would, ends as its page says, and is done at once when it is applied again.
func TestExamples(t *testing.T) {
	dirs, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range dirs {
		names = append(names, d.Name())
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			want, ok := exampleOutcomes[d.Name()]
			if !ok {
				t.Fatal("its outcomes are not stated here")
			}
			example(t, d.Name(), want)
		})
	}
	for name := range exampleOutcomes {
		if !slices.Contains(names, name) {
			t.Errorf("there is no example %s", name)
		}
	}
}

func example(t *testing.T, name string, want []string) {
	switch name {
	case "command-agent":
		if isolation() < run.IsolationSealed {
			t.Skip("an agent that runs code needs a sealed sandbox")
		}
	case "gotest":
		if testing.Short() {
			t.Skip("it compiles a part of the standard library")
		}
	case "junit":
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("there is no python3")
		}
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("examples", name))); err != nil {
		t.Fatal(err)
	}
	pbuildIn(t, dir, "fmt", "--check")
	pbuildIn(t, dir, "apply")
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^report "([^"]+)"`).FindAllStringSubmatch(read(t, dir, "benchmarks.hcl"), -1) {
		var doc struct {
			Rows []struct{ Instance, Agent, Outcome string }
		}
		if err := json.Unmarshal([]byte(pbuildIn(t, dir, "report", m[1], "--json")), &doc); err != nil {
			t.Fatal(err)
		}
		for _, r := range doc.Rows {
			got = append(got, r.Instance+" "+r.Agent+" "+r.Outcome)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("it ended as\n%s\nnot as\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if again := pbuildIn(t, dir, "apply"); !strings.Contains(again, ": 0 ran, ") {
		t.Errorf("applied again:\n%s", again)
	}
}

func read(t *testing.T, dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pbuildIn runs the program, which testscript.Main has put on PATH, in dir, and returns what it printed to stdout.
func pbuildIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command("pbuild", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "PBUILD_SCRATCH="+filepath.Join(filepath.Dir(dir), "scratch"), "NO_COLOR=1")
	if err := cmd.Run(); err != nil {
		t.Fatalf("pbuild %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}
