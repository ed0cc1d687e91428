package kind

import (
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A ScoreSpec reads a test's result. Roles: "result" (of the test), "base_test" (a Tree; gotest), "expected" (a gate's Evidence, where both lists are
// empty and the gate derives them). Output: ScoreBlob.
type ScoreSpec struct {
	Format     string // exit, gotest, junit, tap
	FailToPass []string
	PassToPass []string
	Derive     bool     // both lists are empty: report every id, for a gate to derive them
	Parser     int      // the parser's version
	Command    []string // gotest: which packages the test names; junit: which framework
	Cwd        string   // gotest: where
}

func (s *ScoreSpec) Kind() *task.Kind { return Score }
func (s *ScoreSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Set("fail_to_pass", s.FailToPass)
	e.Set("pass_to_pass", s.PassToPass)
	e.Bool("derive", s.Derive)
	e.Int("parser", int64(s.Parser))
	e.List("command", s.Command)
	e.String("cwd", s.Cwd)
}

// A VerdictSpec folds a gate's scores. Roles: "patches", "setup.fetch", "setup.prepare", "setup.fetch.gold", "setup.runtime", "build.base", "build.gold" (results),
// "test.base.N", "test.gold.N" (verdict and status), "score.base.N", "score.gold.N": all TolerateFailed. Output: Evidence. Facts: Admitted.
type VerdictSpec struct {
	Format         string
	FailToPass     []string
	PassToPass     []string
	States         []string
	Attempts       int
	Quorum         string
	CompileFailure string // reject, admit
	Strict         bool
	Command        digest.Digest // of the test; with Environment so that the record says what it was made with
	Environment    digest.Digest

	OnReject string `key:"-"` // error: a rejection counts as failed. Gates that differ in it have tasks apart
}

func (s *VerdictSpec) Kind() *task.Kind { return Verdict }
func (s *VerdictSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Set("fail_to_pass", s.FailToPass)
	e.Set("pass_to_pass", s.PassToPass)
	e.List("states", s.States)
	e.Int("attempts", int64(s.Attempts))
	e.String("quorum", s.Quorum)
	e.String("compile_failure", s.CompileFailure)
	e.Bool("strict", s.Strict)
	e.Digest("command", s.Command)
	e.Digest("environment", s.Environment)
}

// An ExtractSpec makes the candidate patch and tree. Roles: "base" (a Tree), "sample". Outputs: Patch, Tree.
// Facts: Nonempty, Applies. Outcome: "", "empty", "does_not_apply", "missing", or what ended the sample.
type ExtractSpec struct{ Options []string }

func (s *ExtractSpec) Kind() *task.Kind         { return Extract }
func (s *ExtractSpec) Encode(e *digest.Encoder) { e.Set("options", s.Options) }

// A ComposeSpec lays the hidden tests over the candidate. Roles: "candidate", "base", "base_test" (Trees), "test_paths", "gold_paths". Outputs: Tree, Composed.
type ComposeSpec struct{ Protect []string }

func (s *ComposeSpec) Kind() *task.Kind         { return Compose }
func (s *ComposeSpec) Encode(e *digest.Encoder) { e.Set("protect", s.Protect) }

// An OutcomeSpec folds a cell. Roles: "sample", "extract", "compose", "build", "test.N", "score.N", "gold_paths", "base" and "gold" (Trees, for harness_edit); all but
// sample TolerateUnmet. Output: OutcomeBlob.
type OutcomeSpec struct {
	HasBuild bool
	Attempts int
}

func (s *OutcomeSpec) Kind() *task.Kind { return Outcome }
func (s *OutcomeSpec) Encode(e *digest.Encoder) {
	e.Bool("has_build", s.HasBuild)
	e.Int("attempts", int64(s.Attempts))
}
