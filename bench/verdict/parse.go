package verdict

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// found is one result that a run reported, under the canonical id of its test.
type found struct {
	id     string
	result Result
}

// A suite is what a parser made of a run.
type suite struct {
	tests       []found
	lookup      func(id string) []int // which of tests an expected id means; canonical ids that differ make it ambiguous
	combine     bool                  // equal ids are one test: any failure fails it
	buildFailed []string              // sorted
	setupFailed []string
	culprits    []string
	outside     []string          // failures that are no test's own, as OtherFailures names them
	doubt       string            // why the report contradicts itself, although each result may be well
	doubts      map[string]string // the same for one directory of Go tests
	broken      string            // why nothing can be read from it
	why         string            // what explains that no test ran, after a semicolon
	unwritten   string            // which reports are missing that may hold results
	onLog       bool              // it was read from the log, which may be cut
	exit        string            // the exit status and what it means
}

// Parse reads one run. Expected, where it is not nil, is what a gate derived, and stands for the spec's empty lists.
// Every format but exit needs at least one expected id, or Derive: then a gate is about to derive them.
func Parse(spec *kind.ScoreSpec, in Input, expected *Expected) Score {
	s := parse(spec, in, expected)
	if in.OutOfMem && s.Verdict != task.Pass {
		s.Detail += "; it met its memory limit"
	}
	return s
}

func parse(spec *kind.ScoreSpec, in Input, expected *Expected) Score {
	s := Score{Format: spec.Format, Exit: in.Exit, TimedOut: in.TimedOut, Truncated: in.Truncated}
	if spec.Format == "exit" {
		s.judgeExit(in)
		return s
	}
	var su suite
	switch {
	case len(in.Refused) > 0 && spec.Format == "junit":
		path := slices.Min(slices.Collect(maps.Keys(in.Refused)))
		su.broken = fmt.Sprintf("report %s was refused: %s", path, in.Refused[path])
	case spec.Format == "gotest":
		su = parseGoTest(in, spec.Command)
	case spec.Format == "junit":
		su = parseJUnit(in)
	case spec.Format == "tap":
		su = parseTAP(in)
	default:
		su.broken = fmt.Sprintf("no parser for format %q", spec.Format)
	}
	su.exit = exitSays(in)
	s.BuildFailed, s.SetupFailed, s.Culprits = su.buildFailed, su.setupFailed, su.culprits
	s.match(&su, in, spec, expected)
	s.judge(&su, spec.Derive)
	return s
}

// judgeExit is the exit format's rule.
func (s *Score) judgeExit(in Input) {
	switch {
	case s.TimedOut != "":
		s.fail(TimedOut, "the "+s.TimedOut+" limit was reached")
	case s.Exit == 0:
		s.Verdict = task.Pass
	default:
		s.fail(NonzeroExit, exitSays(in))
	}
}

// exitSays tells what a status of 126 or 127 means: what pbuild complained of, if that is all that was written, else what it means to a shell. Code
// under test can cause it, as by a program that only the fix brings.
func exitSays(in Input) string {
	if in.Exit != 126 && in.Exit != 127 {
		return fmt.Sprintf("exit %d", in.Exit)
	}
	why := "the command or one of its libraries could not be started"
	if said, ok := strings.CutPrefix(strings.TrimSpace(string(in.Stderr)), "pbuild: "); ok && len(in.Stdout) == 0 && !strings.Contains(said, "\n") {
		why = said
	}
	return fmt.Sprintf("exit %d: %s", in.Exit, why)
}

func (s *Score) fail(r Reason, detail string) {
	s.Verdict, s.Reason, s.Detail = task.Fail, r, oneLine(detail)
	if r == TimedOut {
		s.Verdict = task.Timeout
	}
}

// everything stands in BuildFailed where a compiler stopped the run before any test: with javac or cargo one file that does not compile blocks all.
const everything = "*"

// compilerErrors are what Maven, Gradle and cargo print then.
var compilerErrors = []string{"COMPILATION ERROR", "Compilation failed; see the compiler", "error: could not compile `"}

// compiled notes that nothing was reported because nothing compiled.
func (su *suite) compiled(in Input) {
	if len(su.tests)+len(su.buildFailed) > 0 || in.Exit == 0 {
		return
	}
	for _, text := range compilerErrors {
		for _, stream := range [][]byte{in.Stdout, in.Stderr} {
			if bytes.Contains(stream, []byte(text)) {
				su.buildFailed, su.outside = []string{everything}, []string{everything + " [build failed]"}
				return
			}
		}
	}
}

