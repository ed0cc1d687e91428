package hcl

import (
	"fmt"
	"strings"

	hashihcl "github.com/hashicorp/hcl/v2"

	"pbuild/bench/decl"
)

// rangeOf is r as the rest of pbuild knows it.
func rangeOf(r hashihcl.Range) decl.Range {
	return decl.Range{File: r.Filename, Line: r.Start.Line, Col: r.Start.Column, EndLine: r.End.Line, EndCol: r.End.Column}
}

// errorAt makes one error.
func errorAt(r hashihcl.Range, summary, format string, args ...any) *decl.Diagnostic {
	return &decl.Diagnostic{Severity: decl.Error, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: rangeOf(r)}
}

func (l *loader) errorf(r hashihcl.Range, summary, format string, args ...any) {
	l.diags.Errorf(rangeOf(r), summary, format, args...)
}

func (l *loader) warnf(r hashihcl.Range, summary, format string, args ...any) {
	l.diags.Warnf(rangeOf(r), summary, format, args...)
}

// foreign turns upstream's diagnostics into ours; at is where they belong if they do not say so themselves.
func foreign(ds hashihcl.Diagnostics, at hashihcl.Range) decl.Diagnostics {
	var out decl.Diagnostics
	for _, d := range ds {
		r := at
		if d.Subject != nil {
			r = *d.Subject
		}
		severity := decl.Error
		if d.Severity == hashihcl.DiagWarning {
			severity = decl.Warning
		}
		detail := d.Detail
		if d.Summary == "Invalid template control keyword" {
			detail += " For text, write %%{."
		}
		out.Add(decl.Diagnostic{Severity: severity, Summary: d.Summary, Detail: detail, Range: rangeOf(r)})
	}
	return out
}

// firstError is the first error of ds, or nil.
func firstError(ds hashihcl.Diagnostics, at hashihcl.Range) *decl.Diagnostic {
	for _, d := range foreign(ds, at) {
		if d.Severity == decl.Error {
			return &d
		}
	}
	return nil
}

// manyNames is how many names a suggestion is looked for among: each is compared letter by letter, and a dataset may have a million.
const manyNames = 2000

// didYouMean is a sentence that names what of names is most like name, or nothing.
func didYouMean(name string, names []string) string {
	if len(names) > manyNames {
		return ""
	}
	best := decl.Nearest(name, names)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

// list joins names for a sentence: a, b or c.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
