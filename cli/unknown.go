package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/lower"
	"pbuild/engine/plan"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// makers are the last steps of what makes the rows of a dataset; none where that itself waits for rows.
func (s *session) makers(u *decl.UnknownRows) []task.ID {
	var ids []task.ID
	for i := range s.graph.Objects {
		o := &s.graph.Objects[i]
		if slices.ContainsFunc(u.Makers, func(r decl.Ref) bool { return r.String() == o.Block }) {
			ids = append(ids, o.Steps[len(o.Steps)-1].Task)
		}
	}
	if slices.ContainsFunc(u.Makers, s.waits) {
		return nil
	}
	return ids
}

func (s *session) waits(r decl.Ref) bool { return s.ws.Held[r.String()] }

// learn adds to made the datasets whose makers have nothing to do, and says whether there are any.
func (s *session) learn(made map[string]bool, r replacement) bool {
	if len(s.ws.Unknown) == 0 {
		return false
	}
	replace, err := s.toReplace(r)
	if err != nil {
		return false // said when the plan is made
	}
	more := false
	for i := range s.ws.Unknown {
		u := &s.ws.Unknown[i]
		ids := s.makers(u)
		if len(ids) == 0 {
			if !slices.ContainsFunc(u.Makers, s.waits) { // they have no members, and so nothing to do
				made[u.Dataset], more = true, true
			}
			continue
		}
		s.prefetch(ids)
		p, err := plan.Decide(s.inputs(s.store, ids, replace))
		if err != nil {
			continue // said when the plan is made
		}
		if !slices.ContainsFunc(ids, func(id task.ID) bool { return p.Items[id].Decision != plan.Reuse || len(p.Items[id].Restore) > 0 }) {
			made[u.Dataset], more = true, true
		}
	}
	return more
}

// noteUnknown says which rows are not known, and what has to run first.
func (s *session) noteUnknown() {
	for i := range s.ws.Unknown {
		u := &s.ws.Unknown[i]
		last := ""
		if u.Last >= 0 {
			last = " (" + plural(u.Last, "row") + " last time)"
		}
		s.app.view.notef("The rows of dataset.%s are not known before %s has run%s; what is made of them is not in this plan.\n", u.Dataset, makerNames(u), last)
	}
}

