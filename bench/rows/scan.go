package rows

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"pbuild/bench/decl"
)

// A scanner checks JSON text and says where its values lie. It decodes nothing but keys.
type scanner struct {
	s    string
	i    int
	keys []string // of the objects that are open
	deep int
}

// A syntaxError is a mistake in the text at an offset.
type syntaxError struct {
	at  int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

func (c *scanner) fail(format string, args ...any) error {
	return &syntaxError{c.i, fmt.Sprintf(format, args...)}
}

// maxDepth bounds nesting, and with it the stack.
const maxDepth = 500

func (c *scanner) space() {
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek is the next byte after white space, or 0 at the end.
func (c *scanner) peek() byte {
	c.space()
	if c.i < len(c.s) {
		return c.s[c.i]
	}
	return 0
}

// found names what stands where something else was expected.
func (c *scanner) found() string {
	if c.i >= len(c.s) {
		return "the end"
	}
	r, _ := utf8.DecodeRuneInString(c.s[c.i:])
	return fmt.Sprintf("%q", r)
}

// value passes over one value.
func (c *scanner) value() error {
	switch b := c.peek(); {
	case b == '"':
		return c.str()
	case b == '{':
		base := len(c.keys)
		err := c.object(func(key string, _, _ int) { c.keys = append(c.keys, key) })
		if k, ok := duplicate(c.keys[base:]); ok && err == nil {
			err = c.fail("an object has the key %q twice", k)
		}
		c.keys = c.keys[:base]
		return err
	case b == '[':
		return c.array(func(int, int) {})
	case b == '-' || b >= '0' && b <= '9':
		return c.number()
	}
	for _, word := range []string{"null", "true", "false"} {
		if strings.HasPrefix(c.s[c.i:], word) {
			c.i += len(word)
			return nil
		}
	}
	return c.fail("a value was expected, not %s", c.found())
}

// object passes over an object, whose first byte is next, and reports the extent of each member's value.
func (c *scanner) object(member func(key string, from, to int)) error {
	return c.nested('}', func() error {
		if c.peek() != '"' {
			return c.fail("a key in double quotes was expected, not %s", c.found())
		}
		from := c.i + 1
		if err := c.str(); err != nil {
			return err
		}
		key := unescape(c.s[from : c.i-1])
		if c.peek() != ':' {
			return c.fail("`:` was expected after the key %q, not %s", key, c.found())
		}
		c.i++
		c.space()
		from = c.i
		if err := c.value(); err != nil {
			return err
		}
		member(key, from, c.i)
		return nil
	})
}

// array passes over an array, whose first byte is next, and reports the extent of each element.
func (c *scanner) array(element func(from, to int)) error {
	return c.nested(']', func() error {
		c.space()
		from := c.i
		if err := c.value(); err != nil {
			return err
		}
		element(from, c.i)
		return nil
	})
}

func (c *scanner) nested(end byte, item func() error) error {
	if c.deep++; c.deep > maxDepth {
		return c.fail("values are nested more than %d deep", maxDepth)
	}
	defer func() { c.deep-- }()
	c.i++
	if c.peek() == end {
		c.i++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.i++
		case end:
			c.i++
			return nil
		default:
			return c.fail("`,` or `%c` was expected, not %s", end, c.found())
		}
	}
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for b := range t {
		t[b] = b >= 0x20 && b != '"' && b != '\\'
	}
	return t
}()

func (c *scanner) str() error {
	s, i := c.s, c.i+1
	for i < len(s) {
		b := s[i]
		if plain[b] {
			i++
			continue
		}
		if b == '"' {
			c.i = i + 1
			return nil
		}
		if b != '\\' {
			c.i = i
			return c.fail("the control character 0x%02x stands unescaped in a string", b)
		}
		_, n := escape(s[i:])
		if n == 0 {
			c.i = i
			return c.fail("%q is no escape that stands for a character", s[i:min(i+6, len(s))])
		}
		i += n
	}
	return c.fail("a string is not closed")
}

func (c *scanner) number() error {
	from := c.i
	digits := func() bool {
		from := c.i
		for c.i < len(c.s) && c.s[c.i] >= '0' && c.s[c.i] <= '9' {
			c.i++
		}
		return c.i > from
	}
	take := func(set string) bool {
		ok := c.i < len(c.s) && strings.IndexByte(set, c.s[c.i]) >= 0
		if ok {
			c.i++
		}
		return ok
	}
	take("-")
	if !take("0") && !digits() {
		return c.fail("a digit was expected, not %s", c.found())
	}
	if take(".") && !digits() {
		return c.fail("a digit was expected, not %s", c.found())
	}
	if take("eE") {
		take("+-")
		if !digits() {
			return c.fail("a digit was expected, not %s", c.found())
		}
	}
	// Only an exponent or three hundred digits can leave the range.
	if text := c.s[from:c.i]; len(text) > 300 || strings.ContainsAny(text, "eE") {
		if _, ok := decl.ParseNumber(text); !ok {
			c.i = from
			return c.fail("a number is too large or too near to zero")
		}
	}
	return nil
}

// duplicate returns a key that occurs twice.
func duplicate(keys []string) (string, bool) {
	if len(keys) < 2 {
		return "", false
	}
	sorted := slices.Sorted(slices.Values(keys))
	for i, k := range sorted[1:] {
		if k == sorted[i] {
			return k, true
		}
	}
	return "", false
}

// escape decodes the escape that s begins with, and returns its length: 0 if it stands for no character, as half of a surrogate pair does.
func escape(s string) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex(s, 2, 4)
		if !ok {
			return 0, 0
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if low, ok := hex(s, 8, 4); ok {
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					return r, 12
				}
			}
		}
	}
	return 0, 0
}

// hex reads n hexadecimal digits of s at i.
func hex(s string, i, n int) (rune, bool) {
	if len(s) < i+n {
		return 0, false
	}
	var r rune
	for _, b := range []byte(s[i : i+n]) {
		r <<= 4
		switch {
		case b >= '0' && b <= '9':
			r |= rune(b - '0')
		case b >= 'a' && b <= 'f':
			r |= rune(b - 'a' + 10)
		case b >= 'A' && b <= 'F':
			r |= rune(b - 'A' + 10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape decodes what stands between the quotes of a checked string. Without escapes it is that text itself.
func unescape(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw))
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			b.WriteString(raw)
			return b.String()
		}
		b.WriteString(raw[:i])
		r, n := escape(raw[i:])
		b.WriteRune(r)
		raw = raw[i+n:]
	}
}
