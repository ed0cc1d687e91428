package host

import (
	"strconv"
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

// controllers are what control groups limit.
var controllers = []string{"cpu", "memory", "pids"}

// asked are the limits that want a controller, by its name.
func asked(l *run.Limits) map[string]string {
	out := map[string]string{}
	if l.CPUs > 0 {
		out["cpu"] = strconv.FormatFloat(l.CPUs, 'g', -1, 64)
	}
	if l.Memory > 0 {
		out["memory"] = strconv.FormatInt(l.Memory, 10)
	}
	if l.Pids > 0 {
		out["pids"] = strconv.FormatInt(l.Pids, 10)
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
