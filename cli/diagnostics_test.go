package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pbuild/bench/decl"
)

func TestDiagnosticsView(t *testing.T) {
	dir := t.TempDir()
	text := "task \"x\" {\n\tcommand = each.valu.x\n  größe = 1\r\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "w.hcl"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var ds decl.Diagnostics
	ds.Errorf(decl.Range{File: "w.hcl", Line: 3, Col: 3, EndLine: 3, EndCol: 8}, "Unknown attribute", "There is no attribute größe.\nRemove it.")
	ds.Errorf(decl.Range{File: "w.hcl", Line: 2, Col: 12, EndLine: 2, EndCol: 21}, "Undefined name", "Did you mean each.value?")
	ds.Warnf(decl.Range{File: "gone.hcl", Line: 9, Col: 1}, "Not yet", "It does not run yet.\x1b[2J")
	ds.Errorf(decl.Range{}, "No workspace", "There is no *.hcl file here.")
	ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Bad row", Range: decl.Range{File: "w.hcl", Line: 4, Col: 1, EndLine: 5, EndCol: 1}, Row: "rows.jsonl:3", Address: `task.x["3"]`})
	warning := decl.Diagnostics{ds[2]}
	var b bytes.Buffer
	v := &view{err: &b}
	v.showDiagnostics(dir, ds)
	want := `error: No workspace
  There is no *.hcl file here.
gone.hcl:9:1: warning: Not yet
  It does not run yet.�[2J
w.hcl:2:12: error: Undefined name
  2 | 	command = each.valu.x
    | 	          ^^^^^^^^^
  Did you mean each.value?
w.hcl:3:3: error: Unknown attribute
  3 |   größe = 1
    |   ^^^^^
  There is no attribute größe.
  Remove it.
w.hcl:4:1: error: Bad row
  4 | }
    | ^
  row rows.jsonl:3
  at task.x["3"]
4 errors, 1 warning
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	b.Reset()
	v.quiet = true
	v.showDiagnostics(dir, warning)
	if b.Len() > 0 {
		t.Errorf("-q prints a warning: %s", b.String())
	}
}

func TestDiagnosticsJSON(t *testing.T) {
	var ds decl.Diagnostics
	ds.Errorf(decl.Range{File: "w.hcl", Line: 2, Col: 3, EndLine: 2, EndCol: 8}, "S", "D")
	ds.Errorf(decl.Range{}, "No workspace", "None.")
	golden(t, "diagnostics.json", mustJSON(t, diagnosticsJSON(ds)))
}

// A row may be megabytes long. What is shown is around the place, and the carets stay under it.
func TestLongLineIsCut(t *testing.T) {
	line := strings.Repeat("a", 500) + "ÄÖ" + strings.Repeat("b", 500)
	var b bytes.Buffer
	d := diagnosticsView{w: &b, source: func(decl.Range) (string, bool) { return line, true }, lines: map[string][]string{}}
	d.snippet(decl.Range{File: "rows.jsonl", Line: 3, Col: 501, EndLine: 3, EndCol: 503}, plain)
	want := "  3 | …" + strings.Repeat("a", 40) + "ÄÖ" + strings.Repeat("b", 78) + "…\n    | " + strings.Repeat(" ", 41) + "^^\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
	b.Reset()
	d.snippet(decl.Range{File: "rows.jsonl", Line: 3, Col: 1}, plain)
	if want := "  3 | " + strings.Repeat("a", 120) + "…\n    | " + strings.Repeat("^", 120) + "\n"; b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
}
