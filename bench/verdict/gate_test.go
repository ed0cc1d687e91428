package verdict

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

var (
	ok     = Step{Status: task.OK}
	built  = Step{Status: task.OK, Verdict: task.Pass}
	broken = Step{Status: task.OK, Verdict: task.Fail, Exit: 2, Detail: "undefined: x"}
	slow   = Step{Status: task.OK, Verdict: task.Timeout}
	lost   = Step{Status: task.Infra}
	failed = Step{Status: task.Failed, Exit: 1, Detail: "went wrong"}
)

func setUp() GateInput {
	return GateInput{Source: ok, Patches: ok, Runtime: ok, Fetch: ok, Prepare: ok, FetchGold: ok, BuildBase: built, BuildGold: built}
}

// goRun is a Go test run in a few words: "A+ B- sub:C?" is A passed, B failed, C skipped; "!dir" a package that does not build, "~dir" one
// whose setup failed, "^dir" one that vet rejects.
func goRun(t testing.TB, spec *kind.VerdictSpec, words string) Attempt {
	t.Helper()
	in := Input{Modules: map[string]string{"m": "."}}
	var out strings.Builder
	event := func(fields map[string]string) {
		b, _ := json.Marshal(fields)
		out.Write(append(b, '\n'))
	}
	pkg := func(dir string) string {
		if dir == "" || dir == "." {
			return "m"
		}
		return "m/" + dir
	}
	failed := map[string]bool{}
	for _, w := range strings.Fields(words) {
		if dir := w[1:]; w[0] == '!' || w[0] == '~' {
			what := map[byte]string{'!': "build", '~': "setup"}[w[0]]
			event(map[string]string{"Action": "output", "Package": pkg(dir), "Output": "FAIL\t" + pkg(dir) + " [" + what + " failed]\n"})
			failed[pkg(dir)] = true
			continue
		} else if w[0] == '^' {
			event(map[string]string{"Action": "build-output", "ImportPath": pkg(dir), "Output": "# [" + pkg(dir) + "]\n"})
			event(map[string]string{"Action": "build-output", "ImportPath": pkg(dir), "Output": "./x_test.go:1:1: self-assignment\n"})
			event(map[string]string{"Action": "output", "Package": pkg(dir), "Output": "FAIL\t" + pkg(dir) + " [build failed]\n"})
			event(map[string]string{"Action": "fail", "Package": pkg(dir), "FailedBuild": pkg(dir)})
			in.Exit = 1
			continue
		}
		dir, test, found := strings.Cut(w[:len(w)-1], ":")
		if !found {
			dir, test = "", dir
		}
		action := map[byte]string{'+': "pass", '-': "fail", '?': "skip"}[w[len(w)-1]]
		event(map[string]string{"Action": "run", "Package": pkg(dir), "Test": "Test" + test})
		event(map[string]string{"Action": action, "Package": pkg(dir), "Test": "Test" + test})
		failed[pkg(dir)] = failed[pkg(dir)] || action == "fail"
	}
	for p, f := range failed {
		event(map[string]string{"Action": map[bool]string{true: "fail", false: "pass"}[f], "Package": p})
		if f {
			in.Exit = 1
		}
	}
	in.Stdout = []byte(out.String())
	s := &kind.ScoreSpec{Format: "gotest", FailToPass: spec.FailToPass, PassToPass: spec.PassToPass, Derive: len(spec.FailToPass)+len(spec.PassToPass) == 0}
	return Attempt{Status: task.OK, Score: Parse(s, in, nil)}
}

func timedOut() Attempt {
	return Attempt{Status: task.OK, Score: Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"TestA"}}, Input{TimedOut: "wall", Exit: 137}, nil)}
}

