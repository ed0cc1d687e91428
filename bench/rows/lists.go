package rows

import (
	"fmt"
	"strings"

	"pbuild/bench/decl"
)

// isList says whether SWE-bench files may write a column's list as a string.
func isList(column string) bool { return column == "FAIL_TO_PASS" || column == "PASS_TO_PASS" }

// listValue is the list that a checked string holds.
func listValue(s string) any {
	v, err := parseList(s)
	if err != nil {
		panic("pbuild bug: a checked list does not parse: " + err.Error())
	}
	return v
}

// checkLists says whether a row's lists are lists, and reports those that are not.
func (p *parser) checkLists(line int, row decl.Row) bool {
	ok := true
	for _, column := range []string{"FAIL_TO_PASS", "PASS_TO_PASS"} {
		b, isString := row.Bytes(column)
		if !isString {
			continue
		}
		if _, err := parseList(string(b)); err != nil {
			p.errorOn(line, "Invalid list", "The column %s must be a list of strings, or one written as JSON or as Python writes it: %v.", column, err)
			ok = false
		}
	}
	return ok
}

// parseList reads [ 'a', "b" ] as Python or JSON writes it. The empty string is an empty list.
func parseList(s string) ([]any, error) {
	out := []any{}
	s = strings.TrimSpace(s)
	if s == "" {
		return out, nil
	}
	rest, ok := strings.CutPrefix(s, "[")
	if !ok {
		return nil, fmt.Errorf("it does not begin with `[`")
	}
	rest = strings.TrimSpace(rest)
	for !strings.HasPrefix(rest, "]") {
		v, after, err := pythonString(rest)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		rest = strings.TrimSpace(after)
		if next, ok := strings.CutPrefix(rest, ","); ok {
			rest = strings.TrimSpace(next)
		} else if !strings.HasPrefix(rest, "]") {
			return nil, fmt.Errorf("`,` or `]` was expected after element %d", len(out))
		}
	}
	if rest != "]" {
		return nil, fmt.Errorf("something follows its `]`")
	}
	return out, nil
}

// pythonString reads one string in either quote, and returns what follows it.
func pythonString(s string) (value, rest string, err error) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", "", fmt.Errorf("a string in quotes was expected")
	}
	quote := s[0]
	var b strings.Builder
	for s = s[1:]; s != ""; {
		switch s[0] {
		case quote:
			return b.String(), s[1:], nil
		case '\\':
			n := pythonEscape(&b, s)
			if n == 0 {
				return "", "", fmt.Errorf("%q is no escape that stands for a character", s[:min(len(s), 6)])
			}
			s = s[n:]
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return "", "", fmt.Errorf("a string is not closed")
}

// pythonEscape writes what the escape at the beginning of s stands for, and returns its length, 0 if it is none.
func pythonEscape(b *strings.Builder, s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '\'':
		b.WriteByte('\'')
		return 2
	case 'a':
		b.WriteByte('\a')
		return 2
	case 'v':
		b.WriteByte('\v')
		return 2
	case 'x', 'U':
		digits := 2
		if s[1] == 'U' {
			digits = 8
		}
		r, ok := hex(s, 2, digits)
		if !ok || r < 0 || r > 0x10ffff || r >= 0xd800 && r < 0xe000 {
			return 0
		}
		b.WriteRune(r)
		return 2 + digits
	}
	r, n := escape(s)
	if n > 0 {
		b.WriteRune(r)
	}
	return n
}
