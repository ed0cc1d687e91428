package cli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"pbuild/engine/task"
)

// Selectors are matched on a form of the address in which every separator is a byte of its own, which no text has, so that an id that holds a dot,
// a slash or a comma means itself: TYPE sepDot NAME sepOpen PART sepPart PART sepClose sepStep STEP.
const (
	sepDot byte = iota + 0xf8 // UTF-8 has none of these
	sepOpen
	sepPart
	sepClose
	sepStep
	anyHere   // *: any bytes but separators
	anyAcross // **: any bytes
)

// A pattern is an address with wildcards.
type pattern struct {
	code []byte
	shape
}

// A shape is how much of an address a pattern looks at.
type shape struct {
	index bool // it has [...]
	parts int  // how many parts that index has; 0 where it holds **
	step  bool // it has /STEP
}

// parsePattern reads an address in which quotes may be left out, * matches within a segment and ** across segments, and a backslash makes the next
// character literal, or within quotes begins an escape, as task.Address prints it.
func parsePattern(s string) (*pattern, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("selector %q is not UTF-8", s)
	}
	p := &pattern{}
	const (
		inBlock = iota
		inIndex
		afterIndex
		inStep
	)
	where, quoted, across := inBlock, false, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if r, _, rest, err := strconv.UnquoteChar(s[i:], '"'); quoted && c == '\\' && err == nil {
			p.code = utf8.AppendRune(p.code, r)
			i = len(s) - len(rest) - 1
			continue
		}
		switch {
		case c == '\\' && i+1 < len(s):
			i++
			p.code = append(p.code, s[i])
		case c == '*':
			if i+1 < len(s) && s[i+1] == '*' {
				i++
				p.code = append(p.code, anyAcross)
				across = across || where == inIndex
			} else {
				p.code = append(p.code, anyHere)
			}
		case where == inBlock && c == '.':
			p.code = append(p.code, sepDot)
		case where == inBlock && c == '[':
			where, p.index, p.parts = inIndex, true, 1
			p.code = append(p.code, sepOpen)
		case where == inIndex && c == '"':
			quoted = !quoted
		case where == inIndex && !quoted && c == ',':
			p.parts++
			p.code = append(p.code, sepPart)
		case where == inIndex && !quoted && c == ']':
			where = afterIndex
			p.code = append(p.code, sepClose)
		case (where == inBlock || where == afterIndex) && c == '/':
			where, p.step = inStep, true
			p.code = append(p.code, sepStep)
		case where == afterIndex:
			return nil, fmt.Errorf("selector %q: %q stands after the index", s, s[i:])
		default:
			p.code = append(p.code, c)
		}
	}
	switch {
	case quoted:
		return nil, fmt.Errorf("selector %q: a quote is not closed", s)
	case where == inIndex:
		return nil, fmt.Errorf("selector %q: the index is not closed", s)
	case len(p.code) == 0:
		return nil, fmt.Errorf("a selector is empty")
	}
	if p.index && bytes.Equal(between(p.code, sepOpen, sepClose), []byte("...")) { // as the documentation writes "any index"
		p.code = bytes.Replace(p.code, []byte("..."), []byte{anyAcross}, 1)
		across = true
	}
	if across {
		p.parts = 0
	}
	return p, nil
}

func between(b []byte, open, end byte) []byte {
	_, b, _ = bytes.Cut(b, []byte{open})
	b, _, _ = bytes.Cut(b, []byte{end})
	return b
}

// encode appends the object's address to buf as a pattern of the shape wants to see it: without an index where that has none, and with no more parts than
// that has.
func (s shape) encode(buf []byte, o *task.Object) []byte {
	t, n, _ := strings.Cut(o.Block, ".")
	buf = append(append(append(buf, t...), sepDot), n...)
	if s.index && o.Index != nil {
		buf = append(buf, sepOpen)
		for i, part := range o.Index {
			if s.parts > 0 && i == s.parts {
				break
			}
			if i > 0 {
				buf = append(buf, sepPart)
			}
			buf = append(buf, part...)
		}
		buf = append(buf, sepClose)
	}
	return buf
}

// forms calls f with what a pattern of the shape sees of o, and with the steps from <= i < to that this stands for; buf is scratch memory and is returned
// for the next call.
func (s shape) forms(o *task.Object, buf []byte, f func(form []byte, from, to int)) []byte {
	buf = s.encode(buf[:0], o)
	if !s.step {
		f(buf, 0, len(o.Steps))
		return buf
	}
	n := len(buf)
	for i := range o.Steps {
		if o.Steps[i].Name != "" {
			buf = append(append(buf[:n], sepStep), o.Steps[i].Name...)
			f(buf, i, i+1)
		}
	}
	return buf
}

