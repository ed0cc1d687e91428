package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// seal builds a root of its own from read-only views of the host's directories, and moves into it. It returns what was forwarded into HOME.
func seal(s *spec) (forwarded []string, err error) {
	b := &builder{root: s.Sandbox.Root}
	// A descriptor from outside would be of another mount namespace, which an overlay refuses.
	b.try("open the layers", func() (err error) { b.lower, err = openDir(s.Sandbox.Layers); return err })
	b.try("open the scratch directory", func() (err error) { b.upper, err = openDir(s.Sandbox.Scratch); return err })
	b.try("make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") })
	b.mount("tmpfs", "/", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m")
	b.mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777") // before what may be shown inside it
	for _, bd := range s.Sandbox.Binds {
		b.bind(bd.From, bd.To)
	}
	for _, m := range s.Sandbox.Masks {
		b.maskDir(m)
	}
	for _, m := range s.Sandbox.MaskFiles {
		b.bind("/dev/null", m)
	}
	b.users(s)
	b.devices()
	b.proc(s.Sandbox.MaskProc)
	b.layers(s.Workspace, s.Sandbox.Workspace)
	b.layers(s.Home, s.Sandbox.Home)
	for _, f := range s.Forward {
		forwarded = append(b.forward(s.Home, f), forwarded...) // the first may have made directories that others lie in
	}
	b.try("enter the sandbox", func() error { return pivot(b.root) })
	b.try("make / read-only", func() error { return readOnly("/", 0) })
	return forwarded, b.err
}

// A builder makes mounts below root and remembers the first error.
type builder struct {
	root         string
	lower, upper int // directories that layers are named below
	err          error
}

