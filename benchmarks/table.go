package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// write prints what was measured as Markdown.
func write(out io.Writer, o *options, all []*report) {
	fmt.Fprintf(out, "%s, %s/%s, %d cores, -j%d, %d rounds.%s\n", peerNames(o), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.jobs, o.rounds, load())
	fmt.Fprint(out, "Ratios are pbuild's cost by the peer's, in time that passed and, in brackets, in processor time: less is better.\n\n")
	fmt.Fprint(out, "| case | tasks | pbuild | to ninja | aim | to make | memory | ninja's |\n|---|---|---|---|---|---|---|---|\n")
	for i := range all[0].cases {
		for _, r := range all {
			s := r.cases[i]
			fmt.Fprintf(out, "| %s | %d | %.3f s | %s | %s | %s | %s | %s |\n", s.name, r.n, s.median("pbuild", wall).Seconds(),
				ratios(s, "ninja"), s.aim, ratios(s, "make"), mebibytes(s.memory("pbuild")), mebibytes(s.memory("ninja")))
		}
	}
	fmt.Fprint(out, "\n| tasks | snapshot, B a task (aim 300) | .pbuild, B a task |\n|---|---|---|\n")
	for _, r := range all {
		fmt.Fprintf(out, "| %d | %d | %d |\n", r.n, r.snapshot/int64(r.n), r.state/int64(r.n))
	}
	growth(out, all)
}

// growth compares the smallest and the largest workspace: linear cost grows as the tasks do.
func growth(out io.Writer, all []*report) {
	first, last := all[0], all[len(all)-1]
	if len(all) < 2 {
		return
	}
	fmt.Fprintf(out, "\n| from %d to %d tasks (x%d) | pbuild | ninja | make |\n|---|---|---|---|\n", first.n, last.n, last.n/first.n)
	for i, s := range first.cases {
		fmt.Fprintf(out, "| %s |", s.name)
		for _, side := range []string{"pbuild", "ninja", "make"} {
			a, b := s.median(side, wall), last.cases[i].median(side, wall)
			if a == 0 || b == 0 {
				fmt.Fprint(out, " |")
				continue
			}
			fmt.Fprintf(out, " x%.0f |", float64(b)/float64(a))
		}
		fmt.Fprintln(out)
	}
}

func ratios(s *series, peer string) string {
	r, ok := s.ratio(peer, wall)
	if !ok {
		return ""
	}
	c, _ := s.ratio(peer, cpu)
	return fmt.Sprintf("%.2f (%.2f)", r, c)
}

func mebibytes(b int64) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f MiB", float64(b)/(1<<20))
}

func peerNames(o *options) string {
	if len(o.peers) == 0 {
		return "no peer"
	}
	var names []string
	for _, p := range o.peers {
		names = append(names, p.version)
	}
	return strings.Join(names, ", ")
}

// load says how busy the machine is, where it tells.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(b))
	return fmt.Sprintf(" Load of the machine at the end: %s, %s, %s (1, 5, 15 minutes).", f[0], f[1], f[2])
}
