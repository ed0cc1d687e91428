//go:build unix

package host

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/run"
)

// Init must be the first call of main, and of TestMain. Where the runner has re-executed the program as the first process of a sandbox, or to guard commands in place,
// it does that work and never returns.
func Init() {
	switch os.Args[0] {
	case initName:
	case anchorName:
		syscall.Exit(0)
	case guardName:
		guard()
	default:
		return
	}
	runtime.LockOSThread() // no_new_privs and the parent-death of what it starts belong to a thread
	closeOnExec()
	i := &initProcess{
		in:  gob.NewDecoder(os.NewFile(fdOrders, "orders")),
		out: gob.NewEncoder(os.NewFile(fdReplies, "replies")),
	}
	if err := i.run(); err != nil {
		rep := reply{Error: err.Error()}
		errors.As(err, &rep.Missing)
		i.out.Encode(rep)
		syscall.Exit(1)
	}
	syscall.Exit(0) // os.Exit sleeps for a second where the race detector is on
}

// An initProcess is the first process of a sandbox: it builds what the command sees, lays the workspace, starts the command, and when that has ended
// or is to end kills all that is left, so that it alone looks at what the command made.
type initProcess struct {
	in   *gob.Decoder
	out  *gob.Encoder
	spec spec

	workspace, home string // as this process sees them
}

func (i *initProcess) run() error {
	// The command may signal whoever has its user; only the runner ends this process. The signals are caught, not ignored: the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGALRM)
	if err := i.in.Decode(&i.spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	syscall.Umask(0o022) // what a command makes must not depend on who runs it
	s := &i.spec
	i.workspace, i.home = s.Workspace, s.Home
	cleanUp, err := enter(s)
	if err != nil {
		return err
	}
	if s.Probe {
		return i.out.Encode(reply{End: &end{}})
	}
	l := &layer{root: i.workspace, home: i.home, stamp: time.Unix(0, s.Stamp), blobs: i.blobs}
	altered := l.overlaid(s)
	if err := l.lay(s); err != nil {
		return err
	}
	var before []indexed
	known := readIndex(os.NewFile(fdIndexIn, "index"))
	if s.Changes || s.Manifest && l.has(s.Watch) {
		if before, err = index(i.workspace, known); err != nil {
			return err
		}
		known = before
	}
	e, started, err := i.command()
	if err != nil {
		return err
	}
	e.Reset, e.Altered = l.reset, altered
	if err := cleanUp(); err != nil {
		return err
	}
	if e.Reports, e.Refused, err = collect(i.workspace, s.Reports, started); err != nil {
		return err
	}
	if s.Changes || s.Manifest {
		if err := i.look(e, before, known); err != nil {
			return err
		}
	}
	return i.out.Encode(reply{End: e})
}

// look says what the workspace holds, and what in it changed.
func (i *initProcess) look(e *end, before, known []indexed) error {
	after, err := index(i.workspace, known)
	if err != nil {
		return err
	}
	if i.spec.Changes {
		if e.Changes, e.Skipped, err = changes(i.workspace, before, after); err != nil {
			return err
		}
	}
	if !i.spec.Manifest {
		return nil
	}
	e.Altered = slices.Compact(slices.Sorted(slices.Values(append(e.Altered, altered(before, after, i.spec.Watch)...))))
	e.Manifest = manifest(after)
	if err := dateBack(i.workspace, after); err != nil {
		return err
	}
	return writeIndex(os.NewFile(fdIndexOut, "index"), after)
}

// blobs asks the runner for contents, each once.
func (i *initProcess) blobs(ids []digest.Digest) ([][]byte, error) {
	if err := i.out.Encode(reply{Need: ids}); err != nil {
		return nil, err
	}
	var o order
	if err := i.in.Decode(&o); err != nil {
		return nil, err
	}
	if len(o.Blobs) != len(ids) {
		return nil, errors.New("the runner went away")
	}
	return o.Blobs, nil
}

// command runs the command, and returns when everything that it started is dead.
func (i *initProcess) command() (*end, time.Time, error) {
	if i.spec.Grouped {
		if err := i.out.Encode(reply{Ready: true}); err != nil {
			return nil, time.Time{}, err
		}
		var o order
		if err := i.in.Decode(&o); err != nil {
			return nil, time.Time{}, err
		}
	}
	started := time.Now()
	pid, exit, err := i.start()
	syscall.Close(fdStdout)
	syscall.Close(fdStderr)
	if err != nil {
		return nil, started, err
	}
	if err := i.out.Encode(reply{Started: true}); err != nil {
		killTree(pid) // the runner is gone, and nothing else would end it
		return nil, started, err
	}
	go i.obey(pid)
	if pid != 0 {
		exit = i.wait(pid)
	}
	elapsed := time.Since(started)
	killTree(pid)
	i.wait(0)
	var ru syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ru)
	return &end{
		Exit: exit, Elapsed: int64(elapsed), CPU: ru.Utime.Nano() + ru.Stime.Nano(), MaxRSS: maxRSS(&ru),
	}, started, nil
}

