// Package rows holds datasets: ordered sets of flat rows with unique identities, read from JSON Lines, JSON or CSV.
//
// It promises that a string column's bytes come out as the file holds them, unescaped and not normalised: every valid UTF-8 string passes
// unchanged. JSON text cannot carry other bytes, and an escape that names half a character is an error, never a replacement. A file's
// text is kept, and a row is an offset into it, decoded one column at a time when it is asked for. The package opens no file and knows nothing of what rows mean,
// but for the SWE-bench convention of lists written as strings.
package rows

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"pbuild/bench/decl"
)

// Options say how a dataset's file is read.
type Options struct {
	Format string     // jsonl, json, csv or swe-bench; "" goes by the extension
	Key    string     // the identity column; swe-bench implies instance_id, an object keyed by identity needs none
	Name   string     // the file's name in diagnostics and positions
	At     decl.Range // where the dataset is declared
}

// A Set is a dataset whose rows are known. It is immutable and safe for concurrent use.
type Set struct {
	rows    []keyed
	columns []string // sorted
}

type keyed struct {
	key string
	row decl.Row
}

func (s *Set) Len() int           { return len(s.rows) }
func (s *Set) Key(i int) string   { return s.rows[i].key }
func (s *Set) Row(i int) decl.Row { return s.rows[i].row }
func (s *Set) Columns() []string  { return s.columns }

const sweBench = "swe-bench"

// Parse reads a dataset's text, whose format goes by the extension of o.Name. It reports every mistake in it, up to a limit, each with its line; the
// Set is nil if there is any.
func Parse(text string, o Options) (*Set, decl.Diagnostics) {
	p := &parser{o: o, seen: map[string]int{}}
	syntax := strings.TrimPrefix(strings.ToLower(filepath.Ext(o.Name)), ".")
	switch o.Format {
	case "":
	case sweBench:
		p.swe = true
		if p.o.Key == "" {
			p.o.Key = "instance_id"
		}
		if syntax != "json" && syntax != "csv" {
			syntax = "jsonl"
		}
	default:
		syntax = o.Format
	}
	text = strings.TrimPrefix(text, "\ufeff")
	p.text = text
	if !utf8.ValidString(text) {
		p.invalidUTF8()
		return nil, p.diags
	}
	switch syntax {
	case "jsonl", "ndjson":
		p.needKey(p.jsonLines)
	case "json":
		p.jsonFile()
	case "csv":
		p.needKey(p.csv)
	default:
		p.diags.Errorf(o.At, "Unknown dataset format", "%s: the format %q is none of jsonl, json, csv and swe-bench. Give `format`.", o.Name, syntax)
	}
	return p.finish()
}

// A parser makes a Set of one text.
type parser struct {
	o       Options
	swe     bool
	text    string
	rows    []keyed
	lines   []int          // of rows
	seen    map[string]int // identity to index of its row
	columns map[string]bool
	diags   decl.Diagnostics
}

// maxDiagnostics bounds what one file may report: a file in the wrong format has a mistake on every line.
const maxDiagnostics = 20

func (p *parser) full() bool { return len(p.diags) >= maxDiagnostics }

func (p *parser) needKey(parse func()) {
	if p.o.Key == "" {
		p.diags.Errorf(p.o.At, "Dataset without a key", "The rows of %s need `key`, the name of the column that identifies a row.", p.o.Name)
		return
	}
	parse()
}

// errorAt reports a mistake at a byte offset of the text.
func (p *parser) errorAt(offset int, summary, format string, args ...any) {
	before := p.text[:offset]
	p.diags.Errorf(decl.Range{
		File: p.o.Name, Line: 1 + strings.Count(before, "\n"), Col: offset - strings.LastIndexByte(before, '\n'),
	}, summary, format, args...)
}

func (p *parser) errorOn(line int, summary, format string, args ...any) {
	p.diags.Errorf(decl.Range{File: p.o.Name, Line: line, Col: 1}, summary, format, args...)
}

func (p *parser) invalidUTF8() {
	offset := 0
	for {
		r, n := utf8.DecodeRuneInString(p.text[offset:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		offset += n
	}
	p.errorAt(offset, "Dataset is not UTF-8", "The byte 0x%02x does not belong to UTF-8 text. Write the file anew as UTF-8.", p.text[offset])
}

// add appends a row under its identity, which must be new.
func (p *parser) add(key string, line int, row decl.Row) {
	if key == "" {
		p.errorOn(line, "Empty row identity", "The column %q identifies the rows and may not be empty.", p.o.Key)
		return
	}
	if first, ok := p.seen[key]; ok {
		p.errorOn(line, "Duplicate row identity", "%s:%d and %s:%d are both %q. Identities must be unique: remove one, or name a column in `key` that tells them apart.",
			p.o.Name, p.lines[first], p.o.Name, line, key)
		return
	}
	if p.swe && !p.checkLists(line, row) {
		return
	}
	p.seen[key] = len(p.rows)
	p.rows = append(p.rows, keyed{key, row})
	p.lines = append(p.lines, line)
}

func (p *parser) finish() (*Set, decl.Diagnostics) {
	if p.full() {
		p.diags = p.diags[:maxDiagnostics]
		p.diags.Errorf(p.o.At, "Too many mistakes", "%s has more mistakes than the %d shown.", p.o.Name, maxDiagnostics)
	}
	if p.diags.HasErrors() {
		return nil, p.diags
	}
	return &Set{rows: p.rows, columns: sortedKeys(p.columns)}, p.diags
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
