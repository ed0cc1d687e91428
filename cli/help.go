package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `pbuild builds verdicts about code-repair benchmarks, and runs only what is stale.

A workspace is a directory of *.hcl files. They declare instances, the runtimes they run in, gates, agents, matrices and reports, or plain tasks.
"pbuild plan" says what would run and why; "pbuild apply" runs it.`

// helpTopics are the pages of "pbuild help TOPIC" that belong to no command.
func helpTopics() []*cobra.Command {
	var out []*cobra.Command
	for _, t := range topics {
		out = append(out, &cobra.Command{Use: t.name, Short: t.short, Long: t.text})
	}
	return out
}

// helpCommand shows a command's help or a topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about any command or topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command or topic %q%s; `pbuild help` lists them", strings.Join(args, " "), suggestCommand(root, args[0]))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// usage prints how a command is called: its form, what is below it, its flags.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n")
	if cmd.Runnable() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	var commands, pages [][]string
	for _, c := range cmd.Commands() {
		switch {
		case c.IsAvailableCommand() || c.Name() == "help":
			commands = append(commands, []string{c.Name(), c.Short})
		case c.IsAdditionalHelpTopicCommand():
			pages = append(pages, []string{cmd.CommandPath() + " help " + c.Name(), strings.TrimPrefix(c.Short, "Topic: ")})
		}
	}
	if commands != nil {
		fmt.Fprintf(w, "  %s COMMAND [--help]\n\nCommands:\n", cmd.CommandPath())
		columns(w, "  ", commands)
	}
	// The underlying package says of each switch that it takes true or false. Spaces keep the columns.
	flags := strings.NewReplacer("[=true|false]", strings.Repeat(" ", len("[=true|false]")))
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s", flags.Replace(cmd.LocalFlags().FlagUsages()))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nFlags of every command:\n%s", flags.Replace(cmd.InheritedFlags().FlagUsages()))
	}
	if pages != nil {
		fmt.Fprintf(w, "\nTopics:\n")
		columns(w, "  ", pages)
	}
	return nil
}

var topics = []struct{ name, short, text string }{
	{"selectors", "Topic: how tasks are named and chosen", `An address is TYPE.NAME, with ["KEY"] where the block has for_each, then /STEP:

    task.copy["17"]
    gate.go["ID"]/test.base.0
    matrix.main["ID","AGENT","MODEL",SAMPLE]/outcome     MODEL is "-" where the agent takes none

An address without a step means the object; "why", "show" and "log" take its last step.

A selector is an address with wildcards. It chooses what it names and all beneath it; what the chosen tasks depend on comes along.

    task.copy                   every member; [...] may be left out
    task.copy[1*]               * matches within one segment (a type, a name, one part of an index, a step)
    matrix.main[**]/outcome     ** matches across segments
    gate.go[ID]                 quotes may be left out
    tag:NAME                    objects with that tag
    kind:test, kind:gate        tasks of a kind, or objects of a class
    !SELECTOR                   leaves out; alone it leaves out of everything
    @FILE                       selectors from a file, one a line; # begins a comment

A backslash makes the next character mean itself; within quotes \n, \t, \u2028 and the like are what an address shows them for. A selector that matches nothing is an error (exit code 2).`},
	{"exit-codes", "Topic: what each exit code means", `  0    done, whatever the candidates' verdicts
  1    something that was to hold does not: a task failed, a gate with on_reject = "error" rejected, a check said no
  2    configuration or usage; nothing was started
  3    the world: only infra or provider outcomes are left after retries; daemon or node missing, disk full, lock held
  4    later, with budgets: stopped by one with work left
  130  interrupted

Where several are due: 130, 1, 3, 4 in that order. "plan --detailed-exitcode" returns 0 for nothing to do, 2 for something, 1 for any error.
"go run" turns every failure into 1: scripts use the built binary.`},
	{"environment", "Topic: environment variables", `Every flag has a variable: PBUILD_ and its name in capitals, "-" as "_" (PBUILD_JOBS, PBUILD_SCRATCH, PBUILD_FAIL_FAST). A flag given on the command
line wins. --var has none: PBUILD_VAR_NAME sets the variable NAME of the workspace, after its default and before files and flags; only PBUILD_VAR_FILE
is the flag --var-file.

  CI=true           no prompts, no colour
  NO_COLOR          no colour
  CLICOLOR_FORCE    colour though there is no terminal

Commands that tasks run see none of this. They get

  HOME, TMPDIR, LANG, TZ       always, each with a value of pbuild's
  PATH                         the runtime's "path", or else pbuild's own without relative directories
  what "env" and "pass_env" declare
  GOSUMDB, GONOSUMDB           as "go env" has them
  PBUILD_PROBLEM_STATEMENT     an agent that is a command: the file with the statement

and with network (fetch, a runtime's prepare, a task in place, and where network = true) what makes this machine's proxies and mirrors work: HTTP_PROXY, HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE, PIP_INDEX_URL,
PIP_CERT, NPM_CONFIG_REGISTRY; of "go env" GOPROXY, GONOPROXY, GOPRIVATE, GOINSECURE, GOAUTH. None of what passes through is in a key, and what "env" declares wins over it.`},
	{"state", "Topic: what .pbuild holds", `Everything that pbuild remembers is under .pbuild beside the workspace. It can be deleted at any time: then everything runs again.

  journal/     what each task's run ended with, by the key of what ran
  blobs/       logs, results and outputs
  trees.git    source trees and patched trees
  states/      what prepare and build left behind; deleting it costs no verdict
  runs/        the event stream of each apply
  snapshot     the evaluated workspace; disposable
  probes.json  what the runtimes' probes printed, and of which programs; disposable
  home/        HOME of commands that run in place ("task" blocks)
  lock         held by an apply; the kernel lets go of it when that process ends

"pbuild cache stats" says how large they are, "pbuild cache gc" deletes what nothing needs.`},
}
