package cli

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/plan"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// planFlags are the flags that plan and apply share.
type planFlags struct {
	out      string
	detailed bool
	replace  []string
	jobs     int
	noProbe  bool
	all      bool
	scratch  string
	orSaved  bool        // a lone argument may be a saved plan
	saved    *plan.Saved // that plan; nil where there is none

	chosen   []selector // what the arguments say
	replaced replacement
}

// read reads the selectors, of which a file may hold some: once, for all that a command does.
func (f *planFlags) read(a *app, args []string) (err error) {
	if f.chosen, err = a.parseSelectors(args); err != nil {
		return err
	}
	f.replaced.named, err = a.parseSelectors(f.replace)
	return err
}

func (f *planFlags) register(a *app, cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "out", "o", "", "save the plan in `FILE`, for apply")
	fs.BoolVar(&f.detailed, "detailed-exitcode", false, "exit 0: nothing to do, 2: something to do, 1: any error")
	fs.StringArrayVar(&f.replace, "replace", nil, "run what `SELECTOR` names, and what is equal to it, although a record holds")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "how many tasks run at once (default: slots of the workspace, else cores)")
	fs.BoolVar(&f.noProbe, "no-probe", false, "start no probe: runtimes are what they were last")
	fs.BoolVar(&f.all, "all", false, "list reused tasks too")
	fs.StringVar(&f.scratch, "scratch", "", "make sandboxes in `DIR`")
	if err := cmd.RegisterFlagCompletionFunc("replace", a.completeSelectors); err != nil {
		panic("pbuild bug: " + err.Error())
	}
}

// check finds values that no flag can have.
func (f *planFlags) check() error {
	if f.jobs < 0 {
		return usagef("--jobs is %d; give the number of tasks that may run at once, or 0 for as many as there are cores", f.jobs)
	}
	return nil
}

// whole says that a plan is of the whole workspace as it is now, so that the next may begin from its snapshot.
func (f *planFlags) whole(args []string) bool {
	return len(args) == 0 && len(f.replace) == 0 && !f.noProbe
}

func (a *app) planCommand() *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan [SELECTOR...]",
		Short: "Show what apply would run, and why",
		Long: `Show what apply would run, and why. Nothing is run but probes, whose output identifies runtimes, and nothing is changed.

By default blocks are shown with the counts of each decision; -v shows every task that may run, --all also those that are reused.

  run     its key has no record that serves
  maybe   something upstream runs; if that comes out as before, a record serves
  reuse   a record serves`,
		ValidArgsFunction: a.completeSelectors,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), f, args) },
	}
	f.register(a, cmd)
	return cmd
}

// plan makes and shows a plan.
func (a *app) plan(ctx context.Context, f *planFlags, args []string) error {
	return f.end(a.makePlan(ctx, f, args))
}

// end is the end of a command that planned, with the code that was asked for.
func (f *planFlags) end(changes bool, err error) error {
	switch {
	case !f.detailed:
		return err
	case isSaid(err):
		return said(ExitFailed)
	case err != nil:
		return exitWith(ExitFailed, err)
	case changes:
		return said(ExitChanges)
	}
	return nil
}

// makePlan says whether there is something to do.
func (a *app) makePlan(ctx context.Context, f *planFlags, args []string) (changes bool, err error) {
	if err := f.check(); err != nil {
		return false, err
	}
	s, p, graph, err := a.newPlan(ctx, f, args)
	defer s.close()
	if err != nil && a.view.json {
		return false, a.planRefused(s, err)
	}
	if err != nil {
		return false, err
	}
	if a.view.json {
		d := planDocument(a.cfg.Version, graph, p, s.diags)
		d.Tasks = planTasks(p, f.all)
		d.Unknown = unknownRows(s.ws.Unknown)
		if err := a.view.document(d); err != nil {
			return false, exitWith(ExitWorld, err)
		}
	} else {
		a.view.showPlan(p, f.all)
		a.noteDamage(s.store)
		if f.out != "" {
			a.view.notef("Saved in %s; `pbuild apply %s` runs exactly this.\n", f.out, f.out)
		}
	}
	c := p.Counts()
	return c.Run+c.Maybe+restores(p) > 0, nil
}