// Every outcome of the gate's table, and what comes before what.
func TestGate(t *testing.T) {
	f2p := func(ids ...string) kind.VerdictSpec {
		return kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest", FailToPass: ids}
	}
	p2p := func(s kind.VerdictSpec, ids ...string) kind.VerdictSpec { s.PassToPass = ids; return s }
	with := func(s kind.VerdictSpec, change func(*kind.VerdictSpec)) kind.VerdictSpec { change(&s); return s }
	admit := func(s *kind.VerdictSpec) { s.CompileFailure = "admit" }
	strict := func(s *kind.VerdictSpec) { s.Strict = true }
	for _, c := range []struct {
		name       string
		spec       kind.VerdictSpec
		base, gold string // attempts separated by |; "timeout"
		steps      func(*GateInput)
		outcome    GateOutcome // "" is undecided
		base_      BaseKind
		reason     string
	}{
		{name: "a failing test", spec: p2p(f2p("TestA"), "TestB"), base: "A- B+", gold: "A+ B+", outcome: Admitted, base_: TestFailure},
		{name: "pass_to_pass need not pass on base", spec: p2p(f2p("TestA"), "TestB"), base: "A- B-", gold: "A+ B+", outcome: Admitted, base_: TestFailure},
		{name: "one of two fails, the other is absent", spec: f2p("TestA", "TestB"), base: "A-", gold: "A+ B+", outcome: Admitted, base_: TestFailure},
		{name: "one of two passes already", spec: f2p("TestA", "TestB"), base: "A- B+", gold: "A+ B+", outcome: Admitted, base_: TestFailure},
		{name: "strictly", spec: with(f2p("TestA", "TestB"), strict), base: "A- B+", gold: "A+ B+", outcome: BasePassed, reason: "strict: TestB passes on base"},
		{name: "all pass", spec: f2p("TestA", "TestB"), base: "A+ B+", gold: "A+ B+", outcome: BasePassed},
		{name: "absent is not failed", spec: f2p("TestA"), base: "B+", gold: "A+ B+", outcome: GateNoTests},
		{name: "absent, and an unrelated package does not build", spec: f2p("TestA"), base: "B+ !sub", gold: "A+ B+", outcome: GateNoTests,
			reason: "on base no fail_to_pass test failed, and some have no result: TestA; sub [build failed]"},
		{name: "vet rejects the tests", spec: with(f2p("TestA"), admit), base: "^.", gold: "A+", outcome: GateNoTests,
			reason: "on base no fail_to_pass test failed, and some have no result: TestA; . [vet failed]"},
		{name: "skipped is not failed", spec: f2p("TestA"), base: "A? B+", gold: "A+ B+", outcome: GateNoTests},
		{name: "does not compile", spec: with(f2p("TestA"), admit), base: "!.", gold: "A+", outcome: Admitted, base_: CompileFailure},
		{name: "setup failed on base", spec: with(f2p("sub:TestA"), admit), base: "~sub B+", gold: "sub:A+ B+", outcome: Admitted, base_: CompileFailure},
		{name: "does not compile, and that is rejected", spec: f2p("TestA"), base: "!.", gold: "A+", outcome: Rejected, base_: CompileFailure, reason: "on base the tests do not compile: TestA"},
		{name: "a package of pass_to_pass does not compile", spec: p2p(f2p("TestA"), "sub:TestB"), base: "A- !sub", gold: "A+ sub:B+", outcome: Rejected, base_: CompileFailure},
		{name: "gold fails", spec: f2p("TestA"), base: "A-", gold: "A-", outcome: GoldFailed, reason: "failed: TestA"},
		{name: "gold misses one", spec: p2p(f2p("TestA"), "TestB"), base: "A-", gold: "A+", outcome: GoldFailed, reason: "no result of TestB; ids with a result: 1"},
		{name: "vet rejects the tests of gold", spec: f2p("TestA"), base: "^.", gold: "^.", outcome: GoldFailed, reason: "no test ran, exit 1; . [vet failed]"},
		{name: "gold comes before base", spec: f2p("TestA"), base: "A+", gold: "A-", outcome: GoldFailed},
		{name: "gold does not build with the tests", spec: f2p("TestA"), base: "A-", gold: "!.", outcome: GoldFailed},
		{name: "gold has other failures", spec: f2p("TestA"), base: "A-", gold: "A+ B-", outcome: Admitted, base_: TestFailure},
		{name: "gold times out", spec: f2p("TestA"), base: "A-", gold: "timeout", outcome: GoldFailed, reason: "the wall limit was reached"},
		{name: "base times out", spec: f2p("TestA"), base: "timeout", gold: "A-", outcome: GateTimeout},
		{name: "gold does not build", spec: f2p("TestA"), base: "A-", steps: func(in *GateInput) { in.BuildGold = broken }, outcome: GoldBuildFailed, reason: "build of gold: undefined: x"},
		{name: "gold's build times out", spec: f2p("TestA"), base: "A-", steps: func(in *GateInput) { in.BuildGold = slow }, outcome: GoldBuildFailed},
		{name: "base does not build", spec: f2p("TestA"), steps: func(in *GateInput) { in.BuildBase = broken }, outcome: SetupFailed, reason: "build of base: undefined: x"},
		{name: "base's build times out", spec: f2p("TestA"), steps: func(in *GateInput) { in.BuildBase = slow }, outcome: GateTimeout},
		{name: "patches", spec: f2p("TestA"), steps: func(in *GateInput) { in.Patches = failed; in.BuildBase = broken }, outcome: PatchFailed, reason: "patches: went wrong"},
		{name: "prepare", spec: f2p("TestA"), steps: func(in *GateInput) { in.Prepare = failed; in.BuildGold = broken }, outcome: SetupFailed, reason: "prepare: went wrong"},
		{name: "fetch", spec: f2p("TestA"), steps: func(in *GateInput) { in.Fetch = failed }, outcome: SetupFailed},
		{name: "image", spec: f2p("TestA"), steps: func(in *GateInput) { in.Image = failed }, outcome: ImageMissing},
		{name: "lost fetch", spec: f2p("TestA"), base: "A-", gold: "A+", steps: func(in *GateInput) { in.Fetch = lost }},
		{name: "lost gold build", spec: f2p("TestA"), base: "A-", steps: func(in *GateInput) { in.BuildGold = lost }},
		{name: "no runs at all", spec: f2p("TestA")},
		{name: "a patch that fails is known, whatever was lost later", spec: f2p("TestA"), steps: func(in *GateInput) { in.Patches = failed; in.Fetch = lost }, outcome: PatchFailed},
		{name: "no build command", spec: f2p("TestA"), base: "A-", gold: "A+", steps: func(in *GateInput) { in.BuildBase, in.BuildGold = Step{}, Step{} }, outcome: Admitted, base_: TestFailure},
		{name: "flaky gold", spec: f2p("TestA"), base: "A-|A-|A-", gold: "A+|A-|A+", outcome: GateFlaky, reason: "gold passed in 2 of 3 attempts"},
		{name: "flaky base", spec: f2p("TestA"), base: "A-|A+", gold: "A+|A+", outcome: GateFlaky},
		{name: "steady", spec: f2p("TestA"), base: "A-|A-", gold: "A+|A+", outcome: Admitted, base_: TestFailure},
		{name: "only gold is asked for", spec: with(f2p("TestA"), func(s *kind.VerdictSpec) { s.States = []string{"gold"} }), gold: "A+", outcome: Admitted},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := setUp()
			runs := func(text string) (out []Attempt) {
				for _, r := range strings.Split(text, "|") {
					switch r {
					case "":
					case "timeout":
						out = append(out, timedOut())
					default:
						out = append(out, goRun(t, &c.spec, r))
					}
				}
				return out
			}
			in.Base, in.Gold = runs(c.base), runs(c.gold)
			if c.steps != nil {
				c.steps(&in)
			}
			r, decided := Gate(&c.spec, in)
			if decided != (c.outcome != "") || r.Outcome != c.outcome || r.BaseKind != c.base_ {
				t.Fatalf("got %q, base kind %q (%s), want %q, %q", r.Outcome, r.BaseKind, r.Reason, c.outcome, c.base_)
			}
			if c.reason != "" && r.Reason != c.reason {
				t.Errorf("reason %q, want %q", r.Reason, c.reason)
			}
		})
	}
}

