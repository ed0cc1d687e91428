package cli

import (
	"github.com/spf13/cobra"
	"pbuild/engine/task"
)

type session struct {
	graph   *task.Graph
	address func(task.ID) string
}

func (a *app) loadChoice(cmd *cobra.Command, args []string) (*session, *choice, error) {
	return nil, nil, nil
}
func (a *app) snapshotAddresses() ([]string, error) { return nil, nil }
func (a *app) initCommand() *cobra.Command          { return nil }
func (a *app) validateCommand() *cobra.Command      { return nil }
func (a *app) fmtCommand() *cobra.Command           { return nil }
func (a *app) consoleCommand() *cobra.Command       { return nil }
func (a *app) planCommand() *cobra.Command          { return nil }
func (a *app) applyCommand() *cobra.Command         { return nil }
func (a *app) whyCommand() *cobra.Command           { return nil }
func (a *app) showCommand() *cobra.Command          { return nil }
func (a *app) logCommand() *cobra.Command           { return nil }
func (a *app) statusCommand() *cobra.Command        { return nil }
func (a *app) reportCommand() *cobra.Command        { return nil }
func (a *app) cacheCommand() *cobra.Command         { return nil }
