package cli

import "github.com/spf13/cobra"

func (a *app) reportCommand() *cobra.Command { return &cobra.Command{Use: "report"} }