// newPlan makes a plan, and keeps it as the flags say. graph is its digest, which only JSON shows.
func (a *app) newPlan(ctx context.Context, f *planFlags, args []string) (s *session, p *plan.Plan, graph string, err error) {
	if err := f.read(a, args); err != nil {
		return nil, nil, "", err
	}
	s, err = a.load(ctx, loadOptions{noProbe: f.noProbe, keep: a.view.json, warn: true, all: len(args) == 0, replace: f.replaced})
	if err != nil {
		return s, nil, "", err
	}
	if p, err = s.planFor(s.store, f, args); err != nil {
		return s, nil, "", err
	}
	if a.view.json {
		d, err := p.GraphDigest()
		if err != nil {
			return s, nil, "", exitWith(ExitWorld, err)
		}
		graph = d.String()
	}
	if f.whole(args) {
		s.writeSnapshot(s.store, p, graph)
	}
	if f.out != "" {
		err = s.savePlan(p, f, args)
	}
	return s, p, graph, err
}

// planRefused prints the document of a plan that could not be made.
func (a *app) planRefused(s *session, why error) error {
	var ds decl.Diagnostics
	if s != nil {
		ds.Add(s.diags...)
	}
	if !isSaid(why) {
		ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Plan refused", Detail: why.Error()})
	}
	if err := a.view.document(planDocument(a.cfg.Version, "none", nil, ds)); err != nil {
		return exitWith(ExitWorld, err)
	}
	return why
}

// restores counts the outputs that would be written back from the store.
func restores(p *plan.Plan) (n int) {
	for i := range p.Items {
		if p.Wanted[i] {
			n += len(p.Items[i].Restore)
		}
	}
	return n
}

// planFor applies selectors and --replace, and decides.
func (s *session) planFor(st *store.Store, f *planFlags, args []string) (*plan.Plan, error) {
	c, err := s.choose(f.chosen)
	if err != nil && f.orSaved && f.saved == nil {
		err = s.app.noFile(err, args)
	}
	if err != nil {
		return nil, err
	}
	var want []task.ID
	if c != nil {
		want = c.tasks
	}
	if err := s.checkReplaced(f.replaced, plan.Closure(s.graph, want)); err != nil {
		return nil, err
	}
	replace, err := s.toReplace(f.replaced)
	if err != nil {
		return nil, err
	}
	p, err := s.decide(st, want, replace)
	if err == nil && f.saved != nil {
		err = checkPlan(f.saved, p)
	}
	return p, err
}

func (s *session) savePlan(p *plan.Plan, f *planFlags, args []string) error {
	w, err := os.Create(s.app.path(f.out))
	if err != nil {
		return usagef("--out: %v", err)
	}
	err = plan.Save(w, p, plan.Meta{Pbuild: s.app.cfg.Version, Created: s.app.cfg.Clock().UnixNano(), Selectors: args, Replace: f.replace})
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		return worldf("--out %s: %v", f.out, err)
	}
	return nil
}

// isPlan says whether an argument is a saved plan: a file that begins with the magic.
func (a *app) isPlan(arg string) bool {
	f, err := os.Open(a.path(arg))
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(plan.Magic))
	_, err = io.ReadFull(f, b)
	return err == nil && string(b) == plan.Magic
}

// costs counts the samples of a plan that ask a paid model.
func costs(p *plan.Plan) (paid int) {
	for i := range p.Items {
		if !p.Wanted[i] || p.Items[i].Decision > plan.Maybe {
			continue
		}
		if s, ok := p.Graph.Tasks[i].Spec.(*kind.SampleSpec); ok && s.Runs() && s.Model.Provider != "" {
			paid++
		}
	}
	return paid
}

// noteDamage tells what of the store could not be read; each was a miss, and nothing worse.
func (a *app) noteDamage(st *store.Store) {
	for _, d := range st.Damage() {
		a.view.notef("note: %s\n", d)
	}
}
