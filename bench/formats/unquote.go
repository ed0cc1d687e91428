package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns the bytes of a JSON string that is already known to be well formed, or nothing for null. Unlike encoding/json it leaves
// bytes that are not UTF-8 as they are: a patch to a Latin-1 file is worth nothing with U+FFFD in it. An escaped surrogate without its other
// half, for which no bytes stand, is an error.
func unquote(raw json.RawMessage) ([]byte, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) < 2 || raw[0] != '"' {
		return nil, errors.New("it is to be a string or null")
	}
	s := raw[1 : len(raw)-1]
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(out, s...), nil
		}
		out, s = append(out, s[:i]...), s[i+1:]
		switch c := s[0]; c {
		case 'u':
			u, escape := hex4(s[1:]), s[:5]
			s = s[5:]
			if utf16.IsSurrogate(u) {
				if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
					return nil, noCharacter(escape)
				}
				if u = utf16.DecodeRune(u, hex4(s[2:])); u == utf8.RuneError {
					return nil, noCharacter(escape)
				}
				s = s[6:]
			}
			out = utf8.AppendRune(out, u)
			continue
		case 'n', 't', 'r', 'b', 'f':
			out = append(out, map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f'}[c])
		default:
			out = append(out, c)
		}
		s = s[1:]
	}
	return out, nil
}

func noCharacter(escape []byte) error {
	return fmt.Errorf("it holds \\%s, half of a surrogate pair, which stands for no character", escape)
}

func hex4(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n)
}
