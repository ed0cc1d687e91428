package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// controls are the control groups in which this process may make groups of its own.
type controls struct {
	swap    bool              // the machine has some
	unified string            // a directory of version 2, or ""
	parents map[string]string // controller -> directory in which groups are made
	own     map[string]string // controller -> this process's own group
}

// findControls looks for each controller: version 1 in this process's own group, version 2 in the nearest group above that lets it.
func findControls() *controls {
	c := &controls{parents: map[string]string{}, own: map[string]string{}}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return c
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	swaps, _ := os.ReadFile("/proc/swaps")
	c.swap = bytes.Count(swaps, []byte("\n")) > 1 // more than the heading
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		switch right[0] {
		case "cgroup":
			for _, name := range strings.Split(right[2], ",") {
				if slices.Contains(controllers, name) {
					dir := groupDir(left[4], left[3], string(own), name)
					c.try(name, dir, dir, false)
				}
			}
		case "cgroup2":
			c.findUnified(left[4], groupDir(left[4], left[3], string(own), ""))
		}
	}
	c.sweep()
	return c
}

// sweep removes the groups of processes that were killed. What looks so to this process may have its own in another container, so a group that is
// young stays: it may be about to be used. One that is in use cannot be removed.
func (c *controls) sweep() {
	for _, parent := range c.parents {
		dirs, _ := filepath.Glob(filepath.Join(parent, "pbuild-*"))
		for _, dir := range dirs {
			var pid int
			name := strings.TrimPrefix(filepath.Base(dir), "pbuild-")
			if _, err := fmt.Sscanf(strings.TrimPrefix(name, "probe-"), "%d", &pid); err != nil || unix.Kill(pid, 0) != unix.ESRCH {
				continue
			}
			if fi, err := os.Lstat(dir); err == nil && time.Since(fi.ModTime()) > time.Minute {
				os.Remove(dir)
			}
		}
	}
}

// groupDir is this process's group in the hierarchy that is mounted at point with root as its top.
func groupDir(point, root, own, controller string) string {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (controller == "" && f[0] == "0" || controller != "" && slices.Contains(strings.Split(f[1], ","), controller)) {
			if rel, err := filepath.Rel(root, f[2]); err == nil && filepath.IsLocal(rel) {
				return filepath.Join(point, rel)
			}
		}
	}
	return point
}

// findUnified climbs from the process's own group: a group with processes in it can give its children no controllers, and one of another
// user's none at all.
func (c *controls) findUnified(point, own string) {
	for dir := own; contains(point, dir); dir = filepath.Dir(dir) {
		for _, name := range controllers {
			if c.parents[name] == "" {
				c.try(name, dir, own, true)
			}
		}
	}
}

// try makes a group, to see whether it can have the controller.
func (c *controls) try(name, parent, own string, v2 bool) {
	probe := filepath.Join(parent, "pbuild-probe-"+strconv.Itoa(os.Getpid()))
	if os.Mkdir(probe, 0o755) != nil {
		return
	}
	defer os.Remove(probe)
	if v2 {
		has, err := os.ReadFile(filepath.Join(probe, "cgroup.controllers"))
		if err != nil || !slices.Contains(strings.Fields(string(has)), name) || c.unified != "" && c.unified != parent {
			return
		}
		c.unified = parent
	}
	if limitFile, _ := limitOf(name, v2, &run.Limits{}); os.WriteFile(filepath.Join(probe, limitFile), []byte("max"), 0) != nil && v2 {
		return
	}
	c.parents[name], c.own[name] = parent, own
}

// limitOf is the file that holds a limit, and its value.
func limitOf(name string, v2 bool, l *run.Limits) (file, value string) {
	const period = 100_000 // microseconds
	switch name {
	case "cpu":
		quota := strconv.FormatInt(max(1000, int64(l.CPUs*period)), 10)
		if v2 {
			return "cpu.max", quota + " " + strconv.Itoa(period)
		}
		return "cpu.cfs_quota_us", quota
	case "memory":
		if v2 {
			return "memory.max", strconv.FormatInt(l.Memory, 10)
		}
		return "memory.limit_in_bytes", strconv.FormatInt(l.Memory, 10)
	}
	return "pids.max", strconv.FormatInt(l.Pids, 10)
}

func (c *controls) describe() string {
	var parts []string
	for _, name := range controllers {
		switch parent := c.parents[name]; parent {
		case "":
			parts = append(parts, name+" not held")
		case c.unified:
			parts = append(parts, name+" by cgroup v2")
		default:
			parts = append(parts, name+" by cgroup v1")
		}
	}
	return strings.Join(parts, ", ")
}

// A group is the control groups of one command; none, where it has no limit that needs one.
type group struct {
	dirs map[string]string // by controller
	own  map[string]string // where processes were before
}

// group makes the groups that the limits ask for, and says which limits are in force and which are not. byUser: a resource limit of the
// user holds the number of processes.
func (c *controls) group(l *run.Limits, byUser bool) (*group, string, error) {
	g := &group{dirs: map[string]string{}, own: c.own}
	asked := asked(l)
	held, missed := describeTimes(l), []string(nil)
	name := "pbuild-" + strconv.Itoa(os.Getpid()) + "-" + newID()
	for _, ctl := range controllers {
		value, ok := asked[ctl]
		if !ok {
			continue
		}
		parent := c.parents[ctl]
		if parent == "" {
			if ctl == "pids" && byUser {
				held = append(held, "pids "+value+" (resource limit of the user)")
			} else {
				missed = append(missed, ctl+" "+value)
			}
			continue
		}
		if err := g.add(ctl, filepath.Join(parent, name), parent == c.unified, l); err != nil {
			g.remove()
			return nil, "", fmt.Errorf("host: limit %s: %w", ctl, err)
		}
		held = append(held, ctl+" "+value)
		if ctl == "memory" && !c.limitSwap(g.dirs[ctl], parent == c.unified, value) {
			missed = append(missed, "swap 0")
		}
	}
	return g, limitsText(held, missed), nil
}

func (g *group) add(ctl, dir string, v2 bool, l *run.Limits) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	g.dirs[ctl] = dir
	file, value := limitOf(ctl, v2, l)
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
}

// limitSwap keeps a group from swapping instead of staying within its limit of memory, and says whether it does. Not every kernel counts swap.
func (c *controls) limitSwap(dir string, v2 bool, memory string) bool {
	file, value := "memory.memsw.limit_in_bytes", memory // of memory and swap
	if v2 {
		file, value = "memory.swap.max", "0"
	}
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0) == nil || !c.swap
}

// join moves a process into the groups: what it starts from then on is limited.
func (g *group) join(pid int) error { return moveTo(pid, g.dirs, g.dirs) }

// leave moves it back, without what it started.
func (g *group) leave(pid int) error { return moveTo(pid, g.dirs, g.own) }

func moveTo(pid int, which, dirs map[string]string) error {
	for ctl := range which {
		if err := os.WriteFile(filepath.Join(dirs[ctl], "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("host: put the sandbox under its limits: %w", err)
		}
	}
	return nil
}

// outOfMemory says whether the kernel killed something for the memory limit.
func (g *group) outOfMemory() bool {
	dir := g.dirs["memory"]
	if dir == "" {
		return false
	}
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				return n != "0"
			}
		}
	}
	return false
}

// remove takes the groups away. One that still has a dying process in it stays, and limits nothing.
func (g *group) remove() {
	for _, dir := range g.dirs {
		os.Remove(dir)
	}
}
