package hcl

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalText says whether source text, its escapes \uNNNN and \UNNNNNNNN read, is in Unicode normal form C, so that cty changes none of its strings.
func normalText(src []byte) bool {
	if !bytes.Contains(src, []byte(`\u`)) && !bytes.Contains(src, []byte(`\U`)) {
		return norm.NFC.IsNormal(src)
	}
	var out []byte
	for i := 0; i < len(src); {
		if src[i] != '\\' || i+1 == len(src) {
			out = append(out, src[i])
			i++
			continue
		}
		digits := map[byte]int{'u': 4, 'U': 8}[src[i+1]]
		if n := i + 2 + digits; digits > 0 && n <= len(src) {
			if r, err := strconv.ParseUint(string(src[i+2:n]), 16, 32); err == nil {
				out = utf8.AppendRune(out, rune(r))
				i = n
				continue
			}
		}
		out = append(out, src[i], src[i+1])
		i += 2
	}
	return norm.NFC.IsNormal(out)
}

// normalValue says whether every string in a row's value is in normal form C.
func normalValue(v any) bool {
	switch v := v.(type) {
	case string:
		return norm.NFC.IsNormalString(v)
	case []any:
		for _, e := range v {
			if !normalValue(e) {
				return false
			}
		}
	case map[string]any:
		for k, e := range v {
			if !norm.NFC.IsNormalString(k) || !normalValue(e) {
				return false
			}
		}
	}
	return true
}
