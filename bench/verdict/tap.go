package verdict

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxTAPDepth bounds how deep subtests nest: a description path repeats what stands above it.
const maxTAPDepth = 32

// maxTAPID bounds an id, so that a long name above many points cannot make the result much larger than the log.
const maxTAPID = 1024

func cutTAP(id string) string {
	if len(id) <= maxTAPID {
		return id
	}
	return strings.ToValidUTF8(id[:maxTAPID], "") // no half of a letter
}

// A tapPoint is one test point: a leaf, or a subtest with points below it.
type tapPoint struct {
	name   string
	result Result
	below  []*tapPoint
	yaml   tapYAML
}

// tapYAML is what the block below a point tells of node:test: that a file, not a test, failed.
type tapYAML struct{ exitCode, codeFailure bool }

// A tapLevel collects the points at one indentation.
type tapLevel struct {
	points  []*tapPoint
	subtest string // the name of the last "# Subtest: NAME" at this level, for points below it that nothing closes
	planned int
	plan    bool
	seen    int       // points that are its own, not of a subtest that nothing closed
	brace   *tapPoint // stands open with " {"
}

// A tapReader reads TAP 13 and 14 line by line: https://testanything.org/tap-version-14-specification.html.
type tapReader struct {
	levels []*tapLevel // by depth; four blanks are one
	inYAML int         // indentation of the open block, or -1
	last   *tapPoint   // the point that a block may follow
	lastAt int         // and its indentation
	bail   string
	doubt  string
	lines  int // that are TAP
}

func parseTAP(in Input) suite {
	r := tapReader{inYAML: -1, levels: []*tapLevel{{}}}
	for line := range bytes.Lines(in.Stdout) {
		text := strings.ToValidUTF8(stripANSI(string(line)), "\uFFFD") // ids are stored as JSON, and must come back as they are
		r.line(strings.TrimRight(text, "\r\n"))
	}
	r.close(0, Passed)
	su := suite{onLog: true, combine: true}
	index := map[string][]int{}
	r.collect(&su, r.levels[0].points, "", in)
	for i, t := range su.tests {
		index[t.id] = append(index[t.id], i)
	}
	su.lookup = func(id string) []int { return index[cutTAP(id)] }
	slices.Sort(su.buildFailed)
	su.compiled(in)
	top := r.levels[0]
	switch {
	case r.bail != "":
		su.outside = append(su.outside, "Bail out! "+r.bail)
		su.doubt = "the run bailed out: " + r.bail
	case r.lines == 0 && len(su.buildFailed) == 0 && len(bytes.TrimSpace(in.Stdout)) > 0:
		su.broken = "stdout holds no TAP"
	case top.plan && top.planned != top.seen:
		su.doubt = "the plan " + top.differs()
	case r.doubt != "":
		su.doubt = r.doubt
	case !top.plan && len(top.points) > 0:
		su.doubt = "the plan is missing: the run did not come to its end"
	}
	return su
}

func (r *tapReader) line(line string) {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if r.inYAML >= 0 {
		switch {
		case text == "..." && indent <= r.inYAML: // one that is deeper is of a message
			r.inYAML = -1
			return
		case text == "" || indent >= r.inYAML:
			r.yaml(text)
			return
		}
		r.inYAML = -1
	}
	if text == "---" && r.last != nil && indent > r.lastAt {
		r.inYAML = indent
		return
	}
	depth := min(indent/4, maxTAPDepth)
	switch {
	case strings.HasPrefix(text, "ok") || strings.HasPrefix(text, "not ok"):
		if p := readPoint(text); p != nil && !r.sums(text, depth) {
			r.lines++
			r.point(p, depth, indent)
		}
	case strings.HasPrefix(text, "# Subtest: "):
		r.lines++
		r.level(depth).subtest = unescapeTAP(text[len("# Subtest: "):])
		r.last = nil
	case strings.HasPrefix(text, "1.."):
		r.plan(text[3:], depth)
	case strings.HasPrefix(text, "Bail out!"):
		r.lines++
		r.bail = strings.TrimSpace(text[len("Bail out!"):])
		if r.bail == "" {
			r.bail = "(no reason given)"
		}
	case strings.HasPrefix(text, "TAP version "):
		r.lines++
	case text == "}" && r.level(depth).brace != nil:
		r.closeBrace(depth)
	case text != "":
		r.last = nil
	}
}

func (r *tapReader) yaml(text string) {
	switch {
	case strings.HasPrefix(text, "exitCode: "):
		r.last.yaml.exitCode = text != "exitCode: 0"
	case text == "failureType: 'testCodeFailure'":
		r.last.yaml.codeFailure = true
	}
}

func (r *tapReader) level(depth int) *tapLevel {
	for len(r.levels) <= depth {
		r.levels = append(r.levels, &tapLevel{})
	}
	return r.levels[depth]
}

// differs says how far a level is from its plan.
func (l *tapLevel) differs() string {
	return "names " + strconv.Itoa(l.planned) + " tests, and " + strconv.Itoa(l.seen) + " ran"
}

// checkPlan doubts a subtest that ended as r says where its plan does not agree with its points. One that failed may have died on its way.
func (r *tapReader) checkPlan(l *tapLevel, name string, result Result) {
	if result == Passed && l.plan && l.planned != l.seen && r.doubt == "" {
		r.doubt = "the plan of " + cmp.Or(name, "a subtest") + " " + l.differs()
	}
}

