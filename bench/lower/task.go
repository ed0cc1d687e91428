package lower

import (
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"

	"github.com/bmatcuk/doublestar/v4"
)

// A pending task is a member of a task block, evaluated but not yet in the graph: what makes its inputs may come later in the files.
type pending struct {
	block           *decl.Block
	key             string
	index           []string
	row             decl.Row
	spec            *kind.TaskSpec
	inputs, outputs []string
	tags            []string
	store           bool

	phase phase
	id    task.ID
}

type phase uint8

const (
	waiting phase = iota
	adding        // it is being added: to need it now is a cycle
	added
)

// each is what `each` meant when the member was evaluated from a dataset; a map's or set's is looked up.
func (l *lowerer) each(p *pending) *decl.Each {
	switch {
	case p.index == nil:
		return nil
	case p.row != nil:
		return &decl.Each{Key: p.key, Row: p.row}
	}
	each, _ := l.find(p.block, p.key)
	return each
}

// A maker is what writes a declared file: a task, or a report in its format.
type maker struct {
	task   *pending
	report *decl.Block
}

func (m maker) place() decl.Range {
	if m.report != nil {
		return m.report.Range
	}
	return at(m.task.block, "outputs")
}

func (m maker) String() string {
	if m.report != nil {
		return m.report.Address()
	}
	return m.task.String()
}

func (p *pending) String() string {
	return task.Address{Block: p.block.Address(), Index: p.index}.String()
}

// declareFiles evaluates every task block, and notes who makes which file. Blocks that are held make theirs too, as far as their members are known.
func (l *lowerer) declareFiles() {
	n := 0
	for _, b := range l.ws.Blocks {
		if b.Type == "report" {
			_, files := l.reportFiles(b)
			for _, f := range files {
				l.makes(f, maker{report: b})
			}
		}
		if b.Type == "task" {
			l.pendings(b)
			n += len(l.tasks[b])
		}
	}
	l.graph.Tasks = slices.Grow(l.graph.Tasks, n)
	if len(l.made) == 0 {
		l.made = make(map[string]maker, n)
	}
	for _, b := range l.ws.Blocks {
		for _, p := range l.tasks[b] {
			for _, f := range p.outputs {
				l.makes(f, maker{task: p})
			}
		}
	}
	for f, m := range l.made {
		l.checkAbove(f, m)
	}
}

// checkAbove reports a declared file that would lie in another, as in a directory.
func (l *lowerer) checkAbove(file string, m maker) {
	for dir := file; ; {
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			return
		}
		dir = dir[:i]
		if above, ok := l.made[dir]; ok {
			l.errorf(m.place(), l.eachOf(m), "File within a file", "%s writes %s, and %s (%s) writes %s as a file, which cannot hold another. Name files, not directories.",
				m, file, above, above.place(), dir)
		}
	}
}

// eachOf is what `each` meant to m.
func (l *lowerer) eachOf(m maker) *decl.Each {
	if m.task == nil {
		return nil
	}
	return l.each(m.task)
}

func (l *lowerer) makes(file string, m maker) {
	if first, ok := l.made[file]; ok {
		l.errorf(m.place(), l.eachOf(m), "Two makers of one file", "%s (%s) and %s (%s) both write %s. Give each a file of its own.", first, first.place(), m, m.place(), file)
		return
	}
	l.made[file] = m
}

// pendings evaluates the members of a task block.
func (l *lowerer) pendings(b *decl.Block) {
	var specs []kind.TaskSpec
	var members []pending
	shared := constPaths{}
	l.members(b, func(m member) {
		if specs == nil {
			specs, members = make([]kind.TaskSpec, m.count), make([]pending, m.count)
		}
		i := len(l.tasks[b])
		s, p := &specs[i], &members[i]
		*p = pending{block: b, key: m.key, index: m.index, spec: s, id: task.None}
		if m.each != nil {
			p.row = m.each.Row
		}
		s.Argv = l.argv(b, m.each)
		s.Sandbox, _ = get[bool](l, b, "sandbox", m.each)
		s.Timeout = or(l, b, "timeout", m.each, defaultTimeout)
		s.Secrets = l.host.Secret
		if len(s.Argv) == 0 && !l.diags.HasErrors() {
			l.errorf(at(b, "command"), m.each, "Empty command", "A command names a program: [\"cp\", \"a\", \"b\"].")
		}
		p.tags, _ = get[[]string](l, b, "tags", m.each)
		p.store, _ = get[bool](l, b, "cache", m.each)
		p.inputs = l.paths(b, "inputs", m.each, shared)
		p.outputs = l.paths(b, "outputs", m.each, shared)
		s.Outputs = p.outputs
		for _, o := range p.outputs {
			if isGlob(o) {
				l.errorf(at(b, "outputs"), m.each, "Output is a pattern", "%q has a wildcard. Outputs are named, so that pbuild knows what is missing.", o)
			}
			if slices.Contains(p.inputs, o) {
				l.errorf(at(b, "outputs"), m.each, "Input is an output", "%s both reads and writes %s; what it reads would change under it.", p, o)
			}
		}
		l.tasks[b] = append(slices.Grow(l.tasks[b], m.count-i), p)
	})
}

