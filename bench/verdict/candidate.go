package verdict

import (
	"fmt"
	"slices"
	"strings"

	"pbuild/engine/task"
)

// A Word is the one word in which a cell ends. The list is closed: Outcomes has it in the order of tables.
type Word string

const (
	Resolved      Word = "resolved"
	Unresolved    Word = "failed"
	CompileFailed Word = "compile_failed"
	DoesNotApply  Word = "does_not_apply"
	Empty         Word = "empty"
	Missing       Word = "missing"
	CellTimeout   Word = "timeout"
	StepLimit     Word = "step_limit"
	WallLimit     Word = "wall_limit"
	CostLimit     Word = "cost_limit"
	FormatError   Word = "format_error"
	AgentCrash    Word = "agent_crash"
	CellProvider  Word = "provider"
	CellInfra     Word = "infra"
	Excluded      Word = "excluded"
	CellSkipped   Word = "skipped"
	CellFlaky     Word = "flaky"
)

// Outcomes lists every word.
func Outcomes() []Word {
	return []Word{Resolved, Unresolved, CompileFailed, DoesNotApply, Empty, Missing, CellTimeout, StepLimit, WallLimit, CostLimit,
		FormatError, AgentCrash, CellProvider, CellInfra, Excluded, CellSkipped, CellFlaky}
}

// A CellInput is how everything ended that a cell's outcome stands on.
type CellInput struct {
	HasBuild bool

	Ended        Word // what ended the sample or its extraction: "" (well), empty, does_not_apply, missing, a limit, format_error, agent_crash
	EndedWhy     string
	Nonempty     bool // facts of the extraction
	Applies      bool
	Build        Step
	Attempts     []Attempt
	HarnessEdits []string // lines of the patch that change how tests are built or run and that gold does not add

	Paths      []string // that the candidate touches
	Production []string // production files of the gold patch
	Reset      []string // protected paths that compose or the test's start put back
	Exempt     []string // protected paths that were not, since gold changes them
	Flags      []string // of sample, extraction, build and tests
}

// Stages say how far a candidate came. Compiles is nil where the instance has no build command, or the build did not run.
type Stages struct {
	Nonempty bool  `json:"nonempty"`
	Applies  bool  `json:"applies"`
	Compiles *bool `json:"compiles"`
	Passes   bool  `json:"passes"`
}

// Tests counts expected ids.
type Tests struct {
	Passed int `json:"passed"`
	Total  int `json:"total"`
}

// A CellOutcome is what became of a cell.
type CellOutcome struct {
	Outcome      Word              `json:"outcome"`
	Reason       string            `json:"reason,omitempty"` // what the outcome does not say itself: a Reason, a gate's outcome, a root failure; one line
	Detail       string            `json:"detail,omitempty"`
	Stages       Stages            `json:"stages"`
	Tests        *Tests            `json:"tests"` // null: no test ran, or the exit format
	LocalizedAny bool              `json:"localized_any"`
	LocalizedAll bool              `json:"localized_all"`
	Flags        []string          `json:"flags"` // sorted
	HarnessEdits []string          `json:"harness_edits,omitempty"`
	Reset        []string          `json:"reset,omitempty"`
	Exempt       []string          `json:"exempt,omitempty"`
	Attempts     []AttemptEvidence `json:"attempts,omitempty"`
	Isolation    string            `json:"isolation,omitempty"` // the lowest of the runs that it stands on
}

// Flags of runs and cells.
const (
	FlagResetProtected  = "reset_protected"
	FlagExempt          = "exempt"
	FlagHarnessEdit     = "harness_edit"
	FlagOutputTruncated = "output_truncated"
	FlagToolError       = "tool_error"
	FlagOutOfMemory     = "out_of_memory"
	FlagLeftOut         = "left_out"
	FlagNearLimit       = "near_limit"
	FlagStateDrift      = "state_drift"
)

// machineFlags depend on the machine or on what ran before, and so are in no outcome.
var machineFlags = []string{FlagNearLimit, FlagStateDrift, task.FlagUnstable}

