package verdict

import (
	"encoding/json"
	"fmt"
	"slices"

	"pbuild/engine/task"
)

// A Step is how a task that a gate or a cell stands on has ended. The zero Step is one that there is not.
type Step struct {
	Status  task.Status
	Verdict task.Verdict // of builds
	Exit    int
	Detail  string // one line: the root failure, hunks that do not apply, the last line of a log
}

// missing says that the step is not known and may still come to be: an infra failure, a cancelled or unfinished task.
func (s Step) missing() bool {
	return s.Status == task.Infra || s.Status == task.Provider || s.Status == task.Cancelled
}

// bad says that the step ran and did not do what it was to do.
func (s Step) bad() bool {
	return s.Status == task.Failed || s.Status == task.OK && s.Verdict != task.NoVerdict && s.Verdict != task.Pass
}

func (s Step) timedOut() bool { return s.Status == task.OK && s.Verdict == task.Timeout }

// say is "what: detail", or "what: exit N" where there is no detail.
func (s Step) say(what string) string {
	if s.Detail != "" {
		return oneLine(what + ": " + s.Detail)
	}
	return fmt.Sprintf("%s: exit %d", what, s.Exit)
}

// An Attempt is one run of a test with what its score says. Status is that of the test or, if that is ok, of the score.
type Attempt struct {
	Status task.Status
	Score  Score
	Log    string   // its digest, for the evidence
	Reset  []string // what the build had changed of what is protected
}

// passing is how many attempts passed.
func passing(attempts []Attempt) int {
	n := 0
	for _, a := range attempts {
		if a.Score.Verdict == task.Pass {
			n++
		}
	}
	return n
}

// firstFailed is the index of the first attempt that did not pass; 0 where all did.
func firstFailed(attempts []Attempt) int {
	return max(0, slices.IndexFunc(attempts, func(a Attempt) bool { return a.Score.Verdict != task.Pass }))
}

// AttemptEvidence is what a gate or cell keeps of one attempt. It does not name the test's key, which may change where nothing of this does.
type AttemptEvidence struct {
	Exit     int          `json:"exit"`
	TimedOut string       `json:"timed_out,omitempty"`
	Verdict  task.Verdict `json:"verdict"`
	Reason   Reason       `json:"reason,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Log      string       `json:"log,omitempty"`
}

func (a Attempt) evidence() AttemptEvidence {
	return AttemptEvidence{a.Score.Exit, a.Score.TimedOut, a.Score.Verdict, a.Score.Reason, a.Score.Detail, a.Log}
}

// IDEvidence is one id's results, an attempt each, in both states.
type IDEvidence struct {
	ID   string   `json:"id"`
	List string   `json:"list"` // fail_to_pass or pass_to_pass
	Base []Result `json:"base,omitempty"`
	Gold []Result `json:"gold,omitempty"`
}

// Evidence is what a gate keeps of an instance, and, where it derived them, the lists that candidates are scored by.
type Evidence struct {
	Outcome     GateOutcome       `json:"outcome"`
	BaseKind    BaseKind          `json:"base_kind"`
	Reason      string            `json:"reason,omitempty"`
	Derived     bool              `json:"derived"`
	FailToPass  []string          `json:"fail_to_pass"` // sorted
	PassToPass  []string          `json:"pass_to_pass"`
	Unstable    []string          `json:"unstable,omitempty"`     // not derived: results differ between attempts, or the name holds an address
	Hidden      []string          `json:"hidden,omitempty"`       // not derived: they pass on gold, and a panic elsewhere kept them from running on base
	AlreadyPass []string          `json:"already_pass,omitempty"` // of fail_to_pass, on base
	Base        []AttemptEvidence `json:"base,omitempty"`
	Gold        []AttemptEvidence `json:"gold,omitempty"`
	IDs         []IDEvidence      `json:"ids,omitempty"` // sorted by list and id
	BuildFailed []string          `json:"build_failed"`
	SetupFailed []string          `json:"setup_failed"`
	Digests     map[string]string `json:"digests,omitempty"`   // of the patches and their trees, by role
	Isolation   string            `json:"isolation,omitempty"` // the lowest of the runs that it stands on
}

// ParseEvidence reads the JSON of an Evidence.
func ParseEvidence(b []byte) (*Evidence, error) {
	e := new(Evidence)
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("gate's evidence: %w", err)
	}
	return e, nil
}

// Expected is what candidates are scored by.
func (e *Evidence) Expected() *Expected {
	return &Expected{FailToPass: e.FailToPass, PassToPass: e.PassToPass}
}

// BaseKind says in which way the base fails. JSON has null for none: the exit format cannot tell.
type BaseKind string

const (
	NoBaseKind     BaseKind = ""
	TestFailure    BaseKind = "test_failure"
	CompileFailure BaseKind = "compile_failure"
)

func (k BaseKind) MarshalJSON() ([]byte, error) {
	if k == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(k))
}
