package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pbuild/engine/apply"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// testPlan has everything in testGraph to run but the sources, which are reused.
func testPlan() *plan.Plan {
	g := testGraph()
	p := &plan.Plan{Graph: g, Items: make([]plan.Item, len(g.Tasks)), Wanted: make([]bool, len(g.Tasks))}
	for i := range g.Tasks {
		p.Wanted[i] = true
		if g.Tasks[i].Spec.Kind().Name == "source" {
			p.Items[i].Decision = plan.Reuse
		} else {
			p.Items[i].Reasons = []plan.Reason{{Code: plan.SpecChanged, Detail: "spec.command", Old: `["a"]`, New: `["b"]`}}
		}
	}
	p.Items[len(p.Items)-1].Decision = plan.Maybe
	p.Items[len(p.Items)-1].Reasons = []plan.Reason{{Code: plan.UpstreamUnknown, Detail: `task.copy["17"]`}}
	return p
}

var begin = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

func after(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }

// runTest plays a run with one success, one failure with a log, and one skipped task.
func runTest(g *progress, p *plan.Plan) {
	last := task.ID(len(p.Items) - 1)
	g.event(apply.Event{Type: "start", Task: last - 1, Time: after(1)})
	g.event(apply.Event{Type: "start", Task: last - 2, Time: after(2)})
	g.tick(after(3))
	g.event(apply.Event{Type: "end", Task: last - 1, Phase: "done", Record: &task.Record{Elapsed: 4 * time.Second, Outcome: task.Outcome{Status: task.OK}}, Time: after(5)})
	g.event(apply.Event{Type: "end", Task: last - 2, Phase: "failed", Detail: "exit 3", Data: []byte("one\ntwo\nthree\n"),
		Record: &task.Record{Elapsed: 6 * time.Second, Outcome: task.Outcome{Status: task.Failed}}, Time: after(8)})
	g.event(apply.Event{Type: "end", Task: last, Phase: "skipped", Detail: "the one above failed", Time: after(8)})
	g.tick(after(9))
}

func TestProgressPlain(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b}, p, 2, 2, func(task.ID) time.Duration { return 0 }, begin)
	runTest(g, p)
	if b.Len() == 0 || strings.Contains(b.String(), "\x1b") {
		t.Fatalf("plain progress is empty or holds escape sequences: %q", b.String())
	}
	g.tick(after(37.5)) // 29.5 s after the last line
	quiet := b.String()
	g.tick(after(38.5))
	g.close()
	want := `[1/8] 4.0s task.copy["17"]
failed matrix.main["c,2","nop","-",0]/test.0: exit 3
  | two
  | three
  the whole log: pbuild log 'matrix.main["c,2","nop","-",0]/test.0'
`
	if quiet != want {
		t.Errorf("got:\n%s\nwant:\n%s", quiet, want)
	}
	if beat := strings.TrimPrefix(b.String(), quiet); !strings.HasPrefix(beat, "[3/8] 0 running, 1 failed, 39s") {
		t.Errorf("the heartbeat is %q", beat)
	}
}

// What a gate makes an outcome is shown as that, counted as no failure, and with -q left out: the summary has none either.
func TestProgressOutcome(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var b bytes.Buffer
		p := testPlan()
		last := task.ID(len(p.Items) - 1)
		between := &p.Graph.Tasks[last-1] // is skipped, and so leads from the failure to what tolerates it
		between.Deps = append(between.Deps, task.Dep{Role: "state", On: last - 2})
		p.Graph.Tasks[last].Deps = append(p.Graph.Tasks[last].Deps, task.Dep{Role: "test", On: last - 1, Tolerate: task.TolerateFailed})
		g := newProgress(&view{err: &b, errColor: true, quiet: quiet}, p, 2, 2, func(task.ID) time.Duration { return 0 }, begin)
		runTest(g, p)
		g.tick(after(60))
		g.close()
		got := b.String()
		if strings.Contains(got, "\x1b["+string(red)) || strings.Contains(got, "1 failed") {
			t.Errorf("quiet %v: an outcome looks like a failure:\n%s", quiet, got)
		}
		if told := strings.Contains(plainText(got), "exit 3 (counts as an outcome)\n"); told == quiet {
			t.Errorf("quiet %v: the outcome is told: %v:\n%s", quiet, told, got)
		}
	}
}

func TestProgressQuiet(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b, quiet: true, live: true, width: func() int { return 80 }}, p, 2, 0, func(task.ID) time.Duration { return 0 }, begin)
	runTest(g, p)
	g.tick(after(100))
	g.close()
	if got := b.String(); strings.Count(got, "failed") != 1 || strings.Contains(got, "| three") || strings.Contains(got, "task.copy") {
		t.Errorf("-q --log-on-failure 0 prints %q", got)
	}
}

