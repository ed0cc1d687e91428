package hcl

import (
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"pbuild/bench/decl"
)

func TestFormat(t *testing.T) {
	got, diags := Format([]byte("task \"t\" {\ncommand=[\"a\"]\n  timeout = \"1m\" # why\n}"), "b.hcl")
	if want := "task \"t\" {\n  command = [\"a\"]\n  timeout = \"1m\" # why\n}\n"; string(got) != want || len(diags) > 0 {
		t.Errorf("got %q, %v", got, diags)
	}
	if got, diags := Format([]byte("task {"), "b.hcl"); got != nil || !diags.HasErrors() || diags[0].Range.File != "b.hcl" {
		t.Errorf("what does not parse became %q, %v", got, diags)
	}
	if got, diags := Format([]byte("{ }"), "b.hcl.json"); string(got) != "{ }" || len(diags) > 0 {
		t.Errorf("JSON became %q, %v", got, diags)
	}
}

func TestFormatTwiceIsFormatOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		src := rapid.StringOf(rapid.SampledFrom([]rune("a{}[]=\n \"#,${x.1<"))).Draw(rt, "source")
		once, diags := Format([]byte(src), "b.hcl")
		if diags.HasErrors() {
			return
		}
		twice, diags := Format(once, "b.hcl")
		if diags.HasErrors() || string(once) != string(twice) {
			rt.Fatalf("%q, then %q, %v", once, twice, diags)
		}
	})
}

func TestConsole(t *testing.T) {
	c := load(t, Options{Vars: []string{"n=4"}}, "b.hcl", `
variable "n" {
  type    = number
  default = 3
}
locals { l = ["x", var.n] }
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
dataset "mined" {
  mine {}
}
`, "d.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n")
	for expr, want := range map[string]string{
		`1 + var.n`:                            `5`,
		`local.l`:                              `["x", 4]`,
		`length(dataset.d)`:                    `2`,
		`"${length(dataset.d) * 2} rows"`:      `"4 rows"`,
		`[for s in local.l : format("%v", s)]`: `["x", "4"]`,
		`{ a = null }`:                         "{\n  a = null\n}",
		`length(dataset.mined)`:                `(not known before apply)`,
	} {
		if got, _, diags := c.Console(expr); got != want || len(diags) > 0 {
			t.Errorf("%s: got %q, want %q, %v", expr, got, want, diags)
		}
	}
	for _, expr := range []string{"", "1 +", "var.m", "dataset.d", "length(dataset.x)", "each.key", "nope()", `tonumber("x")`} {
		if got, _, diags := c.Console(expr); !diags.HasErrors() || got != "" {
			t.Errorf("%s: got %q, %v", expr, got, diags)
		} else if diags[0].Range.File != consoleFile {
			t.Errorf("%s: the mistake is at %s", expr, diags[0].Range)
		}
	}
}

func TestConsoleOfFilesThatDoNotParse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b.hcl"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := Open(dir, Options{})
	if _, _, diags := c.Console("1"); !diags.HasErrors() {
		t.Error("no errors")
	}
}

func TestSnippet(t *testing.T) {
	c := load(t, Options{}, "b.hcl", "pbuild {\r\n  slots = 1\r\n}")
	for line, want := range map[int]string{1: "pbuild {", 2: "  slots = 1", 3: "}"} {
		if got, ok := c.Snippet(decl.Range{File: "b.hcl", Line: line}); !ok || got != want {
			t.Errorf("line %d is %q", line, got)
		}
	}
	for _, r := range []decl.Range{{File: "b.hcl", Line: 4}, {File: "b.hcl"}, {File: "c.hcl", Line: 1}} {
		if got, ok := c.Snippet(r); ok {
			t.Errorf("%v is %q", r, got)
		}
	}
}

func TestVersionConstraints(t *testing.T) {
	for _, c := range []struct {
		version, constraint string
		met, valid          bool
	}{
		{"1.2.3", "1.2.3", true, true},
		{"1.2.3", "= 1.2.4", false, true},
		{"1.2.3", "!= 1.2.3", false, true},
		{"1.2.3", ">= 1.2, < 2", true, true},
		{"1.2.3", ">1.2.3", false, true},
		{"1.2.3", "<= 1.2.3", true, true},
		{"1.2.3", "~> 1.2", true, true},
		{"1.9.0", "~> 1.2", true, true},
		{"2.0.0", "~> 1.2", false, true},
		{"1.3.0", "~> 1.2.1", false, true},
		{"1.2.9", "~> 1.2.1", true, true},
		{"1.2.0", "~> 1.2.1", false, true},
		{"1.9.0", "~> 1", true, true},
		{"v0.4.0-dev", "~> 0.4", true, true},
		{"", ">= 99", true, true},
		{"devel", ">= 99", true, true},
		{"1.2.3", "~> 1.2.3-rc.1.2", true, true},
		{"1.9.0", "~> 1.2-rc.1", true, true},
		{"1.0.0", ">> 1", false, false},
		{"1.0.0", "", false, false},
		{"1.0.0", "1.2.3.4", false, false},
		{"1.0.0", ">= 1, ", false, false},
		{"1.0.0", "1.x", false, false},
	} {
		met, valid := satisfies(c.version, c.constraint)
		if valid != c.valid || valid && met != c.met {
			t.Errorf("%q and %q: met %v, valid %v", c.version, c.constraint, met, valid)
		}
	}
}

func TestSuggestions(t *testing.T) {
	names := []string{"instance", "runtime", "gold", "ab"}
	for name, want := range map[string]string{
		"instnce": ` Did you mean "instance"?`, "rutnime": ` Did you mean "runtime"?`, "glod": ` Did you mean "gold"?`, "ba": ` Did you mean "ab"?`,
		"xyz": "", "a": "", "": "",
	} {
		if got := didYouMean(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
