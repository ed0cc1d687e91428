package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pbuild/engine/run"
)

// commandUser is the user that a sealed command sees itself as.
const commandUser = 1000

// enter builds what the command will see, as far as the isolation goes. cleanUp takes away again what must not stay in a state.
func enter(s *spec) (cleanUp func() error, err error) {
	if s.Isolation < run.IsolationSealed {
		if s.Isolation == run.IsolationNone {
			if err := adoptOrphans(); err != nil {
				return nil, fmt.Errorf("become subreaper: %w", err)
			}
		} else if err := ownProc(); err != nil {
			return nil, err
		}
		return forwardCopies(s)
	}
	forwarded, err := seal(s)
	if err != nil {
		return nil, err
	}
	if !s.Network {
		if err := loopbackUp(); err != nil {
			return nil, fmt.Errorf("bring loopback up: %w", err)
		}
	}
	unix.Sethostname([]byte("pbuild"))
	return func() error { return unforward(forwarded) }, nil
}

// adoptOrphans makes this process the parent of whatever below it loses its own.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// ownProc shows the processes of this pid namespace in /proc, which would else show those of the host under other numbers.
func ownProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// commandAttr says how the command is started: in its own session, without new privileges, and where this process is root only in its own user
// namespace, as an ordinary user of a further one.
func commandAttr(s *spec) *syscall.SysProcAttr {
	unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	attr := &syscall.SysProcAttr{Setsid: true}
	if s.Isolation == run.IsolationSealed {
		attr.Cloneflags = unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: commandUser, HostID: 0, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: commandUser, HostID: 0, Size: 1}}
	}
	return attr
}

// closeOnExec keeps every descriptor from the command, also those that whoever started this program left open.
func closeOnExec() {
	if unix.CloseRange(fdOrders, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := fdOrders; fd < fdEnd; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// limitPids bounds the processes of what is started before the returned function is called, which must know it as *pid. This process must stay free of the
// bound: under a fork bomb it could start no thread of its own.
func limitPids(n int64, pid *int) (done func()) {
	var old unix.Rlimit
	if n <= 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &old) != nil {
		return func() {}
	}
	limit := unix.Rlimit{Cur: min(uint64(n), old.Max), Max: old.Max}
	unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
	return func() {
		unix.Setrlimit(unix.RLIMIT_NPROC, &old)
		if *pid > 0 {
			limit.Max = limit.Cur
			unix.Prlimit(*pid, unix.RLIMIT_NPROC, &limit, nil)
		}
	}
}

// killTree kills all that the command started. Processes that it left behind as orphans are this process's children: it is the first of its pid
// namespace, or a subreaper.
func killTree(int) {
	if os.Getpid() == 1 {
		// Only the first process of a pid namespace may say "all": anywhere else that is the whole machine.
		unix.Kill(-1, unix.SIGKILL)
		return
	}
	// A process may fork while it is looked for, so this goes on until a look finds none.
	for {
		found := descendants()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond) // a killed process needs a moment to be dead
	}
}

// descendants lists the living processes below this one.
func descendants() []int {
	all := processes()
	self := os.Getpid()
	var found []int
	for pid, p := range all {
		up := p.parent
		// Numbers are used again while /proc is read, so the chain may be a ring.
		for steps := 0; up > 1 && up != self && steps < len(all); steps++ {
			up = all[up].parent
		}
		if up == self && !p.dead {
			found = append(found, pid)
		}
	}
	return found
}

// A seen is what /proc says of a process.
type seen struct {
	parent, group int
	dead          bool
}

// processes are those that there are, by number.
func processes() map[int]seen {
	names, err := readDirNames("/proc")
	if err != nil {
		return nil
	}
	all := map[int]seen{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The program's name, in parentheses, may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 3 {
			continue
		}
		p := seen{dead: fields[0] == "Z" || fields[0] == "X"}
		p.parent, _ = strconv.Atoi(fields[1])
		p.group, _ = strconv.Atoi(fields[2])
		all[pid] = p
	}
	return all
}

func readDirNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// loopbackUp brings up the only interface that a new network namespace has.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

func maxRSS(ru *syscall.Rusage) int64 { return ru.Maxrss << 10 }

func ctime(fi fs.FileInfo) int64 {
	st := fi.Sys().(*syscall.Stat_t)
	return st.Ctim.Nano()
}

// copyData copies what in holds, and leaves its holes.
func copyData(out, in *os.File, size int64) error {
	for at := int64(0); at < size; {
		from, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // the rest is a hole
		}
		if err != nil {
			return err
		}
		if at, err = in.Seek(from, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := out.Seek(from, io.SeekStart); err != nil {
			return err
		}
		if _, err := in.Seek(from, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, at-from); err != nil {
			return err
		}
	}
	return out.Truncate(size)
}

// allocated is how many bytes of a file lie on the disk.
func allocated(fi fs.FileInfo) int64 { return fi.Sys().(*syscall.Stat_t).Blocks * 512 }

func hardLinks(fi fs.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Nlink) }

// isWhiteout says whether fi is an overlay's mark for "not there".
func isWhiteout(fi fs.FileInfo) bool {
	return fi.Mode()&fs.ModeCharDevice != 0 && fi.Sys().(*syscall.Stat_t).Rdev == 0
}

// isOpaque says whether dir hides what lower layers have under its name.
func isOpaque(dir string) bool {
	var b [1]byte
	n, err := unix.Lgetxattr(dir, opaqueXattr, b[:])
	return err == nil && n == 1 && b[0] == 'y'
}

func setOpaque(dir string) error { return unix.Lsetxattr(dir, opaqueXattr, []byte("y"), 0) }

const opaqueXattr = "user.overlay.opaque"

// reflink makes dst share the blocks of src.
func reflink(dst, src *os.File) error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) }
