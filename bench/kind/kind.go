// Package kind lists the kinds of task of the field, and their specs. Each spec is a plain struct: what Encode writes is in the key, and a field
// tagged `key:"-"` is not; a test changes every other field and demands another key. The doc of each says which dependencies it has, by role.
//
// Package lower makes specs, package exec runs them.
package kind

import (
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// The kinds. A version is raised by hand when the kind's result may differ for equal inputs.
var (
	Source         = &task.Kind{Name: "source", Version: 1}
	Patches        = &task.Kind{Name: "patches", Version: 1, Pure: true}
	Image          = &task.Kind{Name: "image", Version: 1}
	RuntimePrepare = &task.Kind{Name: "runtime.prepare", Version: 1, Opaque: true}
	Fetch          = &task.Kind{Name: "fetch", Version: 1, Opaque: true}
	Prepare        = &task.Kind{Name: "prepare", Version: 1, Opaque: true}
	FetchGold      = &task.Kind{Name: "fetch.gold", Version: 1, Opaque: true}
	Build          = &task.Kind{Name: "build", Version: 2, Opaque: true}
	Test           = &task.Kind{Name: "test", Version: 2}
	Score          = &task.Kind{Name: "score", Version: 1, Pure: true}
	Verdict        = &task.Kind{Name: "verdict", Version: 2, Pure: true}
	SamplePure     = &task.Kind{Name: "sample", Version: 1, Pure: true}   // oracle, nop, predictions
	Sample         = &task.Kind{Name: "sample", Version: 1, Frozen: true} // what cannot be recomputed
	Extract        = &task.Kind{Name: "extract", Version: 1, Pure: true}
	Compose        = &task.Kind{Name: "compose", Version: 2, Pure: true}
	Outcome        = &task.Kind{Name: "outcome", Version: 2, Pure: true}
	Handshake      = &task.Kind{Name: "handshake", Version: 1}
	Report         = &task.Kind{Name: "report", Version: 2, Pure: true, Files: true}
	Task           = &task.Kind{Name: "task", Version: 1, Files: true}
)

// Roles of outputs. A source's output is its Tree.
const (
	Tree         = "tree"
	GoldPatch    = "gold_patch"
	TestPatch    = "test_patch"
	BaseTestTree = "base_test"
	GoldTree     = "gold"
	GoldTestTree = "gold_test"
	GoldPaths    = "gold_paths" // a blob of JSON: {"production":[paths],"all":[paths]}
	TestPaths    = "test_paths" // a blob of JSON: [paths] of the test patch
	Result       = "result"     // of build and test: a blob of JSON, a Run
	Patch        = "patch"      // of sample and extract
	ScoreBlob    = "score"      // a blob of JSON, verdict.Score
	Evidence     = "evidence"   // of verdict: a blob of JSON
	OutcomeBlob  = "outcome"    // a blob of JSON
	Composed     = "composed"   // of compose: a blob of JSON, what was reset and what was exempt
	Below        = "below"      // role of the state that a command starts from
)

// Data is bytes from a row or file, named by digest in the key and loaded when they are needed.
type Data struct {
	Digest digest.Digest
	Load   func() ([]byte, error) `key:"-"`
}

// A Runtime is what a command runs in, as its key sees it.
type Runtime struct {
	Host       bool
	Identity   digest.Digest // of the probe's output on the host; zero where an image task gives it (role "image")
	Platform   string        // "linux/amd64"
	Adaptation []string      // nil is native
	Workdir    string        // "" is /workspace
	User       string
	Path       string // "" is the caller's PATH, which the probe stands for

	Paths []string // host paths to show: what is there can be what a command lacked

	Name string `key:"-"`
}

func (r *Runtime) encode(e *digest.Encoder) {
	e.Group("runtime", func(e *digest.Encoder) {
		e.Bool("host", r.Host)
		e.Digest("identity", r.Identity)
		e.String("platform", r.Platform)
		e.List("adaptation", r.Adaptation)
		e.String("workdir", r.Workdir)
		e.String("user", r.User)
		e.String("path", r.Path)
		e.Set("paths", r.Paths)
	})
}

// A Command is a command block over its runtime's env. CPUs, Memory and Pids are 0 unless declared.
type Command struct {
	Argv        []string
	Cwd         string
	Env         map[string]string // declared values
	PassEnv     []string          // names whose values come from pbuild's own environment
	SecretEnv   map[string]string // variable name -> name of the sensitive variable it is read from
	Network     bool
	Timeout     time.Duration
	IdleTimeout time.Duration // 0: off
	CPUs        float64
	Memory      int64
	Pids        int64
	OutputLimit int64

	Secrets func(name string) string `key:"-"` // a sensitive variable's value
}

func (c *Command) encode(e *digest.Encoder) {
	e.List("command", c.Argv)
	e.String("cwd", c.Cwd)
	e.Map("env", c.Env)
	e.Set("pass_env", c.PassEnv)
	e.Map("secret_env", c.SecretEnv)
	e.Bool("network", c.Network)
	e.Int("timeout_ns", int64(c.Timeout))
	e.Int("idle_timeout_ns", int64(c.IdleTimeout))
	e.Int("milli_cpus", int64(c.CPUs*1000))
	e.Int("memory", c.Memory)
	e.Int("pids", c.Pids)
	e.Int("output_limit", c.OutputLimit)
}

// A StateSpec is a command that leaves a state: runtime.prepare, fetch, prepare, fetch.gold, build.
// Roles: Tree (the tree that the workspace shows; none for runtime.prepare), Below (a state, UseKey), "image".
type StateSpec struct {
	Of      *task.Kind `key:"-"` // the kind, which is in the key as such
	Runtime Runtime
	Command Command
	Keep    []string // build: paths under HOME that stay
}

func (s *StateSpec) Kind() *task.Kind { return s.Of }
func (s *StateSpec) Encode(e *digest.Encoder) {
	s.Runtime.encode(e)
	s.Command.encode(e)
	e.Set("keep", s.Keep)
}

// A TestSpec is one attempt of a test. Roles: Tree (the composed tree), Below (UseKey), "image", TestPaths (reset like Protect, for a build may have
// changed a test file whose content the candidate already had).
type TestSpec struct {
	Runtime Runtime
	Command Command
	Reports []string // declared report files
	Protect []string // globs reset to Tree before the test; "~" before one: only where Tree has no path that matches
	Attempt int      // from 0
}

func (s *TestSpec) Kind() *task.Kind { return Test }
func (s *TestSpec) Encode(e *digest.Encoder) {
	s.Runtime.encode(e)
	s.Command.encode(e)
	e.Set("reports", s.Reports)
	e.Set("protect", s.Protect)
	e.Int("attempt", int64(s.Attempt))
}

// A Run is the Result output of build and test: what a score reads. It holds no time, so that an equal run is an equal digest.
type Run struct {
	Exit      int                      `json:"exit"`
	TimedOut  string                   `json:"timed_out,omitempty"`
	Truncated bool                     `json:"truncated,omitempty"`
	OutOfMem  bool                     `json:"out_of_memory,omitempty"`
	Log       digest.Digest            `json:"log"`
	Reports   map[string]digest.Digest `json:"reports,omitempty"`
	Refused   map[string]string        `json:"refused,omitempty"`
	Reset     []string                 `json:"reset,omitempty"` // of a test: what of the tree the build had changed, and was put back
}

// SourceGit, SourceGoMod, SourceArchive and SourceDir have no dependencies and give a Tree.
type SourceGit struct {
	Commit     string
	Subdir     string
	Submodules bool
	URL        string `key:"-"`
}

func (s *SourceGit) Kind() *task.Kind { return Source }
func (s *SourceGit) Encode(e *digest.Encoder) {
	e.String("git_commit", s.Commit)
	e.String("subdir", s.Subdir)
	e.Bool("submodules", s.Submodules)
}

type SourceGoMod struct{ Path, Version, Sum string }

func (s *SourceGoMod) Kind() *task.Kind { return Source }
func (s *SourceGoMod) Encode(e *digest.Encoder) {
	e.String("gomod_path", s.Path)
	e.String("version", s.Version)
	e.String("sum", s.Sum)
}

type SourceArchive struct {
	SHA256 string // 64 hexadecimal digits
	Strip  int
	URL    string `key:"-"` // one of URL and Path
	Path   string `key:"-"` // absolute
}

func (s *SourceArchive) Kind() *task.Kind { return Source }
func (s *SourceArchive) Encode(e *digest.Encoder) {
	e.String("archive_sha256", s.SHA256)
	e.Int("strip", int64(s.Strip))
}

type SourceDir struct {
	Files  digest.Digest // of the sorted (path, mode, content) of its files, computed at plan
	Ignore []string      `key:"-"` // already applied to Files
	Path   string        `key:"-"` // absolute
}

func (s *SourceDir) Kind() *task.Kind         { return Source }
func (s *SourceDir) Encode(e *digest.Encoder) { e.Digest("dir_files", s.Files) }

// PatchesSpec derives gold and test patch. Roles: "base" (a Tree), and "fix" (a Tree) where Gold and Test are zero.
// Outputs: GoldPatch, TestPatch, BaseTestTree, GoldTree, GoldTestTree, GoldPaths, TestPaths.
type PatchesSpec struct {
	TestFiles, TestData []string // globs
	Gold, Test          Data     // given patches
}

func (s *PatchesSpec) Kind() *task.Kind { return Patches }
func (s *PatchesSpec) Encode(e *digest.Encoder) {
	e.Set("test_files", s.TestFiles)
	e.Set("test_data", s.TestData)
	e.Digest("gold", s.Gold.Digest)
	e.Digest("test", s.Test.Digest)
}

// A ScoreSpec reads a test's result. Roles: "result" (of the test), "base_test" (a Tree; gotest), "expected" (a gate's Evidence, where both lists are
// empty and the gate derives them). Output: ScoreBlob.
type ScoreSpec struct {
	Format     string // exit, gotest, junit, tap
	FailToPass []string
	PassToPass []string
	Derive     bool     // both lists are empty: report every id, for a gate to derive them
	Parser     int      // the parser's version
	Command    []string // gotest: which packages the test names; junit: which framework
}

func (s *ScoreSpec) Kind() *task.Kind { return Score }
func (s *ScoreSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Set("fail_to_pass", s.FailToPass)
	e.Set("pass_to_pass", s.PassToPass)
	e.Bool("derive", s.Derive)
	e.Int("parser", int64(s.Parser))
	e.List("command", s.Command)
}

// A VerdictSpec folds a gate's scores. Roles: "patches", "setup.fetch", "setup.prepare", "setup.fetch.gold", "setup.runtime", "build.base", "build.gold" (results),
// "test.base.N", "test.gold.N" (verdict and status), "score.base.N", "score.gold.N": all TolerateFailed. Output: Evidence. Facts: "admitted".
type VerdictSpec struct {
	Format         string
	FailToPass     []string
	PassToPass     []string
	States         []string
	Attempts       int
	Quorum         string
	CompileFailure string // reject, admit
	Strict         bool

	OnReject string `key:"-"` // error: a rejection counts as failed; so it is where any of the gates that share the task says so
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
}

// A SampleSpec produces a candidate. Roles: "base" (a Tree), Below (prepare's state, UseKey, agents that run), "gold" (GoldPatch; oracle).
// Outputs: Patch (oracle, predictions) or Tree (command) and the trajectory "trajectory".
type SampleSpec struct {
	Agent      string // oracle, nop, predictions, command, ...
	Version    string
	Config     digest.Digest
	Prompt     Data
	Prediction Data // predictions: its entry; zero Digest where the file has none
	Statement  Data // agents that run
	Command    Command
	Runtime    Runtime
	StepLimit  int64
	CostLimit  float64
	WallLimit  time.Duration
	OnLimit    string
	Model      ModelSpec
	Index      int
	Draw       int

	AllowUnsealed bool `key:"-"`
}

// A ModelSpec is a model as a sample's key sees it.
type ModelSpec struct {
	Provider, ID, Revision, EndpointClass string
	Sampling                              string // canonical JSON
}

// Runs says whether the agent runs code, so that its result is frozen.
func (s *SampleSpec) Runs() bool {
	return s.Agent != "oracle" && s.Agent != "nop" && s.Agent != "predictions"
}

func (s *SampleSpec) Kind() *task.Kind {
	if s.Runs() {
		return Sample
	}
	return SamplePure
}

func (s *SampleSpec) Encode(e *digest.Encoder) {
	e.String("agent", s.Agent)
	e.String("version", s.Version)
	e.Digest("config", s.Config)
	e.Digest("prompt", s.Prompt.Digest)
	e.Digest("prediction", s.Prediction.Digest)
	e.Digest("problem_statement", s.Statement.Digest)
	s.Command.encode(e)
	s.Runtime.encode(e)
	e.Int("step_limit", s.StepLimit)
	e.Int("cost_limit_micro_usd", int64(s.CostLimit*1e6))
	e.Int("wall_limit_ns", int64(s.WallLimit))
	e.String("on_limit", s.OnLimit)
	e.Group("model", func(e *digest.Encoder) {
		e.String("provider", s.Model.Provider)
		e.String("id", s.Model.ID)
		e.String("revision", s.Model.Revision)
		e.String("endpoint_class", s.Model.EndpointClass)
		e.String("sampling", s.Model.Sampling)
	})
	e.Int("sample", int64(s.Index))
	e.Int("draw", int64(s.Draw))
}

// An ExtractSpec makes the candidate patch and tree. Roles: "base" (a Tree), "sample". Outputs: Patch, Tree.
// Facts: "nonempty", "applies". Outcome: "", "empty", "does_not_apply", "missing", or what ended the sample.
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
	Format   string
	HasBuild bool
	Attempts int
}

