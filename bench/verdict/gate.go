package verdict

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// A GateOutcome is what the two-state gate says of an instance. The list is closed.
type GateOutcome string

const (
	Admitted        GateOutcome = "admitted"
	Rejected        GateOutcome = "rejected" // base kind compile_failure, which the gate does not admit
	BasePassed      GateOutcome = "base_passed"
	GoldFailed      GateOutcome = "gold_failed"
	GoldBuildFailed GateOutcome = "gold_build_failed"
	GateNoTests     GateOutcome = "no_tests"
	GateFlaky       GateOutcome = "flaky"
	PatchFailed     GateOutcome = "patch_failed"
	SetupFailed     GateOutcome = "setup_failed"
	GateTimeout     GateOutcome = "timeout"
	ImageMissing    GateOutcome = "image_missing"
	GateToolError   GateOutcome = "tool_error"
)

// Steps are the roles, or what they begin with, of the tasks that show why a gate ended so.
func (o GateOutcome) Steps() []string {
	switch o {
	case PatchFailed:
		return []string{"patches"}
	case SetupFailed, ImageMissing:
		return []string{"setup.", "build.base"}
	case GateTimeout:
		return []string{"setup.", "build.", "test.base."}
	case GoldBuildFailed:
		return []string{"build.gold"}
	case GoldFailed:
		return []string{"test.gold."}
	case Rejected, BasePassed, GateNoTests:
		return []string{"test.base."}
	case GateFlaky, GateToolError:
		return []string{"test."}
	}
	return nil
}

// A GateInput is how everything ended that a gate's verdict stands on.
type GateInput struct {
	Patches, Image                             Step
	Source, Runtime, Fetch, Prepare, FetchGold Step
	BuildBase, BuildGold                       Step      // zero where the instance has no build command
	Base, Gold                                 []Attempt // in order of the attempt
	Digests                                    map[string]string
}

// gate folds one instance.
type gate struct {
	spec *kind.VerdictSpec
	in   GateInput
	e    Evidence
}

// Gate says what the two states prove. It returns false where that is not decided: something it stands on ended as infra, provider or cancelled.
// Construction failures come before what gold did, and that before what base did; within them the order is that of the steps.
func Gate(spec *kind.VerdictSpec, in GateInput) (Evidence, bool) {
	g := gate{spec: spec, in: in}
	g.e.Digests = in.Digests
	g.gather()
	for _, decide := range []func() (GateOutcome, string, bool){g.construction, g.gold, g.base} {
		outcome, reason, known := decide()
		if !known {
			return Evidence{}, false
		}
		if outcome != "" {
			return g.result(outcome, reason), true
		}
	}
	return g.result(Admitted, ""), true
}

func (g *gate) result(outcome GateOutcome, reason string) Evidence {
	if outcome != Admitted && outcome != Rejected {
		g.e.BaseKind = NoBaseKind
	}
	g.e.Outcome, g.e.Reason = outcome, oneLine(reason)
	return g.e
}

func (g *gate) has(state string) bool {
	return slices.Contains(g.spec.States, state)
}

// construction finds what went wrong before either state could tell anything.
func (g *gate) construction() (GateOutcome, string, bool) {
	for _, s := range []struct {
		step    Step
		what    string
		outcome GateOutcome
	}{
		{g.in.Source, "source", SetupFailed},
		{g.in.Patches, "patches", PatchFailed},
		{g.in.Image, "image", ImageMissing},
		{g.in.Runtime, "runtime.prepare", SetupFailed},
		{g.in.Fetch, "fetch", SetupFailed},
		{g.in.Prepare, "prepare", SetupFailed},
		{g.in.FetchGold, "fetch.gold", SetupFailed},
		{g.in.BuildBase, "build of base", SetupFailed},
	} {
		switch {
		case s.step.missing():
			return "", "", false
		case s.step.timedOut():
			return GateTimeout, s.what + " reached its time limit", true
		case s.step.bad():
			return s.outcome, s.step.say(s.what), true
		}
	}
	if g.has("base") {
		if outcome, reason, known := g.runs("base", g.in.Base); outcome != "" || !known {
			return outcome, reason, known
		}
	}
	if !g.has("gold") || g.in.BuildGold.bad() {
		return "", "", true
	}
	if g.in.BuildGold.missing() {
		return "", "", false
	}
	return g.runs("gold", g.in.Gold)
}