func makerNames(u *decl.UnknownRows) string {
	names := make([]string, len(u.Makers))
	for i, r := range u.Makers {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// unknownHint is the end of an error about something that is not in the graph, where that may be for want of rows.
func (s *session) unknownHint() string {
	if len(s.ws.Unknown) == 0 {
		return ""
	}
	u := &s.ws.Unknown[0]
	return fmt.Sprintf(" (what is made of dataset.%s is not known before %s has run)", u.Dataset, makerNames(u))
}

// choose applies selectors. An error about one that nothing matches says so where it may mean what waits for rows; to exclude that is no mistake.
func (s *session) choose(sel []selector) (*choice, error) {
	c, err := choose(s.graph, sel)
	if err == nil {
		return c, nil
	}
	if err := s.checkPossible(sel); err != nil {
		return nil, err
	}
	_, missed := match(s.graph, sel)
	known := slices.DeleteFunc(slices.Clone(sel), func(x selector) bool {
		return x.not && slices.ContainsFunc(missed, func(m selector) bool { return m.text == x.text })
	})
	if len(known) < len(sel) {
		return s.choose(known)
	}
	return nil, usagef("%w%s", err, s.unknownHint())
}

// checkPossible finds a selector that matches nothing, whatever rows there will be.
func (s *session) checkPossible(sel []selector) error {
	_, missed := match(s.graph, sel)
	for i := range missed {
		if s.mayWait(&missed[i]) {
			continue
		}
		g := &task.Graph{Tasks: s.graph.Tasks, Objects: slices.Clip(s.graph.Objects)}
		for block := range s.waiting {
			g.Objects = append(g.Objects, task.Object{Block: block})
		}
		return matchesNothing(g, &missed[i])
	}
	return nil
}

// waiting calls f with the blocks that have tasks, and wait for rows.
func (s *session) waiting(f func(block string) bool) {
	for _, block := range sortedKeys(s.ws.Held) {
		if typ, _, _ := strings.Cut(block, "."); lower.HasTasks(typ) && !f(block) {
			return
		}
	}
}

// mayWait says whether a selector may mean something that waits for rows. A tag, or a kind, may be anybody's.
func (s *session) mayWait(sel *selector) bool {
	for block := range s.waiting {
		if sel.pattern == nil || sel.pattern.means(block) {
			return true
		}
	}
	return false
}

// held says whether a choice may hold something that waits for rows.
func (s *session) held(sel []selector) bool {
	everything := true
	for i := range sel {
		if !sel[i].not && s.mayWait(&sel[i]) {
			return true
		}
		everything = everything && sel[i].not
	}
	return everything
}

// toLearn are the tasks that make rows which a choice needs and which are not known.
func (s *session) toLearn(sel []selector) []task.ID {
	if len(s.ws.Unknown) == 0 || !s.held(sel) {
		return nil
	}
	var ids []task.ID
	for i := range s.ws.Unknown {
		ids = append(ids, s.makers(&s.ws.Unknown[i])...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// expand applies what makes unknown rows, as often as there are new ones, until all that args choose is in the graph. Where that fails, the code is not
// ExitDone, and nothing else is to be started. It returns the session as it is then, and the last apply of its own.
func (a *app) expand(ctx context.Context, f *applyFlags, s *session, st *store.Store, args []string) (_ *session, before *applying, code Exit, err error) {
	for {
		want := s.toLearn(f.chosen)
		if len(want) == 0 {
			return s, before, ExitDone, nil
		}
		p, err := s.planToLearn(st, f, args, want)
		if err == nil {
			err = a.confirm(ctx, f, p)
		}
		if err != nil {
			return s, before, 0, err
		}
		ap := &applying{app: a, session: s, flags: f, store: st, plan: p, run: a.runID(), partial: true, before: before}
		if code, err := ap.do(ctx); err != nil || code != ExitDone {
			for i := range s.ws.Unknown {
				a.view.notef("Nothing that needs the rows of dataset.%s was started.\n", s.ws.Unknown[i].Dataset)
			}
			return s, ap, code, err
		}
		before = ap
		f.replaced.add(p)
		learned := slices.DeleteFunc(s.ws.Unknown, func(u decl.UnknownRows) bool { return len(s.makers(&u)) == 0 })
		s.close()
		if s, err = a.load(ctx, loadOptions{noProbe: f.noProbe, warn: true, replace: f.replaced}); err != nil {
			return s, before, 0, err
		}
		for i := range learned {
			if slices.ContainsFunc(s.ws.Unknown, func(u decl.UnknownRows) bool { return u.Dataset == learned[i].Dataset }) {
				return s, before, 0, exitWith(ExitFailed, fmt.Errorf("the rows of dataset.%s are not known although %s has run: what it wrote has changed since, or its record does not last",
					learned[i].Dataset, makerNames(&learned[i])))
			}
		}
	}
}

// planToLearn is a plan of what makes rows, once nothing is known to be wrong with what is asked for.
func (s *session) planToLearn(st *store.Store, f *applyFlags, args []string, want []task.ID) (*plan.Plan, error) {
	if err := s.checkPossible(f.chosen); err != nil {
		return nil, s.app.noFile(err, args)
	}
	if err := s.checkPossible(f.replaced.named); err != nil {
		return nil, err
	}
	replace, err := s.toReplace(f.replaced)
	if err != nil {
		return nil, err
	}
	p, err := s.decide(st, want, replace)
	if err == nil {
		err = s.checkRunnable(p)
	}
	return p, err
}
