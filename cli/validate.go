package cli

import "github.com/spf13/cobra"

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the workspace without running or planning anything",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.load(cmd.Context(), loadOptions{keep: a.view.json, warn: true})
			if s == nil {
				return err
			}
			defer s.close()
			if a.view.json {
				if e := a.view.document(struct {
					FormatVersion int              `json:"format_version"`
					Valid         bool             `json:"valid"`
					Diagnostics   []diagnosticJSON `json:"diagnostics"`
				}{formatVersion, err == nil, diagnosticsJSON(s.diags)}); e != nil {
					return e
				}
				return err
			}
			if err == nil && !a.view.quiet {
				a.view.printf("%s %s\n", a.view.paint(green, "Valid:"), plural(len(s.ws.Blocks), "block")+", "+plural(len(s.graph.Tasks), "task")+".")
			}
			return err
		},
	}
}
