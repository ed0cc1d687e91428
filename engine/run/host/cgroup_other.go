//go:build !linux

package host

import (
	"fmt"

	"pbuild/engine/run"
)

// controls are nothing: this system has no control groups.
type controls struct{}

func findControls() *controls { return &controls{} }

func (*controls) describe() string { return "cpu, memory and pids not held" }

type group struct{ dirs map[string]string }

func (*controls) group(l *run.Limits, _ bool) (*group, string, error) {
	var missed []string
	if l.CPUs > 0 {
		missed = append(missed, fmt.Sprintf("cpu %g", l.CPUs))
	}
	if l.Memory > 0 {
		missed = append(missed, fmt.Sprintf("memory %d", l.Memory))
	}
	if l.Pids > 0 {
		missed = append(missed, fmt.Sprintf("pids %d", l.Pids))
	}
	return &group{}, limitsText(describeTimes(l), missed), nil
}

func (*group) join(int) error    { return nil }
func (*group) leave(int) error   { return nil }
func (*group) outOfMemory() bool { return false }
func (*group) remove()           {}
