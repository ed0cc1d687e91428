package decl

import (
	"cmp"
	"fmt"
	"slices"
)

// A Range is a stretch of a source file; lines and columns count from 1. The zero Range is nowhere.
type Range struct {
	File            string // relative to the workspace if below it
	Line, Col       int
	EndLine, EndCol int
}

func (r Range) String() string {
	if r.Line == 0 {
		return r.File
	}
	return fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Col)
}

// A Severity is error or warning.
type Severity string

const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// A Diagnostic is one mistake of the user's. Summary is fixed for its kind; Detail says what, why and the remedy.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"`
	Detail   string   `json:"detail"`
	Range    Range    `json:"range"`
	Row      string   `json:"row,omitempty"` // "FILE:LINE" of the dataset row that was being evaluated
	Address  string   `json:"address,omitempty"`
}

// Error is one line.
func (d Diagnostic) Error() string { return d.Range.String() + ": " + d.Summary + ": " + d.Detail }

// ShownRows is of how many rows a mistake is shown that differs by row; the rest is only counted.
const ShownRows = 20

// Diagnostics are mistakes in the order in which they were found, until Sort.
type Diagnostics []Diagnostic

func (ds *Diagnostics) Add(d ...Diagnostic) { *ds = append(*ds, d...) }

// Errorf adds an error at r.
func (ds *Diagnostics) Errorf(r Range, summary, format string, args ...any) {
	ds.Add(Diagnostic{Severity: Error, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: r})
}

// Warnf adds a warning at r.
func (ds *Diagnostics) Warnf(r Range, summary, format string, args ...any) {
	ds.Add(Diagnostic{Severity: Warning, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: r})
}

// HasErrors says whether any is an error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders by file, position, row and summary, and drops repetitions.
func (ds Diagnostics) Sort() Diagnostics {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.File, b.Range.File), cmp.Compare(a.Range.Line, b.Range.Line), cmp.Compare(a.Range.Col, b.Range.Col),
			cmp.Compare(a.Row, b.Row), cmp.Compare(a.Summary, b.Summary), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.Compact(ds)
}
