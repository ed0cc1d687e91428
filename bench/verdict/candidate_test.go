package verdict

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

var cellSpec = &kind.VerdictSpec{FailToPass: []string{"TestA"}, PassToPass: []string{"TestB"}}

func cell(t testing.TB, change func(*CellInput), runs ...string) CellInput {
	in := CellInput{HasBuild: true, Nonempty: true, Applies: true, Build: built, Paths: []string{"a.go", "README"}, Production: []string{"a.go", "b.go"}}
	for _, r := range runs {
		if r == "timeout" {
			in.Attempts = append(in.Attempts, timedOut())
		} else {
			in.Attempts = append(in.Attempts, goRun(t, cellSpec, r))
		}
	}
	if change != nil {
		change(&in)
	}
	return in
}

// Every way in which a cell ends, with its stages: n non-empty, a applies, c compiles (C: it does not), p passes.
func TestCandidate(t *testing.T) {
	ended := func(w Word, why string) func(*CellInput) {
		return func(in *CellInput) { in.Ended, in.EndedWhy, in.Build, in.Attempts = w, why, Step{}, nil }
	}
	for _, c := range []struct {
		name            string
		in              CellInput
		outcome         Word
		reason          string
		stages          string
		passed, total   int
		flags           string
		detailBeginning string
	}{
		{name: "resolved", in: cell(t, nil, "A+ B+"), outcome: Resolved, stages: "nacp", passed: 2, total: 2},
		{name: "resolved without a build command", in: cell(t, func(in *CellInput) { in.HasBuild, in.Build = false, Step{} }, "A+ B+"), outcome: Resolved, stages: "nap", passed: 2, total: 2},
		{name: "failed", in: cell(t, nil, "A- B+"), outcome: Unresolved, reason: "failed_test", stages: "nac", passed: 1, total: 2, detailBeginning: "failed: TestA"},
		{name: "missing test", in: cell(t, nil, "B+"), outcome: Unresolved, reason: "missing_test", stages: "nac", passed: 1, total: 2},
		{name: "hidden tests do not compile", in: cell(t, nil, "!."), outcome: Unresolved, reason: "build_failed", stages: "nac", total: 2},
		{name: "compile_failed", in: cell(t, func(in *CellInput) { in.Build = broken; in.Attempts = nil }), outcome: CompileFailed, stages: "naC", detailBeginning: "build: undefined: x"},
		{name: "build times out", in: cell(t, func(in *CellInput) { in.Build = slow; in.Attempts = nil }), outcome: CellTimeout, stages: "naC"},
		{name: "timeout", in: cell(t, nil, "timeout"), outcome: CellTimeout, stages: "nac", total: 1},
		{name: "empty", in: cell(t, func(in *CellInput) { in.Nonempty, in.Applies = false, false; in.Attempts = nil }), outcome: Empty},
		{name: "empty, as extraction says", in: cell(t, func(in *CellInput) { ended(Empty, "")(in); in.Nonempty, in.Applies = false, false }), outcome: Empty},
		{name: "does not apply", in: cell(t, func(in *CellInput) { ended(DoesNotApply, "a.go:\n3")(in); in.Applies = false }), outcome: DoesNotApply, reason: "a.go: 3", stages: "n"},
		{name: "missing", in: cell(t, func(in *CellInput) { ended(Missing, "")(in); in.Nonempty = false }), outcome: Missing},
		{name: "step limit", in: cell(t, ended(StepLimit, "100 steps")), outcome: StepLimit, reason: "100 steps", stages: "na"},
		{name: "harness edit", in: cell(t, func(in *CellInput) { in.HarnessEdits = []string{"go.mod: replace x => ./x"} }, "A+ B+"), outcome: Unresolved, reason: "harness_edit", stages: "nac",
			flags: "harness_edit", detailBeginning: "go.mod: replace x => ./x"},
		{name: "harness edit that does not compile", in: cell(t, func(in *CellInput) { in.HarnessEdits = []string{"x"}; in.Build = broken }), outcome: Unresolved, reason: "harness_edit", stages: "naC", flags: "harness_edit"},
		{name: "flaky", in: cell(t, nil, "A+ B+", "A- B+"), outcome: CellFlaky, stages: "nac", passed: 1, total: 2, detailBeginning: "passed in 1 of 2 attempts: failed: TestA"},
		{name: "fails in every attempt, once by time", in: cell(t, nil, "timeout", "A- B+"), outcome: Unresolved, reason: "failed_test", stages: "nac", total: 1},
		{name: "flags", in: cell(t, func(in *CellInput) {
			in.Reset, in.Exempt, in.Flags = []string{"x_test.go"}, []string{"go.work"}, []string{"state_drift", "normalized", "near_limit", "unstable"}
		}, "A+ B+"), outcome: Resolved, stages: "nacp", passed: 2, total: 2, flags: "exempt normalized reset_protected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, decided := Candidate(c.in)
			if !decided || o.Outcome != c.outcome || o.Reason != c.reason || !strings.HasPrefix(o.Detail, c.detailBeginning) {
				t.Errorf("got %s, %q, %q", o.Outcome, o.Reason, o.Detail)
			}
			if got := letters(o.Stages); got != c.stages {
				t.Errorf("stages %q, want %q", got, c.stages)
			}
			if (o.Tests == nil) != (c.total == 0) || o.Tests != nil && (o.Tests.Passed != c.passed || o.Tests.Total != c.total) {
				t.Errorf("tests %+v, want %d of %d", o.Tests, c.passed, c.total)
			}
			if got := strings.Join(o.Flags, " "); got != c.flags {
				t.Errorf("flags %q, want %q", got, c.flags)
			}
		})
	}
}

