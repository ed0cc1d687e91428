package cli

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

func (a *app) logCommand() *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:               "log ADDR",
		Short:             "Print the log of a task's last run",
		Long:              "Print what a task's last run wrote, stdout and stderr in the order in which they came; --stream chooses one of them.",
		Args:              oneAddress,
		ValidArgsFunction: a.completeAddresses,
		RunE: func(cmd *cobra.Command, args []string) error {
			if only != "" && only != "stdout" && only != "stderr" {
				return usagef("--stream is stdout or stderr, not %q", only)
			}
			return a.log(cmd, args[0], only)
		},
	}
	cmd.Flags().StringVar(&only, "stream", "", "`stdout` or stderr alone")
	return cmd
}

func (a *app) log(cmd *cobra.Command, arg, only string) error {
	dir, err := a.workDir()
	if err != nil {
		return err
	}
	st, err := store.Open(filepath.Join(dir, stateDir))
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	defer st.Close()
	if addr, l := exactLog(st, arg); l != nil && !l.log.IsZero() {
		return a.showLog(st, addr, l, only)
	}
	s, o, step, err := a.loadTask(cmd, arg) // not a whole address, or it has not run: only the workspace knows
	if err != nil {
		return err
	}
	defer s.close()
	addr := address(o, step)
	l, err := s.lastLog(o.Steps[step].Task)
	if err != nil {
		return err
	}
	if l == nil {
		return exitWith(ExitFailed, fmt.Errorf("%s has not run", addr))
	}
	if id := o.Steps[step].Task; l.log.IsZero() && s.graph.Tasks[id].Spec.Kind().Pure && !a.view.json {
		return s.logsBelow(id, addr)
	}
	return a.showLog(st, addr, l, only)
}

// logsBelow names the logs of what a task was made from, where it runs no command itself: a gate's verdict, a cell's outcome.
func (s *session) logsBelow(id task.ID, addr string) error {
	p, err := s.decide(s.store, []task.ID{id}, nil)
	if err != nil {
		return err
	}
	v := s.app.view
	var rows [][]string
	for _, d := range s.graph.Tasks[id].Deps {
		if r, _ := s.records(p, d.On); r != nil && !r.Log.IsZero() {
			word := cmp.Or(r.Outcome.Outcome, string(r.Verdict), string(r.Status))
			rows = append(rows, []string{"pbuild log '" + printable(p.Address(d.On)) + "'", word})
		}
	}
	if rows == nil {
		v.notef("%s wrote nothing.\n", addr)
		return nil
	}
	v.notef("%s runs no command. The logs of what it stands on:\n", addr)
	if !v.quiet {
		columns(v.err, "  ", rows)
	}
	return nil
}

// A loggedRun is a run of a task that may have left a log: of a record, or of a failure, which is in no record.
type loggedRun struct {
	log digest.Digest
	run string
}

// exactLog finds the last run of a whole address without reading the workspace; nil where there is none.
func exactLog(st *store.Store, arg string) (string, *loggedRun) {
	addr, err := task.ParseAddress(arg)
	if err != nil {
		return "", nil
	}
	text := addr.String()
	return text, newestLog(st, st.Latest(text), []string{text})
}

func newestLog(st *store.Store, r *task.Record, addrs []string) *loggedRun {
	if f := lastFailure(st, addrs, r, false); f != nil {
		return &loggedRun{f.Log, f.Run}
	}
	if r == nil {
		return nil
	}
	return &loggedRun{r.Log, r.Run}
}

// lastLog is the last run of a task under any of its addresses, or of the equal work that its record is of.
func (s *session) lastLog(id task.ID) (*loggedRun, error) {
	p, err := s.decide(s.store, []task.ID{id}, nil)
	if err != nil {
		return nil, err
	}
	r, _ := s.records(p, id)
	return newestLog(s.store, r, p.Addresses(id)), nil
}

func (a *app) showLog(st *store.Store, addr string, l *loggedRun, only string) error {
	var framed []byte
	if !l.log.IsZero() {
		var err error
		if framed, err = st.Blobs().Get(l.log); err != nil {
			return exitWith(ExitWorld, fmt.Errorf("the log of %s: %w; `pbuild apply --replace '%s'` makes it again", addr, err, addr))
		}
	}
	stdout, stderr, both, err := run.ParseLog(framed)
	if err != nil {
		return exitWith(ExitWorld, fmt.Errorf("the log of %s: %w", addr, err))
	}
	if a.view.json {
		return a.view.document(struct {
			FormatVersion int    `json:"format_version"`
			Address       string `json:"address"`
			Run           string `json:"run"`
			Stdout        string `json:"stdout"`
			Stderr        string `json:"stderr"`
		}{formatVersion, addr, l.run, string(stdout), string(stderr)})
	}
	text := map[string][]byte{"": both, "stdout": stdout, "stderr": stderr}[only]
	if err := a.view.raw(text); err != nil {
		return exitWith(ExitWorld, err)
	}
	if len(both) == 0 {
		a.view.notef("%s wrote nothing.\n", addr)
	}
	return nil
}
