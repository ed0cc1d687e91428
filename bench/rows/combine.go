package rows

import (
	"reflect"

	"pbuild/bench/decl"
)

// Union is the rows of all sets in order. One identity with equal columns in two sets is one row; with different ones it is an error.
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
			}
		}
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return out, diags
}

// equal compares two rows by value, and names the first column that differs. A column that is absent is null.
func equal(a, b decl.Row, columns []string) (string, bool) {
	if a.Digest() == b.Digest() {
		return "", true
	}
	for _, c := range columns {
		if !reflect.DeepEqual(a.Value(c), b.Value(c)) {
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
