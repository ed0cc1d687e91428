package lower

import (
	"slices"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/task"
)

// An instance is one problem, with the tasks that set it up and the commands that judge a tree of it.
type instance struct {
	id  string
	ref decl.Ref
	row string
	env *environment

	admits []admission // the gates that are to admit its row

	source, patches           task.ID
	fetch, prepare, fetchGold task.ID // None where it has none

	build *judge // nil: none
	test  judge

	format                 string
	failToPass, passToPass []string
	derive                 bool // both lists are empty: a gate derives them
	reports, protect       []string
	statement              kind.Data
	provenance             map[string]string // what reports mention of it
}

// A judge is a command block of an instance that runs once for each tree.
type judge struct {
	command kind.Command
	keep    []string
	watch   []string
}

func (l *lowerer) instances(b *decl.Block, out *lowered) {
	l.members(b, func(m member) {
		l.under(b, m.each, func() {
			in := l.instance(b, m)
			if in == nil {
				return
			}
			tags, _ := get[[]string](l, b, "tags", m.each)
			out.instances = append(out.instances, in)
			out.objects = append(out.objects, task.Object{Class: task.ClassInstance, Block: b.Address(), Index: m.index, Tags: tags, Steps: l.setUp(b, m.each, in)})
		})
	})
}

// instance reads what judges a member; nil after an error. setUp adds its tasks.
func (l *lowerer) instance(b *decl.Block, m member) *instance {
	ref, ok := get[decl.Ref](l, b, "runtime", m.each)
	if !ok {
		return nil // it is required, so that this is reported
	}
	platform, _ := get[string](l, b, "platform", m.each)
	env := l.resolve(ref, platform, at(b, "runtime"), m.each)
	if env == nil {
		return nil
	}
	in := &instance{id: m.key, ref: decl.Ref{Type: b.Type, Name: b.Name, Key: m.key, One: m.each != nil}, row: m.each.Place(), env: env, admits: l.admits,
		source: task.None, patches: task.None, fetch: task.None, prepare: task.None, fetchGold: task.None}
	if n := b.Nested("build"); n != nil {
		in.build = &judge{command: l.command(n, m.each, env, false)}
		in.build.keep, _ = get[[]string](l, n, "keep", m.each)
		l.within("HOME", n, "keep", m.each, in.build.keep...)
	}
	t := b.Nested("test")
	in.test.command = l.command(t, m.each, env, false)
	in.format = or(l, t, "format", m.each, "exit")
	in.reports, _ = get[[]string](l, t, "report", m.each)
	in.failToPass, _ = get[[]string](l, t, "fail_to_pass", m.each)
	in.passToPass, _ = get[[]string](l, t, "pass_to_pass", m.each)
	in.derive = in.format != "exit" && len(in.failToPass) == 0 && len(in.passToPass) == 0
	own, _ := get[[]string](l, t, "protect", m.each)
	files, _ := get[[]string](l, b, "test_files", m.each)
	more, _ := get[[]string](l, b, "test_data", m.each)
	in.protect = protect(in.format, in.test.command.Argv, in.test.command.Cwd, files, more, own)
	tools := installed(in.test.command.Argv, in.test.command.Cwd)
	if in.build != nil { // which may make the test's program
		in.build.watch = tools
	}
	in.test.watch = sorted(slices.Concat(tools, programs(in.test.command.Argv, in.test.command.Cwd)))
	l.checkTest(t, m.each, in)
	if s, ok := get[decl.Bytes](l, b, "problem_statement", m.each); ok {
		in.statement = data(s)
	}
	in.provenance = l.provenance(b, m.each)
	return in
}

