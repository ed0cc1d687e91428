package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/store"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Look after what pbuild remembers",
		Long:  "Look after what pbuild remembers under .pbuild. See `pbuild help state`.",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("`pbuild cache` has no command %q; it has stats, verify, gc and clean", args[0])
			}
			return usagef("`pbuild cache` needs one of stats, verify, gc and clean")
		},
	}
	cmd.AddCommand(a.cacheStats(), a.cacheVerify(), a.cacheGC(), a.cacheClean())
	return cmd
}

func (a *app) cacheStats() *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count what is stored", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.workDir()
			if err != nil {
				return err
			}
			state := filepath.Join(dir, stateDir)
			st, err := store.Open(state)
			if err != nil {
				return exitWith(ExitWorld, err)
			}
			defer st.Close()
			s, err := st.Stats()
			if err != nil {
				return exitWith(ExitWorld, err)
			}
			use, _ := diskUse(state, time.Hour)
			if a.view.json {
				return a.view.document(struct {
					FormatVersion int              `json:"format_version"`
					Records       int64            `json:"records"`
					Keys          int64            `json:"keys"`
					Blobs         int64            `json:"blobs"`
					Runs          int64            `json:"runs"`
					Disk          map[string]int64 `json:"disk"`
				}{formatVersion, s.Records, s.Keys, s.SmallBlobs + s.LargeBlobs, s.Runs, use})
			}
			columns(a.view.out, "", [][]string{
				{"records", fmt.Sprintf("%d, of %d keys, %s", s.Records, s.Keys, size(s.JournalBytes))},
				{"blobs", fmt.Sprintf("%d small in %s, %s; %d large, %s", s.SmallBlobs, plural(int(s.Packs), "pack"), size(s.PackBytes), s.LargeBlobs, size(s.LargeBytes))},
				{"trees", size(use[treesDir])},
				{"states", size(use[statesDir])},
				{"runs", fmt.Sprintf("%d, %s", s.Runs, size(s.RunBytes))},
				{"snapshot", size(s.SnapshotBytes)},
			})
			return nil
		},
	}
}

// writer opens the store for a command that changes it, and holds the lock until it is closed.
func (a *app) writer(ctx context.Context) (*store.Store, string, error) {
	dir, err := a.workDir()
	if err != nil {
		return nil, "", err
	}
	state := filepath.Join(dir, stateDir)
	if _, err := os.Stat(state); err != nil {
		return nil, "", usagef("%s holds no %s: nothing has been applied here", dir, stateDir)
	}
	st, err := store.OpenWriter(ctx, state, a.holder(), 0)
	if err != nil {
		return nil, "", exitWith(ExitWorld, err)
	}
	return st, state, nil
}

