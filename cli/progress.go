package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/apply"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// progress shows an apply to people: on a terminal a few lines that are drawn again, elsewhere a line for each task that ran, of many tasks only
// for those that took long, with the counts every few seconds and a heartbeat after a silence. Failures are shown when they happen, with the end of their log.
//
// Its methods may be called from two goroutines: the one that events come from and the one that ticks.
type progress struct {
	mu      sync.Mutex
	w       io.Writer
	buf     bytes.Buffer // written at once, so that a frame never flickers
	v       *view
	plan    *plan.Plan
	expect  func(task.ID) time.Duration                                 // how long the task took last; 0 if unknown
	blame   func(id task.ID, r *task.Record) (step task.ID, log []byte) // the step that shows why a gate rejected; nil where nobody knows
	slots   int
	tail    int    // how many lines of a failure's log are shown
	outcome []bool // whose failures a gate makes outcomes
	total   int    // tasks that may run and have not been found to be reusable
	ended   int
	failed  int
	start   time.Time
	spoke   time.Time // when the last line was written
	counted int       // ended, when the counts were last written
	running map[task.ID]time.Time
	drawn   int // lines of the frame on the terminal
	eta     estimate
	spent   map[string]time.Duration // by kind
}

// heartbeat is how long a plain view stays silent.
const heartbeat = 30 * time.Second

// Of more than few tasks, those that take less than slow are only counted in a plain view, at most once in each pause.
const (
	few   = 100
	slow  = time.Second
	pause = 5 * time.Second
)

func newProgress(v *view, p *plan.Plan, slots, tail int, expect func(task.ID) time.Duration, now time.Time) *progress {
	g := &progress{w: v.err, v: v, plan: p, outcome: p.Graph.Tolerated(p.Wanted), expect: expect, slots: max(1, slots), tail: tail, start: now, spoke: now,
		running: map[task.ID]time.Time{}, spent: map[string]time.Duration{}}
	for i := range p.Items {
		if p.Wanted[i] && p.Items[i].Decision <= plan.Maybe {
			g.total++
			g.eta.add(g.kind(task.ID(i)), expect(task.ID(i)))
		}
	}
	return g
}

// name is a task's address, fit to be printed.
func (g *progress) name(id task.ID) string { return printable(g.plan.Address(id)) }

func (g *progress) kind(id task.ID) string { return g.plan.Graph.Tasks[id].Spec.Kind().Name }

func (g *progress) event(e apply.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch e.Type {
	case "start":
		g.running[e.Task] = e.Time
	case "end":
		g.end(e)
	case "retry":
		g.say(e.Time, "%s %s: try %d: %s", g.v.paintErr(yellow, "retry"), g.name(e.Task), e.Attempt, printable(e.Detail))
	case "note":
		if e.Code == verdict.FlagStateDrift || g.v.verbose {
			g.say(e.Time, "%s %s: %s", g.v.paintErr(yellow, e.Code), g.name(e.Task), printable(e.Detail))
		}
	}
}

func (g *progress) end(e apply.Event) {
	_, ran := g.running[e.Task]
	delete(g.running, e.Task)
	if g.plan.Wanted[e.Task] && g.plan.Items[e.Task].Decision <= plan.Maybe {
		kind := g.kind(e.Task)
		g.ended++
		g.eta.done(kind, g.expect(e.Task), elapsed(e.Record), ran)
	}
	if ran && e.Record != nil {
		g.spent[g.kind(e.Task)] += e.Record.Elapsed
	}
	switch e.Phase {
	case "failed":
		if e.Record != nil && e.Record.Status == task.Failed && g.outcome[e.Task] {
			if !g.v.quiet {
				g.failure(e, yellow, outcomeHint)
			}
			return
		}
		g.failed++
		g.failure(e, red, "")
	case "skipped":
		if g.v.verbose {
			g.say(e.Time, "%s %s: %s", g.v.paintErr(yellow, "skipped"), g.name(e.Task), printable(e.Detail))
		}
	case "done":
		switch {
		case !ran || g.v.quiet:
		case g.crashed(e):
			e.Data, e.Detail = e.Record.Tail, e.Record.Reason
			g.failure(e, yellow, outcomeHint)
		case g.v.verbose && leavesOut(&g.plan.Graph.Tasks[e.Task], e.Record):
			g.say(e.Time, "%s %s: %s", g.v.paintErr(yellow, "excluded"), member(g.name(e.Task)), printable(apply.Rejection(e.Record)))
		case !g.v.live && (g.v.verbose || g.told(e)):
			g.say(e.Time, "[%d/%d] %s %s%s", g.ended, g.total, seconds(elapsed(e.Record)), g.name(e.Task), verdictWord(e.Record))
		}
	}
}