// setUp adds the tasks of an instance that gates and candidates share, and returns them as steps.
func (l *lowerer) setUp(b *decl.Block, each *decl.Each, in *instance) []task.Step {
	var steps []task.Step
	step := func(name string, id task.ID) { steps = append(steps, task.Step{Name: name, Task: id}) }
	var ok bool
	if in.source, ok = l.tree(b, "source", each); !ok {
		if !l.diags.HasErrors() {
			l.errorf(b.Range, each, "Instance without a source", "%s needs `source`, the tree that holds the problem.", in.ref)
		}
		return steps
	}
	step("source", in.source)

	patches := kind.PatchesSpec{}
	deps := []task.Dep{{On: in.source, Role: "base", Output: kind.Tree}}
	patches.TestFiles, _ = get[[]string](l, b, "test_files", each)
	patches.TestData, _ = get[[]string](l, b, "test_data", each)
	gold, hasGold := get[decl.Bytes](l, b, "gold_patch", each)
	given, hasTest := hasGold, false
	if hasGold {
		patches.Gold = data(gold)
		var test decl.Bytes
		if test, hasTest = get[decl.Bytes](l, b, "test_patch", each); hasTest {
			patches.Test = data(test)
		}
	}
	for _, name := range []string{"fix", "oracle"} {
		if fix, ok := l.tree(b, name, each); ok && !hasGold {
			step(name, fix)
			deps = append(deps, task.Dep{On: fix, Role: "fix", Output: kind.Tree})
			hasGold = true
		}
	}
	if !hasGold {
		if !l.diags.HasErrors() {
			l.errorf(b.Range, each, "Instance without a fix", "%s has neither `fix` nor `gold_patch`, so that nothing can prove its tests.", in.ref)
		}
		return steps
	}
	l.checkPatches(b, each, in, given, hasTest)
	in.patches = l.add(task.Task{Spec: &patches, Deps: deps})
	step("patches", in.patches)

	base := task.Dep{On: in.source, Role: kind.Tree, Output: kind.Tree}
	if n := b.Nested("fetch"); n != nil {
		in.fetch = l.state(kind.Fetch, in.env, judge{command: l.command(n, each, in.env, true)}, base, in.env.prepare)
		step("fetch", in.fetch)
	}
	if n := b.Nested("prepare"); n != nil {
		in.prepare = l.state(kind.Prepare, in.env, judge{command: l.command(n, each, in.env, false)}, base, in.start())
		step("prepare", in.prepare)
	}
	if n := b.Nested("fetch"); n != nil {
		tree := task.Dep{On: in.patches, Role: kind.Tree, Output: kind.GoldTestTree}
		in.fetchGold = l.state(kind.FetchGold, in.env, judge{command: l.command(n, each, in.env, true)}, tree, in.start())
		step("fetch.gold", in.fetchGold)
	}
	return steps
}

// start is the state that an agent starts from, and what comes before it: None where the instance has none.
func (in *instance) start() task.ID { return first(in.prepare, in.fetch, in.env.prepare) }

// validate is the state that judging starts from. No agent ever does.
func (in *instance) validate() task.ID { return first(in.fetchGold, in.start()) }

// state adds a command that leaves a state.
func (l *lowerer) state(of *task.Kind, env *environment, j judge, tree task.Dep, from task.ID, when ...task.Condition) task.ID {
	deps := append(append([]task.Dep{tree}, below(from)...), env.imageDep()...)
	return l.add(task.Task{Spec: &kind.StateSpec{Of: of, Runtime: env.spec, Command: j.command, Keep: j.keep, Watch: j.watch}, Deps: deps, When: when, Timeout: j.command.Timeout})
}

// buildOf adds the build of a tree of in, or returns None where it has no build.
func (l *lowerer) buildOf(in *instance, on task.ID, output string, when ...task.Condition) task.ID {
	if in.build == nil {
		return task.None
	}
	return l.state(kind.Build, in.env, *in.build, task.Dep{On: on, Role: kind.Tree, Output: output}, in.validate(), when...)
}

// testOf adds one attempt of the test on a composed tree, after its build if there is one.
func (l *lowerer) testOf(in *instance, on task.ID, output string, build task.ID, attempt int) task.ID {
	from := first(build, in.validate())
	deps := append([]task.Dep{{On: on, Role: kind.Tree, Output: output}, {On: in.patches, Role: kind.TestPaths, Output: kind.TestPaths}}, below(from)...)
	var when []task.Condition
	if build != task.None {
		when = []task.Condition{{On: build, Fact: kind.Passed}}
	}
	return l.add(task.Task{
		Spec: &kind.TestSpec{Runtime: in.env.spec, Command: in.test.command, Reports: in.reports, Watch: in.test.watch, Protect: in.protect, Attempt: attempt},
		Deps: append(deps, in.env.imageDep()...), When: when, Timeout: in.test.command.Timeout,
	})
}

// scoreOf adds the score of a test. gate is its verdict, where that derived the ids; else None.
func (l *lowerer) scoreOf(in *instance, test, gate task.ID) task.ID {
	s := &kind.ScoreSpec{Format: in.format, FailToPass: in.failToPass, PassToPass: in.passToPass, Parser: verdict.ParserVersion}
	deps := []task.Dep{{On: test, Role: "result", Output: kind.Result}}
	if in.format == "gotest" || in.format == "junit" {
		s.Command = in.test.command.Argv
	}
	if in.format == "gotest" {
		s.Cwd = in.test.command.Cwd
		deps = append(deps, task.Dep{On: in.patches, Role: kind.BaseTestTree, Output: kind.BaseTestTree})
	}
	if in.derive {
		if gate == task.None {
			s.Derive = true
		} else {
			deps = append(deps, task.Dep{On: gate, Role: "expected", Output: kind.Evidence})
		}
	}
	return l.add(task.Task{Spec: s, Deps: deps})
}
