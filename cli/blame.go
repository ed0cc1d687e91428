package cli

import (
	"slices"
	"strings"

	"pbuild/bench/verdict"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// blame finds the step of a gate that shows why it rejected, and what that step wrote; None and nothing where no step did. It may be called while tasks run.
func (ap *applying) blame(id task.ID, r *task.Record) (step task.ID, log []byte) {
	step = task.None
	roles := verdict.GateOutcome(r.Outcome.Outcome).Steps()
	for _, d := range ap.graph.Tasks[id].Deps {
		if !slices.ContainsFunc(roles, func(role string) bool { return strings.HasPrefix(d.Role, role) }) {
			continue
		}
		have := ap.plan.Items[d.On].Record
		if last := ap.store.Latest(ap.address(d.On)); have == nil || last != nil && last.Run == ap.run { // what was to be reused may have run after all
			have = last
		}
		if have == nil || have.Log.IsZero() {
			continue
		}
		passed := have.Status == task.OK && (have.Verdict == task.NoVerdict || have.Verdict == task.Pass)
		if step != task.None && passed {
			continue
		}
		framed, err := ap.store.Blobs().Get(have.Log)
		if err != nil {
			continue // the line above says where to look
		}
		_, _, both, err := run.ParseLog(framed)
		if err != nil {
			continue
		}
		step, log = d.On, both
		if !passed {
			break
		}
	}
	return step, log
}
