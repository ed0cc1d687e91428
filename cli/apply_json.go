package cli

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/verdict"
	"pbuild/engine/apply"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// streamVersion is "v" in every line of an event stream.
const streamVersion = 1

// A stream writes an apply as one JSON object a line, each line to all of its writers. The first error ends the writing to that writer and is
// kept: a full disk must not stop tasks whose records fit.
type stream struct {
	full    []io.Writer // every line: stdout of --json, and --json-into
	brief   []io.Writer // all but log lines, which the store holds anyway: the run's own file
	address func(task.ID) string
	seq     int
	ended   bool // it has its summary
	err     error
}

// An eventJSON is one line. Which members it has depends on its type; docs/schema/apply.schema.json says which.
type eventJSON struct {
	V       int    `json:"v"`
	Seq     int    `json:"seq"`
	Time    string `json:"time"`
	Type    string `json:"type"`
	Address string `json:"address,omitempty"`

	// start and retry
	Node    string `json:"node,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Key     string `json:"key,omitempty"` // start

	// log
	Stream string  `json:"stream,omitempty"`
	Data   *string `json:"data,omitempty"`

	// end
	Phase   string        `json:"phase,omitempty"`
	Status  *task.Status  `json:"status,omitempty"`
	Verdict *task.Verdict `json:"verdict,omitempty"`
	Outcome string        `json:"outcome,omitempty"`
	Seconds *float64      `json:"seconds,omitempty"`
	Log     string        `json:"log,omitempty"` // of a failure, which no record keeps: the digest of its log

	Detail string `json:"detail,omitempty"` // end of failed and skipped, retry, state_drift: the cause

	// plan
	Run      *int   `json:"run,omitempty"`
	Maybe    *int   `json:"maybe,omitempty"`
	Reuse    *int   `json:"reuse,omitempty"`
	Unneeded *int   `json:"unneeded,omitempty"`
	RunID    string `json:"run_id,omitempty"`

	Diagnostic *diagnosticJSON `json:"diagnostic,omitempty"`
}

// A summaryJSON is the last line.
type summaryJSON struct {
	V           int      `json:"v"`
	Seq         int      `json:"seq"`
	Time        string   `json:"time"`
	Type        string   `json:"type"`
	Run         int      `json:"run"`
	Reuse       int      `json:"reuse"`
	Restored    int      `json:"restored"`
	Failed      int      `json:"failed"`
	Skipped     int      `json:"skipped"`
	Excluded    int      `json:"excluded"`
	Infra       int      `json:"infra"`
	Provider    int      `json:"provider"`
	Cancelled   int      `json:"cancelled"`
	Flaky       int      `json:"flaky"`
	USD         *float64 `json:"usd"`
	WallSeconds float64  `json:"wall_seconds"`
	Exit        Exit     `json:"exit"`
}

func (s *stream) line(v any, brief bool) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("pbuild bug: an event has no JSON form: " + err.Error())
	}
	b = append(b, '\n')
	s.write(&s.full, b)
	if brief {
		s.write(&s.brief, b)
	}
}

func (s *stream) write(ws *[]io.Writer, b []byte) {
	kept := (*ws)[:0]
	for _, w := range *ws {
		if _, err := w.Write(b); err == nil {
			kept = append(kept, w)
		} else if s.err == nil {
			s.err = err
		}
	}
	*ws = kept
}

func (s *stream) next(kind string, at time.Time) eventJSON {
	s.seq++
	return eventJSON{V: streamVersion, Seq: s.seq, Time: stamp(at), Type: kind}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (s *stream) plan(run string, t plan.Tally, at time.Time) {
	e := s.next("plan", at)
	e.RunID = run
	e.Run, e.Maybe, e.Reuse, e.Unneeded = &t.Run, &t.Maybe, &t.Reuse, &t.Unneeded
	s.line(e, true)
}

func (s *stream) diagnostics(ds decl.Diagnostics, at time.Time) {
	for _, d := range diagnosticsJSON(ds) {
		e := s.next("diagnostic", at)
		e.Diagnostic = &d
		s.line(e, true)
	}
}

// event writes what a reader of the stream is to see of e; reuse, restoring included, is in the summary's counts alone.
func (s *stream) event(e apply.Event) {
	if len(s.full)+len(s.brief) == 0 {
		return
	}
	switch e.Type {
	case "start":
		j := s.next("start", e.Time)
		j.Address, j.Attempt, j.Node, j.Key = s.address(e.Task), e.Attempt, localNode, e.Key.String()
		s.line(j, true)
	case "log":
		if len(s.full) == 0 {
			return
		}
		j := s.next("log", e.Time)
		data := strings.ToValidUTF8(string(e.Data), "�")
		j.Address, j.Stream, j.Data = s.address(e.Task), e.Stream, &data
		s.line(j, false)
	case "end":
		s.end(e)
	case "retry":
		j := s.next("retry", e.Time)
		j.Address, j.Attempt, j.Detail = s.address(e.Task), e.Attempt, e.Detail
		s.line(j, true)
	case "note":
		if e.Code == verdict.FlagStateDrift {
			j := s.next(e.Code, e.Time)
			j.Address, j.Detail = s.address(e.Task), e.Detail
			s.line(j, true)
		}
	}
}

// localNode is the node of tasks that no declared node runs.
const localNode = "local"

func (s *stream) end(e apply.Event) {
	if e.Phase != "done" && e.Phase != "failed" && e.Phase != "skipped" {
		return
	}
	j := s.next("end", e.Time)
	j.Address, j.Phase, j.Detail = s.address(e.Task), e.Phase, e.Detail
	status := e.Status
	if e.Phase == "skipped" && status != task.Cancelled {
		status = ""
	}
	var verdict task.Verdict
	var seconds float64
	if r := e.Record; r != nil {
		verdict, seconds, j.Outcome = r.Verdict, r.Elapsed.Seconds(), r.Outcome.Outcome
		if e.Phase == "failed" && !r.Log.IsZero() {
			j.Log = r.Log.String()
		}
	}
	j.Status, j.Verdict, j.Seconds = &status, &verdict, &seconds
	s.line(j, true)
}

// part ends the run's own file where the apply goes on with another run: for the user's streams there is one summary, of the whole.
func (s *stream) part(sum *apply.Summary, excluded int, at time.Time) {
	file := &stream{brief: s.brief, seq: s.seq}
	file.summary(sum, excluded, ExitDone, at)
	if s.err == nil {
		s.err = file.err
	}
}

func (s *stream) summary(sum *apply.Summary, excluded int, code Exit, at time.Time) {
	s.seq++
	s.ended = true
	s.line(summaryJSON{V: streamVersion, Seq: s.seq, Time: stamp(at), Type: "summary",
		Run: sum.Run, Reuse: sum.Reuse, Restored: sum.Restored, Failed: sum.Failed, Skipped: sum.Skipped, Excluded: excluded,
		Infra: sum.Infra, Provider: sum.Provider, Cancelled: sum.Cancelled, Flaky: sum.Flaky, USD: sum.USD,
		WallSeconds: sum.Wall.Seconds(), Exit: code}, true)
}
