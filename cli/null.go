package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pbuild/engine/plan"
	"pbuild/engine/run"
	"pbuild/engine/store"
)

// Null answers a plan or apply that finds nothing changed, from the snapshot alone: no command tree, no HCL, no journal, no process. It knows only
// the plainest command lines; for every other, and wherever anything at all has changed or would have to be said, ok is false and Run has
// the answer.
func Null(cfg Config) (code Exit, ok bool) {
	q, ok := parseNull(cfg.Args, cfg.Environ)
	if !ok {
		return 0, false
	}
	began := cfg.Clock()
	dir, err := filepath.Abs(q.dir)
	if err != nil {
		return 0, false
	}
	state := filepath.Join(dir, stateDir)
	snap, err := store.OpenSnapshot(state)
	if err != nil {
		return 0, false
	}
	defer snap.Close()
	var r remembered
	if json.Unmarshal(snap.Counts(), &r) != nil || !r.idle() || len(r.Diagnostics) > 0 || q.json && !q.apply && r.Graph == "" {
		return 0, false
	}
	if q.apply {
		if _, held := store.LockedBy(state); held || r.Fails {
			return 0, false
		}
	}
	st, err := store.Open(state)
	if err != nil {
		return 0, false
	}
	defer st.Close()
	if fresh, _ := snap.Check(cfg.Identity, argumentsDigest(q.vars, nil, cfg.Environ), st.Generation()); !fresh {
		return 0, false
	}
	out := &product{w: cfg.Stdout}
	cfg.Stdout = out
	q.print(cfg, &r, began)
	return ExitDone, out.err == nil
}

// A nullQuery is a command line that Null knows.
type nullQuery struct {
	dir   string
	vars  []string
	apply bool
	json  bool
	quiet bool

	detailed bool
}

// harmless are the variables that change nothing for a run that has nothing to do.
var harmless = []string{"PBUILD_JOBS", "PBUILD_SCRATCH", "PBUILD_ISOLATION"}

// parseNull reads `plan` or `apply` with -C, --var, --json, -q, --detailed-exitcode, -j and --yes. Anything else is not for Null.
func parseNull(args, environ []string) (q nullQuery, ok bool) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PBUILD_JOBS" && !isCount(value) {
			return q, false // Run says what is wrong with it
		}
		if _, ok := run.ParseIsolation(value); name == "PBUILD_ISOLATION" && !ok {
			return q, false
		}
		if strings.HasPrefix(name, "PBUILD_") && !strings.HasPrefix(name, "PBUILD_VAR_") && !slices.Contains(harmless, name) {
			return q, false
		}
	}
	q.dir = "."
	command := ""
	for i := 0; i < len(args); i++ {
		value := func() (v string, ok bool) {
			if i++; i < len(args) {
				return args[i], true
			}
			return "", false
		}
		switch arg := args[i]; arg {
		case "plan", "apply":
			if command != "" {
				return q, false
			}
			command = arg
		case "-C", "--directory":
			if q.dir, ok = value(); !ok {
				return q, false
			}
		case "--var":
			v, ok := value()
			if !ok {
				return q, false
			}
			q.vars = append(q.vars, v)
		case "-j", "--jobs":
			if v, ok := value(); !ok || !isCount(v) {
				return q, false
			}
		case "--json":
			q.json = true
		case "-q", "--quiet":
			q.quiet = true
		case "--detailed-exitcode":
			q.detailed = true
		case "--yes", "-y", "--auto-approve":
			if command != "apply" {
				return q, false
			}
		default:
			return q, false
		}
	}
	q.apply = command == "apply"
	return q, command != "" && !(q.apply && q.detailed) // which Run refuses
}

// isCount says whether text is a whole number of at least one.
func isCount(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0
}

// print says what the whole path would say.
func (q *nullQuery) print(cfg Config, r *remembered, began time.Time) {
	t := plan.Tally{Run: r.Counts.Run, Maybe: r.Counts.Maybe, Reuse: r.Counts.Reuse, Unneeded: r.Counts.Unneeded}
	color := colorMode("auto", cfg.Stdout, (&app{cfg: cfg}).getenv)
	switch {
	case q.apply:
		q.printApply(cfg, r, t, began, color)
	case q.json:
		d := &planJSON{FormatVersion: formatVersion, Pbuild: cfg.Version, Graph: r.Graph, Counts: r.Counts, Unknown: []unknownJSON{},
			Tasks: []planTaskJSON{}, Diagnostics: []diagnosticJSON{}}
		d.Samples.EstimateUSD = new(float64)
		(&view{out: cfg.Stdout}).document(d) // a closed pipe is its reader's affair
	default:
		fmt.Fprintln(cfg.Stdout, paint(color, bold, planSentence(t, 0)))
	}
}

func (q *nullQuery) printApply(cfg Config, r *remembered, t plan.Tally, began time.Time, color bool) {
	sum := nullSummary(t, cfg.Clock().Sub(began))
	excluded := r.Excluded
	if q.json {
		s := &stream{}
		s.full = append(s.full, cfg.Stdout)
		s.plan("", t, cfg.Clock())
		s.summary(sum, excluded, ExitDone, cfg.Clock())
		return
	}
	fmt.Fprintln(cfg.Stdout, paint(color, bold, summarySentence(sum, excluded)))
	if q.quiet {
		return
	}
	for _, line := range r.Endings {
		fmt.Fprintln(cfg.Stdout, line)
	}
	if len(r.Reports) > 0 {
		fmt.Fprintf(cfg.Stdout, "Reports: %s.\n", strings.Join(r.Reports, ", "))
	}
}