func (s *OutcomeSpec) Kind() *task.Kind { return Outcome }
func (s *OutcomeSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Bool("has_build", s.HasBuild)
	e.Int("attempts", int64(s.Attempts))
}

// An ImageSpec is a declared or built image. Output: "content".
type ImageSpec struct {
	Ref        string // a declared image
	Dockerfile digest.Digest
	Context    digest.Digest // of its files after .dockerignore
	Args       map[string]string
	Target     string
	Platform   string
	Bases      []string // content digests from the lock file
	Secrets    []string // names
	Dir        string   `key:"-"`
}

func (s *ImageSpec) Kind() *task.Kind { return Image }
func (s *ImageSpec) Encode(e *digest.Encoder) {
	e.String("ref", s.Ref)
	e.Digest("dockerfile", s.Dockerfile)
	e.Digest("context", s.Context)
	e.Map("args", s.Args)
	e.String("target", s.Target)
	e.String("platform", s.Platform)
	e.List("bases", s.Bases)
	e.Set("secrets", s.Secrets)
}

// A HandshakeSpec runs a runtime's probe on a node. Role: "image".
type HandshakeSpec struct {
	Probe      []string
	Platform   string
	Adaptation []string
	Node       string
}

func (s *HandshakeSpec) Kind() *task.Kind { return Handshake }
func (s *HandshakeSpec) Encode(e *digest.Encoder) {
	e.List("probe", s.Probe)
	e.String("platform", s.Platform)
	e.List("adaptation", s.Adaptation)
	e.String("node", s.Node)
}