func (a *app) cacheGC() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "gc", Short: "Delete what nothing needs", Args: noArgs,
		Long: `Delete records that are neither of the current workspace, nor younger than "keep" of the pbuild block, nor of samples that cannot be made again;
then the blobs and trees that no record names, and the states that are over "disk_budget", least recently used first.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.gc(cmd.Context(), dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing; say what would go")
	return cmd
}

const defaultKeep = 720 * time.Hour

func (a *app) gc(ctx context.Context, dry bool) error {
	s, err := a.load(ctx, loadOptions{})
	defer s.close()
	if err != nil {
		return err
	}
	st, state, err := a.writer(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	live, err := s.liveKeys(st)
	if err != nil {
		return err
	}
	repo, err := tree.Open(ctx, filepath.Join(state, treesDir))
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	defer repo.Close()
	horizon := a.cfg.Clock().Add(-setting(s, "keep", defaultKeep))
	trees := map[digest.Digest]bool{}
	isLive := func(d digest.Digest) bool { return trees[d] }
	var kept, dropped tree.Share
	report, err := st.GC(store.GCOptions{DryRun: dry,
		Keep: func(r *task.Record) bool {
			keep := r.Kind == kind.Sample.Name || live[r.Key] || r.Started > horizon.UnixNano()
			if keep {
				for _, o := range r.Outputs {
					if _, ok := o.Digest.Git(); ok {
						trees[o.Digest] = true
					}
				}
			}
			return keep
		},
		Marked: func() (err error) {
			kept, dropped, err = repo.Shares(ctx, isLive)
			return err
		},
		KeepRun: func(id string) bool { return id >= horizon.UTC().Format(runTime) },
		Roots:   failureLogs(st, horizon),
	})
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	c := &collected{DryRun: dry, FormatVersion: formatVersion, Records: part(report.Records), Blobs: part(report.Blobs), Runs: part(report.Runs),
		Trees: part{kept.Trees, kept.Bytes, dropped.Trees, dropped.Bytes}}
	if !dry {
		if err := repo.Drop(ctx, isLive); err != nil {
			return exitWith(ExitWorld, err)
		}
	}
	if err := a.trimStates(ctx, s, state, repo, c); err != nil {
		return err
	}
	return a.showGC(c)
}

// failureLogs are the logs of failures that no record keeps, of the runs that stay.
func failureLogs(st *store.Store, horizon time.Time) []digest.Digest {
	runs, err := st.Runs()
	if err != nil {
		return nil
	}
	var out []digest.Digest
	for _, id := range runs {
		if r, err := readRun(st, id); err == nil && id >= horizon.UTC().Format(runTime) {
			for _, f := range r.failed {
				out = append(out, f.Log)
			}
		}
	}
	return out
}

// liveKeys are the keys that the workspace has now, as far as they are known.
func (s *session) liveKeys(st *store.Store) (map[task.Key]bool, error) {
	p, err := s.decide(st, nil, nil)
	if err != nil {
		return nil, err
	}
	live := make(map[task.Key]bool, len(p.Items))
	for i := range p.Items {
		live[p.Items[i].Key] = true
		if r := p.Items[i].Record; r != nil {
			live[r.Key] = true
		}
		for _, addr := range p.Addresses(task.ID(i)) { // a key that is not known yet may come out as it did
			if r := st.Latest(addr); r != nil {
				live[r.Key] = true
			}
		}
	}
	return live, nil
}

// A collected is what a collection dropped, or would drop, and the document of `cache gc --json`.
type collected struct {
	FormatVersion int   `json:"format_version"`
	DryRun        bool  `json:"dry_run"`
	Records       part  `json:"records"`
	Blobs         part  `json:"blobs"`
	Trees         part  `json:"trees"`
	Runs          part  `json:"runs"`
	StateBytes    int64 `json:"state_bytes"`
}

type part struct {
	Kept         int64 `json:"kept"`
	KeptBytes    int64 `json:"kept_bytes"`
	Dropped      int64 `json:"dropped"`
	DroppedBytes int64 `json:"dropped_bytes"`
}

// trimStates drops the states that are over budget, unless the run is dry, and counts them.
func (a *app) trimStates(ctx context.Context, s *session, state string, trees *tree.Repo, c *collected) error {
	m, err := a.cfg.Wire(ctx, Parts{Dir: s.dir, State: state, Scratch: a.scratch(""), Environ: a.cfg.Environ, Trees: trees, Slots: 1})
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	trim := m.States.Trim
	if c.DryRun {
		trim = m.States.Excess
	}
	if c.StateBytes, err = trim(setting(s, "disk_budget", defaultBudget)); err != nil {
		return exitWith(ExitWorld, err)
	}
	return nil
}

func (a *app) showGC(c *collected) error {
	if a.view.json {
		return a.view.document(c)
	}
	verb := "dropped"
	if c.DryRun {
		verb = "would go"
	}
	row := func(name, why string, p part) []string {
		return []string{name, fmt.Sprintf("%d kept, %s", p.Kept, size(p.KeptBytes)), fmt.Sprintf("%d %s, %s", p.Dropped, verb, size(p.DroppedBytes)), a.view.paint(dim, why)}
	}
	columns(a.view.out, "", [][]string{
		row("records", "older than keep, and of no task of this workspace", c.Records),
		row("blobs", "named by no record that stays", c.Blobs),
		row("trees", "named by no record that stays", c.Trees),
		row("runs", "older than keep", c.Runs),
		{"states", "", size(c.StateBytes) + " " + verb, a.view.paint(dim, "over disk_budget, least recently used first")},
	})
	return nil
}

func (a *app) cacheClean() *cobra.Command {
	var yes bool
	var states bool
	cmd := &cobra.Command{
		Use: "clean", Short: "Delete everything that pbuild remembers here", Args: noArgs,
		Long: "Delete .pbuild: everything runs again, and samples that cost money are lost. With --states only states go, which costs no verdict.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, state, err := a.writer(cmd.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			target, what := state, "everything that pbuild remembers"
			if states {
				target, what = filepath.Join(state, statesDir), "all states"
			}
			if !yes {
				if err := a.ask(cmd.Context(), fmt.Sprintf("Delete %s (%s)?", what, target), "--yes"); err != nil {
					return err
				}
			}
			if err := os.RemoveAll(target); err != nil {
				return worldf("cache clean: %v", err)
			}
			if a.view.json {
				return a.view.document(struct {
					FormatVersion int    `json:"format_version"`
					Deleted       string `json:"deleted"`
				}{formatVersion, target})
			}
			a.view.notef("Deleted %s.\n", target)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&states, "states", false, "delete only what prepare and build left behind")
	return cmd
}
