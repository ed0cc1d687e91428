package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// cutShort are the ends of a sample that stay the cell's outcome, whatever it left.
var cutShort = []verdict.Word{verdict.StepLimit, verdict.WallLimit, verdict.CostLimit, verdict.FormatError, verdict.AgentCrash}

// Extract makes of what a sample left, a patch or a tree, the candidate's tree and its patch over base, written by pbuild.
func Extract(repo *tree.Repo, blobs task.Blobs) task.Executor {
	return task.ExecutorFunc(func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		if o := a.Task.Spec.(*kind.ExtractSpec).Options; len(o) > 0 {
			return task.Outcome{Status: task.Failed, Reason: fmt.Sprintf("extract has no option %q", o[0])}, nil
		}
		sample := a.Input("sample").Record
		ended := verdict.Word(sample.Outcome.Outcome)
		if ended == verdict.Missing {
			return task.Outcome{Status: task.OK, Outcome: string(ended), Reason: sample.Reason}, nil
		}
		base := a.Input("base").Digest
		candidate, out, err := layCandidate(ctx, repo, blobs, base, sample)
		if err != nil {
			return task.Outcome{}, err
		}
		if out.Has(kind.Applies) {
			patch, err := repo.Patch(ctx, base, candidate, nil)
			if err != nil {
				return task.Outcome{}, err
			}
			written, err := stored(blobs, kind.Patch, patch)
			if err != nil {
				return task.Outcome{}, err
			}
			out.Outputs = []task.Output{written, {Role: kind.Tree, Digest: candidate}}
		}
		if slices.Contains(cutShort, ended) {
			out.Outcome = string(ended)
			if out.Reason == "" {
				out.Reason = sample.Reason
			}
		}
		return out, nil
	})
}

// layCandidate returns the tree that a sample amounts to. Where the outcome has the fact Applies the tree differs from base.
func layCandidate(ctx context.Context, repo *tree.Repo, blobs task.Blobs, base digest.Digest, sample *task.Record) (digest.Digest, task.Outcome, error) {
	out := task.Outcome{Status: task.OK}
	candidate := base
	if end, ok := sample.Find(kind.Tree); ok {
		candidate = end.Digest
	} else if written, ok := sample.Find(kind.Patch); ok {
		patch, err := blobs.Get(written.Digest)
		if err != nil {
			return candidate, out, err
		}
		if !blank(patch) {
			candidate, err = repo.Apply(ctx, base, patch)
			var rejected *tree.Rejection
			if errors.As(err, &rejected) {
				out.Outcome, out.Reason, out.Facts = string(verdict.DoesNotApply), rejected.Error(), []string{kind.Nonempty}
				return candidate, out, nil
			}
			if err != nil {
				return candidate, out, err
			}
		}
	}
	if candidate == base {
		out.Outcome = string(verdict.Empty)
		return candidate, out, nil
	}
	out.Facts = []string{kind.Nonempty, kind.Applies}
	return candidate, out, nil
}
