package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Verdict folds the two states of an instance.
func (j *Judge) Verdict(_ context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.VerdictSpec)
	in := verdict.GateInput{
		Runtime: step(a, "setup.runtime"), Fetch: step(a, "setup.fetch"), Prepare: step(a, "setup.prepare"),
		FetchGold: step(a, "setup.fetch.gold"), BuildBase: step(a, "build.base"), BuildGold: step(a, "build.gold"), Digests: digests(a),
	}
	in.Source, in.Patches = patchesSteps(a)
	var err error
	if in.Base, err = j.attempts(a, "base.", spec.Attempts); err != nil {
		return task.Outcome{}, err
	}
	if in.Gold, err = j.attempts(a, "gold.", spec.Attempts); err != nil {
		return task.Outcome{}, err
	}
	e, decided := verdict.Gate(spec, in)
	if !decided {
		return task.Outcome{Status: task.Infra, Reason: "undecided: what the gate stands on did not come to an end"}, nil
	}
	e.Isolation = lowest(a)
	out := task.Outcome{Status: task.OK, Outcome: string(e.Outcome), Reason: e.Reason, Isolation: e.Isolation}
	if e.Outcome == verdict.Admitted {
		out.Facts = []string{kind.Admitted}
	}
	if err := put(j.Blobs, &out, kind.Evidence, e); err != nil {
		return out, err
	}
	out.Evidence, err = json.Marshal(struct {
		BaseKind verdict.BaseKind `json:"base_kind"`
	}{e.BaseKind})
	return out, err
}

// patchesSteps says how the patches ended, and their sources: patches that never ran, because a tree that they are made of could not be had, are no fault of the patches.
func patchesSteps(a *task.Attempt) (source, patches verdict.Step) {
	s := step(a, "patches")
	if in := a.Input("patches"); in != nil && in.Record == nil && in.Status != "" {
		return s, verdict.Step{}
	}
	return verdict.Step{}, s
}

// digests names the patches that the verdict stands on, for its evidence. Command and environment are in its key, and so in its record: in the evidence they would
// make reports again that show neither.
func digests(a *task.Attempt) map[string]string {
	out := map[string]string{}
	if in := a.Input("patches"); in != nil && in.Record != nil {
		for _, o := range in.Record.Outputs {
			out[o.Role] = o.Digest.String()
		}
	}
	return out
}

// Outcome folds a cell into its one word.
func (j *Judge) Outcome(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.OutcomeSpec)
	in := verdict.CellInput{HasBuild: spec.HasBuild, Build: step(a, "build")}
	if x := a.Input("extract"); x != nil && x.Record != nil {
		in.Ended, in.EndedWhy = verdict.Word(x.Record.Outcome.Outcome), x.Record.Reason
		in.Nonempty, in.Applies = x.Record.Has(kind.Nonempty), x.Record.Has(kind.Applies)
	}
	if err := j.gather(ctx, a, &in); err != nil {
		return task.Outcome{}, err
	}
	var err error
	if in.Attempts, err = j.attempts(a, "", spec.Attempts); err != nil {
		return task.Outcome{}, err
	}
	c, decided := verdict.Candidate(in)
	if !decided {
		return task.Outcome{Status: task.Infra, Reason: "undecided: what the outcome stands on did not come to an end"}, nil
	}
	c.Isolation = lowest(a)
	out := task.Outcome{Status: task.OK, Outcome: string(c.Outcome), Reason: cmp.Or(c.Detail, c.Reason), Flags: c.Flags, Isolation: c.Isolation}
	if c.Outcome == verdict.Resolved {
		out.Facts = []string{kind.Resolved}
	}
	if out.Evidence, err = json.Marshal(costOf(a)); err != nil {
		return out, err
	}
	err = put(j.Blobs, &out, kind.OutcomeBlob, c)
	return out, err
}

// gather reads what the candidate touched, what was put back, and what it changed of the harness.
func (j *Judge) gather(ctx context.Context, a *task.Attempt, in *verdict.CellInput) error {
	var altered []string
	for i := range a.Inputs {
		x := &a.Inputs[i]
		if !standsOn(x) {
			continue
		}
		in.Flags = append(in.Flags, x.Record.Flags...)
		if x.Role == "build" || strings.HasPrefix(x.Role, "test.") {
			var r kind.Run
			if err := get(j.Blobs, x.Record.Digest(kind.Result), &r); err != nil {
				return fmt.Errorf("result of %s: %w", x.Role, err)
			}
			in.Reset = append(in.Reset, r.Reset...) // what the build had put in the way of the test
			altered = append(altered, r.Altered...)
		}
	}
	if x := a.Input("compose"); x != nil && x.Record != nil {
		var c composed
		if err := get(j.Blobs, x.Record.Digest(kind.Composed), &c); err != nil {
			return fmt.Errorf("what compose did: %w", err)
		}
		in.Exempt = c.Exempt
		if slices.Contains(x.Record.Flags, verdict.FlagResetProtected) { // else they are the hidden tests alone
			in.Reset = append(in.Reset, c.Reset...)
		}
	}
	if gold := a.Input(kind.GoldPaths); gold != nil && !gold.Digest.IsZero() {
		var paths goldPaths
		if err := get(j.Blobs, gold.Digest, &paths); err != nil {
			return err
		}
		in.Production = paths.Production
		altered = slices.DeleteFunc(altered, func(p string) bool { return slices.Contains(paths.All, p) })
	}
	candidate := candidateTree(a)
	base := a.Input("base")
	if candidate.IsZero() || base == nil || base.Digest.IsZero() {
		return nil
	}
	changed, err := j.Trees.Diff(ctx, base.Digest, candidate)
	if err != nil {
		return err
	}
	for _, e := range changed {
		in.Paths = append(in.Paths, e.Path)
	}
	if gold := a.Input("gold"); gold != nil && !gold.Digest.IsZero() {
		in.HarnessEdits, err = harnessEdits(ctx, j.Trees, base.Digest, candidate, gold.Digest)
	}
	slices.Sort(altered)
	for _, p := range slices.Compact(altered) {
		in.HarnessEdits = append(in.HarnessEdits, p+": not as prepare left it")
	}
	return err
}

// candidateTree is the candidate's tree, zero where its patch does not apply.
func candidateTree(a *task.Attempt) digest.Digest {
	if x := a.Input("extract"); x != nil && x.Record != nil {
		return x.Record.Digest(kind.Tree)
	}
	return digest.Digest{}
}
