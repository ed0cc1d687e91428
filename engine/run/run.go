// Package run is the contract of runners: one command, in one environment, over one workspace tree, under limits.
//
// It promises that when Run returns, everything that the command started is dead, that nothing of the command reaches the host
// beyond what Result holds and the state that Keep names, and that limits cover whole process trees. Every runner passes runtest.
package run

import (
	"context"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// Workspace and Home are where a command sees its workspace and HOME, unless its runtime names others or the isolation has no mount namespace.
const (
	Workspace = "/workspace"
	Home      = "/home/pbuild"
)

// Isolation is how far a command was kept from the host, lowest first.
type Isolation int

const (
	IsolationNone      Isolation = iota // a process group only
	IsolationProcess                    // a pid namespace or cgroup: everything dies together
	IsolationSealed                     // also mount, network and user namespaces
	IsolationContainer                  // a container
)

var isolationNames = [...]string{"none", "process", "sealed", "container"}

func (i Isolation) String() string { return isolationNames[i] }

// ParseIsolation reads what String prints.
func ParseIsolation(s string) (Isolation, bool) {
	for i, n := range isolationNames {
		if n == s {
			return Isolation(i), true
		}
	}
	return 0, false
}

// A Runner runs commands and keeps the states that they leave. Its methods may be called from many goroutines at once.
type Runner interface {
	// Run returns an error only where the command could not be started or watched: an infra failure. A lost state is a *LostState, a program that is not there a *NotFound.
	Run(ctx context.Context, c *Command) (*Result, error)
	// Has says whether the state is there, whole. It does not pin it: Run may still return a *LostState.
	Has(state task.Key) bool
	Isolation() Isolation
}

// A LostState is the error of a Run whose Start.State is not there (any more).
type LostState struct{ State task.Key }

func (e *LostState) Error() string { return "state " + e.State.Short() + " is not there" }

// A NotFound is the error of a Run whose program is not there.
type NotFound struct {
	Program string
	Path    string // the PATH on which it was looked for; "" where Program is a path itself
}

func (e *NotFound) Error() string { return e.Program + " is not found" }

// Final says that trying again cannot help.
func (e *NotFound) Final() bool { return true }

// A Command is everything that a runner needs.
type Command struct {
	Argv    []string
	Cwd     string            // relative to the workspace
	Env     map[string]string // all but HOME, TMPDIR, LANG and TZ, which the runner sets
	Secrets [][]byte          // exact values that are replaced in the output before anything is stored
	Network bool
	Paths   []string // further host paths to show, read-only
	Forward []string // client configuration files of the user's to show read-only under HOME, absolute; only with Network
	Limits  Limits
	Start   Start
	Keep    *Keep    // nil: the workspace and HOME are thrown away
	Reports []string // declared output files, relative to the workspace: removed before, collected after
	Changes bool     // say what the command changed in the workspace
	Watch   []string // globs: say which files of State's workspace, Tree's aside, are altered when the command begins, and with Keep when it has ended
	Log     func(stream string, data []byte)
}

// Limits are per command, over all its processes; 0 is none.
type Limits struct {
	Wall, Idle time.Duration
	CPUs       float64
	Memory     int64 // bytes
	Pids       int64
	Output     int64 // bytes of stdout and stderr together; what is over it is cut out of the middle
}

// Start says what the workspace and HOME hold when the command begins.
type Start struct {
	State task.Key      // zero: none; HOME is empty and the workspace a fresh checkout of Tree
	Tree  digest.Digest // the tree that the workspace shows; zero: it is empty, or as State left it
	Fresh bool          // a fresh checkout of Tree even where State has a workspace; only HOME comes from State

	// Before the command starts, every path of the workspace that matches a Reset glob and is not in Exempt is made what it
	// is in Tree: content restored, additions removed, whoever made them. ParseReset says what may stand before a glob.
	Reset  []string
	Exempt []string

	// Files are laid over the workspace last (a problem statement). Paths are relative to the workspace, or to HOME if they begin with "~/".
	// A variable of Env whose value is one of these names has the file's absolute path in its stead: only the runner knows that.
	Files map[string][]byte
}

// Keep names the state to be kept when the command has exited with 0 (or whatever it exited with, if Always).
type Keep struct {
	State     task.Key
	Workspace From
	Home      From
	HomePaths []string // with Home FromStart: these paths under HOME are kept all the same
	Always    bool
}

// From says which workspace or HOME a kept state has.
type From uint8

const (
	FromNowhere From = iota // none
	FromStart               // that of Start.State, untouched by this command
	FromCommand             // what this command left
)

// A Result is what became of a command.
type Result struct {
	Exit      int    // 128+n where signal n ended it
	TimedOut  string // "", "wall" or "idle"
	OutOfMem  bool
	Log       []byte // framed; see ParseLog
	Truncated bool
	Reports   map[string][]byte // those that were made; a link, a special file or one over 64 MiB is not
	Refused   map[string]string // reports that were there and not collected, with the reason
	Skipped   map[string]string // changed paths that are not among the Changes, for no tree can hold them, with the reason
	Changes   []Change          // with Command.Changes, sorted by path
	Reset     []string          // paths that Start.Reset changed or removed, sorted
	Altered   []string          // those of Command.Watch, sorted
	Manifest  digest.Digest     // of the kept workspace: sorted path, mode, size, content
	Elapsed   time.Duration
	CPU       time.Duration
	MaxRSS    int64 // bytes
	Isolation Isolation
	Limits    string // those in force, and those that this kernel could not hold, for the record
}

// A Change is one path that a command changed, by content or mode.
type Change struct {
	Path    string
	Mode    uint32 // 0644, 0755, task.ModeLink (a link, whose target is Content); 0 if it was removed
	Content []byte
}
