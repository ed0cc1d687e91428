package host

import (
	"strings"

	"pbuild/engine/digest"
	"pbuild/engine/run"
)

// The runner and its init speak gob over two pipes. The runner sends one spec, then the blobs that the init asked for, then nothing but orders: one
// kill ends the command and lets the init go on to what it collects; the end of the pipe ends all at once, so nothing outlives a killed pbuild.

// initName is argv[0] of the re-executed program. An environment variable would be inherited by commands.
const initName = "pbuild-sandbox-init"

// File descriptors of the init.
const (
	fdOrders = 3 + iota
	fdReplies
	fdStdout
	fdStderr
	fdIndexIn  // the index of the start state's workspace, or an empty file
	fdIndexOut // where the index of the workspace that is kept is written
	fdEnd
)

// A spec is everything that the init needs to know.
type spec struct {
	Isolation run.Isolation
	Probe     bool // set everything up, start nothing
	Sandbox   sandbox
	Network   bool

	Workspace string // where the command sees it
	Home      string

	Argv []string
	Env  []string
	Cwd  string
	Pids int64 // for a resource limit, where no control group holds it

	Grouped bool // say Ready before the command is started, and wait for an order

	Stamp   int64 // Unix nanoseconds that laid files must be at least as new as
	Lay     []entry
	Laid    []entry   // what the state is to have where a protected path is laid; mode 0 for nothing
	Reset   run.Globs // what goes where the tree lacks it
	Exempt  []string
	Wanted  []entry // what the tree has that is protected, sorted
	Reports []string
	Files   map[string][]byte
	Forward []bind // client configuration; To is relative to Home or absolute

	Manifest bool
	Changes  bool
	Watch    []string
}

// place is where the command sees one of Files.
func (s *spec) place(name string) string {
	if below, ok := belowHome(name); ok {
		return s.Home + "/" + below
	}
	return s.Workspace + "/" + name
}

// belowHome is the path below HOME that the name of a laid file stands for, if it does.
func belowHome(name string) (string, bool) { return strings.CutPrefix(name, "~/") }

// A sandbox is the view that a sealed command has.
type sandbox struct {
	Root      string // an empty directory to build it on
	Layers    string // what Lower is relative to
	Scratch   string // what Upper and Work are relative to
	Workspace layers
	Home      layers
	Binds     []bind
	Masks     []string // shown empty
	MaskFiles []string
	MaskProc  bool // this is the real root: what in /proc is root's to write must be covered
}

// layers are what one of the two writable directories is made of. Without Lower the directory Upper is shown as it is.
type layers struct {
	Lower []string // uppermost first
	Upper string
	Work  string
}

type bind struct{ From, To string }

// An entry is one path of a tree; Mode 0 removes it.
type entry struct {
	Path string
	Mode uint32
	Blob digest.Digest
}

// An order is what the runner sends after the spec.
type order struct {
	Blobs [][]byte // those that the last reply needed, in its order
	Kill  bool
}

// A reply is what the init sends: any number with Need, one with Ready if it is wanted, one with Started, one with End or Error.
type reply struct {
	Need    []digest.Digest
	Ready   bool // what is started next is the command
	Started bool
	End     *end
	Error   string
	Missing *run.NotFound // the error, where it is this
}

// An end is how the command ended.
type end struct {
	Exit     int
	CPU      int64 // nanoseconds
	Elapsed  int64
	MaxRSS   int64 // bytes
	Reset    []string
	Altered  []string
	Reports  map[string][]byte
	Refused  map[string]string
	Changes  []run.Change
	Skipped  map[string]string // changed paths that no tree can hold, with the reason
	Manifest digest.Digest
}
