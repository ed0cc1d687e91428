package rows

import (
	"errors"
	"strings"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
)

// jsonFile is what the rows of one JSON text share.
type jsonFile struct {
	name string
	text string
	key  string
	swe  bool
}

// jsonRow is one object of the text.
type jsonRow struct {
	file     *jsonFile
	from, to int
	line     int
	id       string // the row's key in an object keyed by identity, else ""
}

func (r *jsonRow) Pos() (string, int) { return r.file.name, r.line }

func (r *jsonRow) Digest() digest.Digest {
	var e digest.Encoder
	e.String("row", "json")
	e.Bool("lists", r.file.swe)
	e.String("id", r.id)
	e.String("text", r.file.text[r.from:r.to])
	return e.Sum()
}

func (r *jsonRow) Value(column string) any {
	raw := r.raw(column)
	switch {
	case raw == "":
		if r.id != "" && column == r.file.key {
			return r.id
		}
		return nil
	case raw[0] == '"':
		s := unescape(raw[1 : len(raw)-1])
		if r.file.swe && isList(column) {
			return listValue(s)
		}
		return s
	}
	return decode(raw)
}

func (r *jsonRow) Bytes(column string) ([]byte, bool) {
	raw := r.raw(column)
	if raw == "" && r.id != "" && column == r.file.key {
		return []byte(r.id), true
	}
	if raw == "" || raw[0] != '"' {
		return nil, false
	}
	return []byte(unescape(raw[1 : len(raw)-1])), true
}

// decode is the value of a checked text.
func decode(raw string) any {
	switch raw[0] {
	case 'n':
		return nil
	case 't':
		return true
	case 'f':
		return false
	case '"':
		return unescape(raw[1 : len(raw)-1])
	case '[':
		list := []any{}
		for i := skipSpace(raw, 1); raw[i] != ']'; {
			from := i
			i = skipValue(raw, i)
			list = append(list, decode(raw[from:i]))
			i = nextItem(raw, i)
		}
		return list
	case '{':
		object := map[string]any{}
		for i := skipSpace(raw, 1); raw[i] != '}'; {
			end := skipString(raw, i)
			from := skipSpace(raw, skipSpace(raw, end)+1) // past the colon
			key := unescape(raw[i+1 : end-1])
			i = skipValue(raw, from)
			object[key] = decode(raw[from:i])
			i = nextItem(raw, i)
		}
		return object
	}
	n, ok := decl.ParseNumber(raw)
	if !ok {
		panic("pbuild bug: a checked number does not parse: " + raw)
	}
	return n
}

// nextItem passes over what stands between two items, or an item and the end.
func nextItem(s string, i int) int {
	if i = skipSpace(s, i); s[i] == ',' {
		i = skipSpace(s, i+1)
	}
	return i
}

// raw returns the text of a column's value, "" if the row lacks it. The text is known to be well-formed, so that this only finds its way.
func (r *jsonRow) raw(column string) string {
	s := r.file.text[:r.to]
	i := skipSpace(s, r.from+1)
	for s[i] == '"' {
		end := skipString(s, i)
		key := s[i+1 : end-1]
		i = skipSpace(s, end) + 1 // the colon
		i = skipSpace(s, i)
		from := i
		i = skipValue(s, i)
		if key == column || strings.IndexByte(key, '\\') >= 0 && unescape(key) == column {
			return s[from:i]
		}
		i = nextItem(s, i)
	}
	return ""
}

func skipSpace(s string, i int) int {
	for s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r' {
		i++
	}
	return i
}

// skipString returns the offset after the string that begins at i.
func skipString(s string, i int) int {
	for i++; ; {
		j := i + strings.IndexByte(s[i:], '"')
		if k := strings.IndexByte(s[i:j], '\\'); k >= 0 {
			i += k + 2
			continue
		}
		return j + 1
	}
}

