package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"pbuild/engine/store"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show who holds the workspace, the last run, isolation and disk use",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := a.status(cmd.Context())
			if err != nil {
				return err
			}
			if a.view.json {
				return a.view.document(st)
			}
			a.showStatus(st)
			return nil
		},
	}
}

// A statusJSON is the document of `status --json`.
type statusJSON struct {
	FormatVersion int              `json:"format_version"`
	Dir           string           `json:"dir"`
	Holder        *store.Holder    `json:"holder"` // null where nobody applies
	LastRun       *runJSON         `json:"last_run"`
	Platform      string           `json:"platform"`
	Isolation     string           `json:"isolation"` // the highest that the host runner gives here
	Runner        []string         `json:"runner"`    // what else there is to say of it
	Disk          map[string]int64 `json:"disk"`      // bytes by part of .pbuild
	DiskWhole     bool             `json:"disk_whole"`
	Damage        []string         `json:"damage"`
}

// A runJSON is one apply. Its summary is null while it runs, and for good where it was killed.
type runJSON struct {
	ID      string       `json:"id"`
	State   string       `json:"state"` // running, done, killed
	Open    []string     `json:"open"`  // addresses that have begun and not ended
	Summary *summaryJSON `json:"summary"`
}

// diskPatience bounds how long status looks at the disk: it answers within a second whatever an apply is doing.
const diskPatience = 500 * time.Millisecond

func (a *app) status(ctx context.Context) (*statusJSON, error) {
	dir, err := a.workDir()
	if err != nil {
		return nil, err
	}
	state := filepath.Join(dir, stateDir)
	st, err := store.Open(state)
	if err != nil {
		return nil, exitWith(ExitWorld, err)
	}
	defer st.Close()
	out := &statusJSON{FormatVersion: formatVersion, Dir: dir, Platform: runtime.GOOS + "/" + runtime.GOARCH, Damage: []string{}}
	if h, held := store.LockedBy(state); held {
		out.Holder = &h
	}
	if out.LastRun, err = runStatus(st, out.Holder != nil); err != nil {
		return nil, exitWith(ExitWorld, err)
	}
	m, err := a.look(ctx, dir, state)
	if err != nil {
		return nil, err
	}
	out.Isolation, out.Runner = m.Isolation, append([]string{}, m.Status...)
	out.Disk, out.DiskWhole = diskUse(state, diskPatience)
	for _, d := range st.Damage() {
		out.Damage = append(out.Damage, d.String())
	}
	return out, nil
}

// look asks the runner what it gives here. It finds out by trying, for which it needs a directory: where nothing was applied yet, a passing one.
func (a *app) look(ctx context.Context, dir, state string) (*Machine, error) {
	if _, err := os.Stat(state); err != nil {
		if state, err = os.MkdirTemp("", "pbuild-status-"); err != nil {
			return nil, exitWith(ExitWorld, err)
		}
		defer os.RemoveAll(state)
	}
	m, err := a.cfg.Wire(ctx, Parts{Dir: dir, State: state, Scratch: a.scratch(""), Environ: a.cfg.Environ, Slots: 1})
	if err != nil {
		return nil, exitWith(ExitWorld, err)
	}
	return m, nil
}

// runStatus is the last run; whether the workspace is held tells one that goes on from one that was killed.
func runStatus(st *store.Store, held bool) (*runJSON, error) {
	past, err := lastRun(st)
	if err != nil || past == nil {
		return nil, err
	}
	r := &runJSON{ID: past.id, Summary: past.summary, Open: sortedKeys(past.open), State: "done"}
	if r.Open == nil {
		r.Open = []string{}
	}
	if past.summary == nil {
		r.State = "killed"
		if held {
			r.State = "running"
		}
	}
	return r, nil
}

// diskParts are the parts of .pbuild that grow.
var diskParts = []string{"journal", "blobs", treesDir, statesDir, "runs"}

// diskUse sums file sizes for at most the given time; whole is false where that was too short.
func diskUse(state string, patience time.Duration) (use map[string]int64, whole bool) {
	use, whole = map[string]int64{}, true
	deadline := time.Now().Add(patience)
	for _, part := range diskParts {
		use[part] = 0
		filepath.WalkDir(filepath.Join(state, part), func(_ string, d fs.DirEntry, err error) error {
			if time.Now().After(deadline) {
				whole = false
				return filepath.SkipAll
			}
			if err != nil {
				return nil // what is gone, or not ours to read, counts as nothing
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
				use[part] += info.Size()
			}
			return nil
		})
	}
	return use, whole
}

func (a *app) showStatus(s *statusJSON) {
	v := a.view
	holder := "nobody"
	if h := s.Holder; h != nil {
		holder = fmt.Sprintf("%q, process %d on %s, since %s", h.Command, h.PID, h.Host, h.Since.Format(time.DateTime))
	}
	run := "none yet"
	if r := s.LastRun; r != nil {
		switch {
		case r.Summary != nil:
			run = fmt.Sprintf("%s, exit %d: %d ran, %d reused, %d failed", r.ID, r.Summary.Exit, r.Summary.Run, r.Summary.Reuse, r.Summary.Failed)
		case len(r.Open) > 0:
			run = fmt.Sprintf("%s, %s, %s begun", r.ID, r.State, plural(len(r.Open), "task"))
		default:
			run = r.ID + ", " + r.State
		}
	}
	rows := [][]string{{"workspace", s.Dir}, {"held by", holder}, {"last run", run}, {"platform", s.Platform}, {"isolation", s.Isolation}}
	for _, line := range s.Runner {
		if line == "isolation "+s.Isolation {
			continue
		}
		rows = append(rows, []string{"", line})
	}
	var total int64
	for _, part := range diskParts {
		total += s.Disk[part]
	}
	disk := size(total)
	if !s.DiskWhole {
		disk = "more than " + disk
	}
	rows = append(rows, []string{"disk", disk + ": " + diskText(s.Disk)})
	columns(v.out, "", rows)
	for _, d := range s.Damage {
		v.printf("%s %s\n", v.paint(yellow, "damage"), printable(d))
	}
	if v.verbose && s.LastRun != nil {
		for _, addr := range s.LastRun.Open {
			v.printf("  begun: %s\n", printable(addr))
		}
	}
}

func diskText(use map[string]int64) string {
	s := ""
	for _, part := range diskParts {
		if use[part] > 0 {
			if s != "" {
				s += ", "
			}
			s += part + " " + size(use[part])
		}
	}
	if s == "" {
		return "nothing yet"
	}
	return s
}

// size is a number of bytes in the largest binary unit of which there is at least one.
func size(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1024, 0
	for x >= 1024 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	return fmt.Sprintf("%.1f %ciB", x, units[u])
}
