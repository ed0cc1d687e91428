package kind

import (
	"strings"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

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

// Digest stands for everything of the runtime that is keyed.
func (r *Runtime) Digest() digest.Digest {
	var e digest.Encoder
	r.encode(&e)
	return e.Sum()
}

// Environment says in words what a command ran in: what gives its identity, the platform, and how the two are brought together.
func (r *Runtime) Environment() string {
	what, how := "image", "native"
	if r.Host {
		what = "host"
	}
	if len(r.Adaptation) > 0 {
		how = strings.Join(r.Adaptation, "+")
	}
	return strings.Join([]string{what, r.Identity.String(), r.Platform, how}, " ")
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

// Digest stands for everything of the command that is keyed.
func (c *Command) Digest() digest.Digest {
	var e digest.Encoder
	c.encode(&e)
	return e.Sum()
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
	Watch   []string // build: globs of tools that prepare may have installed, of which the result says what was altered
}

func (s *StateSpec) Kind() *task.Kind { return s.Of }
func (s *StateSpec) Encode(e *digest.Encoder) {
	s.Runtime.encode(e)
	s.Command.encode(e)
	e.Set("keep", s.Keep)
	if len(s.Watch) > 0 { // the keys of all others are as they were without it
		e.Set("watch", s.Watch)
	}
}

// A TestSpec is one attempt of a test. Roles: Tree (the composed tree), Below (UseKey), "image", TestPaths (reset like Protect, for a build may have
// changed a test file whose content the candidate already had).
type TestSpec struct {
	Runtime Runtime
	Command Command
	Reports []string // declared report files
	Watch   []string // globs of tools that prepare may have installed, of which the result says what was altered
	Protect []string // globs reset to Tree before the test, as run.ParseReset reads them
	Attempt int      // from 0
}

func (s *TestSpec) Kind() *task.Kind { return Test }
func (s *TestSpec) Encode(e *digest.Encoder) {
	s.Runtime.encode(e)
	s.Command.encode(e)
	e.Set("reports", s.Reports)
	e.Set("protect", s.Protect)
	e.Set("watch", s.Watch)
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
	Unwritten []string                 `json:"unwritten,omitempty"` // declared reports that were not made
	Altered   []string                 `json:"altered,omitempty"`   // installed tools that the tree or the build had changed
	Reset     []string                 `json:"reset,omitempty"`     // of a test: what of the tree the build had changed, and was put back
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
