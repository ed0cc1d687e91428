package cli

import (
	"strings"

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
	best := nearest(want, names)
	if best == "" {
		if len(g.Objects) == 0 {
			return "; the workspace declares nothing that runs"
		}
		return "; `pbuild list` shows every address"
	}
	return "; did you mean " + best + "?"
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

// nearest returns the name at the smallest edit distance from want, or "" if none is near. Quotes do not count.
func nearest(want string, names []string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, `"`, "") }
	want = bare(want)
	best, at := "", 2+len(want)/3
	for _, n := range names {
		if d := distance(want, bare(n), at); d < at || d == at && best == "" {
			best, at = n, d
		}
	}
	return best
}

// distance is the number of single-byte edits from a to b, or more than limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
