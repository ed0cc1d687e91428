package run

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A ResetGlob is one of the globs of Start.Reset.
type ResetGlob struct {
	Pattern   string
	Not       bool // written with "!" before it: what matches is left alone, whatever else it matches
	Unless    bool // written with "~" before it: it holds only if the tree has no path that matches it
	Additions bool // false where it is written with "=" before it, after the others: "=" what the tree lacks stays; "!=" only that is left alone
}

// ParseReset takes what stands before a glob off it.
func ParseReset(glob string) (g ResetGlob) {
	glob, g.Not = strings.CutPrefix(glob, "!")
	glob, g.Unless = strings.CutPrefix(glob, "~")
	glob, restore := strings.CutPrefix(glob, "=")
	g.Pattern, g.Additions = glob, !restore
	return g
}

// Globs match what some patterns match and no exception does.
type Globs struct{ Patterns, Except []string }

func (g *Globs) Match(path string) bool {
	matches := func(pattern string) bool { return doublestar.MatchUnvalidated(pattern, path) }
	return slices.ContainsFunc(g.Patterns, matches) && !slices.ContainsFunc(g.Except, matches)
}

// Resets divides the globs of Start.Reset that hold for a tree: what is restored, and what is removed where the tree lacks it. has says whether the tree
// has a path that matches a pattern.
func Resets(globs []string, has func(pattern string) bool) (restored, removed Globs) {
	for _, text := range globs {
		switch g := ParseReset(text); {
		case g.Not:
			removed.Except = append(removed.Except, g.Pattern)
			if g.Additions {
				restored.Except = append(restored.Except, g.Pattern)
			}
		case g.Unless && has(g.Pattern):
		default:
			restored.Patterns = append(restored.Patterns, g.Pattern)
			if g.Additions {
				removed.Patterns = append(removed.Patterns, g.Pattern)
			}
		}
	}
	return restored, removed
}