// runs looks for attempts that prove nothing. A time-out of gold is gold's failure, one of base is no evidence.
func (g *gate) runs(state string, attempts []Attempt) (GateOutcome, string, bool) {
	if len(attempts) == 0 {
		return "", "", false
	}
	for i, a := range attempts {
		switch {
		case a.Status == task.Failed:
			return GateToolError, fmt.Sprintf("test of %s, attempt %d: no result", state, i), true
		case a.Status != task.OK:
			return "", "", false
		case a.Score.Reason == ToolError:
			return GateToolError, fmt.Sprintf("test of %s: %s", state, a.Score.Detail), true
		case a.Score.Verdict == task.Timeout && state == "base":
			return GateTimeout, "test of base: " + a.Score.Detail, true
		}
	}
	return "", "", true
}

// gold judges the state that has to pass.
func (g *gate) gold() (GateOutcome, string, bool) {
	if !g.has("gold") {
		return "", "", true
	}
	if g.in.BuildGold.bad() {
		return GoldBuildFailed, g.in.BuildGold.say("build of gold"), true
	}
	switch passed, n := passing(g.in.Gold), len(g.in.Gold); {
	case !agree(passed, n):
		return GateFlaky, fmt.Sprintf("gold passed in %d of %d attempts", passed, n), true
	case passed == 0:
		first := g.in.Gold[firstFailed(g.in.Gold)]
		reason := first.Score.Detail
		if first.Score.Reason == NoTests || first.Score.Reason == MissingTest {
			reason += stopped(first)
		}
		if len(first.Reset) > 0 {
			reason += "; protected, and so put back before the test (test.protect): " + some(first.Reset)
		}
		return GoldFailed, reason, true
	case g.e.Derived && len(g.e.FailToPass)+len(g.e.PassToPass) == 0:
		return GoldFailed, "no test passes on gold", true
	}
	return "", "", true
}

// agree is the quorum over n attempts of which some did one thing: all alike.
func agree(some, n int) bool { return some == 0 || some == n }

// base judges the state that has to fail, and says in which way it did.
func (g *gate) base() (GateOutcome, string, bool) {
	if !g.has("base") {
		return "", "", true
	}
	if g.spec.Format == "exit" {
		return g.baseExit()
	}
	var passed, failed, unbuilt []string
	for _, id := range g.e.IDs {
		r, stable := agreed(id.Base)
		if id.List == "fail_to_pass" && !stable {
			return GateFlaky, fmt.Sprintf("on base the attempts of %s disagree", id.ID), true
		}
		if r == Unbuilt {
			unbuilt = append(unbuilt, id.ID)
		}
		if id.List == "fail_to_pass" && r == Passed {
			passed = append(passed, id.ID)
		}
		if id.List == "fail_to_pass" && r == Failed {
			failed = append(failed, id.ID)
		}
	}
	g.e.AlreadyPass = passed
	switch {
	case len(passed) == len(g.e.FailToPass):
		return BasePassed, "every fail_to_pass test passes on base", true
	case g.spec.Strict && len(passed) > 0:
		return BasePassed, "strict: " + some(passed) + " passes on base", true
	case len(unbuilt) > 0:
		g.e.BaseKind = CompileFailure
		if g.spec.CompileFailure != "admit" {
			return Rejected, "on base the tests do not compile: " + some(unbuilt), true
		}
	case len(failed) > 0:
		g.e.BaseKind = TestFailure
	default:
		return GateNoTests, "on base no fail_to_pass test failed, and some have no result: " + some(g.e.FailToPass) + stopped(g.in.Base...), true
	}
	return "", "", true
}

// stopped names what may have kept tests from running: a file that could not be loaded can stop all the others (pytest is "Interrupted").
func stopped(attempts ...Attempt) string {
	var all []string
	for _, a := range attempts {
		all = append(all, slices.DeleteFunc(slices.Clone(a.Score.OtherFailures), func(f string) bool { return !strings.HasSuffix(f, " failed]") })...)
	}
	if len(all) == 0 {
		return ""
	}
	return "; " + some(sortedSet(all))
}

// baseExit is the exit format, which cannot tell a test that fails from one that does not compile: the base kind is none.
func (g *gate) baseExit() (GateOutcome, string, bool) {
	switch passed, n := passing(g.in.Base), len(g.in.Base); {
	case !agree(passed, n):
		return GateFlaky, fmt.Sprintf("base passed in %d of %d attempts", passed, n), true
	case passed > 0:
		return BasePassed, "the test command exits with 0 on base", true
	}
	return "", "", true
}

// agreed folds one id's attempts on base. Unstable: some passed and others did not. Failures weigh most, so that an absence which another attempt's
// panic caused does not hide them.
func agreed(results []Result) (Result, bool) {
	passed := 0
	for _, r := range results {
		if r == Passed {
			passed++
		}
	}
	if !agree(passed, len(results)) {
		return "", false
	}
	if passed > 0 {
		return Passed, true
	}
	for _, r := range []Result{Unbuilt, Failed} {
		if slices.Contains(results, r) {
			return r, true
		}
	}
	return Absent, true
}

