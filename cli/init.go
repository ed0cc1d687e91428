package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Write a small workspace that works, to begin from",
		Long: `Write a small workspace into the current directory (or -C DIR, which is made): one instance with its fix, the gate that checks it, both controls and a
report. Nothing that is there already is overwritten, and no workspace added to.`,
		Args: noArgs,
		// The directory may be yet to be made, so that the checks of other commands do not hold.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.flagsFromEnviron(cmd.Flags()); err != nil {
				return err
			}
			if a.flags.dir != "" {
				if err := os.MkdirAll(a.flags.dir, 0o777); err != nil {
					return usagef("-C: %v", err)
				}
			}
			return a.prepare(cmd)
		},
		RunE: func(*cobra.Command, []string) error {
			written := []string{}
			entries, err := os.ReadDir(a.flags.dir)
			if err != nil {
				return worldf("init: %v", err)
			}
			for _, e := range entries {
				if e.Name()[0] != '.' && (strings.HasSuffix(e.Name(), ".hcl") || strings.HasSuffix(e.Name(), ".hcl.json")) {
					return usagef("%s is there already: all such files of a directory are one workspace, and init adds to none; name another directory with -C", e.Name())
				}
			}
			for _, f := range starter {
				full := filepath.Join(a.flags.dir, filepath.FromSlash(f.name))
				if _, err := os.Lstat(full); err == nil {
					return usagef("%s is there already; init overwrites nothing", f.name)
				} else if !errors.Is(err, fs.ErrNotExist) {
					return worldf("init: %v", err)
				}
			}
			for _, f := range starter {
				full := filepath.Join(a.flags.dir, filepath.FromSlash(f.name))
				if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
					return worldf("init: %v", err)
				}
				if err := os.WriteFile(full, []byte(f.text), 0o666); err != nil {
					return worldf("init: %v", err)
				}
				written = append(written, f.name)
			}
			if a.view.json {
				return a.view.document(struct {
					FormatVersion int      `json:"format_version"`
					Files         []string `json:"files"`
				}{formatVersion, written})
			}
			for _, name := range written {
				a.view.printf("%s\n", name)
			}
			a.view.notef("Now `pbuild plan` says what would run, and `pbuild apply` runs it.\n")
			return nil
		},
	}
}

// starter is the workspace that init writes. Its only tool is the shell, so that it works on every machine with one.
var starter = []struct{ name, text string }{
	{"benchmarks.hcl", `# One instance: a program with a bug, its fix, and a hidden test, which is whatever of the fix matches test_files.
runtime "sh" {
  host {}
  probe = ["uname", "-s"] # what it prints is the runtime's identity, and in every key
}

instance "greet" {
  source {
    dir { path = "before" }
  }
  fix {
    dir { path = "after" }
  }
  test_files        = ["test.sh"]
  problem_statement = "greet.sh forgets the name that it is given."
  runtime           = runtime.sh
  test {
    command = ["sh", "test.sh"]
    format  = "exit"
    timeout = "1m"
  }
}

# The test must fail before the fix and pass with it.
gate "greet" {
  instances = instance.greet
}

agent "oracle" { kind = "oracle" } # knows the fix
agent "nop" { kind = "nop" }       # does nothing

matrix "controls" {
  instances = gate.greet
  agents    = [agent.oracle, agent.nop]
}

report "controls" {
  matrix = matrix.controls
}
`},
	{"before/greet.sh", "echo \"Hello!\"\n"},
	{"after/greet.sh", "echo \"Hello, $1!\"\n"},
	{"after/test.sh", "got=$(sh greet.sh World)\necho \"greet.sh says: $got\"\ntest \"$got\" = \"Hello, World!\"\n"},
}
