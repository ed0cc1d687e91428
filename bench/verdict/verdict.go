// Package verdict says what a run of tests proved: it reads logs and reports, matches expected ids to results, and folds scores
// into the outcome of a gate or of a candidate.
//
// It promises that an absent, skipped, doubtful or repeated result is never a pass, that no input makes it panic or take more than
// linear time, and that equal inputs give equal bytes of JSON: everything is sorted, nothing holds a time. It runs nothing and
// reads no file. It does not know who wrote a patch.
package verdict

import (
	"pbuild/engine/task"
)

// ParserVersion is raised by hand when a parser, or a rule of passing, may judge an equal run differently. It is in the key of scores.
const ParserVersion = 5

// An Input is everything about one run of a test that a verdict may depend on.
type Input struct {
	Exit                 int    // 128+n where signal n ended it
	TimedOut             string // "", "wall" or "idle"
	Truncated            bool   // the log was cut at its limit
	OutOfMem             bool   // something that it started was killed at its memory limit
	Stdout, Stderr, Both []byte
	Reports              map[string][]byte // path to content
	Refused              map[string]string // reports that were there and not collected, with the reason
	Unwritten            []string          // declared reports that were not made
	Modules              map[string]string // gotest: the directory of each go.mod of base+test ("." is the root) by its module path
	Cwd                  string            // where the command ran, relative to the workspace
	Workspace            string            // ids and names that hold this absolute path are made relative to it
}

// Expected is what a gate derived, for a score whose own lists are empty.
type Expected struct {
	FailToPass []string `json:"fail_to_pass"`
	PassToPass []string `json:"pass_to_pass"`
}

// A Result is what became of one test.
type Result string

const (
	Passed    Result = "passed"
	Failed    Result = "failed"
	Skipped   Result = "skipped"   // or failed as it was expected to
	Todo      Result = "todo"      // the suite itself says that its result does not count
	Rerun     Result = "rerun"     // failed, and passed when it was tried again: no pass
	Absent    Result = "absent"    // no result
	Unbuilt   Result = "unbuilt"   // absent, and its package or file failed to build
	Duplicate Result = "duplicate" // more than one result, not all of them failures
	Ambiguous Result = "ambiguous" // the id means more than one test
)

// A Reason says why a verdict is not pass. The list is closed.
type Reason string

const (
	TimedOut       Reason = "timeout"
	ToolError      Reason = "tool_error" // what was to be read is cut, refused or unreadable: the run proves nothing
	ReportMismatch Reason = "report_mismatch"
	AmbiguousID    Reason = "ambiguous_id"
	DuplicateID    Reason = "duplicate_result"
	FailedTest     Reason = "failed_test"
	BuildFailed    Reason = "build_failed" // a package or file that holds an expected id did not build
	NoTests        Reason = "no_tests"
	MissingTest    Reason = "missing_test"
	SkippedTest    Reason = "skipped_test"
	NonzeroExit    Reason = "nonzero_exit" // exit format
	HarnessEdit    Reason = "harness_edit" // a candidate's: the patch changes how tests are built or run
)

// A TestResult is one test and what became of it.
type TestResult struct {
	ID     string `json:"id"`
	Result Result `json:"result"`
}

// Counts are over everything that a run reported, each test once.
type Counts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"` // todo too
	Other   int `json:"other"`   // rerun and duplicate
}

// maxOther bounds how many other failures a score names; OtherFailed counts them all.
const maxOther = 200

// A Score is what one attempt of a test proved.
type Score struct {
	Format   string       `json:"format"`
	Verdict  task.Verdict `json:"verdict"`
	Reason   Reason       `json:"reason,omitempty"`
	Detail   string       `json:"detail,omitempty"` // one line for people
	Exit     int          `json:"exit"`
	TimedOut string       `json:"timed_out,omitempty"`

	Passed     int          `json:"passed"` // of the expected ids
	Total      int          `json:"total"`
	FailToPass []TestResult `json:"fail_to_pass,omitempty"` // sorted by id
	PassToPass []TestResult `json:"pass_to_pass,omitempty"`

	Counts        Counts       `json:"counts"`
	Found         []TestResult `json:"found,omitempty"`          // while a gate derives its lists: every test, sorted by id
	OtherFailures []string     `json:"other_failures,omitempty"` // failed and not expected: ids, "DIR [build failed]", "DIR [failed outside its tests]"
	OtherFailed   int          `json:"other_failed,omitempty"`
	BuildFailed   []string     `json:"build_failed,omitempty"` // gotest: directories; junit: dotted modules; tap: files; "*": everything
	SetupFailed   []string     `json:"setup_failed,omitempty"` // gotest: directories whose imports could not be resolved
	Culprits      []string     `json:"culprits,omitempty"`     // tests whose own output holds the panic that hid others
	Truncated     bool         `json:"truncated,omitempty"`
}

// Expected lists every expected id with its result: fail_to_pass first.
func (s *Score) Expected() []TestResult {
	return append(append([]TestResult(nil), s.FailToPass...), s.PassToPass...)
}