// The exit format has no base kind and derives nothing. A command that could not be started fails: it may be the fix that brings it.
func TestGateExit(t *testing.T) {
	run := func(exits ...int) (out []Attempt) {
		for _, e := range exits {
			out = append(out, Attempt{Status: task.OK, Score: Parse(&kind.ScoreSpec{Format: "exit"}, Input{Exit: e}, nil)})
		}
		return out
	}
	for _, c := range []struct {
		base, gold []int
		want       GateOutcome
	}{
		{[]int{1}, []int{0}, Admitted}, {[]int{0}, []int{0}, BasePassed}, {[]int{1}, []int{3}, GoldFailed}, {[]int{127}, []int{0}, Admitted},
		{[]int{1}, []int{126}, GoldFailed}, {[]int{1, 0}, []int{0, 0}, GateFlaky}, {[]int{1, 2}, []int{0, 0}, Admitted}, {[]int{1, 1}, []int{0, 1}, GateFlaky},
	} {
		in := setUp()
		in.Base, in.Gold = run(c.base...), run(c.gold...)
		r, decided := Gate(&kind.VerdictSpec{States: []string{"base", "gold"}, Format: "exit"}, in)
		if !decided || r.Outcome != c.want || r.BaseKind != NoBaseKind || r.Derived {
			t.Errorf("exits %v and %v: %s %q", c.base, c.gold, r.Outcome, r.BaseKind)
		}
	}
}

