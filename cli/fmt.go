package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pbuild/hcl"
)

func (a *app) fmtCommand() *cobra.Command {
	var check, diff bool
	cmd := &cobra.Command{
		Use:   "fmt [FILE... | -]",
		Short: "Rewrite *.hcl files in the canonical layout",
		Long: `Rewrite *.hcl files of the workspace, or those named from there, in the canonical layout, and print their names.
"-" formats standard input to standard output. With --check nothing is written, and a file that would change makes the exit code 1.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "-") {
				if len(args) > 1 {
					return usagef(`"-" stands alone`)
				}
				return a.formatStdin(check, diff)
			}
			files, err := a.filesToFormat(args)
			if err != nil {
				return err
			}
			return a.formatFiles(files, check, diff)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit 1 if a file would change")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what changes")
	return cmd
}

func (a *app) filesToFormat(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{"."}
	}
	var files []string
	for _, arg := range args {
		arg = a.path(arg)
		st, err := os.Stat(arg)
		if err != nil {
			return nil, usagef("fmt: %v", err)
		}
		if !st.IsDir() {
			files = append(files, arg)
			continue
		}
		found, err := filepath.Glob(filepath.Join(arg, "[^.]*.hcl")) // as the workspace is read
		if err != nil {
			return nil, usagef("fmt: %v", err)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func (a *app) formatStdin(check, diff bool) error {
	src, err := io.ReadAll(a.cfg.Stdin)
	if err != nil {
		return worldf("fmt: %v", err)
	}
	out, err := a.format(src, "<stdin>")
	if err != nil {
		return err
	}
	d, shown := newFmtJSON(), ""
	if !bytes.Equal(src, out) {
		shown = d.add("<stdin>", src, out, diff)
	}
	switch {
	case a.view.json:
		if !check {
			text := string(out)
			d.Text = &text
		}
		if err := a.view.document(d); err != nil {
			return err
		}
	case diff:
		a.view.printf("%s", shown)
	case !check:
		a.view.printf("%s", out)
	}
	return d.end(check)
}

// A fmtJSON is the document of `fmt --json`: the files that change, with --diff what changes, and of standard input what comes out.
type fmtJSON struct {
	FormatVersion int      `json:"format_version"`
	Changed       []string `json:"changed"`
	Diff          string   `json:"diff,omitempty"`
	Text          *string  `json:"text,omitempty"`
}

func newFmtJSON() *fmtJSON { return &fmtJSON{FormatVersion: formatVersion, Changed: []string{}} }

// add notes a file that changes, and returns with diff what changes.
func (d *fmtJSON) add(name string, src, out []byte, diff bool) (shown string) {
	d.Changed = append(d.Changed, name)
	if diff {
		shown = lineDiff(name, string(src), string(out))
		d.Diff += shown
	}
	return shown
}

// end ends the command: with --check, what changes is a failure.
func (d *fmtJSON) end(check bool) error {
	if check && len(d.Changed) > 0 {
		return said(ExitFailed)
	}
	return nil
}

func (a *app) formatFiles(files []string, check, diff bool) error {
	d := newFmtJSON()
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return worldf("fmt: %v", err)
		}
		name := a.relative(file)
		out, err := a.format(src, name)
		if err != nil {
			return err
		}
		if bytes.Equal(src, out) {
			continue
		}
		if shown := d.add(name, src, out, diff); !a.view.json {
			a.view.printf("%s\n%s", name, shown)
		}
		if !check {
			if err := writeAside(file, out); err != nil {
				return worldf("fmt: %v", err)
			}
		}
	}
	if a.view.json {
		if err := a.view.document(d); err != nil {
			return err
		}
	}
	return d.end(check)
}

func (a *app) format(src []byte, name string) ([]byte, error) {
	out, ds := hcl.Format(src, name)
	if ds.HasErrors() {
		a.view.showDiagnostics(a.flags.dir, ds)
		return nil, said(ExitUsage)
	}
	return out, nil
}

// relative names a file as the user sees it from the workspace.
func (a *app) relative(file string) string {
	if r, err := filepath.Rel(a.flags.dir, file); err == nil && !strings.HasPrefix(r, "..") {
		return r
	}
	return file
}

// writeAside replaces a file's content at once, keeping its mode. A link stays one: the file that it names is replaced.
func writeAside(file string, content []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	mode := os.FileMode(0o644)
	if st, err := os.Stat(file); err == nil {
		mode = st.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if e := f.Chmod(mode); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