// point adds p at depth; the points below it that stand open are its own.
func (r *tapReader) point(p *tapPoint, depth, indent int) {
	level := r.level(depth)
	r.take(p, depth)
	level.points = append(level.points, p)
	level.seen++
	level.subtest, level.brace = "", nil
	if strings.HasSuffix(p.name, " {") {
		level.brace = p
	}
	r.last, r.lastAt = p, indent
}

// closeBrace gives the point that stands open with " {" what came after it (TAP 14, buffered subtests).
func (r *tapReader) closeBrace(depth int) {
	p := r.level(depth).brace
	r.level(depth).brace = nil
	if len(r.levels) > depth+1 {
		p.name = strings.TrimSuffix(p.name, " {")
		r.take(p, depth)
	}
}

// take gives p at depth what stands open below it.
func (r *tapReader) take(p *tapPoint, depth int) {
	r.close(depth+1, p.result)
	if len(r.levels) > depth+1 {
		below := r.levels[depth+1]
		r.checkPlan(below, p.name, p.result)
		p.below = append(p.below, below.points...)
		r.levels = r.levels[:depth+1]
	}
}

// close folds every level below depth into the one above it, under the name that its comment gave: nothing closes them any more. What they are part of
// ended as result says.
func (r *tapReader) close(depth int, result Result) {
	for d := len(r.levels) - 1; d > depth; d-- {
		above, open := r.levels[d-1], r.levels[d].points
		r.checkPlan(r.levels[d], above.subtest, result)
		if len(open) > 0 {
			above.points = append(above.points, &tapPoint{name: above.subtest, below: open, result: Passed})
		}
		r.levels = r.levels[:d]
	}
}

func (r *tapReader) plan(text string, depth int) {
	number, _, _ := strings.Cut(text, "#")
	n, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || n < 0 {
		return
	}
	r.lines++
	level := r.level(depth)
	level.plan = true
	level.planned += n // streams may follow one another
	r.last = nil
}

// sums says whether a line is what prove -v says of a whole file, behind the file's points.
func (r *tapReader) sums(text string, depth int) bool {
	if text != "ok" || depth >= len(r.levels) {
		return false
	}
	l := r.levels[depth]
	return l.plan && l.seen == l.planned
}

// readPoint reads "ok 3 - description # SKIP reason", or returns nil.
func readPoint(text string) *tapPoint {
	p := &tapPoint{result: Passed}
	rest, failed := strings.CutPrefix(text, "not ")
	if failed {
		p.result = Failed
	}
	rest = rest[len("ok"):]
	if rest != "" && rest[0] != ' ' {
		return nil
	}
	rest = strings.TrimLeft(rest, " ")
	if digits := strings.TrimLeft(rest, "0123456789"); digits == "" || digits[0] == ' ' {
		rest = strings.TrimLeft(digits, " ")
	}
	rest = strings.TrimPrefix(rest, "- ")
	name, result := directive(rest)
	p.name, p.result = unescapeTAP(strings.TrimSpace(name)), cmp.Or(result, p.result)
	if name != rest && strings.HasSuffix(rest, " {") { // vitest opens its subtests after the time
		p.name += " {"
	}
	return p
}

// directive cuts a description at its first directive: a # that is not escaped, follows a blank or begins the text, and has skip, todo or a
// time behind it. What a reason holds is no directive; a time may have one after it.
func directive(s string) (name string, r Result) {
	name = s
	for i := range len(s) {
		if s[i] != '#' || i > 0 && s[i-1] != ' ' {
			continue
		}
		begins := func(word string) bool {
			text := strings.TrimLeft(s[i+1:], " ")
			return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word)
		}
		switch before := s[:min(i, len(name))]; {
		case begins("skip"):
			return before, Skipped
		case begins("todo"):
			return before, Todo
		case begins("time="):
			name = before
		}
	}
	return name, ""
}

func unescapeTAP(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\#`, `#`).Replace(s)
}

// stripANSI removes colour codes, which some reporters put around names.
func stripANSI(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		s = strings.TrimLeft(after, "0123456789;:?")
		if s != "" {
			s = s[1:]
		}
	}
}

// collect adds the leaves below prefix. A parent counts only where it failed and nothing below it did: a hook, or a plan of its own.
func (r *tapReader) collect(su *suite, points []*tapPoint, prefix string, in Input) (failed bool) {
	for _, p := range points {
		name := plain(p.name, in.Workspace)
		id := cutTAP(prefix + name)
		if len(p.below) > 0 {
			below := r.collect(su, p.below, id+" > ", in)
			failed = failed || below
			if below || p.result != Failed {
				continue
			}
		}
		if p.result == Failed && len(p.below) == 0 && p.yaml.exitCode && p.yaml.codeFailure && isScript(name) {
			su.buildFailed = append(su.buildFailed, name)
		}
		failed = failed || p.result == Failed
		su.tests = append(su.tests, found{id, p.result})
	}
	return failed
}

// isScript says that node:test named a file, because it could not be loaded or ended badly.
func isScript(name string) bool {
	return slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"}, path.Ext(name))
}
