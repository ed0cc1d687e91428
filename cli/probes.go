package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pbuild/bench/decl"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/tree"
)

// probes remembers what each runtime's probe printed, and which program printed it. A probe runs again only when the stat of its resolved
// program, its arguments or its environment differ; so a wrapper that stays while the tool behind it changes goes unnoticed, and a probe should
// name the tool itself.
type probes struct {
	ctx     context.Context
	clock   func() time.Time
	file    string
	path    string // the caller's PATH
	noProbe bool
	known   map[string]probeResult // by the digest of runtime, arguments and environment
	used    map[string]probeResult
	missed  []string // where a program was looked for and is not
	changed bool
}

// A probeResult is one probe's output and the program's stat when it ran.
type probeResult struct {
	Runtime  string        `json:"runtime"`
	Found    string        `json:"found"`   // on PATH
	Program  string        `json:"program"` // after all links
	Size     int64         `json:"size"`
	Modified int64         `json:"modified"` // Unix nanoseconds
	Ran      int64         `json:"ran"`      // Unix nanoseconds
	Output   string        `json:"output"`
	Identity digest.Digest `json:"identity"`
}

const (
	probesFile   = "probes.json"
	probeTimeout = time.Minute
)

func openProbes(ctx context.Context, clock func() time.Time, state, path string, noProbe bool) *probes {
	p := &probes{ctx: ctx, clock: clock, file: filepath.Join(state, probesFile), path: run.AbsolutePath(path), noProbe: noProbe,
		known: map[string]probeResult{}, used: map[string]probeResult{}}
	if b, err := os.ReadFile(p.file); err == nil && json.Unmarshal(b, &p.known) != nil {
		p.known = map[string]probeResult{} // damaged: the probes run again
	}
	return p
}

// identity is the digest of what the probe prints; path is the runtime's own, "" for the caller's.
func (p *probes) identity(name string, argv []string, env map[string]string, path string) (digest.Digest, error) {
	if path == "" {
		path = p.path
	}
	var e digest.Encoder
	e.List("argv", argv)
	e.Map("env", env)
	e.String("path", path)
	id := e.Sum().Hex()
	have, ok := p.known[id]
	if p.noProbe {
		if !ok {
			have, ok = p.last(name)
		}
		if !ok {
			return digest.Digest{}, fmt.Errorf("it has never run here, and --no-probe forbids it now")
		}
		p.used[id] = have
		return have.Identity, nil
	}
	found, err := p.look(argv[0], path)
	if err != nil {
		return digest.Digest{}, err
	}
	program, err := filepath.EvalSymlinks(found)
	if err != nil {
		return digest.Digest{}, err
	}
	st, err := os.Stat(program)
	if err != nil {
		return digest.Digest{}, err
	}
	now := probeResult{Runtime: name, Found: found, Program: program, Size: st.Size(), Modified: st.ModTime().UnixNano()}
	if ok && have.Found == found && have.Program == now.Program && have.Size == now.Size && have.Modified == now.Modified {
		p.used[id] = have
		return have.Identity, nil
	}
	if now.Output, err = p.run(program, argv, env, path); err != nil {
		return digest.Digest{}, err
	}
	now.Identity, now.Ran = digest.Of([]byte(now.Output)), p.clock().UnixNano()
	p.used[id], p.changed = now, true
	return now.Identity, nil
}

// last is the newest result of a runtime whose arguments or environment have changed since.
func (p *probes) last(name string) (newest probeResult, ok bool) {
	for _, r := range p.known {
		if r.Runtime == name && (!ok || r.Ran > newest.Ran) {
			newest, ok = r, true
		}
	}
	return newest, ok
}

// look finds a program on a PATH.
func (p *probes) look(name, path string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("%q is neither a name on PATH nor an absolute path", name)
		}
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
		p.missed = append(p.missed, filepath.Join(dir, name))
	}
	return "", fmt.Errorf("%s is not found on PATH; install it, or name another probe", name)
}

// run starts a probe with the environment that commands have. Its HOME is empty, so that no configuration of the user's speaks.
func (p *probes) run(program string, argv []string, env map[string]string, path string) (string, error) {
	home, err := os.MkdirTemp("", "pbuild-probe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(p.ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Args[0] = argv[0] // a multi-call program looks at its name
	cmd.Dir = home
	cmd.WaitDelay = time.Second
	tree.OwnGroup(cmd)
	vars := run.Fixed(home, home)
	vars["PATH"] = path
	maps.Copy(vars, env)
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		cmd.Env = append(cmd.Env, k+"="+vars[k])
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrWaitDelay) {
		cmd.Cancel() // it has ended, but not what it left in the background
	}
	if ctx.Err() == context.DeadlineExceeded {
		return "", fmt.Errorf("%s did not end within %s", strings.Join(argv, " "), probeTimeout)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", strings.Join(argv, " "), err, ends(stderr.String()))
	}
	return string(out), nil
}

// ends are the first and the last line of what a probe complained, after a colon and without a full stop.
func ends(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	lines := strings.Split(s, "\n")
	first, last := strings.TrimSpace(lines[0]), lines[len(lines)-1]
	if len(lines) > 1 && last != first {
		first += " ... " + last
	}
	return ": " + strings.TrimRight(first, ".")
}

// save writes what is known, if it is new. Nothing is written where no apply has made the state's directory: a plan changes nothing.
func (p *probes) save() error {
	if !p.changed {
		return nil
	}
	maps.Copy(p.known, p.used)
	b, err := json.MarshalIndent(p.known, "", " ")
	if err != nil {
		return fmt.Errorf("probes: %w", err)
	}
	err = writeAside(p.file, b)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("probes: %w", err)
	}
	p.changed = false
	return nil
}

// reads are the programs that probes resolved to, and where they were looked for before.
func (p *probes) reads() []decl.Read {
	var out []decl.Read
	for _, r := range p.used {
		out = append(out, decl.Read{Path: r.Program})
		if r.Found != "" && r.Found != r.Program {
			out = append(out, decl.Read{Path: r.Found})
		}
	}
	for _, path := range p.missed {
		out = append(out, decl.Read{Path: path, Absent: true})
	}
	return out
}