func letters(s Stages) string {
	var b strings.Builder
	for _, l := range []struct {
		on     bool
		letter string
	}{{s.Nonempty, "n"}, {s.Applies, "a"}, {s.Compiles != nil && *s.Compiles, "c"}, {s.Compiles != nil && !*s.Compiles, "C"}, {s.Passes, "p"}} {
		if l.on {
			b.WriteString(l.letter)
		}
	}
	return b.String()
}

// A verdict that needs what was cut is a failure that says so, and is flagged.
func TestCandidateToolError(t *testing.T) {
	in := cell(t, nil)
	in.Attempts = []Attempt{{Status: task.OK, Score: Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA"}}, Input{Truncated: true, Modules: map[string]string{"m": "."}}, nil)}}
	o, decided := Candidate(in)
	if !decided || o.Outcome != Unresolved || o.Reason != "tool_error" || !slices.Equal(o.Flags, []string{"output_truncated", "tool_error"}) {
		t.Errorf("%+v", o)
	}
}

// What ended as infra decides nothing, and no cell is resolved by less than all of its attempts.
func TestCandidateUndecided(t *testing.T) {
	for name, in := range map[string]CellInput{
		"build":   cell(t, func(in *CellInput) { in.Build = lost }, "A+ B+"),
		"test":    cell(t, func(in *CellInput) { in.Attempts[1].Status = task.Infra }, "A+ B+", "A+ B+"),
		"no test": cell(t, nil),
	} {
		if o, decided := Candidate(in); decided {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for status, want := range map[task.Status][2]string{task.Infra: {"infra", "undecided"}, task.Provider: {"provider", "undecided"}, task.Cancelled: {"skipped", "why"}, task.Failed: {"skipped", "why"}} {
		if o := Undone(status, "why"); string(o.Outcome) != want[0] || o.Stages != (Stages{}) || o.Reason != want[1] {
			t.Errorf("%s: %+v", status, o)
		}
	}
	if o := ExcludedCell(BasePassed, "it passes"); o.Outcome != Excluded || o.Reason != "base_passed" || o.Detail != "it passes" {
		t.Errorf("%+v", o)
	}
}

func TestLocalized(t *testing.T) {
	for _, c := range []struct {
		paths, production string
		any, all          bool
	}{
		{"a.go b.go x", "a.go b.go", true, true}, {"a.go", "a.go b.go", true, false}, {"x", "a.go", false, false}, {"", "a.go", false, false}, {"a.go", "", false, false},
	} {
		if any, all := localized(strings.Fields(c.paths), strings.Fields(c.production)); any != c.any || all != c.all {
			t.Errorf("%q over %q: %v, %v", c.paths, c.production, any, all)
		}
	}
	in := cell(t, func(in *CellInput) { in.Nonempty = false })
	if o, _ := Candidate(in); o.LocalizedAny {
		t.Error("an empty patch touches a file")
	}
}

// Passes implies resolved and every stage before it; nothing but a pass of every attempt resolves; the word is in the list; equal inputs are equal bytes.
func TestCandidateProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := cell(t, nil)
		in.HasBuild, in.Nonempty, in.Applies = rapid.Bool().Draw(rt, "build"), rapid.Bool().Draw(rt, "nonempty"), rapid.Bool().Draw(rt, "applies")
		in.Build = rapid.SampledFrom([]Step{{}, built, broken, slow, lost}).Draw(rt, "step")
		in.Ended = rapid.SampledFrom([]Word{"", "", "", Empty, Missing, StepLimit, DoesNotApply, AgentCrash}).Draw(rt, "ended")
		if rapid.Bool().Draw(rt, "edits") {
			in.HarnessEdits = []string{"x"}
		}
		all := true
		for range rapid.IntRange(0, 3).Draw(rt, "attempts") {
			a := goRun(t, cellSpec, rapid.SampledFrom([]string{"A+ B+", "A- B+", "A+ B?", "A+", "!.", "A+ A+ B+"}).Draw(rt, "run"))
			all = all && a.Score.Verdict == task.Pass
			in.Attempts = append(in.Attempts, a)
		}
		o, decided := Candidate(in)
		again, _ := Candidate(in)
		a, _ := json.Marshal(o)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			rt.Fatalf("%s\n%s", a, b)
		}
		if !decided {
			return
		}
		if !slices.Contains(Outcomes(), o.Outcome) {
			rt.Fatalf("%q is not in the list", o.Outcome)
		}
		s := o.Stages
		if s.Applies && !s.Nonempty || s.Passes && !s.Applies || s.Passes && s.Compiles != nil && !*s.Compiles || s.Passes != (o.Outcome == Resolved) {
			rt.Fatalf("stages %q of %s", letters(s), o.Outcome)
		}
		if o.Outcome == Resolved && (!all || len(in.Attempts) == 0 || in.HarnessEdits != nil || in.Ended != "") {
			rt.Fatalf("resolved by %+v", in)
		}
	})
}
