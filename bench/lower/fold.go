package lower

import (
	"fmt"

	"pbuild/bench/decl"
)

// folded says once what is said alike of many rows, as of a text that all of them share, and of a mistake that many rows make, how many more do.
func folded(ds decl.Diagnostics) decl.Diagnostics {
	var out decl.Diagnostics
	kind := func(d decl.Diagnostic) decl.Diagnostic {
		d.Detail, d.Row = "", ""
		return d
	}
	alike := map[decl.Diagnostic]int{} // by all but the row: where it is in out
	last, shown := map[decl.Diagnostic]int{}, map[decl.Diagnostic]int{}
	more := map[int]int{}
	for _, d := range ds {
		text, k := d, kind(d)
		text.Row = ""
		switch i, again := alike[text]; {
		case d.Row == "":
			out.Add(d)
		case again:
			more[i]++
		case shown[k] == decl.ShownRows:
			more[last[k]]++
		default:
			shown[k]++
			alike[text], last[k] = len(out), len(out)
			out.Add(d)
		}
	}
	for i, n := range more {
		rows := "rows"
		if n == 1 {
			rows = "row"
		}
		out[i].Detail += fmt.Sprintf(" So it is in %d more %s.", n, rows)
	}
	return out
}