// matches calls f with every step of o that p means; buf is as for forms.
func (p *pattern) matches(o *task.Object, buf []byte, f func(step int)) []byte {
	return p.forms(o, buf, func(form []byte, from, to int) {
		if glob(p.code, form) {
			for i := from; i < to; i++ {
				f(i)
			}
		}
	})
}

// exact says whether p has no wildcard.
func (p *pattern) exact() bool {
	return !slices.ContainsFunc(p.code, func(c byte) bool { return c == anyHere || c == anyAcross })
}

// means says whether p may mean anything of a block, whatever members and steps it has.
func (p *pattern) means(block string) bool {
	code := p.code
	for i, c := range code {
		if c == sepOpen || c == sepStep {
			code = code[:i]
			break
		}
	}
	return glob(code, p.encode(nil, &task.Object{Block: block}))
}

// glob matches s against a pattern's code. Both are short.
func glob(p, s []byte) bool {
	for len(p) > 0 {
		switch p[0] {
		case anyHere, anyAcross:
			for i := 0; ; i++ {
				if glob(p[1:], s[i:]) {
					return true
				}
				if i == len(s) || p[0] == anyHere && s[i] >= sepDot {
					return false
				}
			}
		default:
			if len(s) == 0 || s[0] != p[0] {
				return false
			}
			p, s = p[1:], s[1:]
		}
	}
	return len(s) == 0
}

// A selector is one argument: a pattern, tag:NAME or kind:KIND, perhaps excluded by a leading "!".
type selector struct {
	text    string
	not     bool
	tag     string
	kind    string
	pattern *pattern
}

