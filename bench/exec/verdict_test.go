package exec

import (
	"context"
	"maps"
	"testing"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/task"
)

// The fact for which the cells of a matrix wait goes with the one outcome that admits.
func TestVerdictAdmits(t *testing.T) {
	b := newBench(t)
	ran := func(state string, v task.Verdict) []task.Input {
		score := task.Outcome{Status: task.OK}
		if err := put(b.blobs, &score, kind.ScoreBlob, verdict.Score{Format: "exit", Verdict: v}); err != nil {
			t.Fatal(err)
		}
		test := input("test."+state+".0", b.blob(state))
		test.Record = &task.Record{Outcome: task.Outcome{Status: task.OK, Verdict: v}}
		return []task.Input{test, input("score."+state+".0", score.Digest(kind.ScoreBlob))}
	}
	for _, c := range []struct {
		base, gold task.Verdict
		want       verdict.GateOutcome
	}{
		{task.Fail, task.Pass, verdict.Admitted},
		{task.Pass, task.Pass, verdict.BasePassed},
		{task.Fail, task.Fail, verdict.GoldFailed},
	} {
		inputs := append(ran("base", c.base), ran("gold", c.gold)...)
		out := b.run(task.ExecutorFunc((&Judge{Blobs: b.blobs}).Verdict), &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "exit", Attempts: 1}, inputs...)
		if out.Status != task.OK || out.Outcome != string(c.want) || out.Has(kind.Admitted) != (c.want == verdict.Admitted) {
			t.Errorf("base %s, gold %s: got %+v, want %s", c.base, c.gold, out, c.want)
		}
		if e, err := verdict.ParseEvidence([]byte(b.text(out, kind.Evidence))); err != nil || e.Outcome != c.want {
			t.Errorf("base %s, gold %s: the evidence says %+v, %v", c.base, c.gold, e, err)
		}
	}
}

// Patches that never ran, because their source could not be had, are not what failed.
func TestVerdictOfAFailedSource(t *testing.T) {
	b := newBench(t)
	failed := func(r *task.Record) task.Input {
		in := input("patches", b.blob("x"))
		in.Status, in.Cause, in.Record = task.Failed, "checksum differs", r
		return in
	}
	spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "exit", Attempts: 1, Command: b.blob("command"), Environment: b.blob("environment")}
	for want, in := range map[verdict.GateOutcome]task.Input{
		verdict.SetupFailed: failed(nil),
		verdict.PatchFailed: failed(&task.Record{Outcome: task.Outcome{Status: task.Failed, Outcome: "patch_failed"}}),
	} {
		out := b.run(task.ExecutorFunc((&Judge{Blobs: b.blobs}).Verdict), spec, in)
		e, err := verdict.ParseEvidence([]byte(b.text(out, kind.Evidence)))
		if err != nil || out.Outcome != string(want) || e.Outcome != want {
			t.Errorf("%s: %+v, %+v, %v", want, out, e, err)
		}
	}
}

// Ids of a Go test are relative to the workspace, wherever its module lies and whichever of several the command runs in.
func TestGoModules(t *testing.T) {
	b := newBench(t)
	tree := b.tree(map[string]string{"go.mod": "module example.com/m\n", "tools/go.mod": "module example.com/m/tools\n", "ex/a/go.mod": "module main\n", "ex/b/go.mod": "module main\n", "ex/b/deep/x.go": "x", "bad/go.mod": "garbage\n"})
	j := &Judge{Blobs: b.blobs, Trees: b.repo}
	for cwd, main := range map[string]string{"": "ex/a", "ex/b": "ex/b", "ex/b/deep": "ex/b", "tools": "ex/a"} {
		want := map[string]string{"example.com/m": ".", "example.com/m/tools": "tools", "main": main}
		if got, err := j.modules(context.Background(), tree, cwd); err != nil || !maps.Equal(got, want) {
			t.Errorf("in %q: %v, %v; want %v", cwd, got, err, want)
		}
	}
}
