package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a completion script for bash, zsh, fish or powershell",
		Long:      "Print a completion script. For bash: source <(pbuild completion bash)\n\nAddresses complete from the snapshot that the last plan left.",
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one shell: %s", strings.Join(shells, ", "))
			}
			root, w := cmd.Root(), a.view.out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return usagef("there is no completion for %q; there is for %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// completionLimit bounds what a shell is offered at once; more than this nobody reads.
const completionLimit = 200

// completeAddresses offers the addresses that begin with what was typed.
func (a *app) completeAddresses(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	addresses, _ := a.namesToOffer()
	return offered(beginning(addresses, typed))
}

// completeSelectors offers tags too, and what a "!" excludes.
func (a *app) completeSelectors(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	addresses, tags := a.namesToOffer()
	want, not := strings.CutPrefix(typed, "!")
	out := beginning(addresses, want)
	for _, t := range tags {
		if t = "tag:" + t; strings.HasPrefix(t, want) {
			out = append(out, t)
		}
	}
	if not {
		for i := range out {
			out[i] = "!" + out[i]
		}
	}
	return offered(out)
}

// completeReports offers the names of reports.
func (a *app) completeReports(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	addresses, _ := a.namesToOffer()
	const block = "report."
	out := beginning(addresses, block+typed)
	for i := range out {
		out[i] = strings.TrimPrefix(out[i], block)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) namesToOffer() (addresses, tags []string) {
	if a.flags.dir == "" {
		a.flags.dir = "."
	}
	return a.snapshotNames()
}

func offered(names []string) ([]string, cobra.ShellCompDirective) {
	if len(names) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// beginning are the addresses that begin with what was typed: first the blocks, then, once an index is begun, the members and their steps.
func beginning(all []string, typed string) []string {
	want := strings.ReplaceAll(typed, `"`, "")
	var out []string
	seen := map[string]bool{}
	for _, addr := range all {
		offer := addr
		if !strings.ContainsAny(want, "[/") {
			offer, _, _ = strings.Cut(offer, "[")
			offer, _, _ = strings.Cut(offer, "/")
		}
		bare := strings.ReplaceAll(offer, `"`, "")
		if strings.HasPrefix(bare, want) && !seen[bare] {
			seen[bare] = true
			out = append(out, bare)
			if len(out) == completionLimit {
				break
			}
		}
	}
	return out
}
