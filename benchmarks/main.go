// Command benchmarks measures pbuild against ninja and make on the same work, in one run, A B A B, and prints a table for docs/benchmarks.md.
//
// It asserts nothing: times belong to the machine. What it prints are ratios, each the median of the ratios of single rounds, so that a
// machine which grows slow for a while slows both sides of a ratio. A peer that is not installed is left out, and named.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	o := options{log: os.Stderr}
	sizes := flag.String("sizes", "1000,10000,100000", "how many tasks, one workspace for each")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each case is measured")
	flag.IntVar(&o.firstMax, "first-max", 10_000, "the largest workspace that peers build too; in a larger one pbuild builds once, what it made is given to ninja, and make is left out")
	flag.IntVar(&o.jobs, "j", runtime.NumCPU(), "how many tasks run at once, in pbuild and its peers alike")
	flag.StringVar(&o.pbuild, "pbuild", "", "the binary to measure; default: this source, built anew")
	keep := flag.String("dir", "", "where the workspaces are written and kept; default: a directory that is removed")
	flag.Parse()
	if err := run(&o, *sizes, *keep, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

// options are what every part of a run needs.
type options struct {
	rounds, firstMax, jobs int
	pbuild                 string // path of the binary
	peers                  []peer
	log                    io.Writer
}

func (o *options) say(format string, args ...any) { fmt.Fprintf(o.log, format+"\n", args...) }

func run(o *options, sizes, dir string, out io.Writer) error {
	var ns []int
	for _, s := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 10 {
			return fmt.Errorf("-sizes: %q is not a number of at least 10", s)
		}
		ns = append(ns, n)
	}
	if dir == "" {
		made, err := os.MkdirTemp("", "pbuild-benchmarks-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(made)
		dir = made
	}
	dir, err := filepath.Abs(dir) // commands run in directories of their own
	if err != nil {
		return err
	}
	if err := o.build(dir); err != nil {
		return err
	}
	o.findPeers()
	var all []*report
	for _, n := range ns {
		began := time.Now()
		o.say("%d tasks", n)
		r, err := measure(o, filepath.Join(dir, strconv.Itoa(n)), n)
		if err != nil {
			return fmt.Errorf("%d tasks: %w", n, err)
		}
		o.say("%d tasks took %.0f s", n, time.Since(began).Seconds())
		all = append(all, r)
	}
	write(out, o, all)
	return nil
}

// build makes the binary, unless one was named.
func (o *options) build(dir string) error {
	if o.pbuild != "" {
		abs, err := filepath.Abs(o.pbuild)
		o.pbuild = abs
		return err
	}
	o.pbuild = filepath.Join(dir, "pbuild")
	cmd := exec.Command("go", "build", "-trimpath", "-o", o.pbuild, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = o.log
	return cmd.Run()
}

// A peer is another build system that does the same work.
type peer struct {
	name    string
	version string
	args    func(dir string, jobs int) []string
}

var peers = []peer{
	{name: "ninja", args: func(dir string, jobs int) []string { return []string{"-C", dir, "-j", strconv.Itoa(jobs), "--quiet"} }},
	{name: "make", args: func(dir string, jobs int) []string { return []string{"-C", dir, "-j" + strconv.Itoa(jobs), "-rRs"} }},
}

func (o *options) findPeers() {
	for _, p := range peers {
		out, err := exec.Command(p.name, "--version").Output()
		if err != nil {
			o.say("%s is not installed: nothing is compared with it", p.name)
			continue
		}
		first, _, _ := strings.Cut(string(out), "\n")
		if p.version = first; !strings.Contains(strings.ToLower(first), p.name) {
			p.version = p.name + " " + first
		}
		o.peers = append(o.peers, p)
	}
}
