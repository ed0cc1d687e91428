package lower

import (
	"fmt"
	"slices"
	"strconv"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// A cell is one (instance, agent, model, sample) of a matrix, or (runtime, node) of a handshake, with the task that ends it.
type cell struct {
	kind.Cell
	outcome, verdict task.ID // verdict None where ungated
	admits           []admission
	output           string // of outcome, that a report reads
}

// noModel stands in addresses where an agent takes none.
const noModel = "-"

func (l *lowerer) matrix(b *decl.Block, out *lowered) {
	refs, _ := get[[]decl.Ref](l, b, "instances", nil)
	instances := l.instancesOf(refs, at(b, "instances"))
	l.ungated(b, refs, instances)
	agents, models := l.agents(b), l.models(b)
	samples := int(or(l, b, "samples", nil, int64(1)))
	attempts := int(or(l, b, "attempts", nil, int64(1)))
	excluded := l.exclusions(b)
	tags, _ := get[[]string](l, b, "tags", nil)
	told := map[decl.Ref]*statements{}
	l.under(b, nil, func() {
		for _, in := range instances {
			runs := false // an agent on it
			for _, a := range agents {
				if a.used != nil {
					a.used[in.id] = true // whether or not the cell is excluded
				}
				ms, n := models, samples
				if !a.takesModel() {
					ms, n = nil, 1
				}
				if len(ms) == 0 {
					ms = []model{{name: noModel}}
				}
				for _, m := range ms {
					for i := range n {
						c := cell{Cell: kind.Cell{Instance: in.id, Agent: a.name, Model: m.name, Sample: i, Provenance: in.provenance}, verdict: in.verdict, admits: in.admits, output: kind.OutcomeBlob}
						if excluded.match(&c.Cell) {
							continue
						}
						runs = runs || a.spec.Runs()
						o := task.Object{Class: task.ClassCandidate, Block: b.Address(), Index: []string{in.id, a.name, m.name, strconv.Itoa(i)}, Tags: tags}
						o.Steps = l.candidate(in, a, m, i, attempts)
						c.outcome = o.Steps[len(o.Steps)-1].Task
						c.Address = (task.Address{Block: o.Block, Index: o.Index}).String()
						if c.Model == noModel {
							c.Model = ""
						}
						out.objects = append(out.objects, o)
						out.cells = append(out.cells, c)
					}
				}
			}
			if runs {
				count(told, in.instance)
			}
		}
	})
	if l.diags.HasErrors() {
		return // an instance that could not be lowered is not one that there is not
	}
	for _, a := range agents {
		l.unusedPredictions(a, b)
	}
	l.untold(told, b)
	if len(out.cells) == 0 {
		l.diags.Warnf(b.Range, "No cells", "%s evaluates nothing. Its instances are %d and its agents %d, less what `exclude` names.", b.Address(), len(instances), len(agents))
	}
	for _, x := range excluded {
		if !x.used {
			l.diags.Warnf(at(b, "exclude"), "Exclusion without effect", "No cell of %s matches %s.", b.Address(), x.text)
		}
	}
}

// ungated reports ids that nothing derives, and warns of a gate that would admit the instances.
func (l *lowerer) ungated(b *decl.Block, refs []decl.Ref, instances []gated) {
	for _, in := range instances {
		if in.verdict == task.None && in.derive {
			l.diags.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Ungated instance without test ids", Range: at(b, "instances"), Row: in.row,
				Detail: fmt.Sprintf("%s has neither fail_to_pass nor pass_to_pass. A gate derives them: evaluate a gate over it, or give the lists.", in.ref)})
		}
	}
	for _, ref := range refs {
		if ref.Type != "instance" {
			continue
		}
		for _, g := range l.ws.Blocks {
			if g.Type != "gate" {
				continue
			}
			over, _ := get[[]decl.Ref](l, g, "instances", nil)
			if slices.ContainsFunc(over, func(r decl.Ref) bool { return r == ref || r.Type == ref.Type && r.Name == ref.Name && !r.One }) {
				l.diags.Warnf(at(b, "instances"), "Ungated matrix",
					"%s evaluates %s as it is, whether or not its tests tell base from gold. %s covers it: `instances = %s` evaluates what that admits.", b.Address(), ref, g.Address(), g.Address())
				break
			}
		}
	}
}

// statements counts the instances of a block on which agents run, and those of them that have no problem statement.
type statements struct{ all, missing int }

func count(told map[decl.Ref]*statements, in *instance) {
	block := decl.Ref{Type: in.ref.Type, Name: in.ref.Name}
	s := told[block]
	if s == nil {
		s = &statements{}
		told[block] = s
	}
	s.all++
	if len(in.statement.Bytes) == 0 {
		s.missing++
	}
}

