package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"pbuild/bench/agent"
	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Samples produces candidates: those of oracle, nop and predictions from what is there, those of a command by running it.
type Samples struct {
	Commands *Commands
	Trees    *tree.Repo
}

// statementFile is where an agent finds the problem statement, below HOME.
const statementFile = "problem_statement.md"

// statementEnv names the variable that says so to the agent.
const statementEnv = "PBUILD_PROBLEM_STATEMENT"

func (s *Samples) Run(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.SampleSpec)
	if spec.Agent == "command" {
		return s.command(ctx, spec, a)
	}
	var gold digest.Digest
	if in := a.Input("gold"); in != nil {
		gold = in.Digest
	}
	c, err := agent.Static(spec, gold)
	if err != nil {
		return task.Outcome{}, err
	}
	out := task.Outcome{Status: task.OK, Outcome: c.Outcome}
	patch := c.Patch
	if patch.IsZero() && c.Outcome == "" {
		if patch, err = s.Commands.Blobs.Put(c.Bytes); err != nil {
			return out, err
		}
	}
	if !patch.IsZero() {
		out.Outputs = []task.Output{{Role: kind.Patch, Digest: patch}}
	}
	return out, nil
}

// command runs the agent's program in the instance's runtime, over the base tree as prepare left it. What it changed from the
// workspace that it was given is the candidate, so that nothing that prepare left is its doing.
func (s *Samples) command(ctx context.Context, spec *kind.SampleSpec, a *task.Attempt) (task.Outcome, error) {
	c := s.Commands
	if c.Runner.Isolation() < run.IsolationSealed && !spec.AllowUnsealed {
		return task.Outcome{Status: task.Failed, Reason: fmt.Sprintf(
			"this machine isolates at level %s, and an agent that runs code needs sealed; allow_unsealed = true on the agent runs it all the same, and every report says so", c.Runner.Isolation())}, nil
	}
	cmd, err := c.command(&spec.Command, &spec.Runtime, a)
	if err != nil {
		return task.Outcome{}, err
	}
	cmd.Forward = nil // no credentials for an agent
	cmd.Changes = true
	cmd.Start.Tree = a.Input("base").Digest
	if !spec.Statement.Digest.IsZero() {
		file := path.Join("~", statementFile)
		cmd.Start.Files = map[string][]byte{file: spec.Statement.Bytes}
		cmd.Env[statementEnv] = file // the runner makes it the absolute path
	}
	out, res, err := c.execute(ctx, cmd, a)
	if err != nil && res != nil {
		err = spent{err}
	}
	if err != nil {
		return out, err
	}
	// How the program ended is the candidate's outcome, not a verdict on the task: what it changed until then counts.
	out.Verdict, out.Confirm, out.Facts = task.NoVerdict, false, nil
	switch {
	case res.TimedOut != "":
		out.Outcome = string(verdict.WallLimit)
	case res.Exit != 0:
		out.Outcome = string(verdict.AgentCrash)
	}
	end, refused, left, err := s.endTree(ctx, a.Input("base").Digest, res.Changes)
	if err != nil {
		return out, spent{err}
	}
	if left != nil {
		if out.Evidence, err = withIgnored(out.Evidence, left); err != nil {
			return out, spent{err}
		}
		if end == a.Input("base").Digest && out.Reason == "" {
			out.Reason = fmt.Sprintf("all that it changed, %d new files such as %.100q, is what the tree's .gitignore leaves out", left.Count, left.Paths[0])
		}
	}
	if maps.Copy(refused, res.Skipped); len(refused) > 0 {
		out.Flags = append(out.Flags, verdict.FlagLeftOut)
		if out.Reason == "" {
			first := slices.Min(slices.Collect(maps.Keys(refused)))
			out.Reason = fmt.Sprintf("%d changed paths are left out, such as %.100q: %s", len(refused), first, refused[first])
		}
	}
	out.Outputs = []task.Output{{Role: kind.Tree, Digest: end}, {Role: kind.Trajectory, Digest: out.Log}}
	return out, nil
}

// spent is what went wrong once an agent had come to its end, or a setup to its wall limit. Trying again would pay for that again: whoever applies next
// decides on it.
type spent struct{ error }

func (spent) Final() bool     { return true }
func (e spent) Unwrap() error { return e.error }

// endTree is base with what the agent changed, the paths of which no tree can hold what became of them, and those that .gitignore leaves out; nil where
// there is none.
func (s *Samples) endTree(ctx context.Context, base digest.Digest, changes []run.Change) (end digest.Digest, refused map[string]string, left *ignored, err error) {
	edits := make([]tree.Edit, len(changes))
	for i, ch := range changes {
		edits[i] = tree.Edit{Path: ch.Path, Mode: ch.Mode, Content: ch.Content}
	}
	edits, refused = tree.Holdable(edits)
	edits, paths, err := s.Trees.Unignored(ctx, base, edits)
	if err != nil {
		return end, nil, nil, err
	}
	if len(paths) > 0 {
		left = &ignored{len(paths), paths[:min(len(paths), shownIgnored)]}
	}
	end, err = s.Trees.Edit(ctx, base, edits)
	return end, refused, left, err
}

// shownIgnored is how many ignored paths a record names: a build may leave a hundred thousand.
const shownIgnored = 100

func withIgnored(evidence []byte, left *ignored) ([]byte, error) {
	var e runEvidence
	if err := json.Unmarshal(evidence, &e); err != nil {
		return nil, err
	}
	e.Ignored = left
	return json.Marshal(e)
}
