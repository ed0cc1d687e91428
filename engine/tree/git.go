package tree

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// repoConfig overrides whatever a user's or system's file could say: the repository's own file comes last in git's order.
// Durability is Keep's: it syncs once for many objects, where git would sync each.
const repoConfig = `[core]
	repositoryformatversion = 0
	bare = true
	filemode = true
	symlinks = true
	autocrlf = false
	safecrlf = false
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	protectHFS = true
	protectNTFS = true
	quotePath = true
	precomposeUnicode = false
	ignoreCase = false
	logAllRefUpdates = false
	fsmonitor = false
	compression = 1
	looseCompression = 1
	filesRefLockTimeout = 3000
	packedRefsTimeout = 3000
	fsync = ` + gitSync + `
[gc]
	auto = 0
[maintenance]
	auto = false
[pack]
	compression = 1
	threads = 1
[fetch]
	unpackLimit = 1
[fastimport]
	unpackLimit = 20
[index]
	threads = 1
[apply]
	whitespace = nowarn
	ignoreWhitespace = no
[uploadpack]
	allowAnySHA1InWant = true
[protocol "file"]
	allow = user
[credential]
	helper =
[http]
	lowSpeedLimit = 100
	lowSpeedTime = 120
`

// homeConfig is read by the processes that git starts in another repository too, for which the owner must not matter.
const homeConfig = `[safe]
	directory = *
[protocol "file"]
	allow = user
`

// attributes of the repository outrank those of any tree: no tree can have its content converted, filtered or left out.
const attributes = "* -text -eol -filter -ident -working-tree-encoding -export-ignore -export-subst !diff !whitespace !merge\n"

// A call is how one git process is run, besides its arguments.
type call struct {
	dir     string    // of the repository; "" is r.dir
	env     []string  // added
	stdin   io.Reader // nil is nothing
	network bool      // it may need the user's HOME, for ssh and .netrc
}

// A gitError is a git process that ended with a status other than 0.
type gitError struct {
	args   []string
	err    error
	stderr string
	exit   int // -1 where a signal ended it
}

func (e *gitError) Error() string {
	text := strings.TrimSpace(e.stderr)
	if text == "" {
		text = e.err.Error()
	}
	return fmt.Sprintf("git %s: %s", e.args[0], strings.ReplaceAll(text, "\n", "; "))
}

func (e *gitError) Unwrap() error { return e.err }

// run runs git to its end and returns what it printed. Cancelling ctx kills it with all that it started.
func (r *Repo) run(ctx context.Context, c call, args ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := r.command(ctx, c, args...)
	cmd.Stdin = c.stdin
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &limited{&problems, 64 << 10}
	err := runGroup(cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		exit := -1
		if cmd.ProcessState != nil {
			exit = cmd.ProcessState.ExitCode()
		}
		return out.Bytes(), &gitError{args, err, r.clean(problems.String()), exit}
	}
	return out.Bytes(), nil
}

// runGroup runs a command of group to its end.
func runGroup(cmd *exec.Cmd) error {
	// The child dies with the thread that started it, which must not end before it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

func (r *Repo) command(ctx context.Context, c call, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = r.dir
	}
	home := filepath.Join(r.dir, ownHome)
	cmd.Env = append(environ(c.network),
		"GIT_DIR="+cmd.Dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"),
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_LITERAL_PATHSPECS=1",
		"LC_ALL=C",
	)
	if !c.network {
		cmd.Env = append(cmd.Env, "HOME="+home)
	}
	cmd.Env = append(cmd.Env, c.env...)
	OwnGroup(cmd)
	return cmd
}

// environ is this process's environment without what would steer git or translate its words.
func environ(network bool) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "GIT_"), strings.HasPrefix(name, "LC_"), name == "LANG", name == "LANGUAGE",
			name == "XDG_CONFIG_HOME", name == "SSH_ASKPASS", name == "HOME" && !network:
		default:
			env = append(env, kv)
		}
	}
	return env
}

// clean takes this machine's paths out of git's words.
func (r *Repo) clean(text string) string {
	text = strings.ReplaceAll(text, r.tmp+string(filepath.Separator), "")
	return strings.ReplaceAll(text, r.dir, "trees.git")
}

// limited keeps the first left bytes and drops the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	keep := min(len(p), l.left)
	l.left -= keep
	if _, err := l.w.Write(p[:keep]); err != nil {
		return 0, err
	}
	return len(p), nil
}
