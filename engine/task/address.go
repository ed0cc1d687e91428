package task

import (
	"fmt"
	"strconv"
	"strings"
)

// An Address names a declared object or one of its steps: TYPE.NAME, ["KEY"] where the block has for_each (a matrix has
// four parts), /STEP. It is in no key.
type Address struct {
	Block string   // "gate.go"
	Index []string // nil where the block has no for_each
	Step  string   // "" for the object, whose last step it means
}

// String is the form that users type and JSON holds: matrix.main["a","nop","-",0]/extract. The fourth part of an index is a number.
func (a Address) String() string {
	var b strings.Builder
	b.WriteString(a.Block)
	if a.Index != nil {
		b.WriteByte('[')
		for i, part := range a.Index {
			if i > 0 {
				b.WriteByte(',')
			}
			if i == 3 {
				b.WriteString(part)
			} else {
				b.WriteString(strconv.Quote(part))
			}
		}
		b.WriteByte(']')
	}
	if a.Step != "" {
		b.WriteString("/" + a.Step)
	}
	return b.String()
}

// ParseAddress reads what String prints; quotes may be left out.
func ParseAddress(s string) (Address, error) {
	var a Address
	open := strings.IndexByte(s, '[')
	if open < 0 {
		a.Block, a.Step, _ = strings.Cut(s, "/")
	} else {
		a.Block = s[:open]
		rest := s[open+1:]
		for {
			part, after, err := cutPart(rest)
			if err != nil {
				return a, fmt.Errorf("address %q: %w", s, err)
			}
			a.Index = append(a.Index, part)
			if after[0] == ']' {
				rest = after[1:]
				break
			}
			rest = after[1:]
		}
		if rest != "" {
			step, ok := strings.CutPrefix(rest, "/")
			if !ok || step == "" {
				return a, fmt.Errorf("address %q: %q stands after the index", s, rest)
			}
			a.Step = step
		}
	}
	if t, n, ok := strings.Cut(a.Block, "."); !ok || t == "" || n == "" {
		return a, fmt.Errorf("address %q does not begin with TYPE.NAME", s)
	}
	return a, nil
}

// cutPart returns one part of an index and what follows it, which begins with ',' or ']'.
func cutPart(s string) (part, after string, err error) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", fmt.Errorf("a quote is not closed")
		}
		part, _ = strconv.Unquote(q)
		after = s[len(q):]
	} else {
		i := strings.IndexAny(s, ",]")
		if i < 0 {
			return "", "", fmt.Errorf("the index is not closed")
		}
		part, after = s[:i], s[i:]
	}
	if after == "" || after[0] != ',' && after[0] != ']' {
		return "", "", fmt.Errorf("the index is not closed")
	}
	return part, after, nil
}