// Candidate folds a cell. It returns false where that is not decided: a build or test ended as infra or cancelled, for which see Undone.
func Candidate(in CellInput) (CellOutcome, bool) {
	c := CellOutcome{HarnessEdits: in.HarnessEdits, Reset: in.Reset, Exempt: in.Exempt}
	c.Stages.Nonempty, c.Stages.Applies = in.Nonempty, in.Nonempty && in.Applies
	if c.Stages.Nonempty {
		c.LocalizedAny, c.LocalizedAll = localized(in.Paths, in.Production)
	}
	c.flag(in)
	if in.Ended != "" {
		return c.end(in.Ended, in.EndedWhy, ""), true
	}
	switch {
	case !in.Nonempty:
		return c.end(Empty, "", ""), true
	case !in.Applies:
		return c.end(DoesNotApply, "", ""), true
	}
	if in.HasBuild && in.Build.Status != "" {
		if in.Build.missing() {
			return CellOutcome{}, false
		}
		compiles := !in.Build.bad()
		c.Stages.Compiles = &compiles
	}
	switch {
	case len(in.HarnessEdits) > 0:
		return c.end(Unresolved, string(HarnessEdit), strings.Join(in.HarnessEdits, "; ")), true
	case in.Build.timedOut():
		return c.end(CellTimeout, "", "the build reached its time limit"), true
	case in.HasBuild && in.Build.bad():
		return c.end(CompileFailed, "", in.Build.say("build")), true
	}
	return c.attempts(in.Attempts)
}

// attempts is the quorum: all pass, none passes, or flaky. A time-out or a tool error of any is told apart from a plain failure.
func (c *CellOutcome) attempts(attempts []Attempt) (CellOutcome, bool) {
	if len(attempts) == 0 {
		return CellOutcome{}, false
	}
	for _, a := range attempts {
		if a.Status != task.OK {
			return CellOutcome{}, false
		}
		c.Attempts = append(c.Attempts, a.evidence())
	}
	passed, worst := passing(attempts), attempts[firstFailed(attempts)].Score
	if worst.Total > 0 {
		c.Tests = &Tests{worst.Passed, worst.Total}
	}
	switch {
	case passed == len(attempts):
		c.Stages.Passes = true
		return c.end(Resolved, "", ""), true
	case passed > 0:
		return c.end(CellFlaky, "", fmt.Sprintf("passed in %d of %d attempts: %s", passed, len(attempts), worst.Detail)), true
	}
	if i := slices.IndexFunc(attempts, func(a Attempt) bool { return a.Score.Verdict != task.Timeout }); i >= 0 {
		return c.end(Unresolved, string(attempts[i].Score.Reason), attempts[i].Score.Detail), true
	}
	return c.end(CellTimeout, "", worst.Detail), true
}

func (c *CellOutcome) end(w Word, reason, detail string) CellOutcome {
	c.Outcome, c.Reason, c.Detail = w, oneLine(reason), oneLine(detail)
	return *c
}

// flag gathers the flags: those given, but for what depends on the machine, and those that follow from the input.
func (c *CellOutcome) flag(in CellInput) {
	c.Flags = []string{}
	for _, f := range in.Flags {
		if !slices.Contains(machineFlags, f) {
			c.Flags = append(c.Flags, f)
		}
	}
	set := func(f string, on bool) {
		if on {
			c.Flags = append(c.Flags, f)
		}
	}
	set(FlagResetProtected, len(in.Reset) > 0)
	set(FlagExempt, len(in.Exempt) > 0)
	set(FlagHarnessEdit, len(in.HarnessEdits) > 0)
	for _, a := range in.Attempts {
		set(FlagOutputTruncated, a.Score.Truncated)
		set(FlagToolError, a.Score.Reason == ToolError)
	}
	slices.Sort(c.Flags)
	c.Flags = slices.Compact(c.Flags)
}

// localized says whether a patch touches any, or all, of gold's production files. Gold without any is touched by nothing.
func localized(paths, production []string) (any, all bool) {
	touched := map[string]bool{}
	for _, p := range paths {
		touched[p] = true
	}
	hit := 0
	for _, p := range production {
		if touched[p] {
			hit++
		}
	}
	return hit > 0, hit > 0 && hit == len(production)
}

// ExcludedCell is the outcome of a cell whose instance its gate did not admit.
func ExcludedCell(gate GateOutcome, why string) CellOutcome {
	return (&CellOutcome{Flags: []string{}}).end(Excluded, string(gate), why)
}

// undecided is the reason of a cell that the world kept from its outcome.
const undecided = "undecided"

// Undone is the outcome of a cell that has none of its own because something above it ended as status says: infra and provider as such, whose
// cause is the machine's and so no reason of a table, which says undecided; whatever was cancelled, or was skipped after a failure, as skipped.
func Undone(status task.Status, cause string) CellOutcome {
	c := &CellOutcome{Flags: []string{}}
	switch status {
	case task.Infra:
		return c.end(CellInfra, undecided, cause)
	case task.Provider:
		return c.end(CellProvider, undecided, cause)
	}
	return c.end(CellSkipped, cause, "")
}
