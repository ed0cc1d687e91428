package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/apply"
	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/run"
	"pbuild/engine/store"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// applyFlags are apply's own, beside those of plan.
type applyFlags struct {
	planFlags
	dryRun      bool
	failFast    bool
	lockTimeout time.Duration
	yes         bool
	autoApprove bool
	jsonInto    string
	logLines    int
}

func (a *app) applyCommand() *cobra.Command {
	f := &applyFlags{planFlags: planFlags{orSaved: true}}
	cmd := &cobra.Command{
		Use:   "apply [PLAN | SELECTOR...]",
		Short: "Run what is stale",
		Long: `Run what is stale, each task after what it depends on, and record what came out.

Independent work goes on after a failure. Ctrl-C once lets running tasks finish and starts no more; twice kills. What has finished by then
is recorded, so the next apply goes on from there. An argument that is a file made by "plan --out" is applied as it was shown, or refused; with -n it is
shown again.`,
		ValidArgsFunction: a.completeSelectors,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.detailed = f.detailed && (f.dryRun || cmd.Flags().Changed("detailed-exitcode")) // a variable means plans only
			args, err := a.settle(f, cmd.Flags(), args)
			switch {
			case err != nil:
				if !f.dryRun {
					(&applying{app: a, flags: f}).refused(err)
				}
				return f.end(false, err)
			case f.dryRun:
				return a.plan(cmd.Context(), &f.planFlags, args)
			}
			return a.apply(cmd.Context(), f, args)
		},
	}
	f.register(a, cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.dryRun, "dry-run", "n", false, "plan only")
	fs.BoolVar(&f.failFast, "fail-fast", false, "start nothing more after a failure, but for what a gate makes an outcome of")
	fs.DurationVar(&f.lockTimeout, "lock-timeout", 0, "wait so long for another apply to end")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before samples are drawn from a paid model")
	fs.BoolVar(&f.autoApprove, "auto-approve", false, "the same as --yes")
	fs.StringVar(&f.jsonInto, "json-into", "", "write the event stream to `FILE` too")
	fs.IntVar(&f.logLines, "log-on-failure", 20, "show the last `N` lines of a failed task's log")
	return cmd
}

// check finds values that no flag can have, and flags and arguments that exclude each other.
func (f *applyFlags) check(given *pflag.FlagSet) error {
	for _, name := range []string{"all", "detailed-exitcode"} {
		if given.Changed(name) && !f.dryRun {
			return usagef("--%s is of a plan; leave it out, or plan only, with -n", name)
		}
	}
	switch {
	case given.Changed("json-into") && f.dryRun:
		return usagef("--json-into is of a run; leave it out, or leave out -n")
	case f.lockTimeout < 0:
		return usagef("--lock-timeout is %v; give how long to wait, such as 5m", f.lockTimeout)
	case f.logLines < 0:
		return usagef("--log-on-failure is %d; give a number of lines, 0 for none", f.logLines)
	}
	return f.planFlags.check()
}

// settle finds what is asked for: it returns the selectors, which are those of a saved plan where args name one.
func (a *app) settle(f *applyFlags, given *pflag.FlagSet, args []string) ([]string, error) {
	if err := f.check(given); err != nil {
		return nil, err
	}
	for _, arg := range args {
		if !a.isPlan(arg) {
			continue
		}
		if len(args) > 1 {
			return nil, usagef("the saved plan %s is applied whole or not at all; leave the other arguments out, or plan again with them", arg)
		}
		if len(f.replace) > 0 {
			return nil, usagef("the saved plan %s says what is replaced; leave --replace out, or plan again with it", arg)
		}
		var err error
		if f.saved, err = a.loadPlan(arg); err != nil {
			return nil, err
		}
		f.replace = f.saved.Replace
		return f.saved.Selectors, nil
	}
	return args, nil
}

