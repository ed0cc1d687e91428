package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/store"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

func (a *app) cacheVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Read everything again; exit 1 if anything is damaged", Args: noArgs,
		Long: `Read everything again and say what is damaged, and what records name that is not there any more. Damaged blobs and trees are dropped: they count as
missing, and the next run makes them again. What a sample gave cannot be made again; where that is missing, it counts as damage.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, state, err := a.writer(cmd.Context())
			if err != nil {
				return err
			}
			defer st.Close()
			found, err := st.Verify()
			if err != nil {
				return exitWith(ExitWorld, err)
			}
			damage := []string{}
			for _, d := range found {
				damage = append(damage, d.String())
			}
			trees, err := verifyTrees(cmd.Context(), st, state)
			if err != nil {
				return exitWith(ExitWorld, err)
			}
			lost, missing := missingOutputs(st, state)
			damage = append(append(damage, trees...), lost...)
			if len(damage)+len(missing) > 0 {
				if err := store.RemoveSnapshot(state); err != nil {
					return exitWith(ExitWorld, err)
				}
			}
			if err := a.showVerify(damage, missing); err != nil {
				return err
			}
			if len(damage) > 0 {
				return said(ExitFailed)
			}
			return nil
		},
	}
}

func (a *app) showVerify(damage, missing []string) error {
	if a.view.json {
		return a.view.document(struct {
			FormatVersion int      `json:"format_version"`
			Damage        []string `json:"damage"`
			Missing       []string `json:"missing"`
		}{formatVersion, damage, missing})
	}
	for _, t := range damage {
		a.view.printf("%s\n", printable(t))
	}
	if len(missing) > 0 {
		const most = 10
		a.view.printf("Not stored any more; what needs them runs again:\n")
		for _, t := range missing[:min(most, len(missing))] {
			a.view.printf("  %s\n", printable(t))
		}
		if n := len(missing) - most; n > 0 {
			a.view.printf("  and %d more\n", n)
		}
	}
	if len(damage)+len(missing) == 0 {
		a.view.notef("Nothing is damaged.\n")
	}
	return nil
}

// verifyTrees reads all trees again.
func verifyTrees(ctx context.Context, st *store.Store, state string) (damage []string, err error) {
	dir := filepath.Join(state, treesDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // to open a repository would make it
	}
	trees := slices.Collect(maps.Keys(tree.Kept(dir)))
	repo, err := tree.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	broken, err := repo.Verify(ctx, trees)
	of := map[digest.Digest]string{} // the address of one that made it
	for r := range st.Records() {
		for _, o := range r.Outputs {
			if broken[o.Digest] != nil && of[o.Digest] == "" {
				of[o.Digest] = r.Address
			}
		}
	}
	for t, why := range broken {
		damage = append(damage, fmt.Sprintf("%s: tree %s of %s: %v", dir, t, cmp.Or(of[t], "no record"), why))
	}
	slices.Sort(damage)
	return damage, err
}

// missingOutputs names the outputs that records have and the store has not: lost are those that cannot be made again. The files of tasks are not among
// them: they are where the user has them.
func missingOutputs(st *store.Store, state string) (lost, missing []string) {
	missing = []string{}
	have := stored(st, state)
	for r := range st.Records() {
		if r.Kind == kind.Task.Name || r.Kind == kind.Report.Name {
			continue
		}
		for _, o := range r.Outputs {
			switch what := r.Address + ": output " + o.Role; {
			case o.Digest.IsZero() || have(o):
			case isFrozen(r):
				lost = append(lost, what+" is not stored any more and cannot be made again; bring .pbuild/blobs and .pbuild/trees.git back from a copy")
			default:
				missing = append(missing, what)
			}
		}
	}
	return lost, missing
}

// isFrozen says whether a record is of a sample that ran; one that was only computed has no trajectory.
func isFrozen(r *task.Record) bool {
	_, ran := r.Find(kind.Trajectory)
	return r.Kind == kind.Sample.Name && ran
}