// match gives every expected id its result, and counts and names the rest. Ids that a gate derived are canonical.
func (s *Score) match(su *suite, in Input, spec *kind.ScoreSpec, derived *Expected) {
	groups, order := group(su)
	f2p, p2p := spec.FailToPass, spec.PassToPass
	means := func(id string) (canonical string, hits []string) {
		canonical = normalize(s.Format, id, in)
		return canonical, su.hits(canonical)
	}
	if derived != nil {
		f2p, p2p = derived.FailToPass, derived.PassToPass
		means = func(id string) (canonical string, hits []string) {
			if _, ok := groups[id]; ok {
				hits = []string{id}
			}
			return id, hits
		}
	}
	expected := map[string]bool{} // canonical ids that an expected id means
	resolve := func(ids []string) []TestResult {
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		out := make([]TestResult, 0, len(ids))
		for _, id := range ids {
			r := Absent
			if canonical, hits := means(id); len(hits) > 1 {
				r = Ambiguous
			} else if len(hits) == 1 {
				expected[hits[0]] = true
				r = groups[hits[0]]
			} else if s.unbuilt(canonical) {
				r = Unbuilt
			}
			out = append(out, TestResult{id, r})
		}
		return out
	}
	s.FailToPass, s.PassToPass = resolve(f2p), resolve(p2p)
	for _, t := range s.Expected() {
		s.Total++
		if t.Result == Passed {
			s.Passed++
		}
	}
	for _, id := range order {
		r := groups[id]
		s.Counts.add(r)
		if spec.Derive {
			s.Found = append(s.Found, TestResult{id, r})
		}
		if r == Failed && !expected[id] {
			s.OtherFailures = append(s.OtherFailures, id)
		}
	}
	dirs := map[string]bool{} // that hold an expected id
	for id := range expected {
		dirs[goDir(id)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(su.doubts)) {
		if su.doubt == "" && (spec.Derive || dirs[dir]) {
			su.doubt = su.doubts[dir]
		}
	}
	s.OtherFailures = append(s.OtherFailures, su.outside...)
	slices.Sort(s.OtherFailures)
	s.OtherFailed = len(s.OtherFailures)
	s.OtherFailures = s.OtherFailures[:min(s.OtherFailed, maxOther)]
}

func (c *Counts) add(r Result) {
	switch r {
	case Passed:
		c.Passed++
	case Failed:
		c.Failed++
	case Skipped, Todo:
		c.Skipped++
	default:
		c.Other++
	}
}

// group gives each canonical id one result, and lists the ids in order.
func group(su *suite) (map[string]Result, []string) {
	groups := make(map[string]Result, len(su.tests))
	var order []string
	for _, t := range su.tests {
		have, again := groups[t.id]
		switch {
		case !again:
			groups[t.id] = t.result
			order = append(order, t.id)
		case have == Failed && t.result == Failed:
		case su.combine:
			groups[t.id] = worst(have, t.result)
		default:
			groups[t.id] = Duplicate
		}
	}
	slices.Sort(order)
	return groups, order
}

// worst combines two results of what is one test: any failure fails, and what was not run cannot pass.
func worst(a, b Result) Result {
	rank := func(r Result) int { return slices.Index([]Result{Failed, Rerun, Skipped, Todo, Passed}, r) }
	return slices.MinFunc([]Result{a, b}, func(x, y Result) int { return cmp.Compare(rank(x), rank(y)) })
}

// hits are the canonical ids that an expected id means, each once.
func (su *suite) hits(id string) []string {
	if su.lookup == nil {
		return nil
	}
	var ids []string
	for _, i := range su.lookup(id) {
		if !slices.Contains(ids, su.tests[i].id) {
			if ids = append(ids, su.tests[i].id); len(ids) > 1 {
				break // ambiguous, however many more there are
			}
		}
	}
	return ids
}

// judge is the rule of passing: every expected id has exactly one result and it is pass, and the exit agrees.
func (s *Score) judge(su *suite, derive bool) {
	failed := slices.Clone(su.outside) // each result counts, whether or not its test has others
	for _, t := range su.tests {
		if t.result == Failed {
			failed = append(failed, t.id)
		}
	}
	switch {
	case s.TimedOut != "":
		s.fail(TimedOut, "the "+s.TimedOut+" limit was reached")
	case su.broken != "":
		s.fail(ToolError, su.broken)
	case s.Total == 0 && !derive:
		s.fail(ToolError, "no id is expected")
	case s.Truncated && su.onLog && !s.has(Failed, Unbuilt):
		s.fail(ToolError, "output_truncated: the log that holds the results was cut at its limit")
	case s.Exit == 0 && len(failed) > 0:
		s.fail(ReportMismatch, "exit 0, but the report has failures: "+some(sortedSet(failed)))
	case s.judgeIDs(su):
	case s.Counts.Passed == 0:
		s.fail(NoTests, cmp.Or(su.unwritten, "no test passed")+", "+su.exit)
	case su.doubt != "":
		s.fail(ReportMismatch, su.doubt)
	case s.Exit != 0 && len(failed) == 0:
		s.fail(ReportMismatch, fmt.Sprintf("exit %d, but no test of the report failed", s.Exit))
	default:
		s.Verdict = task.Pass
	}
}

// judgeIDs fails the score for the first kind of result, in the order of what tells most, that is no pass.
func (s *Score) judgeIDs(su *suite) bool {
	if s.Counts == (Counts{}) && s.Total > 0 && !s.has(Unbuilt) {
		s.fail(NoTests, fmt.Sprintf("%s, %s%s", cmp.Or(su.unwritten, "no test ran"), su.exit, su.why))
		return true
	}
	for _, c := range []struct {
		result Result
		reason Reason
		verb   string
	}{
		{Ambiguous, AmbiguousID, "more than one test is meant by"},
		{Duplicate, DuplicateID, "more than one result of"},
		{Failed, FailedTest, "failed:"},
		{Rerun, FailedTest, "failed, and passed only when run again:"},
		{Unbuilt, BuildFailed, "did not build:"},
		{Absent, MissingTest, "no result of"},
		{Skipped, SkippedTest, "skipped:"},
		{Todo, SkippedTest, "marked as still to do:"},
	} {
		if s.has(c.result) {
			detail := c.verb + " " + s.names(c.result)
			if c.result == Absent {
				detail += su.came(s.firstAbsent())
				if su.unwritten != "" {
					detail += "; " + su.unwritten
				}
			}
			s.fail(c.reason, detail)
			return true
		}
	}
	return false
}

// firstAbsent is the first expected id that has no result.
func (s *Score) firstAbsent() string {
	for _, t := range s.Expected() {
		if t.Result == Absent {
			return t.ID
		}
	}
	return ""
}

// came says which ids had results instead of an expected one: some that end in the same name, or how many there are.
func (su *suite) came(id string) string {
	var alike, all []string
	for _, t := range su.tests {
		all = append(all, t.id)
		if lastName(t.id) == lastName(id) {
			alike = append(alike, t.id)
		}
	}
	if len(alike) > 0 {
		slices.Sort(alike)
		return "; there is " + some(slices.Compact(alike))
	}
	slices.Sort(all)
	return fmt.Sprintf("; ids with a result: %d", len(slices.Compact(all)))
}

// lastName is what follows the last separator of any format in an id.
func lastName(id string) string { return id[strings.LastIndexAny(id, ":/.> ")+1:] }

func (s *Score) has(results ...Result) bool {
	is := func(t TestResult) bool { return slices.Contains(results, t.Result) }
	return slices.ContainsFunc(s.FailToPass, is) || slices.ContainsFunc(s.PassToPass, is)
}

// names lists some of the expected ids with result r.
func (s *Score) names(r Result) string {
	var ids []string
	for _, t := range s.Expected() {
		if t.Result == r {
			ids = append(ids, t.ID)
		}
	}
	return some(ids)
}

// some names the first ids, and how many more there are.
func some(ids []string) string {
	const most = 3
	if len(ids) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return strings.Join(ids, ", ")
}

// unbuilt says whether the package or file that holds id failed to build. A tap id does not name its file, so any file that failed to load may hold it.
func (s *Score) unbuilt(id string) bool {
	if len(s.BuildFailed)+len(s.SetupFailed) == 0 {
		return false
	}
	switch s.Format {
	case "gotest":
		dir := goDir(id)
		return slices.Contains(s.BuildFailed, dir) || slices.Contains(s.SetupFailed, dir)
	case "junit":
		dotted := dottedID(id)
		return slices.ContainsFunc(s.BuildFailed, func(m string) bool {
			return m == everything || strings.HasPrefix(dotted, m+".") || strings.HasPrefix(dotted, m+"::")
		})
	}
	return true
}

// oneLine makes text of a run fit for one line of a table: control characters gone, 300 bytes at most.
func oneLine(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most-3], "") + "..."
	}
	return s
}
