package host

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Commands in place are this process's own children: to have them started by another would cost each of ten thousand short ones two more turns of the
// scheduler. Yet none may outlive a killed pbuild, and no signal reaches the grandchildren of who died. So each command joins a process group that was
// made before it, and the numbers of these groups are told beforehand to a guard, a process that waits for this one's end and then kills them.
//
// What holds a group's number is its leader, an anchor: a child that ended at once and was never waited for. Signals do it no harm, so that one group
// serves one command after the other.

const (
	guardName  = "pbuild-guard"  // argv[0] of the guard
	anchorName = "pbuild-anchor" // argv[0] of an anchor
)

const fdGuard = 3

// groups are the process groups that commands in place may join. The zero groups are ready.
type groups struct {
	mu    sync.Mutex
	free  []int
	guard *os.File // the end of it, whoever causes it, is what the guard waits for
}

// take returns a group that is no other command's until it is given back.
func (g *groups) take() (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.free); n > 0 {
		group := g.free[n-1]
		g.free = g.free[:n-1]
		return group, nil
	}
	if g.guard == nil {
		if err := g.watch(); err != nil {
			return 0, fmt.Errorf("host: start the guard of commands in place: %w", err)
		}
	}
	anchor, err := syscall.ForkExec(self(), []string{anchorName}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		return 0, fmt.Errorf("host: make a process group: %w", err)
	}
	if err := binary.Write(g.guard, binary.NativeEndian, int64(anchor)); err != nil {
		return 0, fmt.Errorf("host: tell the guard of commands in place: %w", err)
	}
	return anchor, nil
}

func (g *groups) give(group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, group)
}

func (g *groups) watch() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: self(), Args: []string{guardName}, Env: []string{}, ExtraFiles: []*os.File{r}, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		w.Close()
		return err
	}
	g.guard = w
	return nil
}

// guard is the guard's life.
func guard() {
	told, err := io.ReadAll(os.NewFile(fdGuard, "groups"))
	if err != nil {
		os.Exit(1)
	}
	mine := map[int]bool{}
	for ; len(told) >= 8; told = told[8:] {
		mine[int(binary.NativeEndian.Uint64(told))] = true
	}
	// A process may fork while it is looked for, or be about to join its group: so twice in a row none must be found.
	for quiet := 0; quiet < 2; {
		found := members(mine)
		for _, pid := range found {
			unix.Kill(pid, unix.SIGKILL)
		}
		if quiet++; len(found) > 0 {
			quiet = 0
		}
		time.Sleep(2 * time.Millisecond)
	}
	os.Exit(0)
}

// members lists the living processes of the groups, and what descends from them in whatever group, which becomes one of the groups.
func members(groups map[int]bool) []int {
	all := processes()
	below := map[int]bool{}
	for more := true; more; {
		more = false
		for pid, p := range all {
			if !below[pid] && (groups[p.group] || below[p.parent]) {
				below[pid], more = true, true
			}
		}
	}
	var found []int
	for pid := range below {
		if group := all[pid].group; below[group] {
			groups[group] = true // what is forked into it while its parent dies is found the next time
		}
		if !all[pid].dead {
			found = append(found, pid)
		}
	}
	return found
}