// skipValue returns the offset after the value that begins at i.
func skipValue(s string, i int) int {
	depth := 0
	for {
		switch s[i] {
		case '"':
			if i = skipString(s, i); depth == 0 {
				return i
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			i++
			if depth--; depth == 0 {
				return i
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
		default: // a number or a word
			for i < len(s) && strings.IndexByte(",]} \t\n\r", s[i]) < 0 {
				i++
			}
			if depth == 0 {
				return i
			}
		}
	}
}

// jsonLines reads one object a line.
func (p *parser) jsonLines() {
	file := &jsonFile{p.o.Name, p.text, p.o.Key, p.swe}
	n := strings.Count(p.text, "\n") + 1
	rows := make([]jsonRow, 0, n) // never grows: p.rows point into it
	p.rows, p.lines = make([]keyed, 0, n), make([]int, 0, n)
	p.seen = make(map[string]int, n)
	o := objects{p: p, c: scanner{s: p.text}}
	if o.c.peek() == '[' {
		remedy := "Declare `format = \"json\"`"
		if p.swe {
			remedy = "Give it a name that ends in .json"
		}
		p.errorAt(o.c.i, "Row is not an object", "The file is a JSON list. %s, or write one object a line.", remedy)
		return
	}
	for line, from := 1, 0; from < len(p.text) && !p.full(); line++ {
		to := len(p.text)
		if i := strings.IndexByte(p.text[from:], '\n'); i >= 0 {
			to = from + i
		}
		o.c.s, o.c.i = p.text[:to], from
		from = to + 1
		if o.c.space(); o.c.i == to {
			continue
		}
		start := o.c.i
		if !o.scan() {
			continue
		}
		end := o.c.i
		if o.c.peek(); o.c.i < to {
			p.errorAt(o.c.i, "Invalid JSON", "One object a line was expected; %s follows it. A file that holds one JSON array is of the format json.", o.c.found())
			continue
		}
		if key, ok := o.identity(line); ok {
			rows = append(rows, jsonRow{file: file, from: start, to: end, line: line})
			p.add(key, line, &rows[len(rows)-1])
		}
	}
}

// objects checks row after row, and knows the columns of the last.
type objects struct {
	p        *parser
	c        scanner
	shape    []string // the columns of the row before
	cur      []string // those of this one
	from, to int      // the value of the key column; from < 0: it has none
}

// scan passes over one row, and says whether it is well.
func (o *objects) scan() bool {
	if o.c.peek() != '{' {
		o.p.errorAt(o.c.i, "Row is not an object", "A row is a JSON object, such as {\"id\": \"a\"}; here stands %s.", o.c.found())
		return false
	}
	start := o.c.i
	o.c.deep, o.c.keys, o.cur, o.from = 0, o.c.keys[:0], o.cur[:0], -1
	if err := o.c.object(o.member); err != nil {
		o.p.syntax(err)
		return false
	}
	if o.sameShape() {
		return true
	}
	if k, ok := duplicate(o.cur); ok {
		o.p.errorAt(start, "Duplicate column", "The row has the column %q twice.", k)
		return false
	}
	o.p.columnNames(o.cur...)
	o.shape = append(o.shape[:0], o.cur...)
	return true
}

func (o *objects) member(key string, from, to int) {
	o.cur = append(o.cur, key)
	if key == o.p.o.Key {
		o.from, o.to = from, to
	}
}

func (o *objects) sameShape() bool {
	if len(o.cur) != len(o.shape) {
		return false
	}
	for i, k := range o.cur {
		if k != o.shape[i] {
			return false
		}
	}
	return true
}

// identity is the value of the key column: a string, or a number as it is written.
func (o *objects) identity(line int) (string, bool) {
	if o.from < 0 {
		o.p.errorOn(line, "Row without identity", "The row lacks the column %q, which `key` names. Give it that column, or name another one in `key`.", o.p.o.Key)
		return "", false
	}
	raw := o.c.s[o.from:o.to]
	switch b := raw[0]; {
	case b == '"':
		return unescape(raw[1 : len(raw)-1]), true
	case b == '-' || b >= '0' && b <= '9':
		return raw, true
	}
	o.p.errorAt(o.from, "Invalid row identity", "The column %q identifies the rows and must be a string or a number.", o.p.o.Key)
	return "", false
}

func (p *parser) columnNames(names ...string) {
	if p.columns == nil {
		p.columns = map[string]bool{}
	}
	for _, n := range names {
		p.columns[n] = true
	}
}

func (p *parser) syntax(err error) {
	var s *syntaxError
	errors.As(err, &s)
	p.errorAt(s.at, "Invalid JSON", "%s.", s.msg)
}

// jsonFile reads one array of objects, or one object of objects keyed by identity.
func (p *parser) jsonFile() {
	o := objects{p: p, c: scanner{s: p.text}}
	switch o.c.peek() {
	case '[':
		p.needKey(func() { p.jsonArray(&o) })
	case '{':
		p.jsonKeyed(&o)
	default:
		p.errorAt(o.c.i, "Invalid JSON", "An array of rows, or an object of rows keyed by identity, was expected, not %s.", o.c.found())
	}
}

func (p *parser) jsonArray(o *objects) {
	var spans [][2]int
	if err := o.c.array(func(from, to int) { spans = append(spans, [2]int{from, to}) }); err != nil {
		p.syntax(err)
		return
	}
	if !p.atEnd(&o.c) {
		return
	}
	p.jsonRows(o, spans, nil)
}

func (p *parser) jsonKeyed(o *objects) {
	var spans [][2]int
	var ids []string
	err := o.c.object(func(key string, from, to int) {
		spans, ids = append(spans, [2]int{from, to}), append(ids, key)
	})
	if err != nil {
		p.syntax(err)
		return
	}
	if p.atEnd(&o.c) {
		p.jsonRows(o, spans, ids)
	}
}

func (p *parser) atEnd(c *scanner) bool {
	if c.peek(); c.i < len(c.s) {
		p.errorAt(c.i, "Invalid JSON", "The file ends with its first value, but %s follows. A file of one object a line is of the format jsonl.", c.found())
		return false
	}
	return true
}

// jsonRows makes rows of the objects at spans; ids are their identities where the file is keyed by them.
func (p *parser) jsonRows(o *objects, spans [][2]int, ids []string) {
	file := &jsonFile{p.o.Name, p.text, p.o.Key, p.swe}
	rows := make([]jsonRow, len(spans)) // p.rows point into it
	line, counted := 1, 0
	if ids != nil && p.o.Key != "" {
		p.columnNames(p.o.Key)
	}
	for i, span := range spans {
		if p.full() {
			return
		}
		line += strings.Count(p.text[counted:span[0]], "\n")
		counted = span[0]
		o.c.i, o.c.s = span[0], p.text[:span[1]]
		if !o.scan() {
			continue
		}
		rows[i] = jsonRow{file: file, from: span[0], to: span[1], line: line}
		var key string
		if ids == nil {
			var ok bool
			if key, ok = o.identity(line); !ok {
				continue
			}
		} else {
			key = ids[i]
			rows[i].id = key
			if o.from >= 0 {
				if own, ok := o.identity(line); ok && own != key {
					p.errorOn(line, "Two identities", "The row is keyed %q, but its column %q is %q.", key, p.o.Key, own)
				}
			}
		}
		p.add(key, line, &rows[i])
	}
}
