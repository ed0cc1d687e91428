package lower

import (
	"slices"
	"strconv"

	"pbuild/bench/decl"
	"pbuild/engine/task"
)

// maxEdges bounds what depends_on may make: every member of one block on every member of another is a product.
const maxEdges = 1_000_000

// under lowers with the order edges that a member's depends_on asks for, and those to the gates that are to admit its row.
func (l *lowerer) under(b *decl.Block, each *decl.Each, do func()) {
	after, admits := l.after, l.admits
	defer func() { l.after, l.admits = after, admits }()
	l.after, l.admits = l.orderEdges(b, each), nil
	if each != nil {
		l.admits = l.admissions(b, each.Row, each.Key)
	}
	do()
}

// orderEdges are edges to the last steps of what depends_on names, as far as these are needed.
func (l *lowerer) orderEdges(b *decl.Block, each *decl.Each) []task.Dep {
	var deps []task.Dep
	for _, id := range l.dependsOn(b, each) {
		deps = append(deps, task.Dep{On: id, Role: "after." + strconv.Itoa(len(deps)), Use: task.UseOrder, Tolerate: l.ifMade(id)})
	}
	return deps
}

func (l *lowerer) dependsOn(b *decl.Block, each *decl.Each) []task.ID {
	refs, _ := get[[]decl.Ref](l, b, "depends_on", each)
	var ids []task.ID
	for _, ref := range refs {
		ids = append(ids, l.lastSteps(ref, at(b, "depends_on"), each)...)
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id task.ID) bool { return id == task.None })
	if l.edges += len(ids); l.edges > maxEdges && l.edges-len(ids) <= maxEdges {
		l.errorf(at(b, "depends_on"), nil, "Too many dependencies",
			"depends_on makes over %d edges. Name the one member that is meant, such as task.a[each.key].", maxEdges)
		return nil
	}
	return ids
}

// lastSteps are the tasks that end each member that ref names. Sources, nodes, agents, models and datasets have no tasks of their own.
func (l *lowerer) lastSteps(ref decl.Ref, r decl.Range, from *decl.Each) []task.ID {
	b := l.ws.Find(ref.Type, ref.Name)
	if b == nil || l.edges > maxEdges {
		return nil
	}
	var ids []task.ID
	if b.Type == "task" {
		for _, p := range l.tasks[b] {
			if !ref.One || p.index != nil && p.index[0] == ref.Key {
				ids = append(ids, l.addTask(p))
			}
		}
	} else {
		for _, o := range l.lower(b).objects {
			if !ref.One || o.Index != nil && o.Index[0] == ref.Key {
				if len(o.Steps) > 0 {
					ids = append(ids, o.Steps[len(o.Steps)-1].Task)
				}
			}
		}
	}
	if ref.One {
		if _, ok := l.find(b, ref.Key); !ok && len(ids) == 0 {
			l.errorf(r, from, "Undefined member", "%s has no member %q.", b.Address(), ref.Key)
		}
	}
	return ids
}