// An applying is one apply under way.
type applying struct {
	app      *app
	*session // nil before the workspace is read
	flags    *applyFlags
	store    *store.Store // the writer
	plan     *plan.Plan
	run      string // its id
	stream   *stream
	runFile  *store.RunStream
	progress *progress
	closers  []func() error
	drift    int
	near     []string // addresses
	untold   bool     // something failed that did not run, and so was not shown when it happened

	partial bool // what it runs makes rows, and another goes on from there
	before  *applying
	sum     *apply.Summary
}

// apply makes a plan and runs it. What keeps it from beginning is in the event stream too.
func (a *app) apply(ctx context.Context, f *applyFlags, args []string) error {
	ap := &applying{app: a, flags: f}
	err := a.begin(ctx, ap, args)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // whatever it kept from being done
	}
	if err != nil && !ap.broken() {
		ap.refused(err)
	}
	return err
}

func (a *app) begin(ctx context.Context, ap *applying, args []string) (err error) {
	f := ap.flags
	if err := f.read(a, args); err != nil {
		return err
	}
	s, err := a.load(ctx, loadOptions{noProbe: f.noProbe, warn: true, replace: f.replaced})
	defer func() { s.close() }()
	ap.session = s
	if err != nil {
		return err
	}
	st, err := store.OpenWriter(ctx, s.stateDir(), a.holder(), f.lockTimeout)
	if locked := (*store.Locked)(nil); errors.As(err, &locked) {
		return worldf("%w; --lock-timeout waits for it", err)
	}
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	if f.saved == nil {
		var code Exit
		s, ap.before, code, err = a.expand(ctx, f, s, st, args)
		if ap.session = s; err != nil || code != ExitDone {
			return ended(st, code, err)
		}
	}
	p, err := s.planFor(st, &f.planFlags, args)
	a.noteDamage(st)
	if err == nil {
		err = s.checkRunnable(p)
	}
	if err == nil {
		err = a.confirm(ctx, f, p)
	}
	if err == nil && f.out != "" {
		err = s.savePlan(p, &f.planFlags, args)
	}
	if err != nil {
		st.Close() // nothing was written
		return err
	}
	collectAsUsual()
	ap.store, ap.plan, ap.run = st, p, a.runID()
	code, err := ap.do(ctx)
	if err == nil && f.whole(args) {
		ap.remember()
	}
	return ended(st, code, err)
}

// ended closes the store that was written to, and returns what the command ends with.
func ended(st *store.Store, code Exit, err error) error {
	if e := st.Close(); err == nil && e != nil {
		err = exitWith(ExitWorld, e)
	}
	if err != nil {
		return err
	}
	return said(code)
}

// noFile adds to an error about a lone argument that no task has that no file has it either: it may have been meant as a saved plan.
func (a *app) noFile(err error, args []string) error {
	if err == nil || isSaid(err) || codeOf(err) != ExitUsage || len(args) != 1 || strings.ContainsAny(args[0], "*[:@!") {
		return err
	}
	if _, e := os.Stat(a.path(args[0])); e == nil {
		return usagef("%w (the file %s is not a saved plan)", err, args[0])
	}
	end := "."
	if strings.HasSuffix(err.Error(), "?") {
		end = ""
	}
	return usagef("%w%s There is no file %s either", err, end, args[0])
}

func (a *app) loadPlan(file string) (*plan.Saved, error) {
	f, err := os.Open(a.path(file))
	if err != nil {
		return nil, usagef("%v", err)
	}
	defer f.Close()
	saved, err := plan.Load(f)
	if err != nil {
		return nil, usagef("%s: %v; make it again with `pbuild plan --out`", file, err)
	}
	return saved, nil
}

func checkPlan(saved *plan.Saved, now *plan.Plan) error {
	err := plan.Check(saved, now)
	var stale *plan.Stale
	if errors.As(err, &stale) {
		return usagef("%v; plan again", stale)
	}
	if err != nil {
		return exitWith(ExitWorld, err)
	}
	return nil
}

