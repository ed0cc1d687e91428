package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"pbuild/bench/decl"
)

// A diagnosticsView shows diagnostics to people: where, the line with what is meant underlined, what is wrong, why and the remedy.
type diagnosticsView struct {
	w     io.Writer
	color bool
	dir   string // files are relative to it
	// source is the line at which a range begins, as the loader read it, without secrets; false for files that it did not read.
	source func(decl.Range) (string, bool)
	lines  map[string][]string
}

// showDiagnostics prints all of them, sorted, to err; quiet leaves warnings out.
func (v *view) showDiagnostics(dir string, ds decl.Diagnostics) {
	d := diagnosticsView{w: v.err, color: v.errColor, dir: dir, source: v.source, lines: map[string][]string{}}
	if d.source == nil {
		d.source = func(decl.Range) (string, bool) { return "", false }
	}
	errors, warnings := 0, 0
	for _, one := range ds.Sort() {
		if one.Severity == decl.Error {
			errors++
		} else {
			warnings++
			if v.quiet {
				continue
			}
		}
		d.show(one)
	}
	if errors+warnings > 1 && !v.quiet {
		fmt.Fprintf(v.err, "%s, %s\n", plural(errors, "error"), plural(warnings, "warning"))
	}
}

func (d *diagnosticsView) show(one decl.Diagnostic) {
	tone := red
	if one.Severity == decl.Warning {
		tone = yellow
	}
	head := paint(d.color, tone, string(one.Severity)+":") + " " + paint(d.color, bold, printable(one.Summary))
	if r := one.Range; r.Line > 0 {
		fmt.Fprintf(d.w, "%s:%d:%d: %s\n", printable(r.File), r.Line, r.Col, head)
		d.snippet(r, tone)
	} else if r.File != "" {
		fmt.Fprintf(d.w, "%s: %s\n", printable(r.File), head)
	} else {
		fmt.Fprintln(d.w, head)
	}
	if one.Row != "" {
		fmt.Fprintf(d.w, "  row %s\n", printable(one.Row))
	}
	if one.Address != "" {
		fmt.Fprintf(d.w, "  at %s\n", printable(one.Address))
	}
	if one.Detail != "" {
		fmt.Fprintf(d.w, "  %s\n", strings.ReplaceAll(printable(one.Detail), "\n", "\n  "))
	}
}

// snippet prints the first line of r with its stretch underlined. Tabs are kept in the underline, so that the carets stand where the text does.
func (d *diagnosticsView) snippet(r decl.Range, tone style) {
	line, ok := d.source(r)
	if !ok {
		line, ok = d.line(r.File, r.Line)
	}
	if !ok {
		return
	}
	number := fmt.Sprint(r.Line)
	from := offsetOf(line, r.Col)
	to := len(line)
	if r.EndLine == r.Line && r.EndCol > r.Col {
		to = offsetOf(line, r.EndCol)
	}
	line, from, to = window(line, from, to)
	under := strings.Map(func(c rune) rune {
		if c == '\t' {
			return c
		}
		return ' '
	}, line[:from])
	carets := max(1, utf8.RuneCountInString(line[from:to]))
	gutter := strings.Repeat(" ", len(number))
	fmt.Fprintf(d.w, "  %s | %s\n", paint(d.color, blue, number), printable(line))
	fmt.Fprintf(d.w, "  %s | %s%s\n", gutter, under, paint(d.color, tone, strings.Repeat("^", carets)))
}

// window cuts a line to what is worth printing around the stretch from..to, with … where something is left out. A row may be megabytes long.
func window(line string, from, to int) (string, int, int) {
	const before, most = 40, 120
	runes := []rune(line)
	if len(runes) <= most {
		return line, from, to
	}
	first := utf8.RuneCountInString(line[:from])
	last := first + utf8.RuneCountInString(line[from:to])
	start := max(0, min(first-before, len(runes)-most))
	end := min(len(runes), start+most)
	head, tail := "", ""
	if start > 0 {
		head = "…"
	}
	if end < len(runes) {
		tail = "…"
	}
	from = len(head) + len(string(runes[start:first]))
	to = len(head) + len(string(runes[start:min(last, end)]))
	return head + string(runes[start:end]) + tail, from, to
}

// offsetOf returns the byte offset of a column, which counts characters from 1.
func offsetOf(line string, col int) int {
	at := 0
	for i := range line {
		if at++; at == col {
			return i
		}
	}
	return len(line)
}

func (d *diagnosticsView) line(file string, n int) (string, bool) {
	lines, ok := d.lines[file]
	if !ok {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(d.dir, filepath.FromSlash(file))
		}
		if b, err := os.ReadFile(path); err == nil {
			lines = strings.Split(string(b), "\n")
		}
		d.lines[file] = lines
	}
	if n < 1 || n > len(lines) {
		return "", false
	}
	return strings.TrimSuffix(lines[n-1], "\r"), true
}

// A diagnosticJSON is a diagnostic in JSON.
type diagnosticJSON struct {
	Severity string     `json:"severity"`
	Summary  string     `json:"summary"`
	Detail   string     `json:"detail"`
	Range    *rangeJSON `json:"range,omitempty"`
	Row      string     `json:"row,omitempty"`
	Address  string     `json:"address,omitempty"`
}

type rangeJSON struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
}

func diagnosticsJSON(ds decl.Diagnostics) []diagnosticJSON {
	out := make([]diagnosticJSON, 0, len(ds))
	for _, d := range ds.Sort() {
		j := diagnosticJSON{Severity: string(d.Severity), Summary: d.Summary, Detail: d.Detail, Row: d.Row, Address: d.Address}
		if r := d.Range; r.File != "" {
			j.Range = &rangeJSON{File: r.File, Line: r.Line, Column: r.Col, EndLine: r.EndLine, EndColumn: r.EndCol}
		}
		out = append(out, j)
	}
	return out
}
