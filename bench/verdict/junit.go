package verdict

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
)

// A junitCase is one <testcase>.
type junitCase struct {
	class, name string
	result      Result
	collection  bool // pytest could not import the file
}

// id is the canonical id of a testcase: CLASSNAME::NAME. A classname that is neither dotted nor a path gets a dot in front, so that the id means it
// alone and no class of that name in some package; so does one that begins with a dot.
func (c *junitCase) id() string {
	if strings.ContainsAny(c.class, "./") && c.class[0] != '.' {
		return c.class + "::" + c.name
	}
	return "." + c.class + "::" + c.name
}

// parseJUnit reads every report. Suites may nest, or be absent; properties and captured output are not looked into.
func parseJUnit(in Input) suite {
	var su suite
	x := junitIndex{canonical: map[string][]int{}, exact: map[string][]int{}, loose: map[string][]int{}}
	for _, path := range slices.Sorted(maps.Keys(in.Reports)) {
		cases, err := readJUnit(in.Reports[path])
		if err != nil {
			su.broken = fmt.Sprintf("report %s cannot be read: %v", path, err)
			return su
		}
		for i := range cases {
			c := &cases[i]
			c.class, c.name = strings.TrimPrefix(plain(c.class, in.Workspace), "./"), plain(c.name, in.Workspace)
			if c.collection {
				module := strings.TrimPrefix(strings.TrimPrefix(c.class+"."+c.name, "."), ".")
				su.buildFailed = append(su.buildFailed, module)
				su.outside = append(su.outside, module+" [build failed]")
				continue
			}
			x.add(len(su.tests), c)
			su.tests = append(su.tests, found{c.id(), c.result})
		}
	}
	if len(in.Unwritten) > 0 {
		su.unwritten = "no report was written to " + some(in.Unwritten)
	}
	slices.Sort(su.buildFailed)
	su.buildFailed = slices.Compact(su.buildFailed)
	su.lookup = x.lookup
	su.compiled(in)
	return su
}

// readJUnit returns the testcases of one report. Bytes that XML does not allow, which tests do print, are replaced.
func readJUnit(report []byte) ([]junitCase, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.Map(allowedInXML, report)))
	d.CharsetReader = func(charset string, r io.Reader) (io.Reader, error) { return latin1(charset, r) }
	var cases []junitCase
	var current *junitCase
	depth, inside, seen := 0, 0, false
	for {
		tok, err := d.RawToken()
		if err == io.EOF && seen && depth == 0 {
			return cases, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			depth++
			switch {
			case depth == 1 && !isSuite(t.Name.Local) && t.Name.Local != "testcase":
				return nil, fmt.Errorf("it is <%s>, not a JUnit report", t.Name.Local)
			case current == nil && t.Name.Local == "testcase":
				current, inside = newCase(t.Attr), depth
			case current != nil && depth == inside+1:
				current.child(t)
			}
			seen = true
		case xml.EndElement:
			if depth == 0 {
				return nil, fmt.Errorf("an element is closed that was not open")
			}
			if current != nil && depth == inside {
				if current.result == "" {
					current.result = Passed
				}
				cases, current = append(cases, *current), nil
			}
			depth--
		}
	}
}

func isSuite(name string) bool { return name == "testsuite" || name == "testsuites" }

func allowedInXML(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
		return '\uFFFD'
	}
	return r
}

// latin1 reads the one other encoding that old writers declare; everything else has to be UTF-8.
func latin1(charset string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "us-ascii", "ascii":
		return r, nil
	case "iso-8859-1", "latin1", "windows-1252":
		b, err := io.ReadAll(r)
		return bytes.NewReader(b), err // bytes.Map has already replaced what is not UTF-8
	}
	return nil, fmt.Errorf("encoding %q is not read", charset)
}

func newCase(attrs []xml.Attr) *junitCase {
	c := &junitCase{}
	for _, a := range attrs {
		switch a.Name.Local {
		case "classname":
			c.class = a.Value
		case "name":
			c.name = a.Value
		case "status", "result": // gtest, ctest
			switch a.Value {
			case "notrun", "disabled", "skipped", "suppressed":
				c.result = Skipped
			case "fail", "failed":
				c.result = Failed
			}
		}
	}
	return c
}