// Derived lists are what candidates are scored by: the gold run they came from passes by them, the base run does not.
func TestGateDerives(t *testing.T) {
	spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest"}
	in := setUp()
	in.Digests = map[string]string{"gold_patch": "sha256:1"}
	base, gold := "A- B+ C- D+ F? H/0xc000123456+ I+", "A+ B+ C- D- E+ F+ G/0xc000123456+ H/0xc000123456+ I+"
	in.Base, in.Gold = []Attempt{goRun(t, spec, base), goRun(t, spec, base)}, []Attempt{goRun(t, spec, gold), goRun(t, spec, gold+" J+")}
	r, decided := Gate(spec, in)
	if !decided || r.Outcome != Admitted || r.BaseKind != TestFailure {
		t.Fatalf("%s %s", r.Outcome, r.Reason)
	}
	e := r
	if diff := cmp.Diff([]string{"TestA", "TestE"}, e.FailToPass); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"TestB", "TestI"}, e.PassToPass); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"TestG/0xc000123456", "TestH/0xc000123456", "TestJ"}, e.Unstable); diff != "" {
		t.Error(diff)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseEvidence(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&e, back); diff != "" {
		t.Error(diff)
	}
	if again, _ := json.Marshal(back); string(again) != string(b) {
		t.Errorf("%s\n%s", b, again)
	}
	score := func(words string) Score {
		lists := back.Expected()
		s := goRun(t, &kind.VerdictSpec{FailToPass: lists.FailToPass, PassToPass: lists.PassToPass}, words).Score
		return s
	}
	if s := score(gold); s.Verdict != task.Pass {
		t.Errorf("gold by its own lists: %s", s.Detail)
	}
	if s := score(base); s.Verdict == task.Pass {
		t.Error("base passes by the derived lists")
	}
}

