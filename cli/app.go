// Package cli is what a user sees of pbuild: commands, flags, views, JSON forms and exit codes. It is the only package that prints.
//
// It promises that data goes to stdout and everything else to stderr, that every exit code is one of the table in exit.go, and that a
// command that reads takes no lock and changes nothing but the disposable snapshot and the list of probes. It decides nothing
// itself: what a workspace means package hcl and package lower say, and what runs the engine.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Config is what main gives: the process's surroundings, and the table of executors.
type Config struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Version        string
	Identity       string           // of the binary, for the snapshot
	Interrupts     <-chan os.Signal // Ctrl-C and its like
	Clock          func() time.Time
	// Wire makes the executors and what they stand on. It is called once, by commands that run tasks or look at runners.
	Wire func(context.Context, Parts) (*Machine, error)
}

// Parts is what executors are made from.
type Parts struct {
	Dir     string     // the workspace, absolute
	State   string     // its .pbuild
	Scratch string     // where sandboxes are made, absolute
	Blobs   task.Blobs // nil where nothing will run
	Environ []string
	Trees   *tree.Repo // nil where nothing will run
	Slots   int
}

// A Machine is what tasks run on.
type Machine struct {
	Executors task.Executors
	Restore   func(task.Output) error // writes an output of a task back from the store
	Isolation string                  // the highest level that the runner gives here
	Status    []string                // what else there is to say of the runner, a line each
	States    interface {
		Trim(budget int64) (freed int64, err error) // removes states, least recently used first, that are over a budget of bytes
		Excess(budget int64) (int64, error)         // what Trim would free
	}
}

// app is one invocation.
type app struct {
	cfg   Config
	view  *view
	flags globalFlags
	began bool // a command's own code has been reached: what fails now is not a matter of usage

	listening sync.Mutex
	listener  func() // hears interrupts; nil where the first ends the command
}

// globalFlags are those of every command.
type globalFlags struct {
	dir      string
	vars     []string
	varFiles []string
	json     bool
	color    string
	quiet    bool
	verbose  bool
}

// Run runs one command line to its end and returns the code to exit with.
func Run(ctx context.Context, cfg Config) Exit {
	out := &product{w: cfg.Stdout}
	a := &app{cfg: cfg,
		view: &view{out: out, err: cfg.Stderr, width: func() int { return terminalWidth(cfg.Stderr) }}}
	root := a.root()
	root.SetArgs(cfg.Args)
	detailed := false
	err := a.interruptible(ctx, func(ctx context.Context) error {
		cmd, err := root.ExecuteContextC(ctx)
		detailed = a.wantsDetail(cmd)
		return err
	})
	code := codeOf(err)
	if (err == nil || isSaid(err)) && out.err != nil {
		fmt.Fprintf(cfg.Stderr, "%s %v\n", a.view.paintErr(red, "pbuild:"), out.err)
		if err == nil {
			code = ExitWorld
		}
		return code
	}
	if err == nil {
		return ExitDone
	}
	switch {
	case a.began || code == ExitInterrupted:
	case detailed:
		code = ExitFailed
	case code == ExitWorld:
		code = ExitUsage
	}
	if text := err.Error(); !isSaid(err) {
		fmt.Fprintf(cfg.Stderr, "%s %s\n", a.view.paintErr(red, "pbuild:"), printable(text))
	}
	return code
}

// errInterrupted ends what nobody listens for interrupts of.
var errInterrupted = exitWith(ExitInterrupted, errors.New("interrupted"))

// interruptible ends a command at the first interrupt that it does not listen for. What does not come to its end soon ends with the process: it has nothing to
// lose.
func (a *app) interruptible(ctx context.Context, command func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- command(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-a.cfg.Interrupts:
		}
		if a.heard() {
			continue
		}
		cancel(errInterrupted)
		select {
		case <-done:
		case <-time.After(time.Second):
		}
		return errInterrupted
	}
}

// listen says who hears interrupts from now on. It returns once nobody hears one any more who did before.
func (a *app) listen(f func()) {
	a.listening.Lock()
	defer a.listening.Unlock()
	a.listener = f
}

func (a *app) heard() bool {
	a.listening.Lock()
	defer a.listening.Unlock()
	if a.listener == nil {
		return false
	}
	a.listener()
	return true
}

// wantsDetail says of a command that did not come to its own code whether it is a plan of which 2 would say that there is something to do.
func (a *app) wantsDetail(cmd *cobra.Command) bool {
	const name = "detailed-exitcode"
	env, _ := strconv.ParseBool(a.getenv(flagVariable(name)))
	given := false
	for _, arg := range a.cfg.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			on, err := strconv.ParseBool(value)
			given, env = on || err != nil, false
		} else if arg == "--"+name {
			given = true
		}
	}
	return !a.began && (cmd.Name() == "plan" && (env || given) || cmd.Name() == "apply" && given)
}