// A frame must take exactly its own lines away, or a terminal fills with its remains.
func TestProgressLive(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b, live: true, width: func() int { return 40 }}, p, 2, 2, func(task.ID) time.Duration { return 5 * time.Second }, begin)
	runTest(g, p)
	g.close()
	screen := replay(t, b.String())
	want := `failed matrix.main["c,2","nop","-",0]/test.0: exit 3
  | two
  | three
  the whole log: pbuild log 'matrix.main["c,2","nop","-",0]/test.0'`
	if got := strings.Join(screen, "\n"); got != want {
		t.Errorf("what stays on the screen:\n%s\nwant:\n%s", got, want)
	}
	for _, l := range strings.Split(b.String(), "\n") {
		if strings.Contains(l, "running") && shownWidth(l) >= 40 {
			t.Errorf("a line of the frame is wider than the terminal: %q", l)
		}
	}
}

// replay is as much of a terminal as the frame needs: lines, cursor up, erase below.
func replay(t *testing.T, out string) []string {
	t.Helper()
	var screen []string
	line := ""
	for len(out) > 0 {
		if rest, ok := strings.CutPrefix(out, "\x1b["); ok {
			up, rest, found := strings.Cut(rest, "A\x1b[J")
			if !found || len(up) != 1 || line != "" {
				t.Fatalf("unexpected sequence before %q", out)
			}
			n := int(up[0] - '0')
			if n > len(screen) {
				t.Fatalf("the frame erases %d lines of %d", n, len(screen))
			}
			screen, out = screen[:len(screen)-n], rest
			continue
		}
		if out[0] == '\n' {
			screen, line = append(screen, line), ""
		} else {
			line += out[:1]
		}
		out = out[1:]
	}
	return screen
}

func TestEstimate(t *testing.T) {
	var e estimate
	e.add("test", 0)
	if _, ok := e.left(1); ok {
		t.Error("an estimate from nothing")
	}
	e.add("test", 10*time.Second)
	e.add("build", 4*time.Second)
	if left, ok := e.left(2); !ok || left != 12*time.Second { // 10 + 10 for the unknown one, + 4, over two slots
		t.Errorf("left %v, %v", left, ok)
	}
	e.done("test", 10*time.Second, 20*time.Second, true) // now a test takes 15 s
	if left, _ := e.left(1); left != 19*time.Second {
		t.Errorf("left %v after a slow test", left)
	}
	e.done("test", 0, 0, false) // found to be reusable
	if left, _ := e.left(1); left != 4*time.Second {
		t.Errorf("left %v after a reuse", left)
	}
}

func TestEstimateOfVeryMany(t *testing.T) {
	var e estimate
	for range 1000 {
		e.add("test", time.Hour)
	}
	for range 499_000 {
		e.add("test", 0)
	}
	if left, ok := e.left(500_000); !ok || left != time.Hour {
		t.Errorf("left %v, %v", left, ok)
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m00s", 3725 * time.Second: "1h02m"} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %s, not %s", d, got, want)
		}
	}
}

// A task whose record could not be written has neither failed nor been rejected.
func TestProgressOfALostRecord(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b}, p, 2, 2, func(task.ID) time.Duration { return 0 }, begin)
	g.event(apply.Event{Type: "end", Task: task.ID(len(p.Items) - 1), Phase: "failed", Detail: "no space left on device",
		Record: &task.Record{Outcome: task.Outcome{Status: task.OK}}, Time: after(1)})
	g.close()
	if want := "not recorded " + p.Address(task.ID(len(p.Items)-1)) + ": no space left on device\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q does not say %q", b.String(), want)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestStream(t *testing.T) {
	p := testPlan()
	var full, brief bytes.Buffer
	s := &stream{address: p.Address}
	s.full = append(s.full, fullDisk{}, &full)
	s.brief = append(s.brief, &brief)
	last := task.ID(len(p.Items) - 1)
	s.plan("r1", p.Counts().Tally, begin)
	s.event(apply.Event{Type: "reuse", Task: 0, Time: begin})
	s.event(apply.Event{Type: "start", Task: last, Attempt: 1, Time: after(1)})
	s.event(apply.Event{Type: "log", Task: last, Stream: "stdout", Data: []byte("a\xffb\n"), Time: after(1.5)})
	s.event(apply.Event{Type: "retry", Task: last, Attempt: 2, Detail: "no route to host", Time: after(2)})
	s.event(apply.Event{Type: "note", Task: last, Code: "state_drift", Detail: "x", Time: after(2)})
	s.event(apply.Event{Type: "end", Task: last, Phase: "done", Status: task.OK, Record: &task.Record{Elapsed: 1500 * time.Millisecond, Outcome: task.Outcome{Status: task.OK, Verdict: task.Pass}}, Time: after(3)})
	s.event(apply.Event{Type: "end", Task: last - 1, Phase: "skipped", Status: task.Failed, Detail: "task.x failed", Time: after(3)})
	s.event(apply.Event{Type: "end", Task: 1, Phase: "reused", Time: after(3)})
	s.summary(&apply.Summary{Run: 1, Reuse: 4, Wall: 2500 * time.Millisecond}, 1, ExitFailed, after(4))
	golden(t, "apply.jsonl", full.Bytes())
	if strings.Contains(brief.String(), `"log"`) || strings.Count(brief.String(), "\n")+1 != strings.Count(full.String(), "\n") {
		t.Errorf("the run's own file is to hold all but logs:\n%s", brief.String())
	}
	if s.err == nil {
		t.Error("a writer failed and nobody was told")
	}
}