// constPaths keeps lists of paths that do not depend on the member.
type constPaths map[*decl.Attr][]string

// paths are an attribute's paths: relative, inside the workspace, clean, sorted.
func (l *lowerer) paths(b *decl.Block, name string, each *decl.Each, shared constPaths) []string {
	a := b.Attrs[name]
	if a == nil {
		return nil
	}
	if have, ok := shared[a]; ok {
		return have
	}
	raw, _ := get[[]string](l, b, name, each)
	list := raw
	for i, p := range raw {
		clean, ok := l.inside(p, a.Range, each)
		if ok && clean == p {
			continue
		}
		if &list[0] == &raw[0] { // the value is not ours to change
			list = slices.Clone(raw)
		}
		list[i] = clean
	}
	if len(list) > 1 {
		list = sorted(list)
	}
	if a.Expr.Const() {
		shared[a] = list
	}
	return list
}

// inside cleans a path of the workspace, and reports one that leaves it or is pbuild's own.
func (l *lowerer) inside(p string, r decl.Range, each *decl.Each) (string, bool) {
	clean := path.Clean(p)
	switch {
	case p == "" || clean == ".":
		l.errorf(r, each, "Invalid path", "%q names no file.", p)
	case path.IsAbs(p) || clean == ".." || strings.HasPrefix(clean, "../"):
		l.errorf(r, each, "Path outside the workspace", "%q leaves the workspace. Name files relative to its directory.", p)
	case strings.Contains(p, "\x00"):
		l.errorf(r, each, "Invalid path", "%q holds a zero byte, and no file can have such a name.", p)
	case clean == ".pbuild" || strings.HasPrefix(clean, ".pbuild/"):
		l.errorf(r, each, "Path of pbuild's own", "%q is where pbuild keeps its state.", p)
	default:
		return clean, true
	}
	return "", false
}

func isGlob(p string) bool { return strings.ContainsAny(p, decl.Wildcards) }

// taskBlock adds the members of a block and makes their objects.
func (l *lowerer) taskBlock(b *decl.Block, out *lowered) {
	list, address := l.tasks[b], b.Address()
	steps := make([]task.Step, len(list))
	out.objects = make([]task.Object, len(list))
	for i, p := range list {
		steps[i].Task = l.addTask(p)
		out.objects[i] = task.Object{Class: task.ClassTask, Block: address, Index: p.index, Tags: p.tags, Steps: steps[i : i+1 : i+1]}
	}
}

// addTask adds a member after what it needs, once.
func (l *lowerer) addTask(p *pending) task.ID {
	if p.phase == adding {
		from := slices.Index(l.open, p)
		var names []string
		for _, o := range append(slices.Clone(l.open[from:]), p) {
			names = append(names, o.String())
		}
		l.errorf(p.block.Range, l.each(p), "Dependency cycle", "%s.", strings.Join(names, " needs "))
	}
	if p.phase != waiting {
		return p.id
	}
	p.phase = adding
	l.open = append(l.open, p)
	after, admits := l.after, l.admits
	t := task.Task{Spec: p.spec, Outputs: p.outputs, Store: p.store, Timeout: p.spec.Timeout}
	l.after, l.admits = l.taskEdges(p, &t), l.admissions(p.block, p.row, p.key)
	l.inEnvironment(p, &t)
	l.inputs(p, &t)
	p.id = l.add(t)
	p.phase = added
	l.after, l.admits = after, admits
	l.open = l.open[:len(l.open)-1]
	return p.id
}

