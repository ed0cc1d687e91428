package host

import (
	"strings"

	"pbuild/engine/run"
)

// describeTimes says which limits of time there are: they hold everywhere.
func describeTimes(l *run.Limits) []string {
	var out []string
	if l.Wall > 0 {
		out = append(out, "wall "+l.Wall.String())
	}
	if l.Idle > 0 {
		out = append(out, "idle "+l.Idle.String())
	}
	return out
}

// limitsText is what a record says of the limits.
func limitsText(held, missed []string) string {
	text := strings.Join(held, ", ")
	if len(missed) > 0 {
		text = strings.TrimPrefix(text+"; not held: "+strings.Join(missed, ", "), "; ")
	}
	return text
}