// outcomeHint ends the line of what looks like a failure and is none.
const outcomeHint = " (counts as an outcome)"

// crashed says whether an agent's program ended as it should not.
func (g *progress) crashed(e apply.Event) bool {
	s, ok := g.plan.Graph.Tasks[e.Task].Spec.(*kind.SampleSpec)
	return ok && s.Runs() && e.Phase == "done" && e.Record != nil && e.Record.Outcome.Outcome != ""
}

// told says whether a task that ran has a line of its own in a plain view.
func (g *progress) told(e apply.Event) bool {
	return !g.plan.Graph.Tasks[e.Task].Spec.Kind().Pure && (g.total <= few || elapsed(e.Record) >= slow)
}

func elapsed(r *task.Record) time.Duration {
	if r == nil {
		return 0
	}
	return r.Elapsed
}

// verdictWord is what a line says of a record beyond that it ended.
func verdictWord(r *task.Record) string {
	switch {
	case r == nil:
		return ""
	case r.Outcome.Outcome != "":
		return ": " + r.Outcome.Outcome
	case r.Verdict != task.NoVerdict:
		return ": " + string(r.Verdict)
	}
	return ""
}

// failure shows a failed task with the last lines of its log. A gate that rejects has none: those of the step that decided are shown.
func (g *progress) failure(e apply.Event, tone style, hint string) {
	word, name, logged, log := "failed", g.name(e.Task), e.Task, e.Data
	switch r := e.Record; {
	case r == nil || r.Status == task.Failed:
	case r.Status != task.OK:
		word = string(r.Status)
	case g.crashed(e):
		word = r.Outcome.Outcome
	case !rejected(&g.plan.Graph.Tasks[e.Task], r):
		word = "not recorded"
	default:
		name = member(name) // it is the member itself that is rejected
		word, hint = "rejected", "; see pbuild show '"+name+"'"
		if g.blame != nil {
			logged, log = g.blame(e.Task, r)
		}
	}
	g.say(e.Time, "%s %s: %s%s", g.v.paintErr(tone, word), name, printable(e.Detail), hint)
	lines := lastLines(log, g.tail)
	for _, l := range lines {
		g.say(e.Time, "  %s %s", g.v.paintErr(dim, "|"), printable(l))
	}
	if len(lines) > 0 {
		g.say(e.Time, "  %s", g.v.paintErr(dim, "the whole log: pbuild log '"+g.name(logged)+"'"))
	}
	if g.replacing(e.Task) && (e.Record == nil || !e.Record.Keepable()) {
		g.say(e.Time, "  its earlier record still serves the next apply; only a --replace '%s' that succeeds takes its place", name)
	}
}

// replacing says whether a task runs though a record holds.
func (g *progress) replacing(id task.ID) bool {
	return slices.ContainsFunc(g.plan.Items[id].Reasons, func(r plan.Reason) bool { return r.Code == plan.Replaced })
}

// lastLines returns at most n lines from the end of log.
func lastLines(log []byte, n int) []string {
	text := strings.TrimRight(string(log), "\n")
	if text == "" || n <= 0 {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-n):]
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return lines
}