// taskEdges are the order edges of depends_on. A task keys on what the tasks that it names write, under the paths of that, so that renaming a block re-runs nothing.
func (l *lowerer) taskEdges(p *pending, t *task.Task) []task.Dep {
	if p.block.Attrs["depends_on"] == nil {
		return nil
	}
	var after []task.Dep
	for _, d := range l.orderEdges(p.block, l.each(p)) {
		on := &l.graph.Tasks[d.On]
		if on.Spec.Kind() != kind.Task || len(on.Outputs) == 0 {
			after = append(after, d)
			continue
		}
		for _, o := range on.Outputs {
			file := task.Dep{On: d.On, Role: o, Output: o, Tolerate: d.Tolerate}
			if _, named := slices.BinarySearch(p.inputs, o); named {
				file.Tolerate = task.TolerateNone
			}
			t.Deps = append(t.Deps, file)
		}
	}
	return after
}

// inEnvironment completes the spec with the runtime's part; without a runtime it is this machine as it is.
func (l *lowerer) inEnvironment(p *pending, t *task.Task) {
	s := p.spec
	var each *decl.Each
	if varies(p.block, "runtime") || varies(p.block, "env") {
		each = l.each(p)
	}
	var vars variables
	s.Runtime = kind.Runtime{Host: true, Platform: l.host.Platform()}
	if ref, ok := get[decl.Ref](l, p.block, "runtime", each); ok {
		env := l.last.env
		if l.last.ref != ref || env == nil { // most tasks have the runtime of the one before
			env = l.resolve(ref, "", at(p.block, "runtime"), each)
			l.last.ref, l.last.env = ref, env
		}
		if env == nil {
			return
		}
		s.Runtime, vars = env.spec, env.vars
		t.Deps = append(t.Deps, env.imageDep()...)
	}
	own, _ := get[[]decl.EnvVar](l, p.block, "env", each)
	vars = vars.with(own)
	s.Env, s.SecretEnv, s.PassEnv = vars.values, vars.secrets, vars.pass
}

// varies says whether an attribute depends on the member.
func varies(b *decl.Block, name string) bool {
	a := b.Attrs[name]
	return a != nil && !a.Expr.Const()
}

// inputs expands what a task reads: a file that another task writes is an edge, the rest are files of the workspace.
func (l *lowerer) inputs(p *pending, t *task.Task) {
	files := p.inputs
	if slices.ContainsFunc(files, isGlob) {
		globs := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return !isGlob(f) })
		found, err := l.host.Glob(globs)
		if err != nil {
			l.errorf(at(p.block, "inputs"), l.each(p), "Inputs cannot be listed", "%v.", err)
			return
		}
		literal := slices.DeleteFunc(slices.Clone(files), isGlob)
		files = sorted(slices.Concat(literal, found, l.madeLike(globs)))
	}
	var named map[string]bool // already edges, of depends_on
	for _, d := range t.Deps {
		if named == nil {
			named = map[string]bool{}
		}
		named[d.Role] = true
	}
	unmade := 0 // as long as no task makes any, the list itself will do
	for i, file := range files {
		m, made := l.made[file]
		switch {
		case !made && unmade == i:
			unmade++
			t.Inputs = files[:unmade:unmade]
		case !made:
			t.Inputs = append(t.Inputs, file)
		case m.task == p || named[file]:
		default:
			if on := l.makerOf(m, file); on != task.None {
				d := task.Dep{On: on, Role: file, Output: file}
				if _, named := slices.BinarySearch(p.inputs, file); !named { // a pattern asks for it
					d.Tolerate = l.ifMade(on)
				}
				t.Deps = append(t.Deps, d)
			}
		}
	}
}

// makerOf is the task that writes a file.
func (l *lowerer) makerOf(m maker, file string) task.ID {
	if m.task != nil {
		return l.addTask(m.task)
	}
	for _, o := range l.lower(m.report).objects {
		if id := o.Steps[0].Task; slices.Contains(l.graph.Tasks[id].Outputs, file) {
			return id
		}
	}
	return task.None
}

// madeLike are the declared outputs that match any of the patterns, whether or not they are on the disk yet.
func (l *lowerer) madeLike(globs []string) []string {
	all := l.allMade()
	var list []string
	for _, g := range globs {
		prefix := g[:strings.IndexAny(g, decl.Wildcards)]
		for _, f := range all[sort.SearchStrings(all, prefix):] {
			if !strings.HasPrefix(f, prefix) {
				break
			}
			if ok, _ := doublestar.Match(g, f); ok {
				list = append(list, f)
			}
		}
	}
	return sorted(list)
}

// allMade are the declared files, sorted.
func (l *lowerer) allMade() []string {
	if l.madeSorted == nil {
		l.madeSorted = slices.Sorted(maps.Keys(l.made))
	}
	return l.madeSorted
}
