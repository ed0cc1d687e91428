package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemDirs are what a sealed command sees of the system, where they exist.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
	"/nix/store", "/run/current-system", "/var/lib/ca-certificates",
}

func systemBinds() []bind {
	var out []bind
	for _, d := range systemDirs {
		if _, err := os.Lstat(d); err == nil {
			out = append(out, bind{d, d})
		}
	}
	return out
}

// A view is what a sealed command sees of the host.
type view struct {
	binds     []bind
	masks     []string
	maskFiles []string
}

// see works out the view: the system, every directory of PATH with the toolchain around it, and the paths that the runtime names.
func (r *Runner) see(argv0, path string, named []string, network bool) view {
	home, _ := os.UserHomeDir()
	v := view{binds: systemBinds()}
	add := func(from, to string) {
		for _, b := range v.binds {
			// Inside what is shown it is there already, or the link to it is.
			if contains(b.To, to) {
				return
			}
		}
		v.binds = append(v.binds, bind{from, to})
	}
	dirs := filepath.SplitList(path)
	if p := resolve(argv0, dirs); p != "" {
		dirs = append(dirs, filepath.Dir(p))
	}
	var roots []bind
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			continue
		}
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			continue
		}
		from := toolchain(real, home)
		if from == "" || r.hidden(from) {
			continue
		}
		roots = append(roots, bind{from, from})
		if name := filepath.Clean(d); name != real {
			// The name that PATH has for it must lead there too, and so must the names of what is around it.
			if to := toolchain(name, home); to != "" && strings.TrimPrefix(real, from) == strings.TrimPrefix(name, to) {
				roots = append(roots, bind{from, to})
			} else {
				roots = append(roots, bind{real, name})
			}
		}
	}
	for _, p := range named {
		if filepath.IsAbs(p) {
			real, err := filepath.EvalSymlinks(p)
			if err == nil {
				roots = append(roots, bind{real, real}, bind{real, filepath.Clean(p)})
			}
		}
	}
	// An outer directory comes first, or it would cover what is mounted inside it.
	slices.SortStableFunc(roots, func(a, b bind) int { return strings.Compare(a.To, b.To) })
	for _, b := range roots {
		add(b.From, b.To)
	}
	if network {
		if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
			add(real, real)
		}
	}
	r.mask(&v)
	return v
}

// toolchain is the directory around a directory of programs: ~/sdk/go1.26 for ~/sdk/go1.26/bin. It is never the user's HOME, a
// directory above it, nor the root.
func toolchain(bin, home string) string {
	root := bin
	switch filepath.Base(bin) {
	case "bin", "sbin", "shims":
		root = filepath.Dir(bin)
	}
	_, err := os.Lstat(filepath.Join(root, "pkg", "mod"))
	if err == nil || root == "/" || home != "" && contains(root, home) {
		root = bin
	}
	if root == "/" || home != "" && contains(root, home) {
		return ""
	}
	return root
}

// resolve finds the program that argv0 names, with links followed: its toolchain may be elsewhere than its name.
func resolve(argv0 string, dirs []string) string {
	if filepath.IsAbs(argv0) {
		p, _ := filepath.EvalSymlinks(argv0)
		return p
	}
	if strings.Contains(argv0, "/") {
		return ""
	}
	for _, d := range dirs {
		if p := filepath.Join(d, argv0); filepath.IsAbs(d) && executable(p) == nil {
			p, _ = filepath.EvalSymlinks(p)
			return p
		}
	}
	return ""
}

// hidden says whether path lies in what no command may see.
func (r *Runner) hidden(path string) bool {
	return slices.ContainsFunc(r.hide(), func(h string) bool { return contains(h, path) })
}

// hide is what no command may see, under each of its names.
func (r *Runner) hide() []string {
	var out []string
	for _, h := range append([]string{r.opt.States, r.opt.Scratch}, r.opt.HidePaths...) {
		out = append(out, filepath.Clean(h))
		if real, err := filepath.EvalSymlinks(h); err == nil && real != out[len(out)-1] {
			out = append(out, real)
		}
	}
	return out
}

// credentials are files in toolchains' directories that are nobody else's business.
var credentials = []string{"credentials", "credentials.toml"}

// mask covers what is hidden inside what is shown.
func (r *Runner) mask(v *view) {
	for _, b := range v.binds {
		for _, h := range r.hide() {
			if contains(b.From, h) {
				if b.From == h {
					continue // named by the runtime: the user's own decision
				}
				v.masks = append(v.masks, b.To+strings.TrimPrefix(h, b.From))
			}
		}
		for _, c := range credentials {
			if fi, err := os.Lstat(filepath.Join(b.From, c)); err == nil && fi.Mode().IsRegular() {
				v.maskFiles = append(v.maskFiles, filepath.Join(b.To, c))
			}
		}
	}
}