// Of many tasks only those that fail or take long have a line of their own without a terminal; the rest is counted, every few seconds.
func TestProgressPlainOfMany(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b}, p, 2, 2, func(task.ID) time.Duration { return 0 }, begin)
	g.total = few + 1
	var copies []task.ID
	for i := range p.Graph.Tasks {
		if !p.Graph.Tasks[i].Spec.Kind().Pure && p.Items[i].Decision == plan.Run {
			copies = append(copies, task.ID(i))
		}
	}
	if len(copies) < 3 {
		t.Fatal("the graph has too few tasks")
	}
	end := func(id task.ID, at, took float64) {
		g.event(apply.Event{Type: "start", Task: id, Time: after(at - took)})
		g.event(apply.Event{Type: "end", Task: id, Phase: "done", Time: after(at), Record: &task.Record{Elapsed: time.Duration(took * float64(time.Second)), Outcome: task.Outcome{Status: task.OK}}})
	}
	shown := func() string {
		g.tick(begin) // writes out, and is too early for more
		defer b.Reset()
		return b.String()
	}
	end(copies[0], 1, 0.1)
	g.tick(after(1))
	if s := shown(); s != "" {
		t.Errorf("a short task has a line: %q", s)
	}
	end(copies[1], 3, 2)
	if s := shown(); !strings.Contains(s, p.Address(copies[1])) {
		t.Errorf("a long task has no line: %q", s)
	}
	end(copies[2], 4, 0.1)
	g.tick(after(7.9))
	if s := shown(); s != "" {
		t.Errorf("the counts come too early: %q", s)
	}
	g.tick(after(8))
	if s := shown(); !strings.HasPrefix(s, "[3/101] 0 running") || strings.Count(s, "\n") != 1 {
		t.Errorf("after a pause the counts are %q", s)
	}
	g.tick(after(20))
	if s := shown(); s != "" {
		t.Errorf("the counts are told again though nothing ended: %q", s)
	}
}

// A terminal in colour shows no text of a log that could draw on it, and no line that it would wrap.
func TestProgressInColour(t *testing.T) {
	var b bytes.Buffer
	p := testPlan()
	g := newProgress(&view{err: &b, errColor: true, live: true, width: func() int { return 20 }}, p, 1, 5, func(task.ID) time.Duration { return 0 }, begin)
	last := task.ID(len(p.Items) - 1)
	g.event(apply.Event{Type: "start", Task: last, Time: after(1)})
	g.event(apply.Event{Type: "end", Task: last, Phase: "failed", Detail: "exit\x1b[2J 3", Data: []byte("one\x1b]0;title\x07\r\n"),
		Record: &task.Record{Outcome: task.Outcome{Status: task.Failed}}, Time: after(8)})
	g.close()
	for _, sequence := range []string{"\x1b[2J", "\x1b]0", "\x07", "\r"} {
		if strings.Contains(b.String(), sequence) {
			t.Errorf("the terminal is sent %q", sequence)
		}
	}
	if !strings.Contains(b.String(), "one") || !strings.Contains(b.String(), "\x1b[31mfailed") {
		t.Errorf("got %q", b.String())
	}
	for _, l := range strings.Split(b.String(), "\n") {
		if strings.Contains(l, "running") && shownWidth(l) >= 20 {
			t.Errorf("a line of the frame is wider than the terminal: %q", l)
		}
	}
}

// What an apply says in the end is coloured as the stream is that it goes to.
func TestSummaryColour(t *testing.T) {
	var out, err bytes.Buffer
	v := &view{out: &out, err: &err, errColor: true}
	if w, color := v.summary(); w != &out || color {
		t.Errorf("on stdout: colour %v", color)
	}
	v.json = true
	if w, color := v.summary(); w != &err || !color {
		t.Errorf("beside a stream: colour %v", color)
	}
}
