package hcl

import (
	"strconv"
	"strings"

	"pbuild/bench/decl"
)

// checkVersion compares pbuild's version with the one that the workspace requires.
func (l *loader) checkVersion() {
	for _, b := range l.tops {
		if b.typ != "pbuild" {
			continue
		}
		a := b.body.attr("required_version")
		if a == nil {
			continue
		}
		want, ok := l.quietly(a, decl.Find("pbuild").Attr("required_version")).(string)
		if !ok {
			continue // said when the block is decoded
		}
		switch met, valid := satisfies(l.o.Version, want); {
		case !valid:
			l.errorf(a.expr.Range(), "Invalid version constraint", "%q is not a list of constraints such as \">= 0.1, < 1.0\" or \"~> 0.1\".", want)
		case !met:
			l.errorf(a.expr.Range(), "Wrong version of pbuild", "This workspace requires pbuild %s, and this is %s. Install that version, or change required_version.", want, l.o.Version)
		}
	}
}

// satisfies says whether a version meets all constraints of a list. A version that is not made of numbers, such as that of a build from a work tree, meets every valid one.
func satisfies(version, constraints string) (met, valid bool) {
	have, known := parseVersion(version)
	met = true
	for c := range strings.SplitSeq(constraints, ",") {
		c = strings.TrimSpace(c)
		digits := strings.IndexAny(c, "0123456789v")
		if digits < 0 {
			return false, false
		}
		want, ok := parseVersion(c[digits:])
		if !ok {
			return false, false
		}
		order := compareVersions(have, want)
		var holds bool
		switch strings.TrimSpace(c[:digits]) {
		case "", "=":
			holds = order == 0
		case "!=":
			holds = order != 0
		case ">":
			holds = order > 0
		case ">=":
			holds = order >= 0
		case "<":
			holds = order < 0
		case "<=":
			holds = order <= 0
		case "~>":
			// All but the last number that is written must be equal: ~> 1.2 is 1.2 or later below 2, ~> 1.2.3 is 1.2.3 or later below 1.3.
			fixed := max(strings.Count(numbers(c[digits:]), "."), 1)
			holds = order >= 0 && compareVersions(have[:fixed], want[:fixed]) == 0
		default:
			return false, false
		}
		met = met && (holds || !known)
	}
	return met, true
}

// numbers is a version without a pre-release or build suffix.
func numbers(s string) string {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "-")
	s, _, _ = strings.Cut(s, "+")
	return s
}

// parseVersion reads major, minor and patch.
func parseVersion(s string) ([]int, bool) {
	out := make([]int, 3)
	parts := strings.Split(numbers(s), ".")
	if len(parts) > len(out) {
		return out, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

func compareVersions(a, b []int) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] - b[i]
		}
	}
	return 0
}