// parseSelectors reads arguments; @FILE is replaced by the file's lines, of which empty ones and those that begin with # are left out. A file without any is
// a mistake: no selectors would mean everything.
func (a *app) parseSelectors(args []string) ([]selector, error) {
	var out []selector
	for _, arg := range args {
		lines := []string{arg}
		if file, ok := strings.CutPrefix(arg, "@"); ok {
			b, err := os.ReadFile(a.path(file))
			if err != nil {
				return nil, usagef("selectors: %v", err)
			}
			lines = slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool {
				l = strings.TrimSpace(l)
				return l == "" || l[0] == '#'
			})
			if len(lines) == 0 {
				return nil, usagef("selectors: %s holds none", file)
			}
		}
		for _, l := range lines {
			s, err := parseSelector(strings.TrimSpace(l))
			if err != nil {
				return nil, exitWith(ExitUsage, err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

func parseSelector(text string) (s selector, err error) {
	s.text = text
	rest, not := strings.CutPrefix(text, "!")
	s.not = not
	if tag, ok := strings.CutPrefix(rest, "tag:"); ok {
		s.tag = tag
	} else if kind, ok := strings.CutPrefix(rest, "kind:"); ok {
		s.kind = kind
	} else {
		s.pattern, err = parsePattern(rest)
	}
	if err == nil && s.pattern == nil && s.tag+s.kind == "" {
		err = fmt.Errorf("selector %s names nothing", strconv.Quote(text))
	}
	return s, err
}

// each calls f with every step of o that s names. kind: takes kinds of task and the classes that plan counts by.
func (s *selector) each(g *task.Graph, o *task.Object, buf []byte, f func(step int)) []byte {
	switch {
	case s.tag != "":
		for _, t := range o.Tags {
			if t == s.tag {
				for i := range o.Steps {
					f(i)
				}
				break
			}
		}
	case s.kind != "":
		for i := range o.Steps {
			if string(o.Class) == s.kind || g.Tasks[o.Steps[i].Task].Spec.Kind().Name == s.kind {
				f(i)
			}
		}
	default:
		return s.pattern.matches(o, buf, f)
	}
	return buf
}

// A choice is what selectors chose: for each object the steps, in order. A nil choice is everything.
type choice struct {
	objects []chosen
	tasks   []task.ID // in order, each once
}

type chosen struct {
	object int
	steps  []int
}

// choose applies selectors to a graph, as match does. One that matches nothing is an error.
func choose(g *task.Graph, sel []selector) (*choice, error) {
	c, missed := match(g, sel)
	switch {
	case len(missed) > 0:
		return nil, matchesNothing(g, &missed[0])
	case c != nil && len(c.tasks) == 0:
		return nil, usagef("the selectors exclude everything that they choose")
	}
	return c, nil
}

func matchesNothing(g *task.Graph, s *selector) error {
	return usagef("selector %s matches nothing%s", s.text, suggestSelector(g, s))
}

// match applies selectors to a graph, and returns also those that match nothing. Without any it chooses nil: everything. Selectors that only exclude begin
// with everything.
func match(g *task.Graph, sel []selector) (c *choice, missed []selector) {
	if len(sel) == 0 {
		return nil, nil
	}
	all := !slices.ContainsFunc(sel, func(s selector) bool { return !s.not })
	c = &choice{}
	taken := make([]bool, len(g.Tasks))
	hit := make([]bool, len(sel))
	m := newMatcher(g, sel)
	var in, out []bool
	for i := range g.Objects {
		o := &g.Objects[i]
		in = append(in[:0], make([]bool, len(o.Steps))...)
		out = append(out[:0], make([]bool, len(o.Steps))...)
		m.each(o, func(j, step int) {
			hit[j] = true
			if sel[j].not {
				out[step] = true
			} else {
				in[step] = true
			}
		})
		one := chosen{object: i}
		for k := range in {
			if (in[k] || all) && !out[k] {
				one.steps = append(one.steps, k)
				if id := o.Steps[k].Task; !taken[id] {
					taken[id] = true
					c.tasks = append(c.tasks, id)
				}
			}
		}
		if one.steps != nil {
			c.objects = append(c.objects, one)
		}
	}
	for j := range sel {
		if !hit[j] {
			missed = append(missed, sel[j])
		}
	}
	return c, missed
}

// A matcher finds which of many selectors mean an object's steps. Those without wildcards may be as many as there are tasks: one look-up for each shape
// finds them.
type matcher struct {
	g     *task.Graph
	sel   []selector
	exact map[shape]map[string][]int // by code
	rest  []int
	buf   []byte
}

func newMatcher(g *task.Graph, sel []selector) *matcher {
	m := &matcher{g: g, sel: sel, exact: map[shape]map[string][]int{}}
	for j := range sel {
		p := sel[j].pattern
		if p == nil || !p.exact() {
			m.rest = append(m.rest, j)
			continue
		}
		if m.exact[p.shape] == nil {
			m.exact[p.shape] = map[string][]int{}
		}
		m.exact[p.shape][string(p.code)] = append(m.exact[p.shape][string(p.code)], j)
	}
	return m
}

// each calls f with every selector that means anything of o, and each step that it means.
func (m *matcher) each(o *task.Object, f func(j, step int)) {
	for s, codes := range m.exact {
		m.buf = s.forms(o, m.buf, func(form []byte, from, to int) {
			for _, j := range codes[string(form)] {
				for i := from; i < to; i++ {
					f(j, i)
				}
			}
		})
	}
	for _, j := range m.rest {
		m.buf = m.sel[j].each(m.g, o, m.buf, func(step int) { f(j, step) })
	}
}

// resolve finds the one task that an address means: of an object its last step.
func resolve(g *task.Graph, addr string) (o *task.Object, step int, err error) {
	s, err := parseSelector(addr)
	if err != nil {
		return nil, 0, exitWith(ExitUsage, err)
	}
	if s.pattern == nil || s.not {
		return nil, 0, usagef("%s is a selector, not an address", addr)
	}
	var buf []byte
	var names []string
	n := 0
	for i := range g.Objects {
		last := -1
		buf = s.pattern.matches(&g.Objects[i], buf, func(k int) {
			if last >= 0 && s.pattern.step {
				n++
			}
			last = k
		})
		if last < 0 {
			continue
		}
		one := &g.Objects[i]
		if named := one.Address(last); !s.pattern.exact() && (named.String() == addr || (task.Address{Block: named.Block, Index: named.Index}).String() == addr) { // an id may hold a star
			return one, last, nil
		}
		if o == nil || s.pattern.step || o.Block != one.Block || !slices.Equal(o.Index, one.Index) { // a report has an object for each of its files
			if n++; len(names) < 3 {
				names = append(names, address(one, last))
			}
		}
		o, step = one, last
	}
	switch {
	case n == 0:
		return nil, 0, usagef("no task has the address %s%s", addr, suggestSelector(g, &s))
	case n > 1:
		if n > len(names) {
			names = append(names, "...")
		}
		return nil, 0, usagef("%s names %d tasks (%s); name one of them", addr, n, strings.Join(names, ", "))
	}
	return o, step, nil
}

// address is the text of a step's address.
func address(o *task.Object, step int) string { return o.Address(step).String() }