// gather collects the evidence, and derives the lists where the instance gives none.
func (g *gate) gather() {
	for _, a := range g.in.Base {
		g.e.Base = append(g.e.Base, a.evidence())
		g.e.BuildFailed = append(g.e.BuildFailed, a.Score.BuildFailed...)
		g.e.SetupFailed = append(g.e.SetupFailed, a.Score.SetupFailed...)
	}
	g.e.BuildFailed, g.e.SetupFailed = sortedSet(g.e.BuildFailed), sortedSet(g.e.SetupFailed)
	for _, a := range g.in.Gold {
		g.e.Gold = append(g.e.Gold, a.evidence())
	}
	g.e.FailToPass, g.e.PassToPass = sortedSet(g.spec.FailToPass), sortedSet(g.spec.PassToPass)
	if g.spec.Format == "exit" {
		return
	}
	base, gold := resultsOf(g.in.Base), resultsOf(g.in.Gold)
	if len(g.e.FailToPass)+len(g.e.PassToPass) == 0 {
		g.derive(base, gold)
	}
	for _, l := range []struct {
		name string
		ids  []string
	}{{"fail_to_pass", g.e.FailToPass}, {"pass_to_pass", g.e.PassToPass}} {
		for _, id := range l.ids {
			g.e.IDs = append(g.e.IDs, IDEvidence{id, l.name, g.row(base, g.in.Base, id), g.row(gold, g.in.Gold, id)})
		}
	}
}

// sortedSet is never nil: JSON has [] for nothing.
func sortedSet(ids []string) []string {
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(ids)))...)
}

// resultsOf indexes what each attempt says of each id.
func resultsOf(attempts []Attempt) []map[string]Result {
	out := make([]map[string]Result, len(attempts))
	for i, a := range attempts {
		out[i] = map[string]Result{}
		for _, t := range append(a.Score.Expected(), a.Score.Found...) {
			out[i][t.ID] = t.Result
		}
	}
	return out
}

// row is one id's results in order of the attempts.
func (g *gate) row(results []map[string]Result, attempts []Attempt, id string) []Result {
	out := make([]Result, len(results))
	for i, m := range results {
		r, ok := m[id]
		switch {
		case ok:
			out[i] = r
		case attempts[i].Score.unbuilt(id):
			out[i] = Unbuilt
		default:
			out[i] = Absent
		}
	}
	return out
}

// pointer finds names that hold an address, which differs from run to run.
var pointer = regexp.MustCompile(`0x[0-9a-fA-F]{6,}`)

// derive makes the lists: failed or absent on base and passed on gold; passed on both. An id whose results disagree between the attempts of
// one state, or whose name holds an address, is left out and said to be unstable: no candidate could be held to it. One that a panic of another test
// hid on base is left out too: it may have passed there.
func (g *gate) derive(base, gold []map[string]Result) {
	g.e.Derived = true
	ids := map[string]bool{}
	for _, m := range slices.Concat(base, gold) {
		for id := range m {
			ids[id] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		b, g1 := passes(base, id), passes(gold, id)
		switch {
		case b > 0 && b < len(base), g1 > 0 && g1 < len(gold), g1 > 0 && pointer.MatchString(id):
			g.e.Unstable = append(g.e.Unstable, id)
		case g1 == 0:
		case b > 0:
			g.e.PassToPass = append(g.e.PassToPass, id)
		case g.hidden(base, id):
			g.e.Hidden = append(g.e.Hidden, id)
		case failedOrAbsent(base, id):
			g.e.FailToPass = append(g.e.FailToPass, id)
		}
	}
}

// hidden says whether an id has no result in an attempt on base in which a test of its package panicked, but not one that it is part of.
func (g *gate) hidden(base []map[string]Result, id string) bool {
	for i, m := range base {
		if _, ok := m[id]; ok {
			continue
		}
		for _, culprit := range g.in.Base[i].Score.Culprits {
			if goDir(culprit) == goDir(id) && !strings.HasPrefix(id, culprit+"/") && !failedAbove(m, id) {
				return true
			}
		}
	}
	return false
}

// failedAbove says whether a test that id is a subtest of has failed.
func failedAbove(results map[string]Result, id string) bool {
	for i := strings.LastIndexByte(id, '/'); i > 0; i = strings.LastIndexByte(id[:i], '/') {
		if results[id[:i]] == Failed {
			return true
		}
	}
	return false
}

func passes(results []map[string]Result, id string) int {
	n := 0
	for _, m := range results {
		if m[id] == Passed {
			n++
		}
	}
	return n
}

func failedOrAbsent(results []map[string]Result, id string) bool {
	for _, m := range results {
		if r, ok := m[id]; ok && r != Failed {
			return false // skipped, repeated
		}
	}
	return true
}