// child reads what stands inside a testcase. A failure weighs more than a skip, a skip more than a try that failed before one that passed.
func (c *junitCase) child(t xml.StartElement) {
	r := Result("")
	switch t.Name.Local {
	case "failure", "error":
		r = Failed
		for _, a := range t.Attr {
			c.collection = c.collection || t.Name.Local == "error" && a.Name.Local == "message" && a.Value == "collection failure"
		}
	case "skipped", "ignored", "disabled":
		r = Skipped
	case "rerun", "rerunFailure", "rerunError", "flakyFailure", "flakyError":
		r = Rerun
	}
	switch {
	case r == "":
	case c.result == "":
		c.result = r
	default:
		c.result = worst(c.result, r)
	}
}

// A junitIndex finds testcases by what an id may say of them.
type junitIndex struct {
	canonical map[string][]int
	exact     map[string][]int // CLASSNAME::NAME, the whole classname
	loose     map[string][]int // NAME; LAST::NAME, the last part of the classname
	cut       []form           // exact and loose, sorted, made when an id first needs it
}

type form struct {
	text string
	i    int
}

func (x *junitIndex) add(i int, c *junitCase) {
	x.canonical[c.id()] = append(x.canonical[c.id()], i)
	whole := c.class + "::" + c.name
	x.exact[whole] = append(x.exact[whole], i)
	x.loose[c.name] = append(x.loose[c.name], i)
	if last := c.class[strings.LastIndexByte(c.class, '.')+1:]; last != c.class {
		x.loose[last+"::"+c.name] = append(x.loose[last+"::"+c.name], i)
	} else {
		x.loose[whole] = append(x.loose[whole], i)
	}
}

// lookup finds what an id means: a classname as it stands, even if it is a path, before all; then path::Class::name and .classname::name exactly;
// Class::name and name wherever they occur.
func (x *junitIndex) lookup(id string) []int {
	exact, only := dottedID(id), isPathID(id) || strings.HasPrefix(id, ".")
	if hits := x.canonical[id]; len(hits) > 0 {
		return hits
	}
	if hits := x.exact[id]; only && len(hits) > 0 {
		return hits
	}
	hits := slices.Clone(x.exact[exact])
	if !only {
		hits = append(hits, x.loose[id]...)
	}
	if len(hits) == 0 && isCut(id) {
		hits = append(x.prefix("="+exact), x.prefix("="+id)...)
		if !only {
			hits = append(hits, x.prefix("~"+id)...)
		}
	}
	slices.Sort(hits)
	return slices.Compact(hits)
}

// isCut says that an id was cut inside the brackets of its parameters, as ids of SWE-bench are, at the first blank.
func isCut(id string) bool { return strings.Contains(id, "[") && !strings.HasSuffix(id, "]") }

// prefix finds what begins with a cut id. More than two do not matter: the id is ambiguous then.
func (x *junitIndex) prefix(p string) []int {
	if x.cut == nil {
		for text, is := range x.exact {
			x.cut = append(x.cut, form{"=" + text, is[0]})
		}
		for text, is := range x.loose {
			for _, i := range is {
				x.cut = append(x.cut, form{"~" + text, i})
			}
		}
		slices.SortFunc(x.cut, func(a, b form) int { return strings.Compare(a.text, b.text) })
	}
	from := sort.Search(len(x.cut), func(i int) bool { return x.cut[i].text >= p })
	var hits []int
	for _, f := range x.cut[from:] {
		if !strings.HasPrefix(f.text, p) || len(hits) > 1 {
			break
		}
		hits = append(hits, f.i)
	}
	return hits
}

// isPathID says that an id begins with the path of a file: tests/test_x.py::TestA::test_b.
func isPathID(id string) bool {
	file, _, ok := strings.Cut(beforeParameters(id), "::")
	return ok && !strings.HasPrefix(file, ".") && (strings.Contains(file, "/") || path.Ext(file) == ".py")
}

// beforeParameters is the part of an id in which "::" separates.
func beforeParameters(id string) string {
	before, _, _ := strings.Cut(id, "[")
	return before
}

// dottedID is CLASSNAME::NAME for an id in any exact form: tests/test_x.py::TestA::test_b is tests.test_x.TestA::test_b.
func dottedID(id string) string {
	if !isPathID(id) {
		return strings.TrimPrefix(id, ".")
	}
	before := beforeParameters(id)
	file, rest, _ := strings.Cut(before, "::")
	file = strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ".")
	class, name := "", rest
	if i := strings.LastIndex(rest, "::"); i >= 0 {
		class, name = "."+strings.ReplaceAll(rest[:i], "::", "."), rest[i+2:]
	}
	return file + class + "::" + name + id[len(before):]
}
