package lower

import (
	"slices"
	"strconv"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// An admission is a gate that is to admit a row, and its verdict on the instance of that.
type admission struct {
	gate    string
	verdict task.ID
}

// admissions are the gates that a member's row waits for. Whatever is made of the row waits for all of their verdicts, by edges that are in no key, and is not
// needed where one of them does not admit it.
func (l *lowerer) admissions(b *decl.Block, row decl.Row, key string) []admission {
	var out []admission
	for _, name := range decl.Gates(row) {
		gate := l.ws.Find("gate", name)
		low := l.lower(gate)
		if low.verdicts == nil {
			low.verdicts = make(map[string]task.ID, len(low.gated))
			for _, in := range low.gated {
				low.verdicts[in.id] = in.verdict
			}
		}
		if id, ok := low.verdicts[key]; ok {
			out = append(out, admission{gate.Address(), id})
		} else if !l.diags.HasErrors() {
			l.errorf(b.ForEach.Range, &decl.Each{Key: key, Row: row}, "Row without a verdict", "%s is to admit %q, and looks at no instance of that name. "+
				"Name its `instances` plainly, as instance.NAME or instance.NAME[\"KEY\"], so that its rows are those that it looks at.", gate.Address(), key)
		}
	}
	return out
}

// await makes t wait for admissions, and be needed only where all of them hold.
func await(t *task.Task, admitted []admission) {
	for i, a := range admitted {
		t.Deps = append(t.Deps, task.Dep{On: a.verdict, Role: "admit." + strconv.Itoa(i), Use: task.UseOrder})
		t.When = append(t.When, task.Condition{On: a.verdict, Fact: kind.Admitted})
	}
}

// checkAdmitted reports blocks made of rows that are still to be admitted, and that cannot wait for that: what they say goes into the tasks of others.
func (l *lowerer) checkAdmitted() {
	for _, b := range l.ws.Blocks {
		if b.ForEach == nil || b.ForEach.Dataset == "" || b.Type == "instance" || b.Type == "task" || slices.Contains(singles, b.Type) {
			continue
		}
		var each decl.Each
		for i := range l.count(b) {
			if names := decl.Gates(l.nth(b, i, &each).Row); names != nil {
				l.errorf(b.ForEach.Range, nil, "Not made of admitted rows", "%s is made of dataset.%s, whose rows gate.%s is still to admit. Only instances and tasks can wait for that: "+
					"name the dataset of which the gate's instances are made.", b.Address(), b.ForEach.Dataset, strings.Join(names, " and gate."))
				break
			}
		}
	}
}

// mayBeUnneeded says whether a condition may leave a task out, or what it cannot do without.
func (l *lowerer) mayBeUnneeded(id task.ID) bool {
	if may, known := l.unneeded[id]; known {
		return may
	}
	t := &l.graph.Tasks[id]
	if len(t.When)+len(t.Deps) == 0 {
		return false
	}
	may := len(t.When) > 0 || slices.ContainsFunc(t.Deps, func(d task.Dep) bool { return d.Tolerate == task.TolerateNone && l.mayBeUnneeded(d.On) })
	l.unneeded[id] = may
	return may
}

// ifMade is how a task that asks for whatever there is waits for one: without it where that turns out not to be needed.
func (l *lowerer) ifMade(id task.ID) task.Tolerance {
	if l.mayBeUnneeded(id) {
		return task.TolerateUnmet
	}
	return task.TolerateNone
}
