package rows

import (
	"slices"
	"strings"

	"pbuild/engine/digest"
)

// csvFile is what the rows of one CSV text share.
type csvFile struct {
	name   string
	text   string
	header []string
	swe    bool
}

// csvRow is one record of the text. All its values are strings; an empty field is the empty string, for CSV has no null.
type csvRow struct {
	file     *csvFile
	from, to int
	line     int
}

func (r *csvRow) Pos() (string, int) { return r.file.name, r.line }

func (r *csvRow) Digest() digest.Digest {
	var e digest.Encoder
	e.String("row", "csv")
	e.Bool("lists", r.file.swe)
	e.List("columns", r.file.header)
	e.String("text", r.file.text[r.from:r.to])
	return e.Sum()
}

func (r *csvRow) field(column string) (string, bool) {
	n := slices.Index(r.file.header, column)
	if n < 0 {
		return "", false
	}
	for i := r.from; ; n-- {
		raw, next, _ := csvField(r.file.text, i)
		if n == 0 {
			return csvValue(raw), true
		}
		i = next
	}
}

func (r *csvRow) Value(column string) any {
	s, ok := r.field(column)
	if !ok {
		return nil
	}
	if r.file.swe && isList(column) {
		return listValue(s)
	}
	return s
}

func (r *csvRow) Bytes(column string) ([]byte, bool) {
	s, ok := r.field(column)
	return []byte(s), ok
}

// csvField returns the field that begins at i as it is written, and where the next begins. That is after a comma, or after a
// line's end, which last says. next is -1 if a quote is not closed, or something stands after it.
func csvField(s string, i int) (raw string, next int, last bool) {
	end := i
	if i < len(s) && s[i] == '"' {
		for end = i + 1; ; end += 2 {
			q := strings.IndexByte(s[end:], '"')
			if q < 0 {
				return "", -1, false
			}
			if end += q; end+1 >= len(s) || s[end+1] != '"' {
				end++
				break
			}
		}
	} else if n := strings.IndexAny(s[i:], ",\n"); n >= 0 {
		end += n
		if s[end] == '\n' && end > i && s[end-1] == '\r' {
			end--
		}
	} else {
		end = len(s)
	}
	raw, rest := s[i:end], s[end:]
	switch {
	case rest == "":
		return raw, end, true
	case rest[0] == ',':
		return raw, end + 1, false
	case rest[0] == '\n':
		return raw, end + 1, true
	case strings.HasPrefix(rest, "\r\n"):
		return raw, end + 2, true
	}
	return "", -1, false
}

func csvValue(raw string) string {
	if !strings.HasPrefix(raw, `"`) {
		return raw
	}
	return strings.ReplaceAll(raw[1:len(raw)-1], `""`, `"`)
}

// csv reads a header and one record a row. A quoted field may hold line ends, which stay as they are.
func (p *parser) csv() {
	file := &csvFile{name: p.o.Name, text: p.text, swe: p.swe}
	line, key := 1, 0
	for i := 0; i < len(p.text) && !p.full(); {
		from, start := i, line
		var fields []string
		n, keyRaw := 0, ""
		for last := false; !last; n++ {
			raw, next, end := csvField(p.text, i)
			if next < 0 {
				p.errorAt(i, "Invalid CSV", "A quoted field is not closed, or something other than a comma follows it. A quote within one is written twice.")
				return
			}
			if file.header == nil {
				fields = append(fields, csvValue(raw))
			} else if n == key {
				keyRaw = raw
			}
			line += strings.Count(p.text[i:next], "\n")
			i, last = next, end
		}
		if strings.TrimRight(p.text[from:i], "\r\n") == "" {
			continue
		}
		if file.header == nil {
			if key = p.csvHeader(fields, start); key < 0 {
				return
			}
			file.header = fields
			continue
		}
		if n != len(file.header) {
			p.errorOn(start, "Wrong number of fields", "The row has %d fields, but the header names %d columns.", n, len(file.header))
			continue
		}
		p.add(csvValue(keyRaw), start, &csvRow{file, from, i, start})
	}
}

// csvHeader checks the column names, and returns the index of the key column, -1 if there is none.
func (p *parser) csvHeader(names []string, line int) int {
	if name, ok := duplicate(names); ok {
		p.errorOn(line, "Duplicate column", "The header names the column %q twice.", name)
		return -1
	}
	key := slices.Index(names, p.o.Key)
	if key < 0 {
		p.errorOn(line, "Row without identity", "The header lacks the column %q, which `key` names. Add it, or name another one in `key`.", p.o.Key)
	}
	p.columnNames(names...)
	return key
}
