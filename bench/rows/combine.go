package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"pbuild/bench/decl"
)

// Union is the rows of all sets in order. One identity with equal columns in two sets is one row; with different ones it is an error. Such a row waits for
// the gates that it waits for in each of the sets: what one of them has in any case is there in any case. It is an error if neither set's gates are among the other's.
func Union(at decl.Range, sets ...decl.Dataset) (*Set, decl.Diagnostics) {
	var diags decl.Diagnostics
	out := &Set{}
	columns, seen := map[string]bool{}, map[string]int{}
	for _, s := range sets {
		for _, c := range s.Columns() {
			columns[c] = true
		}
	}
	out.columns = sortedKeys(columns)
	either, example := 0, "" // rows that would have to wait for one gate or another
	for _, s := range sets {
		for i := range s.Len() {
			key, row := s.Key(i), s.Row(i)
			first, ok := seen[key]
			if !ok {
				seen[key] = len(out.rows)
				out.rows = append(out.rows, keyed{key, row})
			} else if column, same := equal(out.rows[first].row, row, out.columns); !same {
				diags.Errorf(at, "Conflicting rows", "%s and %s are both %q, but differ in the column %q. Rows of one identity must be equal.",
					decl.Place(out.rows[first].row), decl.Place(row), key, column)
			} else if one, other := decl.Gates(out.rows[first].row), decl.Gates(row); within(one, other) {
				continue
			} else if within(other, one) {
				out.rows[first].row = row
			} else if either++; either == 1 {
				example = fmt.Sprintf("%q is here if %s admits it, and also if %s does", key, gates(one), gates(other))
			}
		}
	}
	if either > 0 {
		diags.Errorf(at, "Row of two gates", "%s (%d in all). A row can wait for gates that must all admit it, not for either of two: "+
			"make one gate over both, or leave the row out of one of the datasets with `where`.", example, either)
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

// within says whether all gates of a are among those of b.
func within(a, b []string) bool {
	return !slices.ContainsFunc(a, func(g string) bool { return !slices.Contains(b, g) })
}

func gates(names []string) string { return "gate." + strings.Join(names, " and gate.") }

// equal compares two rows by value, and names the first column that differs. A column that is absent is null.
func equal(a, b decl.Row, columns []string) (string, bool) {
	if a.Digest() == b.Digest() {
		return "", true
	}
	for _, c := range columns {
		// As text, since a number may have several forms in memory.
		one, _ := json.Marshal(a.Value(c))
		other, _ := json.Marshal(b.Value(c))
		if !bytes.Equal(one, other) {
			return c, false
		}
	}
	return "", true
}

// Filter is the rows of s that keep wants. Its columns are all those of s, so that a filter never makes a name undefined.
func Filter(s decl.Dataset, keep func(decl.Row) (bool, *decl.Diagnostic)) (*Set, decl.Diagnostics) {
	var diags decl.Diagnostics
	out := &Set{columns: s.Columns()}
	for i := range s.Len() {
		row := s.Row(i)
		ok, d := keep(row)
		if d != nil {
			diags.Add(*d)
		} else if ok {
			out.rows = append(out.rows, keyed{s.Key(i), row})
		}
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

// Admit is the rows of s that a gate looks at, each of which is there only if the gate admits it.
func Admit(s decl.Dataset, gate string, looks func(key string) bool) *Set {
	out := &Set{columns: s.Columns()}
	for i := range s.Len() {
		if key, row := s.Key(i), s.Row(i); looks(key) {
			out.rows = append(out.rows, keyed{key, &gatedRow{row, append(slices.Clone(decl.Gates(row)), gate)}})
		}
	}
	return out
}

// A gatedRow is a row with the gates that are to admit it.
type gatedRow struct {
	decl.Row
	gates []string
}

func (r *gatedRow) Gates() []string { return r.gates }