// confirm asks before money is spent. Nobody to ask means no.
func (a *app) confirm(ctx context.Context, f *applyFlags, p *plan.Plan) error {
	paid := costs(p)
	if paid == 0 || f.yes || f.autoApprove {
		return nil
	}
	return a.ask(ctx, fmt.Sprintf("%s will ask a paid model. Go on?", plural(paid, "sample")), "--yes")
}

// ask puts a question that only "yes" answers; where nobody can answer, it is refused with the flag that would have.
func (a *app) ask(ctx context.Context, question, flag string) error {
	in, ok := a.cfg.Stdin.(*os.File)
	if !ok || a.ci() || a.view.json || !isTerminal(in) || !isTerminal(a.view.err) {
		return usagef("%s There is no terminal to ask on: say %s", question, flag)
	}
	fmt.Fprintf(a.view.err, "%s Only \"yes\" is taken: ", question)
	answered := make(chan bool, 1)
	go func() {
		answer, err := bufio.NewReader(in).ReadString('\n')
		answered <- err == nil && strings.TrimSpace(answer) == "yes"
	}()
	select {
	case yes := <-answered:
		if !yes {
			return usagef("refused; nothing was started")
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runTime is the form in which a run's name begins; names sort by time.
const runTime = "20060102-150405.000"

// runID names a run: by its time and by its process, so that two in one second differ.
func (a *app) runID() string {
	return a.cfg.Clock().UTC().Format(runTime) + fmt.Sprintf("-%d", os.Getpid())
}

// do runs the plan and shows it, and returns the code that the run ends with.
func (ap *applying) do(ctx context.Context) (Exit, error) {
	defer ap.close()
	a := ap.app
	trees, err := tree.Open(ctx, filepath.Join(ap.stateDir(), treesDir))
	if err != nil {
		return 0, exitWith(ExitWorld, err)
	}
	ap.closers = append(ap.closers, trees.Close)
	slots := ap.slots(ap.flags.jobs)
	m, err := a.cfg.Wire(ctx, Parts{Dir: ap.dir, State: ap.stateDir(), Scratch: a.scratch(ap.flags.scratch), Environ: a.cfg.Environ, Slots: slots,
		Blobs: ap.store.Blobs(), Trees: trees})
	if err != nil {
		return 0, exitWith(ExitWorld, err)
	}
	if err := ap.checkIsolation(m); err != nil {
		return 0, err
	}
	if err := ap.openStreams(); err != nil {
		return 0, err
	}
	counts := ap.plan.Counts()
	now := a.cfg.Clock()
	ap.stream.plan(ap.run, counts.Tally, now)
	ap.stream.diagnostics(ap.diags, now)
	if a.view.verbose && !a.view.quiet {
		a.view.showTasks(a.view.err, a.view.errColor, ap.plan, ap.flags.all)
	}
	a.view.notef("%s\n", a.view.paintErr(bold, planSentence(counts.Tally, restores(ap.plan))))
	ap.progress = newProgress(a.view, ap.plan, slots, ap.flags.logLines, ap.expect, now)
	ap.progress.blame = ap.blame

	ctx, stop, cancel := a.interrupts(ctx, func(text string) { ap.progress.note(a.cfg.Clock(), text) })
	defer cancel()
	quit := ap.ticking()
	sum, err := apply.Apply(ctx, apply.Options{
		Plan: ap.plan, Executors: m.Executors, Journal: &journal{ctx, ap.store, trees}, Slots: slots, FailFast: ap.flags.failFast,
		Retries: retries, Backoff: backoff, Run: ap.run, Events: ap.event, Clock: a.cfg.Clock, Stop: stop,
		Restore: m.Restore, Failed: rejected,
	})
	quit()
	ap.progress.close()
	if err != nil {
		return 0, worldf("%w. What was recorded before is kept: mend the cause and apply again", err)
	}
	if freed, err := m.States.Trim(setting(ap.session, "disk_budget", defaultBudget)); err != nil {
		a.view.notef("note: states over the disk budget: %v\n", err)
	} else if freed > 0 {
		a.view.notef("%s of states that nothing needs any more, or that are over the disk budget, deleted.\n", size(freed))
	}
	if ap.partial {
		a.listen(nil)
		select {
		case <-stop: // too late for what ran, perhaps, but not for what is to follow
			sum.Interrupted = true
		default:
		}
	}
	return ap.finish(sum), nil
}

// checkIsolation refuses to run what this machine cannot isolate as the workspace asks: no record of it would ever serve.
func (ap *applying) checkIsolation(m *Machine) error {
	floor := ap.isolationFloor()
	if have, ok := run.ParseIsolation(m.Isolation); ok && have >= floor {
		return nil
	}
	for i := range ap.plan.Items {
		if ap.plan.Wanted[i] && ap.plan.Items[i].Decision <= plan.Maybe && isolated(&ap.graph.Tasks[i]) {
			return worldf("this machine isolates at level %s, and min_isolation asks for %s; see `pbuild status`. Nothing was started", m.Isolation, floor)
		}
	}
	return nil
}

// Parts of the state directory that cli itself looks into.
const (
	treesDir  = "trees.git"
	statesDir = "states"
)

const defaultBudget = int64(50) << 30

// scratch is where sandboxes are made: outside every workspace, and this user's alone.
func (a *app) scratch(flag string) string {
	if flag == "" {
		flag = a.getenv("PBUILD_SCRATCH")
	}
	if flag == "" {
		return filepath.Join(os.TempDir(), fmt.Sprintf("pbuild-%d", os.Getuid()))
	}
	flag = a.path(flag)
	if abs, err := filepath.Abs(flag); err == nil {
		return abs
	}
	return flag
}

// expect is how long a task took last, 0 where it has no history.
func (ap *applying) expect(id task.ID) time.Duration {
	if d, known := ap.plan.Estimate(id); known {
		return d
	}
	return 0
}

// remember leaves a snapshot of the workspace as it is now, so that the next plan finds nothing changed.
func (ap *applying) remember() {
	if err := ap.host.save(); err != nil {
		ap.app.view.notef("note: %v\n", err)
	}
	p, err := ap.decide(ap.store, nil, nil)
	if err == nil {
		ap.writeSnapshot(ap.store, p, "")
	}
}

// A journal makes the trees that records name durable before the records themselves.
type journal struct {
	ctx context.Context
	*store.Store
	trees *tree.Repo
}

func (j *journal) Append(records []*task.Record) error {
	var trees []digest.Digest
	for _, r := range records {
		for _, o := range r.Outputs {
			if _, ok := o.Digest.Git(); ok {
				trees = append(trees, o.Digest)
			}
		}
	}
	if len(trees) > 0 {
		if err := j.trees.Keep(context.WithoutCancel(j.ctx), trees...); err != nil {
			return err
		}
	}
	return j.Store.Append(records)
}

// retries and backoff are for infra and provider failures, never for verdicts.
const (
	retries = 2 // three tries in all
	backoff = time.Second
)

// rejected makes a gate that is to hold, and does not, a failure.
func rejected(t *task.Task, r *task.Record) bool {
	v, ok := t.Spec.(*kind.VerdictSpec)
	return ok && v.OnReject == "error" && r.Status == task.OK && !r.Has(kind.Admitted)
}

// event passes one event on. It is called from one goroutine.
func (ap *applying) event(e apply.Event) {
	ap.stream.event(e)
	ap.progress.event(e)
	switch {
	case e.Type == "reuse" && e.Phase == "failed":
		ap.untold = true
	case e.Type == "note" && e.Code == verdict.FlagStateDrift:
		ap.drift++
	case e.Type == "end" && e.Record != nil && e.Phase == "done" && slices.Contains(e.Record.Flags, verdict.FlagNearLimit):
		ap.near = append(ap.near, ap.address(e.Task))
	}
}