func isSaid(err error) bool {
	e, ok := err.(*exitError)
	return ok && e.err == nil
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pbuild",
		Short:         "An incremental build system whose products are verdicts",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q%s; `pbuild help` lists them", args[0], suggestCommand(cmd, args[0]))
			}
			cmd.SetOut(a.cfg.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
			return said(ExitUsage)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetOut(a.view.out)
	root.SetErr(a.cfg.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if strings.HasSuffix(err.Error(), "unknown flag: --version") {
			return usagef("there is no flag --version; `pbuild version` prints the version")
		}
		return usagef("%v; see `%s --help`", err, cmd.CommandPath())
	})
	root.SetUsageFunc(usage)
	root.SetHelpCommand(helpCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVarP(&a.flags.dir, "directory", "C", "", "the workspace is in `DIR`, not in the current directory; other names of files are relative to it")
	f.StringArrayVar(&a.flags.vars, "var", nil, "set a variable: `NAME=VALUE`")
	f.StringArrayVar(&a.flags.varFiles, "var-file", nil, "read variables from `FILE`")
	f.BoolVar(&a.flags.json, "json", false, "print JSON")
	f.StringVar(&a.flags.color, "color", "auto", "colour: `auto`, always or never")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print failures and the summary only")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "print every task, with its reasons")
	root.AddCommand(a.initCommand(), a.validateCommand(), a.fmtCommand(), a.consoleCommand(),
		a.planCommand(), a.applyCommand(),
		a.listCommand(), a.whyCommand(), a.showCommand(), a.logCommand(), a.graphCommand(), a.statusCommand(), a.reportCommand(),
		a.cacheCommand(), a.completionCommand(), a.versionCommand())
	root.AddCommand(helpTopics()...)
	return root
}

// prepare settles flags and the view before any command's own code.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.flagsFromEnviron(cmd.Flags()); err != nil {
		return err
	}
	if err := namesFiles(cmd.Flags()); err != nil {
		return err
	}
	switch a.flags.color {
	case "auto", "always", "never":
	default:
		return usagef("--color is auto, always or never, not %q", a.flags.color)
	}
	if a.flags.dir == "" {
		a.flags.dir = "."
	}
	if st, err := os.Stat(a.flags.dir); err != nil || !st.IsDir() {
		return usagef("-C %s: there is no such directory", a.flags.dir)
	}
	if level := a.getenv("PBUILD_ISOLATION"); level != "" {
		if _, ok := run.ParseIsolation(level); !ok {
			return usagef("PBUILD_ISOLATION is none, process or sealed, not %q", level)
		}
	}
	v := a.view
	v.color = colorMode(a.flags.color, v.out, a.getenv)
	v.errColor = colorMode(a.flags.color, v.err, a.getenv)
	v.json, v.quiet, v.verbose = a.flags.json, a.flags.quiet, a.flags.verbose
	v.live = isTerminal(v.err) && !a.ci() && a.getenv("TERM") != "dumb"
	a.began = true
	return nil
}

// namesFiles finds a flag that is given to name a file, and names none.
func namesFiles(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		names := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			names = list.GetSlice()
		}
		if value, _ := pflag.UnquoteUsage(f); value == "FILE" && slices.Contains(names, "") && err == nil {
			err = usagef("--%s names no file", f.Name)
		}
	})
	return err
}

// flagsFromEnviron sets every flag that was not given from PBUILD_ and its name. Variables of the workspace are PBUILD_VAR_ and their name,
// so --var has no variable of its own.
func (a *app) flagsFromEnviron(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := flagVariable(f.Name)
		if f.Changed || f.Name == "var" || f.Name == "help" || err != nil {
			return
		}
		if v := a.getenv(name); v != "" {
			if e := flags.Set(f.Name, v); e != nil {
				err = usagef("%s=%s: %v", name, v, e)
			}
			f.Changed = false // it says only what the command line holds: a variable is for every command that can make something of it
		}
	})
	return err
}

func flagVariable(flag string) string {
	return "PBUILD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// getenv reads the environment that Config gave; of a name that stands twice the last holds.
func (a *app) getenv(name string) string {
	for i := len(a.cfg.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.cfg.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// ci says that nobody is there to answer: no prompts, no colour.
func (a *app) ci() bool { return a.getenv("CI") == "true" }

// commandLine is what was typed, for whoever asks who holds the workspace, without the values of variables: they may be sensitive.
func (a *app) commandLine() string {
	args := slices.Clone(a.cfg.Args)
	for i, arg := range args {
		if pair, ok := strings.CutPrefix(arg, "--var="); ok {
			name, _, _ := strings.Cut(pair, "=")
			args[i] = "--var=" + name
		} else if i > 0 && args[i-1] == "--var" {
			args[i], _, _ = strings.Cut(arg, "=")
		}
	}
	return strings.Join(args, " ")
}

// suggestCommand is the end of an error about an unknown command.
func suggestCommand(root *cobra.Command, name string) string {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return didYouMean(name, names)
}
