package lower

import (
	"slices"
	"strconv"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// gated is an instance with the task that says whether it is admitted: None where it is not gated.
type gated struct {
	*instance
	verdict task.ID
}

func (l *lowerer) gate(b *decl.Block, out *lowered) {
	policy := kind.VerdictSpec{
		States:         or(l, b, "states", nil, []string{"base", "gold"}),
		Attempts:       int(or(l, b, "attempts", nil, int64(1))),
		Quorum:         or(l, b, "quorum", nil, "all"),
		CompileFailure: or(l, b, "compile_failure", nil, "reject"),
		Strict:         or(l, b, "strict", nil, false),
		OnReject:       or(l, b, "on_reject", nil, "error"),
	}
	if len(policy.States) == 0 {
		l.errorf(at(b, "states"), nil, "Gate without states", "%s would run no test: leave `states` out, or name base, gold or both.", b.Address())
		return
	}
	tags, _ := get[[]string](l, b, "tags", nil)
	refs, _ := get[[]decl.Ref](l, b, "instances", nil)
	l.under(b, nil, func() {
		for _, in := range l.instancesOf(refs, at(b, "instances")) {
			if in.derive && len(policy.States) < 2 {
				l.errorf(at(b, "states"), nil, "Lists cannot be derived", "%s has neither fail_to_pass nor pass_to_pass, and it takes both states to find them. Give the lists, or leave `states` out.", in.ref)
				return
			}
			steps := l.verdict(in.instance, policy)
			last := steps[len(steps)-1].Task
			out.gated = append(out.gated, gated{in.instance, last})
			out.objects = append(out.objects, task.Object{Class: task.ClassGate, Block: b.Address(), Index: []string{in.id}, Steps: steps, Tags: tags})
		}
	})
}

// instancesOf are the instances that references to instances or gates name, each with its gate's verdict. Their ids are unique.
func (l *lowerer) instancesOf(refs []decl.Ref, r decl.Range) []gated {
	var list []gated
	seen := map[string]decl.Ref{} // the instances
	from := map[string]decl.Ref{} // what named them
	for _, ref := range refs {
		b := l.ws.Find(ref.Type, ref.Name)
		if b == nil {
			l.errorf(r, nil, "Undefined name", "There is no %s.", ref)
			continue
		}
		low := l.lower(b)
		members := low.gated
		for _, in := range low.instances {
			members = append(members, gated{in, task.None})
		}
		found, overlap := false, map[decl.Ref]bool{}
		for _, m := range members {
			if ref.One && m.id != ref.Key {
				continue
			}
			found = true
			if first, twice := from[m.id]; twice && seen[m.id] == m.ref {
				if !overlap[first] {
					overlap[first] = true
					l.errorf(r, nil, "Two members of one name", "%s and %s both have %s, and perhaps more in common: their addresses would be equal. Leave one of them out.", first, ref, m.ref)
				}
				continue
			}
			if l.axis(seen, m.id, m.ref, r) {
				from[m.id] = ref
				list = append(list, m)
			}
		}
		if ref.One && !found && !l.diags.HasErrors() {
			l.errorf(r, nil, "Undefined member", "%s has no member %q.", b.Address(), ref.Key)
		}
	}
	return slices.DeleteFunc(list, func(g gated) bool { return g.patches == task.None }) // reported
}

// verdict adds the states of an instance and the fold over them, and returns them as steps.
func (l *lowerer) verdict(in *instance, policy kind.VerdictSpec) []task.Step {
	policy.Format, policy.FailToPass, policy.PassToPass = in.format, in.failToPass, in.passToPass
	policy.Command, policy.Environment = in.test.command.Digest(), in.env.spec.Digest()
	var steps []task.Step
	var deps []task.Dep
	evidence := func(role string, id task.ID, output string, use task.Use) {
		if id != task.None {
			deps = append(deps, task.Dep{On: id, Role: role, Output: output, Use: use, Tolerate: task.TolerateFailed})
		}
	}
	// Keys, not outputs, of what sets up: where it failed there is no output, and two instances that failed apart must not share a verdict.
	evidence("patches", in.patches, "", task.UseKey)
	evidence("setup.runtime", in.env.prepare, "", task.UseKey)
	evidence("setup.fetch", in.fetch, "", task.UseKey)
	evidence("setup.prepare", in.prepare, "", task.UseKey)
	evidence("setup.fetch.gold", in.fetchGold, "", task.UseKey)
	step := func(name string, id task.ID, output string) {
		if id != task.None {
			steps = append(steps, task.Step{Name: name, Task: id})
			evidence(name, id, output, task.UseOutput)
		}
	}
	for _, state := range []string{"base", "gold"} {
		if !slices.Contains(policy.States, state) {
			continue
		}
		on, output, tested := in.source, kind.Tree, kind.BaseTestTree
		if state == "gold" {
			on, output, tested = in.patches, kind.GoldTree, kind.GoldTestTree
		}
		build := l.buildOf(in, on, output)
		step("build."+state, build, kind.Result)
		for n := range policy.Attempts {
			test := l.testOf(in, in.patches, tested, build, n)
			step("test."+state+"."+strconv.Itoa(n), test, "")
			step("score."+state+"."+strconv.Itoa(n), l.scoreOf(in, test, task.None), kind.ScoreBlob)
		}
	}
	t := task.Task{Spec: &policy, Deps: deps, Apart: policy.OnReject}
	await(&t, in.admits) // it tolerates what is left out
	return append(steps, task.Step{Name: "verdict", Task: l.add(t)})
}