// start starts the command. A program that is not found on PATH is an error, for the world is not as declared; one that the workspace itself should
// hold, and does not or not as a program, is what the tree is like: the command ends as in a shell, with 127 or 126 and pid 0.
func (i *initProcess) start() (pid, exit int, err error) {
	s := &i.spec
	dir := filepath.Join(i.workspace, s.Cwd)
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return 0, 127, i.complain("the workspace has no directory %s", s.Cwd)
	}
	program, err := lookPath(s.Argv[0], dir, s.Env)
	if err != nil {
		switch {
		case filepath.IsAbs(s.Argv[0]) && errors.Is(err, fs.ErrNotExist):
			return 0, 0, &run.NotFound{Program: s.Argv[0]}
		case filepath.IsAbs(s.Argv[0]) || !strings.Contains(s.Argv[0], "/"):
			return 0, 0, err
		}
		return 0, exitOf(err), i.complain("%s", err)
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer syscall.Close(null)
	defer limitPids(s.Pids, &pid)()
	pid, err = syscall.ForkExec(program, s.Argv, &syscall.ProcAttr{
		Dir: dir, Env: s.Env, Sys: commandAttr(s), Files: []uintptr{uintptr(null), fdStdout, fdStderr},
	})
	if err != nil {
		if strings.HasPrefix(program, i.workspace+"/") && !isShortage(err, program) {
			return 0, 126, i.complain("%s: %s", s.Argv[0], err)
		}
		return 0, 0, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	return pid, 0, nil
}

// shortages are why a machine starts no program, whatever it is. All other reasons are the program's.
var shortages = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EPERM, syscall.E2BIG}

// isShortage says whether a program was not started for a reason that is the machine's. An input error is the disk's, or that of an ELF file which
// names an interpreter beyond its end; a disk shows it to whoever reads the file too. Of a sparse file of any size no more than its beginning is read.
func isShortage(err error, program string) bool {
	if !errors.Is(err, syscall.EIO) {
		return slices.ContainsFunc(shortages, func(s syscall.Errno) bool { return errors.Is(err, s) })
	}
	f, err := os.Open(program)
	if err == nil {
		defer f.Close()
		_, err = io.CopyN(io.Discard, f, 1<<20)
	}
	return errors.Is(err, syscall.EIO)
}

func exitOf(err error) int {
	if errors.Is(err, fs.ErrPermission) {
		return 126
	}
	return 127
}

// complain writes to the command's stderr what a shell would.
func (i *initProcess) complain(format string, args ...any) error {
	_, err := syscall.Write(fdStderr, fmt.Appendf(nil, "pbuild: "+format+"\n", args...))
	return err
}

// lookPath finds a program as the command would: its PATH, not this process's.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		p := name
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		return p, executable(p)
	}
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		if p := filepath.Join(d, name); filepath.IsAbs(d) && executable(p) == nil {
			return p, nil
		}
	}
	return "", &run.NotFound{Program: name, Path: path}
}

func executable(p string) error {
	fi, err := os.Stat(p)
	if err != nil {
		return err
	}
	if fi.IsDir() || fi.Mode()&0o111 == 0 {
		return &fs.PathError{Op: "run", Path: p, Err: fs.ErrPermission}
	}
	return nil
}

// obey ends the command when the runner says so, and everything when the runner is gone.
func (i *initProcess) obey(pid int) {
	for {
		var o order
		err := i.in.Decode(&o)
		killTree(pid)
		if err != nil {
			syscall.Exit(1)
		}
	}
}

// wait reaps whatever ends, until pid has, or nothing is left.
func (i *initProcess) wait(pid int) int {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0 // nothing is left
		}
		if got == pid {
			return exitStatus(status)
		}
	}
}

// exitStatus is a command's, as a shell gives it.
func exitStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