// A Cell is one line of a report: which cell of the matrix, and the roles of the dependencies that tell of it.
type Cell struct {
	Instance, Agent, Model string // Model "" where the agent takes none
	Sample                 int
	Address                string // reports show it
	Outcome, Gate          string `key:"-"` // roles; Gate "" where ungated
}

// A ReportSpec renders one file. Roles: cell N's outcome is "N", its gate's verdict "gate N"; TolerateAny.
type ReportSpec struct {
	Format   string // md, csv, json
	Gated    bool
	Columns  []string
	By       []string
	Filter   string
	Renderer int
	Cells    []Cell

	// The names are part of what is rendered, and the file is the role of the output.
	Name string
	Of   string // "matrix.main"
	File string // relative to the workspace
}

func (s *ReportSpec) Kind() *task.Kind { return Report }
func (s *ReportSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Bool("gated", s.Gated)
	e.List("columns", s.Columns)
	e.List("by", s.By)
	e.String("filter", s.Filter)
	e.Int("renderer", int64(s.Renderer))
	e.String("name", s.Name)
	e.String("of", s.Of)
	e.String("file", s.File)
	e.Group("cells", func(e *digest.Encoder) {
		for _, c := range s.Cells {
			e.List("cell", []string{c.Instance, c.Agent, c.Model, c.Address})
			e.Int("sample", int64(c.Sample))
		}
	})
}

// A TaskSpec is a Makefile-style command: in the workspace directory, in place, unless Sandbox.
type TaskSpec struct {
	Argv      []string
	Env       map[string]string
	SecretEnv map[string]string
	PassEnv   []string
	Runtime   Runtime
	Outputs   []string
	Sandbox   bool
	Timeout   time.Duration

	Secrets func(name string) string `key:"-"`
}

func (s *TaskSpec) Kind() *task.Kind { return Task }
func (s *TaskSpec) Encode(e *digest.Encoder) {
	e.List("command", s.Argv)
	e.Map("env", s.Env)
	e.Map("secret_env", s.SecretEnv)
	e.Set("pass_env", s.PassEnv)
	s.Runtime.encode(e)
	e.Set("outputs", s.Outputs)
	e.Bool("sandbox", s.Sandbox)
	e.Int("timeout_ns", int64(s.Timeout))
}
