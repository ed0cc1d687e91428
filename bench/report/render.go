package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pbuild/bench/stats"
	"pbuild/bench/verdict"
)

// Formats are the names that Render knows.
var Formats = []string{"md", "csv", "json"}

// Render writes a table in one format.
func Render(t *Table, format string) ([]byte, error) {
	switch format {
	case "md":
		return t.Markdown(), nil
	case "csv":
		return t.CSV(), nil
	case "json":
		return t.JSON(), nil
	}
	return nil, fmt.Errorf("no renderer for format %q; there are %s", format, strings.Join(Formats, ", "))
}

// JSON is the document of `report NAME --json`, indented, with a line break at its end.
func (t *Table) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(t); err != nil {
		panic("pbuild bug: a table has no JSON: " + err.Error())
	}
	return b.Bytes()
}

// CSV is a line a row, under a header, as RFC 4180 but with single line feeds. Every line says whether it was gated and the lowest isolation
// behind the report, where the cells' own is not asked for. Values are exact: one that begins with = or + is not disarmed, since an id must be read back as it is.
func (t *Table) CSV() []byte {
	shown := t.shown(columnOrder)
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	more := map[string]string{"gated": strconv.FormatBool(t.Gated), "isolation": t.Isolation}
	if slices.Contains(shown, "isolation") {
		delete(more, "isolation") // each cell's own is there
	}
	names := slices.Sorted(maps.Keys(more))
	w.Write(append(slices.Clone(shown), names...))
	for i := range t.Rows {
		row := t.Rows[i].values(shown)
		for _, name := range names {
			row = append(row, more[name])
		}
		w.Write(row)
	}
	w.Flush() // a Buffer never fails
	return b.Bytes()
}

// shown is the columns asked for, or otherwise, with those of `by`.
func (t *Table) shown(otherwise []string) []string {
	shown := t.meta.Columns
	if len(shown) == 0 {
		shown = otherwise
	}
	shown = slices.Clone(shown)
	for _, name := range t.meta.By {
		if !slices.Contains(shown, name) {
			shown = append(shown, name)
		}
	}
	return shown
}

func (r *Row) values(shown []string) []string {
	out := make([]string, len(shown))
	for i, name := range shown {
		out[i] = r.column(name)
	}
	return out
}

// Markdown is candidate lines, their pairs and the rows, in GitHub's tables.
func (t *Table) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", escape(t.Report))
	if !t.Gated {
		fmt.Fprintf(&b, "> **Ungated.** No gate has shown that these tests fail before the fix and pass after it: a cell that failed may be the instance's fault.\n\n")
	}
	fmt.Fprintf(&b, "Of `%s`. Intervals are Wilson's, at 95%%.\n\n", t.Of)
	t.lines(&b)
	t.pairs(&b)
	fmt.Fprintf(&b, "## Cells\n\n")
	shown := t.shown(columnOrder[:len(columnOrder)-1])
	rows := make([][]string, len(t.Rows))
	for i := range t.Rows {
		rows[i] = t.Rows[i].values(shown)
	}
	table(&b, shown, rows)
	if t.meta.Filter != "" {
		fmt.Fprintf(&b, "Filter: %s. Candidate lines count every outcome, whatever rows are listed.\n\n", escape(t.meta.Filter))
	}
	if t.Isolation == "" {
		b.WriteString("Isolation: no command ran behind these outcomes.\n")
	} else {
		fmt.Fprintf(&b, "Isolation: %s is the lowest of all runs behind this report.\n", escape(t.Isolation))
	}
	return b.Bytes()
}

// lines writes the candidate lines. Outcomes that no line has are left out, but for provider and infra, which stand beside every rate.
func (t *Table) lines(b *bytes.Buffer) {
	head := []string{"agent", "model"}
	for _, name := range t.meta.By {
		if !slices.Contains(head, name) {
			head = append(head, name)
		}
	}
	groups := head[2:]
	whole := "instances"
	if slices.ContainsFunc(t.Candidates, func(l Line) bool { return l.Cells != l.Instances }) {
		whole = "cells" // several samples of an instance
	}
	head = append(head, "instances", "excluded", "cells", "patches", "localized any", "localized all", "applied", "compiled", "resolved",
		"resolved of non-empty patches", "resolved of "+whole+" less excluded", "provider", "infra")
	var words []verdict.Word
	for _, w := range verdict.Outcomes() {
		shown := w == verdict.Resolved || w == verdict.CellProvider || w == verdict.CellInfra || w == verdict.Excluded
		if !shown && slices.ContainsFunc(t.Candidates, func(l Line) bool { return l.Count(w) > 0 }) {
			words = append(words, w)
			head = append(head, string(w))
		}
	}
	head = append(head, "flagged")
	var rows [][]string
	for i := range t.Candidates {
		l := &t.Candidates[i]
		row := []string{l.Agent, dash(l.Model)}
		for _, name := range groups {
			row = append(row, l.Group[name])
		}
		compiled := "-"
		if l.Compiled != nil {
			compiled = strconv.Itoa(*l.Compiled)
		}
		for _, n := range []int{l.Instances, l.Excluded, l.Cells, l.Patches, l.LocalizedAny, l.LocalizedAll, l.Applied} {
			row = append(row, strconv.Itoa(n))
		}
		row = append(row, compiled, strconv.Itoa(l.Resolved), rate(l.Resolved, l.Patches), rate(l.Resolved, l.Cells-l.Excluded),
			strconv.Itoa(l.Provider), strconv.Itoa(l.Infra))
		for _, w := range words {
			row = append(row, strconv.Itoa(l.Count(w)))
		}
		rows = append(rows, append(row, strconv.Itoa(l.Flagged)))
	}
	fmt.Fprintf(b, "## Candidates\n\n")
	table(b, head, rows)
}

// rate is k of n with its interval, in per cent.
func rate(k, n int) string {
	if n == 0 {
		return "-"
	}
	i := stats.Wilson(k, n, 0.95)
	return fmt.Sprintf("%d/%d = %.1f%% (%.1f to %.1f)", k, n, 100*float64(k)/float64(n), 100*i.Low, 100*i.High)
}

// table writes one table; without rows it says so.
func table(b *bytes.Buffer, head []string, rows [][]string) {
	if len(rows) == 0 {
		b.WriteString("None.\n\n")
		return
	}
	for _, cells := range append([][]string{head, nil}, rows...) {
		b.WriteByte('|')
		for i := range head {
			if cells == nil {
				b.WriteString(" --- |")
			} else {
				b.WriteString(" " + escape(cells[i]) + " |")
			}
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

var escaper = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "<", "&lt;", "[", `\[`, "\r\n", " ", "\n", " ", "\r", " ")

// escape makes text safe within a table's cell: it can end neither the cell nor the line, and begins no markup.
func escape(s string) string { return escaper.Replace(s) }
