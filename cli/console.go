package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pbuild/bench/decl"
	"pbuild/hcl"
)

func (a *app) consoleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "console",
		Short: "Evaluate expressions of the workspace, one a line",
		Long: `Evaluate expressions over the workspace's variables, locals and functions: one a line from standard input, each answered with its value.

  > var.names
  > [for n in var.names : upper(n)]`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.workDir()
			if err != nil {
				return err
			}
			config := hcl.Open(dir, a.hclOptions())
			a.view.source = config.Snippet
			a.view.showDiagnostics(dir, config.Diagnostics)
			if config.Diagnostics.HasErrors() {
				return said(ExitUsage)
			}
			return a.console(dir, config)
		},
	}
}

func (a *app) console(dir string, config *hcl.Config) error {
	prompt := func() {}
	if isTerminal(a.view.out) {
		prompt = func() { fmt.Fprint(a.view.err, "> ") }
	}
	answers := json.NewEncoder(a.view.out)
	answers.SetEscapeHTML(false)
	failed := false
	lines := bufio.NewScanner(a.cfg.Stdin)
	lines.Buffer(nil, 1<<20)
	for prompt(); !a.view.unread() && lines.Scan(); prompt() {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text == "exit" {
			if text == "exit" {
				break
			}
			continue
		}
		shown, value, ds := config.Console(text)
		failed = failed || ds.HasErrors()
		switch {
		case a.view.json:
			if err := answers.Encode(consoleJSON{formatVersion, text, shown, value, diagnosticsJSON(ds)}); err != nil {
				return worldf("console: %v", err)
			}
		case ds.HasErrors():
			a.showConsoleErrors(ds)
		default:
			a.view.printf("%s\n", shown)
		}
	}
	if err := lines.Err(); err != nil {
		return worldf("console: %v", err)
	}
	if failed {
		return said(ExitFailed)
	}
	return nil
}

// A consoleJSON is the line of `console --json` that answers one expression. The value is null also where it is not shown, which the text then says.
type consoleJSON struct {
	FormatVersion int              `json:"format_version"`
	Expression    string           `json:"expression"`
	Text          string           `json:"text"` // as HCL; "" of an error
	Value         json.RawMessage  `json:"value"`
	Diagnostics   []diagnosticJSON `json:"diagnostics"`
}

// showConsoleErrors shows diagnostics of a line that was typed: it stands above, so no snippet is needed.
func (a *app) showConsoleErrors(ds decl.Diagnostics) {
	for _, d := range ds.Sort() {
		fmt.Fprintf(a.view.err, "%s %s: %s\n", a.view.paintErr(red, string(d.Severity)+":"), printable(d.Summary), printable(d.Detail))
	}
}
