package exec

import (
	"context"
	"fmt"
	"path"
	"strings"

	"golang.org/x/mod/modfile"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Judge folds logs into scores, scores into a gate's verdict, and everything of a cell into its outcome.
type Judge struct {
	Blobs task.Blobs
	Trees *tree.Repo
}

// Score reads what a test left.
func (j *Judge) Score(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.ScoreSpec)
	in, err := j.ran(a.Input("result").Digest)
	if err != nil {
		return task.Outcome{}, err
	}
	in.Workspace = run.Workspace
	if base := a.Input(kind.BaseTestTree); base != nil {
		in.Cwd = spec.Cwd
		if in.Modules, err = j.modules(ctx, base.Digest, spec.Cwd); err != nil {
			return task.Outcome{}, err
		}
	}
	var expected *verdict.Expected
	if gate := a.Input("expected"); gate != nil {
		e, err := j.evidence(gate.Digest)
		if err != nil {
			return task.Outcome{}, err
		}
		expected = e.Expected()
	}
	s := verdict.Parse(spec, in, expected)
	out := task.Outcome{Status: task.OK, Verdict: s.Verdict, Exit: s.Exit, Reason: s.Detail}
	if s.Verdict == task.Pass {
		out.Facts = []string{kind.Passed}
	}
	if s.Truncated {
		out.Flags = []string{verdict.FlagOutputTruncated}
	}
	err = put(j.Blobs, &out, kind.ScoreBlob, s)
	return out, err
}

// modules are the directories of a tree's Go modules by their path. Of several with one path it is that which holds cwd, else the uppermost.
func (j *Judge) modules(ctx context.Context, id digest.Digest, cwd string) (map[string]string, error) {
	entries, err := j.Trees.Entries(ctx, id)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for _, e := range entries {
		if path.Base(e.Path) != "go.mod" {
			continue
		}
		mod, err := j.Trees.Read(ctx, e.Blob)
		if err != nil {
			return nil, err
		}
		name, dir := modfile.ModulePath(mod), path.Dir(e.Path)
		if have, again := modules[name]; name != "" && (!again || nearer(cwd, dir, have)) {
			modules[name] = dir
		}
	}
	return modules, nil
}

// nearer says whether a go.mod in a, rather than one in b, is that of a command in cwd.
func nearer(cwd, a, b string) bool {
	holds := func(dir string) bool { return dir == "." || strings.HasPrefix(cwd+"/", dir+"/") }
	if holds(a) != holds(b) {
		return holds(a)
	}
	depth := func(dir string) int { return len(strings.Split(dir, "/")) }
	if holds(a) {
		return b == "." || depth(a) > depth(b) && a != "."
	}
	return depth(a) < depth(b)
}

// ran is the run of a test as its parser sees it.
func (j *Judge) ran(result digest.Digest) (verdict.Input, error) {
	var r kind.Run
	if err := get(j.Blobs, result, &r); err != nil {
		return verdict.Input{}, err
	}
	in := verdict.Input{Exit: r.Exit, TimedOut: r.TimedOut, Truncated: r.Truncated, OutOfMem: r.OutOfMem, Refused: r.Refused, Unwritten: r.Unwritten, Reports: map[string][]byte{}}
	log, err := j.Blobs.Get(r.Log)
	if err != nil {
		return in, err
	}
	if in.Stdout, in.Stderr, in.Both, err = run.ParseLog(log); err != nil {
		return in, err
	}
	for path, d := range r.Reports {
		if in.Reports[path], err = j.Blobs.Get(d); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (j *Judge) evidence(d digest.Digest) (*verdict.Evidence, error) {
	b, err := j.Blobs.Get(d)
	if err != nil {
		return nil, err
	}
	return verdict.ParseEvidence(b)
}

// step is how the input with a role has ended; the zero Step where there is none or it is unneeded.
func step(a *task.Attempt, role string) verdict.Step {
	in := a.Input(role)
	if in == nil || in.Status == "" {
		return verdict.Step{}
	}
	s := verdict.Step{Status: in.Status, Detail: in.Cause}
	if in.Record != nil {
		s.Verdict, s.Exit = in.Record.Verdict, in.Record.Exit
		if s.Detail == "" {
			s.Detail = in.Record.Reason
		}
	}
	return s
}

// attempts are the runs of a test in order, each with its score. prefix is "" or "base." or "gold.".
func (j *Judge) attempts(a *task.Attempt, prefix string, n int) ([]verdict.Attempt, error) {
	var list []verdict.Attempt
	for i := range n {
		test, score := a.Input(fmt.Sprintf("test.%s%d", prefix, i)), a.Input(fmt.Sprintf("score.%s%d", prefix, i))
		if test == nil || test.Status == "" {
			continue // unneeded: what comes before says why
		}
		at := verdict.Attempt{Status: test.Status}
		if test.Record != nil {
			at.Log = test.Record.Log.String()
			if d := test.Record.Digest(kind.Result); !d.IsZero() {
				var r kind.Run
				if err := get(j.Blobs, d, &r); err != nil {
					return nil, err
				}
				at.Reset = r.Reset
			}
		}
		if at.Status == task.OK && score != nil {
			at.Status = score.Status
			if score.Status == task.OK {
				if err := get(j.Blobs, score.Digest, &at.Score); err != nil {
					return nil, err
				}
			}
		}
		list = append(list, at)
	}
	return list, nil
}
