package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pbuild/cli"
)

const nullWorkspace = `
variable "greeting" {
  default = "hello"
}
dataset "rows" {
  file = "rows.jsonl"
  key  = "id"
}
task "copy" {
  for_each = dataset.rows
  command  = ["cp", each.value.from, "out/${each.key}"]
  inputs   = [each.value.from]
  outputs  = ["out/${each.key}"]
}
task "all" {
  command = ["sh", "-c", "cat more/*.txt > all"]
  inputs  = ["more/*.txt", "none/*.txt", "deep/**/x", "either/{a,b}", "flat/*.txt", "kinds/*/inside.txt"]
  outputs = ["all"]
}
`

// TestNull proves that the short way answers where nothing has changed, and steps aside after every kind of change that a plan could see.
func TestNull(t *testing.T) {
	changes := []struct {
		name   string
		change func(t *testing.T, dir string, cfg *cli.Config)
	}{
		{"an edited declaration", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "w.hcl", "\n# a comment\n") }},
		{"a new declaration file", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "new.hcl", "") }},
		{"a variables file", func(t *testing.T, dir string, _ *cli.Config) {
			appendTo(t, dir, "pbuild.vars.hcl", "greeting = \"hi\"\n")
		}},
		{"an edited dataset", func(t *testing.T, dir string, _ *cli.Config) {
			appendTo(t, dir, "rows.jsonl", `{"id":"c","from":"in/a"}`+"\n")
		}},
		{"an edited input", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "in/a", "x") }},
		{"a deleted input", func(t *testing.T, dir string, _ *cli.Config) { remove(t, dir, "in/b") }},
		{"a new file for a pattern", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "more/2.txt", "x") }},
		{"a new directory for a pattern", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "none/1.txt", "x") }},
		{"a new directory for a deep pattern", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "deep/er/x", "x") }},
		{"a new directory for alternatives", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "either/b", "x") }},
		{"a directory for a pattern in place of a file", func(t *testing.T, dir string, _ *cli.Config) {
			remove(t, dir, "flat")
			appendTo(t, dir, "flat/1.txt", "x")
		}},
		{"a directory that a pattern matches in place of a file", func(t *testing.T, dir string, _ *cli.Config) {
			remove(t, dir, "kinds/one")
			appendTo(t, dir, "kinds/one/inside.txt", "x")
		}},
		{"an edited output", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, "out/a", "x") }},
		{"a deleted output", func(t *testing.T, dir string, _ *cli.Config) { remove(t, dir, "all") }},
		{"a deleted journal", func(t *testing.T, dir string, _ *cli.Config) { remove(t, dir, ".pbuild/journal") }},
		{"a damaged snapshot", func(t *testing.T, dir string, _ *cli.Config) { appendTo(t, dir, ".pbuild/snapshot", "x") }},
		{"a variable in the environment", func(_ *testing.T, _ string, cfg *cli.Config) {
			cfg.Environ = append(cfg.Environ, "PBUILD_VAR_greeting=hi")
		}},
		{"a variable on the command line", func(_ *testing.T, _ string, cfg *cli.Config) { cfg.Args = append(cfg.Args, "--var", "greeting=hi") }},
		{"another PATH", func(_ *testing.T, _ string, cfg *cli.Config) { cfg.Environ = append(cfg.Environ, "PATH=/usr/bin:/bin") }},
		{"another build of pbuild", func(_ *testing.T, _ string, cfg *cli.Config) { cfg.Identity = "another" }},
		{"a selector", func(_ *testing.T, _ string, cfg *cli.Config) { cfg.Args = append(cfg.Args, "task.all") }},
		{"a flag that it does not know", func(_ *testing.T, _ string, cfg *cli.Config) { cfg.Args = append(cfg.Args, "--all") }},
		{"a flag from the environment", func(_ *testing.T, _ string, cfg *cli.Config) {
			cfg.Environ = append(cfg.Environ, "PBUILD_ALL=1")
		}},
	}
	base := t.TempDir()
	for name, text := range map[string]string{
		"w.hcl": nullWorkspace, "rows.jsonl": `{"id":"a","from":"in/a"}` + "\n" + `{"id":"b","from":"in/b"}` + "\n",
		"in/a": "a", "in/b": "b", "more/1.txt": "1", "flat": "", "kinds/one": "",
	} {
		appendTo(t, base, name, text)
	}
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			cfg := cli.Config{
				Stdout: &out, Stderr: &errs, Version: version, Identity: "this", Clock: time.Now, Wire: wire,
				Environ: append(os.Environ(), "PBUILD_SCRATCH="+t.TempDir()),
			}
			cfg.Args = []string{"apply", "-C", dir}
			if code := cli.Run(context.Background(), cfg); code != 0 {
				t.Fatalf("apply exits with %d: %s%s", code, out.String(), errs.String())
			}
			for _, command := range []string{"plan", "apply"} {
				cfg.Args = []string{command, "-C", dir}
				if code, ok := cli.Null(cfg); !ok || code != 0 {
					t.Fatalf("%s after an apply is not answered the short way", command)
				}
			}
			cfg.Args = []string{"plan", "-C", dir}
			c.change(t, dir, &cfg)
			if _, ok := cli.Null(cfg); ok {
				t.Errorf("%s: the short way answers all the same", c.name)
			}
		})
	}
}

func appendTo(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(full, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}