// What a panic of another test kept from running on base may have passed there: it is in no list. What the panicking test contains has failed with it.
func TestGateDerivesNoHiddenIDs(t *testing.T) {
	spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest"}
	in := setUp()
	in.Base, in.Gold = []Attempt{goRun(t, spec, "A- B+ sub:D+")}, []Attempt{goRun(t, spec, "A+ A/x+ B+ C+ sub:D+ sub:E+")}
	in.Base[0].Score.Culprits = []string{"TestA"}
	r, _ := Gate(spec, in)
	for _, c := range []struct{ got, want []string }{
		{r.FailToPass, []string{"TestA", "TestA/x", "sub:TestE"}}, {r.PassToPass, []string{"TestB", "sub:TestD"}}, {r.Hidden, []string{"TestC"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGateDerivesNothing(t *testing.T) {
	spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest", CompileFailure: "admit"}
	for _, c := range []struct {
		base, gold string
		want       GateOutcome
		kind       BaseKind
	}{
		{"A+", "A+", BasePassed, NoBaseKind},
		{"A-", "A-", GoldFailed, NoBaseKind},
		{"A-", "", GoldFailed, NoBaseKind},
		{"!.", "A+", Admitted, CompileFailure},
		{"!. sub:B+", "A+ sub:B+", Admitted, CompileFailure},
		{"!sub A-", "A+", Admitted, TestFailure}, // sub holds no expected id
	} {
		in := setUp()
		in.Base, in.Gold = []Attempt{goRun(t, spec, c.base)}, []Attempt{goRun(t, spec, c.gold)}
		if r, decided := Gate(spec, in); !decided || r.Outcome != c.want || r.BaseKind != c.kind {
			t.Errorf("%q and %q: %s %q, %s", c.base, c.gold, r.Outcome, r.BaseKind, r.Reason)
		}
	}
}

// The evidence keeps what was seen, id by id, and JSON has null for no base kind.
func TestEvidence(t *testing.T) {
	spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest", FailToPass: []string{"TestA", "TestB"}, PassToPass: []string{"sub:TestC"}, CompileFailure: "admit"}
	in := setUp()
	in.Base, in.Gold = []Attempt{goRun(t, spec, "A- B+ !sub")}, []Attempt{goRun(t, spec, "A+ B+ sub:C+")}
	r, _ := Gate(spec, in)
	want := []IDEvidence{
		{"TestA", "fail_to_pass", []Result{Failed}, []Result{Passed}},
		{"TestB", "fail_to_pass", []Result{Passed}, []Result{Passed}},
		{"sub:TestC", "pass_to_pass", []Result{Unbuilt}, []Result{Passed}},
	}
	if diff := cmp.Diff(want, r.IDs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"TestB"}, r.AlreadyPass); diff != "" {
		t.Error(diff)
	}
	in.Patches = failed
	r, _ = Gate(spec, in)
	if b, _ := json.Marshal(r); !strings.Contains(string(b), `"base_kind":null`) {
		t.Errorf("%s", b)
	}
}

// An instance is admitted only by a gold run that passes and a base run that does not, whatever else happens.
func TestGateNeverAdmitsWithoutEvidence(t *testing.T) {
	words := rapid.SampledFrom([]string{"A+", "A-", "A?", "B+", "B-", "!.", "~.", "C+"})
	status := rapid.SampledFrom([]task.Status{"", task.OK, task.OK, task.OK, task.Failed, task.Infra, task.Provider, task.Cancelled})
	rapid.Check(t, func(rt *rapid.T) {
		spec := &kind.VerdictSpec{States: []string{"base", "gold"}, Format: "gotest", CompileFailure: rapid.SampledFrom([]string{"admit", "reject"}).Draw(rt, "policy"), Strict: rapid.Bool().Draw(rt, "strict")}
		if rapid.Bool().Draw(rt, "given") {
			spec.FailToPass, spec.PassToPass = []string{"TestA"}, []string{"TestB"}
		}
		in := setUp()
		for _, s := range []*Step{&in.Patches, &in.Image, &in.Runtime, &in.Fetch, &in.Prepare, &in.FetchGold, &in.BuildBase, &in.BuildGold} {
			s.Status = status.Draw(rt, "status")
		}
		n := rapid.IntRange(0, 3).Draw(rt, "attempts")
		for range n {
			in.Base = append(in.Base, goRun(t, spec, strings.Join(rapid.SliceOfN(words, 0, 4).Draw(rt, "base"), " ")))
			in.Gold = append(in.Gold, goRun(t, spec, strings.Join(rapid.SliceOfN(words, 0, 4).Draw(rt, "gold"), " ")))
		}
		r, decided := Gate(spec, in)
		again, _ := Gate(spec, in)
		if diff := cmp.Diff(r, again); diff != "" {
			rt.Fatal(diff)
		}
		if !decided || r.Outcome != Admitted {
			return
		}
		if n == 0 || r.BaseKind == NoBaseKind || len(r.FailToPass) == 0 {
			rt.Fatalf("admitted without evidence: %+v", r)
		}
		for _, id := range r.IDs {
			if slices.ContainsFunc(id.Gold, func(r Result) bool { return r != Passed }) {
				rt.Fatalf("admitted although %s is %v on gold", id.ID, id.Gold)
			}
		}
	})
}