// say writes one line above the frame. What is not pbuild's own is printable already.
func (g *progress) say(now time.Time, format string, args ...any) {
	g.erase()
	fmt.Fprintf(&g.buf, format+"\n", args...)
	g.spoke = now
	if g.v.live {
		if !g.v.quiet {
			g.frame(now)
		}
		g.flush()
	} else if g.buf.Len() > 1<<14 {
		g.flush()
	}
}

// tick is called ten times a second: it draws the frame, or writes out what has been said, or breaks a silence.
func (g *progress) tick(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.v.live && !g.v.quiet {
		g.erase()
		g.frame(now)
	} else if !g.v.quiet && g.total > few && g.ended > g.counted && now.Sub(g.spoke) >= pause {
		g.counted = g.ended
		g.say(now, "%s", g.line(now))
	} else if !g.v.quiet && now.Sub(g.spoke) >= heartbeat {
		g.say(now, "%s", g.line(now))
		if id, since := g.oldest(); id != task.None {
			g.say(now, "  longest: %s, %s", g.name(id), seconds(now.Sub(since)))
		}
	}
	g.flush()
}

// close takes the frame away and writes out what is left.
func (g *progress) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.erase()
	g.flush()
}

func (g *progress) flush() {
	g.w.Write(g.buf.Bytes()) // a closed terminal must not stop an apply
	g.buf.Reset()
}

func (g *progress) erase() {
	if g.drawn > 0 {
		fmt.Fprintf(&g.buf, "\x1b[%dA\x1b[J", g.drawn)
		g.drawn = 0
	}
}

// line is the counts: done of all, running, failed, how long, how long yet.
func (g *progress) line(now time.Time) string {
	s := fmt.Sprintf("[%d/%d] %d running", g.ended, g.total, len(g.running))
	if g.failed > 0 {
		s += ", " + g.v.paintErr(red, fmt.Sprintf("%d failed", g.failed))
	}
	s += ", " + clock(now.Sub(g.start))
	if left, ok := g.eta.left(g.slots); ok && g.ended < g.total {
		s += ", about " + clock(left) + " left"
	}
	return s
}

// frame draws the counts and the tasks that have run longest.
func (g *progress) frame(now time.Time) {
	width := g.v.width()
	shown := g.longest(6)
	g.buf.WriteString(clip(g.line(now), width) + "\n")
	g.drawn = 1
	for _, id := range shown {
		name := clip(fmt.Sprintf("  %7s %s", clock(now.Sub(g.running[id])), g.name(id)), width)
		g.buf.WriteString(g.v.paintErr(dim, name) + "\n")
		g.drawn++
	}
}

// longest returns up to n running tasks, those first that have run longest. At most slots tasks run, so this is cheap.
func (g *progress) longest(n int) []task.ID {
	var out []task.ID
	for id, since := range g.running {
		at := len(out)
		for at > 0 && (since.Before(g.running[out[at-1]]) || since.Equal(g.running[out[at-1]]) && id < out[at-1]) {
			at--
		}
		if at == n {
			continue
		}
		out = append(out[:at], append([]task.ID{id}, out[at:]...)...)
		out = out[:min(n, len(out))]
	}
	return out
}

func (g *progress) oldest() (task.ID, time.Time) {
	if ids := g.longest(1); len(ids) > 0 {
		return ids[0], g.running[ids[0]]
	}
	return task.None, time.Time{}
}

// clip cuts a line of text at the width of the terminal, for which its colour goes; a wrapped line would not be erased.
func clip(s string, width int) string {
	if shownWidth(s) < width {
		return s
	}
	r := []rune(plainText(s))
	return string(r[:max(0, min(len(r), width-2))]) + "…"
}

// clock is a duration as a watch shows it: 4s, 2m05s, 1h02m.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// seconds is a duration to a tenth of a second, or to seconds from a minute on.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return clock(d)
}

// note says a line of pbuild's own.
func (g *progress) note(now time.Time, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.say(now, "%s", g.v.paintErr(yellow, text))
	g.flush()
}