func openDir(path string) (int, error) {
	return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func (b *builder) try(what string, f func() error) {
	if b.err != nil {
		return
	}
	if err := f(); err != nil {
		b.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (b *builder) mount(source, target, fstype string, flags uintptr, data string) {
	b.try("mount "+fstype+" on "+target, func() error {
		if err := os.MkdirAll(b.root+target, 0o755); err != nil {
			return err
		}
		return unix.Mount(source, b.root+target, fstype, flags, data)
	})
}

// bind shows the host's from, with all that is mounted below it, as to, read-only. A link is shown as the same link; what is not there is not shown.
func (b *builder) bind(from, to string) {
	b.try("show "+from, func() error {
		fi, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		target := b.root + to
		if fi.Mode()&fs.ModeSymlink != 0 {
			return b.link(from, target)
		}
		if err := makePoint(target, fi.IsDir()); err != nil {
			return err
		}
		if err := unix.Mount(from, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		return readOnly(target, unix.AT_RECURSIVE)
	})
}

func (b *builder) link(from, target string) error {
	to, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(to, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// makePoint makes something to mount on, if it is not there.
func makePoint(target string, dir bool) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// readOnly takes writing from a mount, and with AT_RECURSIVE from all mounts below it.
func readOnly(target string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, target, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
}

// maskDir shows a directory empty, where the sandbox has it at all.
func (b *builder) maskDir(dir string) {
	b.try("hide "+dir, func() error {
		if fi, err := os.Lstat(b.root + dir); err != nil || !fi.IsDir() {
			return nil
		}
		return unix.Mount("tmpfs", b.root+dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=0555,size=4k")
	})
}

// users gives the command's user a name and the right HOME: Java and others ask for these, and not for $HOME.
func (b *builder) users(s *spec) {
	b.try("name the user", func() error {
		user := fmt.Sprintf("pbuild:x:%d:%d::%s:/bin/sh\n", commandUser, commandUser, s.Home)
		group := fmt.Sprintf("pbuild:x:%d:\n", commandUser)
		for file, line := range map[string]string{"/etc/passwd": user, "/etc/group": group} {
			old, err := os.ReadFile(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			mine := b.root + "/." + filepath.Base(file)
			if err := os.WriteFile(mine, append([]byte(line), others(old)...), 0o644); err != nil {
				return err
			}
			if err := unix.Mount(mine, b.root+file, "", unix.MS_BIND, ""); err != nil {
				return err
			}
			if err := readOnly(b.root+file, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// others is a passwd or group file without the lines that name the command's user or have its number.
func others(file []byte) []byte {
	var out []byte
	for line := range strings.Lines(string(file)) {
		f := strings.Split(line, ":")
		if f[0] != "pbuild" && (len(f) < 3 || f[2] != strconv.Itoa(commandUser)) {
			out = append(out, line...)
		}
	}
	return out
}

// devices makes a /dev of the devices that are nobody's. A user namespace may not make device files, so they are the host's.
func (b *builder) devices() {
	b.mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=1m")
	for _, d := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		b.bind("/dev/"+d, "/dev/"+d) // read-only, that is: it can be written to, but its mode and owner stay
	}
	b.mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
	b.mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		b.try("link /dev/"+name, func() error { return os.Symlink(to, b.root+"/dev/"+name) })
	}
	b.try("make /dev read-only", func() error { return readOnly(b.root+"/dev", 0) })
}

// proc shows the sandbox's own processes. What in it belongs to the machine's root is covered if the command has root's number outside: the kernel lets
// that number write there without any capability.
func (b *builder) proc(mask bool) {
	b.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if !mask {
		return
	}
	for _, p := range []string{"/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/sysrq-trigger", "/proc/mtrr"} {
		if _, err := os.Lstat(b.root + p); err != nil {
			continue
		}
		b.try("protect "+p, func() error {
			if err := unix.Mount(b.root+p, b.root+p, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return err
			}
			return readOnly(b.root+p, unix.AT_RECURSIVE)
		})
	}
	for _, p := range []string{"/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/timer_list", "/proc/sched_debug"} {
		if _, err := os.Lstat(b.root + p); err == nil {
			b.bind("/dev/null", p)
		}
	}
}

// layers shows one of the two writable directories. Layers are named through descriptors: their paths may hold the characters that mount options are made of,
// and a page is all that options may take.
func (b *builder) layers(target string, l layers) {
	upper := below(b.upper, l.Upper)
	if len(l.Lower) == 0 {
		b.try("show "+target, func() error {
			if err := os.MkdirAll(b.root+target, 0o755); err != nil {
				return err
			}
			return unix.Mount(upper, b.root+target, "", unix.MS_BIND, "")
		})
		return
	}
	lower := make([]string, len(l.Lower))
	for i, name := range l.Lower {
		lower[i] = below(b.lower, name)
	}
	b.mount("overlay", target, "overlay", unix.MS_NOSUID|unix.MS_NODEV,
		"userxattr,lowerdir="+strings.Join(lower, ":")+",upperdir="+upper+",workdir="+below(b.upper, l.Work))
}

func below(fd int, name string) string { return "/proc/self/fd/" + strconv.Itoa(fd) + "/" + name }

// forward shows a file or directory of the user's under HOME. It returns the mount, and below it the things that were made to mount on, innermost first.
func (b *builder) forward(home string, f bind) (made []string) {
	to := f.To
	if !filepath.IsAbs(to) {
		to = home + "/" + to
	}
	b.try("show "+f.From, func() error {
		fi, err := os.Stat(f.From)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, p := range missing(b.root+home, b.root+to) {
			made = append(made, strings.TrimPrefix(p, b.root))
		}
		if len(made) == 0 {
			return nil // what the state has there is newer
		}
		if err := makePoint(b.root+to, fi.IsDir()); err != nil {
			return err
		}
		if err := unix.Mount(f.From, b.root+to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
		return readOnly(b.root+to, unix.AT_RECURSIVE)
	})
	return made
}

// unforward takes forwarded files away again, and the empty things that they were mounted on.
func unforward(made []string) error {
	for _, p := range made {
		unix.Unmount(p, unix.MNT_DETACH)
	}
	for _, p := range made {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("take %s away again: %w", p, err)
		}
	}
	return nil
}

// pivot makes root the root, and lets go of the old one.
func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}
