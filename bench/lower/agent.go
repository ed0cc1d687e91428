package lower

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// An agent is one member of a matrix's agents.
type agent struct {
	name  string
	block *decl.Block
	each  *decl.Each
	spec  kind.SampleSpec // without what the instance, model and sample give
	pool  string

	predictions map[string]kind.Data
	used        map[string]bool // ids of predictions that an instance has
}

// takesModel says whether its cells differ by model and sample.
func (a *agent) takesModel() bool { return a.spec.Runs() }

// agents reads the agents of a matrix.
func (l *lowerer) agents(b *decl.Block) []*agent {
	refs, _ := get[[]decl.Ref](l, b, "agents", nil)
	var list []*agent
	l.many(refs, at(b, "agents"), func(b *decl.Block, m member) {
		if a := l.agent(b, m); a != nil {
			list = append(list, a)
		}
	})
	return list
}

// agent reads one member of an agent block; nil after an error.
func (l *lowerer) agent(b *decl.Block, m member) *agent {
	l.used[memberName(b, m.each)] = true
	a := &agent{name: m.key, block: b}
	if m.each != nil {
		each := *m.each
		a.each = &each
	}
	s := &a.spec
	s.Agent, _ = get[string](l, a.block, "kind", a.each)
	s.Version, _ = get[string](l, a.block, "version", a.each)
	if config, ok := get[any](l, a.block, "config", a.each); ok {
		s.Config = digest.Of(canonical(config))
	}
	if prompt, ok := get[decl.Bytes](l, a.block, "prompt", a.each); ok {
		s.Prompt = data(prompt)
	}
	l.checkAgent(a)
	switch {
	case s.Agent == "predictions":
		file, _ := get[string](l, a.block, "file", a.each)
		if file == "" {
			l.errorf(a.block.Range, a.each, "Predictions without a file", "An agent of kind \"predictions\" needs `file`, where the patches are.")
			return nil
		}
		var err error
		if a.predictions, err = l.host.Predictions(l.path(file)); err != nil {
			l.unread(at(a.block, "file"), a.each, "Predictions cannot be read", file, err)
			return nil
		}
		if len(a.predictions) == 0 {
			l.diags.Add(decl.Diagnostic{Severity: decl.Warning, Summary: "No predictions", Range: at(a.block, "file"), Row: a.each.Place(),
				Detail: fmt.Sprintf("%s holds no predictions: to every instance the agent's patch is empty.", file)})
		}
		a.used = map[string]bool{}
	case s.Runs():
		s.StepLimit, _ = get[int64](l, a.block, "step_limit", a.each)
		s.CostLimit, _ = get[float64](l, a.block, "cost_limit", a.each)
		s.WallLimit, _ = get[time.Duration](l, a.block, "wall_limit", a.each)
		s.OnLimit, _ = get[string](l, a.block, "on_limit", a.each)
		s.AllowUnsealed, _ = get[bool](l, a.block, "allow_unsealed", a.each)
		if argv := l.argv(a.block, a.each); s.Agent == "command" && len(argv) == 0 {
			l.errorf(a.block.Range, a.each, "Agent without a command", "An agent of kind \"command\" needs `command`, the program that is to change the tree.")
			return nil
		}
		a.pool = memberName(a.block, a.each)
		l.graph.Pools[a.pool] = int(or(l, a.block, "workers", a.each, int64(1)))
	}
	return a
}

// A model is one member of a matrix's models.
type model struct {
	name string
	spec kind.ModelSpec
	pool string // "" where it is not bounded
	size int
}

// models reads the models of a matrix.
func (l *lowerer) models(b *decl.Block) []model {
	refs, _ := get[[]decl.Ref](l, b, "models", nil)
	var list []model
	l.many(refs, at(b, "models"), func(b *decl.Block, m member) { list = append(list, l.model(b, m)) })
	return list
}

func (l *lowerer) model(b *decl.Block, m member) model {
	l.used[memberName(b, m.each)] = true
	mod := model{name: m.key}
	mod.spec.Provider, _ = get[string](l, b, "provider", m.each)
	mod.spec.ID, _ = get[string](l, b, "id", m.each)
	mod.spec.Revision, _ = get[string](l, b, "revision", m.each)
	mod.spec.EndpointClass, _ = get[string](l, b, "endpoint_class", m.each)
	if s := b.Nested("sampling"); s != nil {
		values := map[string]any{}
		for name := range s.Attrs {
			if v, ok := get[any](l, s, name, m.each); ok {
				values[name] = v
			}
		}
		mod.spec.Sampling = string(canonical(values))
	}
	if n, ok := get[int64](l, b, "max_concurrent", m.each); ok {
		mod.pool, mod.size = memberName(b, m.each), int(n)
		l.graph.Pools[mod.pool] = mod.size
	}
	return mod
}

// canonical is JSON with sorted keys.
func canonical(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("pbuild bug: a value of the language is not JSON: " + err.Error())
	}
	return b
}

// plain is a value as text: a string as it is, all else as JSON.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(canonical(v))
}

// sample adds what makes a candidate of in.
func (l *lowerer) sample(in gated, a *agent, m model, index int) task.ID {
	s := a.spec
	s.Model, s.Index = m.spec, index
	t := task.Task{Spec: &s, Deps: []task.Dep{{On: in.source, Role: "base", Output: kind.Tree}}}
	switch {
	case s.Agent == "oracle":
		t.Deps = append(t.Deps, task.Dep{On: in.patches, Role: "gold", Output: kind.GoldPatch})
	case s.Agent == "predictions":
		s.Prediction = a.predictions[in.id]
	case s.Runs():
		s.Statement, s.Runtime = in.statement, in.env.spec
		s.Command = l.command(a.block, a.each, in.env, false)
		if s.WallLimit > 0 {
			s.Command.Timeout = s.WallLimit
		}
		t.Timeout = s.Command.Timeout
		t.Deps = append(append(t.Deps, below(in.start())...), in.env.imageDep()...)
		// A task has one pool: the tighter bound.
		if t.Pool = a.pool; m.pool != "" && m.size < l.graph.Pools[a.pool] {
			t.Pool = m.pool
		}
	}
	if in.verdict != task.None {
		t.Deps = append(t.Deps, task.Dep{On: in.verdict, Role: "gate", Use: task.UseOrder})
		t.When = []task.Condition{{On: in.verdict, Fact: kind.Admitted}}
	}
	return l.add(t)
}

// unusedPredictions warns of ids that no instance of the matrix has.
func (l *lowerer) unusedPredictions(a *agent, matrix *decl.Block) {
	var unknown []string
	for id := range a.predictions {
		if !a.used[id] {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return
	}
	slices.Sort(unknown)
	shown := unknown[:min(len(unknown), 5)]
	l.diags.Warnf(at(a.block, "file"), "Predictions for unknown instances",
		"%d of the file's %d predictions are for no instance of %s and are not used: %s%s.", len(unknown), len(a.predictions), matrix.Address(),
		strings.Join(shown, ", "), map[bool]string{true: "..."}[len(unknown) > len(shown)])
}
