package hcl

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/bench/decl"
)

// held are the blocks that wait for rows that are not known: they refer to such a dataset, or to a block that waits, or are tasks that read a file which
// one of these writes. The latter is an edge too, so that a circle of files is one of blocks.
func (l *loader) held(w *decl.Workspace) map[string]bool {
	held := map[string]bool{}
	for _, u := range l.unknown {
		held["dataset."+u.Dataset] = true
	}
	if len(held) == 0 {
		return held
	}
	inputs := map[*decl.Block][]string{}
	for _, b := range w.Blocks {
		if b.Type == "task" {
			inputs[b] = pathsOf(w, b, "inputs")
		}
	}
	for more := true; more; {
		l.spread(held)
		more = l.readers(w, held, inputs)
	}
	return held
}

// spread holds what refers to what is held.
func (l *loader) spread(held map[string]bool) {
	for more := true; more; {
		more = false
		for from, edges := range l.edges {
			if !held[from] && slices.ContainsFunc(edges, func(e edge) bool { return held[e.to] }) {
				held[from], more = true, true
			}
		}
	}
}

// readers adds an edge from each task that is not held to each held block that writes one of its inputs, and says whether there are any. What a block
// writes for rows that are not known cannot be told.
func (l *loader) readers(w *decl.Workspace, held map[string]bool, inputs map[*decl.Block][]string) bool {
	writers := map[string]*decl.Block{} // by file
	for _, b := range w.Blocks {
		if held[b.Address()] {
			for _, f := range written(w, b) {
				writers[f] = b
			}
		}
	}
	files := slices.Sorted(maps.Keys(writers))
	found := false
	for _, b := range w.Blocks {
		if held[b.Address()] {
			continue
		}
		for _, in := range inputs[b] {
			for _, f := range matches(in, files) {
				on := writers[f]
				l.edge(b.Address(), decl.Ref{Type: on.Type, Name: on.Name}, l.blocks[b.Address()].body.attr("inputs").at)
				found = true
			}
		}
	}
	return found
}

// matches are those of files, which are sorted, that an input names: a path or a pattern.
func matches(input string, files []string) []string {
	meta := strings.IndexAny(input, decl.Wildcards)
	if meta < 0 {
		if i, found := slices.BinarySearch(files, input); found {
			return files[i : i+1]
		}
		return nil
	}
	var out []string
	i, _ := slices.BinarySearch(files, input[:meta])
	for ; i < len(files) && strings.HasPrefix(files[i], input[:meta]); i++ {
		if ok, _ := doublestar.Match(input, files[i]); ok {
			out = append(out, files[i])
		}
	}
	return out
}

// written are the files that a task or report declares.
func written(w *decl.Workspace, b *decl.Block) []string {
	switch b.Type {
	case "task":
		return pathsOf(w, b, "outputs")
	case "report":
		_, files := w.ReportFiles(b)
		for i := range files {
			files[i] = path.Clean(files[i])
		}
		return files
	}
	return nil
}

// pathsOf are an attribute's paths for all members that are known, clean.
func pathsOf(w *decl.Workspace, b *decl.Block, name string) []string {
	a := b.Attrs[name]
	if a == nil {
		return nil
	}
	var out []string
	add := func(each *decl.Each) {
		v, _ := a.Expr.Eval(each) // what is wrong with it, lowering says
		list, _ := decl.As[[]string](a, v)
		for _, p := range list {
			out = append(out, path.Clean(p))
		}
	}
	switch {
	case b.ForEach == nil || a.Expr.Const():
		add(nil)
	case b.ForEach.Dataset == "":
		for i := range b.ForEach.Members {
			add(&b.ForEach.Members[i])
		}
	case w.Datasets[b.ForEach.Dataset] != nil:
		set := w.Datasets[b.ForEach.Dataset]
		for i := range set.Len() {
			add(&decl.Each{Key: set.Key(i), Row: set.Row(i)})
		}
	}
	return out
}
