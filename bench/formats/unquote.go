package formats

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns the bytes of a JSON string that is already known to be well formed, or nothing for null. Unlike encoding/json it leaves
// bytes that are not UTF-8 as they are: a patch to a Latin-1 file is worth nothing with U+FFFD in it. An escaped surrogate without its other
// half, which no bytes stand for, becomes U+FFFD.
func unquote(raw json.RawMessage) ([]byte, bool) {
	if raw == nil || string(raw) == "null" {
		return nil, true
	}
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	s := raw[1 : len(raw)-1]
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(out, s...), true
		}
		out, s = append(out, s[:i]...), s[i+1:]
		switch c := s[0]; c {
		case 'u':
			u := hex4(s[1:])
			s = s[5:]
			if utf16.IsSurrogate(u) {
				both := rune(utf8.RuneError)
				if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
					both = utf16.DecodeRune(u, hex4(s[2:]))
				}
				if u = both; both != utf8.RuneError {
					s = s[6:]
				}
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
	return out, true
}

func hex4(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n)
}
