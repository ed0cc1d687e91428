package lower

import (
	"path"
	"path/filepath"
	"strings"

	"pbuild/bench/decl"

	"github.com/bmatcuk/doublestar/v4"
)

// What is declared and could have no effect, or could only fail when it runs, is said here, with its position: nothing is ignored silently.

// noEffect warns of an attribute that is given and that nothing reads.
func (l *lowerer) noEffect(b *decl.Block, name string, each *decl.Each, format string, args ...any) {
	if b == nil || b.Attrs[name] == nil {
		return
	}
	if v, ok := get[any](l, b, name, each); ok && !isEmpty(v) {
		l.diags.Warnf(at(b, name), "Attribute without effect", "`"+name+"` "+format, args...)
	}
}

// checkTaskless warns of what only tasks can have, on blocks that have none of their own: what they say goes into the tasks of others.
func (l *lowerer) checkTaskless() {
	for _, b := range l.ws.Blocks {
		var names []string
		switch b.Type {
		case "source", "node", "agent", "model":
			names = []string{"depends_on", "tags"}
		case "dataset": // its depends_on may name what makes its file
			names = []string{"tags"}
		}
		for _, name := range names {
			if b.Attrs[name] != nil {
				l.diags.Warnf(at(b, name), "Attribute without effect", "`%s` says nothing in %s: it has no task of its own. Give it to the block that uses it.", name, b.Address())
			}
		}
	}
}

// checkUnused looks at blocks that are read where another names them, whether or not one does. Where some block waits for its rows there is no telling
// what else it will name, and what will have been made by then.
func (l *lowerer) checkUnused() {
	if len(l.ws.Held) > 0 {
		return
	}
	read := map[string]func(*decl.Block, member){
		"agent":  func(b *decl.Block, m member) { l.agent(b, m) },
		"model":  func(b *decl.Block, m member) { l.model(b, m) },
		"source": func(b *decl.Block, m member) { l.source(b, m.each) },
	}
	for _, b := range l.ws.Blocks {
		if read := read[b.Type]; read != nil {
			l.members(b, func(m member) {
				if !l.used[memberName(b, m.each)] {
					read(b, m)
				}
			})
		}
	}
}

// isEmpty says whether a value is an empty list, such as a row may have where it says nothing.
func isEmpty(v any) bool {
	list, ok := v.([]string)
	return ok && len(list) == 0
}

// checkTest looks at a test block t of an instance.
func (l *lowerer) checkTest(t *decl.Block, each *decl.Each, in *instance) {
	switch in.format {
	case "exit":
		for _, name := range []string{"fail_to_pass", "pass_to_pass"} {
			l.noEffect(t, name, each, "says nothing where `format` is \"exit\": the exit status alone decides. Formats that know test ids are \"gotest\", \"junit\" and \"tap\".")
		}
		l.noEffect(t, "report", each, "is not read where `format` is \"exit\": the exit status alone decides.")
	case "junit":
		if len(in.reports) == 0 {
			l.errorf(at(t, "format"), each, "Format without a report", "%s: `format` \"junit\" is read from files: name in `report` those that the test writes.", in.ref)
		}
	}
	l.treeGlobs(t, "protect", each)
	l.within("the workspace", t, "report", each, in.reports...)
}

// checkPatches looks at what tells an instance's tests from its fix. given says that the row or block has the gold patch itself.
func (l *lowerer) checkPatches(b *decl.Block, each *decl.Each, in *instance, given, hasTest bool) {
	files := l.treeGlobs(b, "test_files", each) + l.treeGlobs(b, "test_data", each)
	switch {
	case given && hasTest:
	case given && b.Attrs["test_patch"] == nil:
		l.errorf(at(b, "gold_patch"), each, "Instance without tests", "%s has `gold_patch` and no `test_patch`: nothing would be tested.", in.ref)
	case given:
		l.diags.Add(decl.Diagnostic{Severity: decl.Warning, Summary: "Instance without tests", Range: at(b, "test_patch"), Row: each.Place(),
			Detail: in.ref.String() + " has no `test_patch`: its gate ends as `patch_failed`."})
	case files == 0:
		l.errorf(b.Range, each, "Instance without tests", "%s has `fix` or `oracle` and no `test_files`: name there what of it are the hidden tests, such as [\"tests/**\"].", in.ref)
	}
}

// treeGlobs checks globs over a tree's paths, and says how many there are.
func (l *lowerer) treeGlobs(b *decl.Block, name string, each *decl.Each) int {
	globs, _ := get[[]string](l, b, name, each)
	for _, g := range globs {
		if name == "protect" {
			g = strings.TrimPrefix(g, "!")
		}
		if !doublestar.ValidatePattern(g) {
			l.errorf(at(b, name), each, "Invalid pattern", "%q in `%s` is not a glob: a bracket or brace is not closed, or a backslash stands at its end.", g, name)
		} else if first, _, _ := strings.Cut(g, "/"); first == "" || first == "." || first == ".." {
			l.errorf(at(b, name), each, "Not a path of the tree", "%q in `%s` matches nothing: paths are relative to the tree's root, such as %q.", g, name, strings.TrimLeft(path.Clean("/"+g), "/"))
		}
	}
	return len(globs)
}

// within reports paths that leave the directory that they are relative to.
func (l *lowerer) within(dir string, b *decl.Block, name string, each *decl.Each, paths ...string) {
	for _, p := range paths {
		switch {
		case strings.Contains(p, "\x00"):
			l.errorf(at(b, name), each, "Invalid path", "%q in `%s` holds a zero byte, and no file can have such a name.", p, name)
		case !filepath.IsLocal(filepath.FromSlash(p)):
			l.errorf(at(b, name), each, "Path outside its directory", "%q in `%s` is not a path below %s, to which it is relative.", p, name, dir)
		}
	}
}

// checkAgent looks at what an agent is told: one that runs nothing keeps no limit, and of a program that pbuild only starts, it sees neither the steps nor the cost.
func (l *lowerer) checkAgent(a *agent) {
	if !a.spec.Runs() {
		for _, name := range []string{"prompt", "step_limit", "cost_limit", "wall_limit", "on_limit", "workers", "allow_unsealed"} {
			l.noEffect(a.block, name, a.each, "says nothing to an agent of kind %q: it runs no program and asks no model.", a.spec.Agent)
		}
	}
	if a.spec.Agent != "command" {
		return
	}
	for _, name := range []string{"step_limit", "cost_limit", "on_limit"} {
		if a.block.Attrs[name] != nil {
			l.errorf(at(a.block, name), a.each, "Limit that cannot be kept",
				"pbuild sees neither the steps nor the cost of a program: tell the program of `%s` in its `command`, and bound its time with `wall_limit`.", name)
		}
	}
}