// untold warns of instances on which a matrix's agents run without being told what to do.
func (l *lowerer) untold(told map[decl.Ref]*statements, matrix *decl.Block) {
	for ref, s := range told {
		if s.missing > 0 {
			b := l.ws.Find(ref.Type, ref.Name)
			l.diags.Warnf(at(b, "problem_statement"), "No problem statement", "%s runs agents on %s, and %d of %d instances there have no `problem_statement`: nothing tells an agent what to do.",
				matrix.Address(), ref, s.missing, s.all)
		}
	}
}

// candidate adds the tasks of a cell and returns them as steps.
func (l *lowerer) candidate(in gated, a *agent, m model, index, attempts int) []task.Step {
	var steps []task.Step
	var deps []task.Dep
	step := func(name string, id task.ID, output string, tolerate task.Tolerance) {
		if id != task.None {
			steps = append(steps, task.Step{Name: name, Task: id})
			deps = append(deps, task.Dep{On: id, Role: name, Output: output, Tolerate: tolerate})
		}
	}
	sample := l.sample(in, a, m, index)
	step("sample", sample, "", task.TolerateNone)
	extract := l.add(task.Task{Spec: &kind.ExtractSpec{}, Deps: []task.Dep{
		{On: in.source, Role: "base", Output: kind.Tree}, {On: sample, Role: "sample"}}})
	step("extract", extract, "", task.TolerateUnmet)

	good := []task.Condition{{On: extract, Fact: kind.Nonempty}, {On: extract, Fact: kind.Applies}}
	compose := l.add(task.Task{Spec: &kind.ComposeSpec{Protect: in.protect}, When: good, Deps: []task.Dep{
		{On: extract, Role: "candidate", Output: kind.Tree},
		{On: in.source, Role: "base", Output: kind.Tree},
		{On: in.patches, Role: kind.BaseTestTree, Output: kind.BaseTestTree},
		{On: in.patches, Role: kind.TestPaths, Output: kind.TestPaths},
		{On: in.patches, Role: kind.GoldPaths, Output: kind.GoldPaths},
	}})
	step("compose", compose, "", task.TolerateUnmet)
	build := l.buildOf(in.instance, extract, kind.Tree, good...)
	step("build", build, kind.Result, task.TolerateUnmet)
	for n := range attempts {
		test := l.testOf(in.instance, compose, kind.Tree, build, n)
		step("test."+strconv.Itoa(n), test, "", task.TolerateUnmet)
		step("score."+strconv.Itoa(n), l.scoreOf(in.instance, test, in.verdict), kind.ScoreBlob, task.TolerateUnmet)
	}
	deps = append(deps,
		task.Dep{On: in.patches, Role: kind.GoldPaths, Output: kind.GoldPaths, Tolerate: task.TolerateUnmet},
		task.Dep{On: in.source, Role: "base", Output: kind.Tree, Tolerate: task.TolerateUnmet},
		task.Dep{On: in.patches, Role: "gold", Output: kind.GoldTree, Tolerate: task.TolerateUnmet})
	outcome := l.add(task.Task{Spec: &kind.OutcomeSpec{HasBuild: build != task.None, Attempts: attempts}, Deps: deps})
	return append(steps, task.Step{Name: "outcome", Task: outcome})
}

// An exclusion leaves out the cells that match all it names.
type exclusion struct {
	names map[string][]string // of instance, agent, model, sample: the values it matches
	text  string
	used  bool
}

type exclusions []*exclusion

// exclusions reads `exclude`: a list of objects, each value a string, a number or a list of these.
func (l *lowerer) exclusions(b *decl.Block) exclusions {
	value, ok := get[any](l, b, "exclude", nil)
	if !ok {
		return nil
	}
	var list exclusions
	bad := func(what string) exclusions {
		l.errorf(at(b, "exclude"), nil, "Invalid exclusion", "%s. `exclude` is a list of objects, such as [{ agent = \"nop\", instance = \"a\" }].", what)
		return nil
	}
	objects, ok := value.([]any)
	if !ok {
		return bad("It is not a list")
	}
	for _, o := range objects {
		attrs, ok := o.(map[string]any)
		if !ok || len(attrs) == 0 {
			return bad("An element is not an object that names something")
		}
		x := &exclusion{names: map[string][]string{}, text: string(canonical(attrs))}
		for name, v := range attrs {
			if !slices.Contains([]string{"instance", "agent", "model", "sample"}, name) {
				return bad(fmt.Sprintf("%q is none of instance, agent, model and sample", name))
			}
			values, isList := v.([]any)
			if !isList {
				values = []any{v}
			}
			for _, v := range values {
				x.names[name] = append(x.names[name], plain(v))
			}
		}
		list = append(list, x)
	}
	return list
}

func (list exclusions) match(c *kind.Cell) bool {
	is := map[string]string{"instance": c.Instance, "agent": c.Agent, "model": c.Model, "sample": strconv.Itoa(c.Sample)}
	found := false
	for _, x := range list {
		hit := true
		for name, values := range x.names {
			hit = hit && slices.Contains(values, is[name])
		}
		x.used = x.used || hit
		found = found || hit
	}
	return found
}
