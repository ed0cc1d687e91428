package lower

import (
	"fmt"
	"strings"
	"testing"

	"pbuild/bench/decl"
)

func TestFolded(t *testing.T) {
	var ds decl.Diagnostics
	literal, each := decl.Range{File: "b.hcl", Line: 1}, decl.Range{File: "b.hcl", Line: 2}
	ds.Errorf(literal, "Wrong", "of no row")
	for i := range 30 {
		row := fmt.Sprintf("rows.jsonl:%02d", i)
		ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Wrong", Detail: "A literal.", Range: literal, Row: row})
		ds.Add(decl.Diagnostic{Severity: decl.Error, Summary: "Wrong", Detail: row + " is.", Range: each, Row: row})
	}
	out := folded(ds.Sort())
	if len(out) != 2+decl.ShownRows {
		t.Fatalf("%d are left: %v", len(out), out)
	}
	if got := out[1].Detail; got != "A literal. So it is in 29 more rows." {
		t.Errorf("%s", got)
	}
	if got := out[len(out)-1].Detail; !strings.HasSuffix(got, "rows.jsonl:19 is. So it is in 10 more rows.") {
		t.Errorf("%s", got)
	}
}
