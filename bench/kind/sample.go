package kind

import (
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A SampleSpec produces a candidate. Roles: "base" (a Tree), Below (prepare's state, UseKey, agents that run), "gold" (GoldPatch; oracle).
// Outputs: Patch (oracle, predictions) or Tree (command) and the Trajectory.
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
