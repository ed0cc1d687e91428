package run

import "strings"

// A ResetGlob is one of the globs of Start.Reset.
type ResetGlob struct {
	Pattern   string
	Unless    bool // written with "~" before it: it holds only if the tree has no path that matches it
	Additions bool // false where it is written with "=" before it, after the "~": what the tree lacks stays
}

// ParseReset takes what stands before a glob off it.
func ParseReset(glob string) (g ResetGlob) {
	glob, g.Unless = strings.CutPrefix(glob, "~")
	glob, restore := strings.CutPrefix(glob, "=")
	g.Pattern, g.Additions = glob, !restore
	return g
}
