package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/decl"
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
	if slices.ContainsFunc(u.Makers, func(r decl.Ref) bool { return s.ws.Held[r.String()] }) {
		return nil
	}
	return ids
}

// learn adds to made the datasets whose makers have nothing to do, and says whether there are any.
func (s *session) learn(made map[string]bool) bool {
	more := false
	for i := range s.ws.Unknown {
		u := &s.ws.Unknown[i]
		ids := s.makers(u)
		if len(ids) == 0 {
			continue
		}
		s.prefetch(ids)
		p, err := plan.Decide(s.inputs(s.store, ids, nil))
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

// toLearn are the tasks that make rows which a choice needs and which are not known.
func (s *session) toLearn(args []string) []task.ID {
	if len(s.ws.Unknown) == 0 || !s.held(args) {
		return nil
	}
	var ids []task.ID
	for i := range s.ws.Unknown {
		ids = append(ids, s.makers(&s.ws.Unknown[i])...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// held says whether selectors may choose something that waits for rows. One that matches nothing yet may.
func (s *session) held(args []string) bool {
	sel, err := s.app.parseSelectors(args)
	if err != nil {
		return false // said by who chooses
	}
	if c, err := choose(s.graph, sel); c == nil || err != nil {
		return true
	}
	waiting := &task.Graph{Tasks: s.graph.Tasks}
	for address := range s.ws.Held {
		waiting.Objects = append(waiting.Objects, task.Object{Block: address, Steps: make([]task.Step, 1)})
	}
	found := false
	for i := range sel {
		if sel[i].not || sel[i].pattern == nil { // a tag, or a kind, may be anybody's
			found = true
			continue
		}
		for k := range waiting.Objects {
			sel[i].each(waiting, &waiting.Objects[k], nil, func(int) { found = true })
		}
	}
	return found
}

// expand applies what makes unknown rows, as often as there are new ones, until all that args choose is in the graph. Where that fails, the code is not
// ExitDone, and nothing else is to be started. It returns the session as it is then, and the last apply of its own.
func (a *app) expand(ctx context.Context, f *applyFlags, s *session, st *store.Store, args []string) (_ *session, before *applying, code Exit, err error) {
	for {
		want := s.toLearn(args)
		if len(want) == 0 {
			return s, before, ExitDone, nil
		}
		p, err := s.decide(st, want, nil)
		if err == nil {
			err = s.checkRunnable(p)
		}
		if err == nil {
			err = a.confirm(f, p)
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
		learned := slices.DeleteFunc(s.ws.Unknown, func(u decl.UnknownRows) bool { return len(s.makers(&u)) == 0 })
		s.close()
		if s, err = a.load(ctx, loadOptions{noProbe: f.noProbe, warn: true}); err != nil {
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
