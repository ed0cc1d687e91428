package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.view.json {
				return a.view.document(struct {
					FormatVersion int    `json:"format_version"`
					Pbuild        string `json:"pbuild"`
					Go            string `json:"go"`
					Platform      string `json:"platform"`
				}{formatVersion, a.cfg.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			a.view.printf("pbuild %s (%s, %s/%s)\n", a.cfg.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// noArgs refuses arguments as a matter of usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("`%s` takes no argument, and got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneAddress demands exactly one argument.
func oneAddress(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("`%s` takes one address, and got %d; `pbuild list` shows them", cmd.CommandPath(), len(args))
	}
	return nil
}
