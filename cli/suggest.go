package cli

import (
	"strings"

	"pbuild/bench/decl"
	"pbuild/engine/task"
)

// suggestSelector proposes the address that is nearest to a selector that matched nothing, as the end of an error message.
func suggestSelector(g *task.Graph, s *selector) string {
	var names []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	var want string
	switch {
	case s.tag != "":
		want = "tag:" + s.tag
		for i := range g.Objects {
			for _, t := range g.Objects[i].Tags {
				add("tag:" + t)
			}
		}
	case s.kind != "":
		want = "kind:" + s.kind
		for i := range g.Tasks {
			add("kind:" + g.Tasks[i].Spec.Kind().Name)
		}
		for i := range g.Objects {
			add("kind:" + string(g.Objects[i].Class))
		}
	default:
		want = strings.TrimPrefix(s.text, "!")
		block, _, _ := strings.Cut(want, "[")
		block, _, _ = strings.Cut(block, "/")
		for i := range g.Objects {
			add(g.Objects[i].Block)
		}
		if !seen[block] {
			want = block
			break
		}
		names = addressesOf(g, block, s.pattern.step)
	}
	switch hint := didYouMean(want, names); {
	case hint != "":
		return hint
	case len(g.Objects) == 0:
		return "; the workspace declares nothing that runs"
	}
	return "; `pbuild list` shows every address"
}

// addressesOf lists the addresses of a block's members, with their steps where the question had one.
func addressesOf(g *task.Graph, block string, steps bool) []string {
	var out []string
	for i := range g.Objects {
		o := &g.Objects[i]
		if o.Block != block {
			continue
		}
		if !steps {
			out = append(out, task.Address{Block: o.Block, Index: o.Index}.String())
			continue
		}
		for k := range o.Steps {
			out = append(out, address(o, k))
		}
	}
	return out
}

// didYouMean is the end of an error message: the name that is most like want, or nothing. Quotes do not count.
func didYouMean(want string, names []string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, `"`, "") }
	quoted := make(map[string]string, len(names))
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = bare(n)
		quoted[list[i]] = n
	}
	if best := decl.Nearest(bare(want), list); best != "" {
		return "; did you mean " + quoted[best] + "?"
	}
	return ""
}
