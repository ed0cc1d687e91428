package cli

import (
	"fmt"

	"github.com/spf13/cobra"

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
	st, err := store.Open(dir + "/" + stateDir)
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	defer st.Close()
	addr, r := exactRecord(st, arg)
	if r == nil { // not a full address, or it has not run: only the workspace knows
		s, o, step, err := a.loadTask(cmd, arg)
		if err != nil {
			return err
		}
		defer s.close()
		addr = address(o, step)
		if r, err = s.lastRecord(o.Steps[step].Task); err != nil {
			return err
		}
		if r == nil {
			return exitWith(ExitFailed, fmt.Errorf("%s has not run", addr))
		}
	}
	return a.showLog(st, addr, r, only)
}

// exactRecord is the newest record of a whole address, which is found without reading the workspace.
func exactRecord(st *store.Store, arg string) (string, *task.Record) {
	addr, err := task.ParseAddress(arg)
	if err != nil {
		return "", nil
	}
	text := addr.String()
	return text, st.Latest(text)
}

// lastRecord is the record that serves a task now, else the newest that any of its addresses ran under.
func (s *session) lastRecord(id task.ID) (*task.Record, error) {
	p, err := s.decide(s.store, []task.ID{id}, nil)
	if err != nil {
		return nil, err
	}
	if r := p.Items[id].Record; r != nil {
		return r, nil
	}
	var newest *task.Record
	for _, addr := range p.Addresses(id) {
		if r := s.store.Latest(addr); r != nil && (newest == nil || r.Started > newest.Started) {
			newest = r
		}
	}
	return newest, nil
}

func (a *app) showLog(st *store.Store, addr string, r *task.Record, only string) error {
	var framed []byte
	if !r.Log.IsZero() {
		var err error
		if framed, err = st.Blobs().Get(r.Log); err != nil {
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
		}{formatVersion, addr, r.Run, string(stdout), string(stderr)})
	}
	text := map[string][]byte{"": both, "stdout": stdout, "stderr": stderr}[only]
	if isTerminal(a.view.out) {
		text = []byte(printable(string(text)))
	}
	if _, err := a.view.out.Write(text); err != nil {
		return worldf("%v", err)
	}
	if len(both) == 0 {
		a.view.notef("%s wrote nothing.\n", addr)
	}
	return nil
}
