package exec

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"pbuild/bench/kind"
	"pbuild/engine/run"
)

// An Environ makes the environment of commands out of what they declare and the little that passes through. None of what passes through is keyed.
type Environ struct {
	Getenv func(string) string
	Home   string // the user's own, where client configuration is looked for

	goenv sync.Once
	goset map[string]string
}

// passNetwork are the variables that a command with network gets, so that a machine's mirrors and proxies work.
var passNetwork = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "PIP_INDEX_URL", "PIP_CERT", "NPM_CONFIG_REGISTRY",
}

// Of `go env`, which also reads the user's configuration file: with network, and always.
var (
	goNetwork = []string{"GOPROXY", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOAUTH"}
	goAlways  = []string{"GOSUMDB", "GONOSUMDB"}
)

// clientConfig are files of the user's that a command with network sees read-only.
var clientConfig = []string{
	".pip/pip.conf", ".config/pip/pip.conf", ".npmrc", ".cargo/config.toml", ".cargo/config", ".m2/settings.xml",
}

// command fills in what of a run.Command follows from a declared command and its runtime. A declared variable wins over one that passes through.
func (e *Environ) command(c *kind.Command, r *kind.Runtime) (*run.Command, error) {
	out := &run.Command{
		Argv:    c.Argv,
		Cwd:     c.Cwd,
		Env:     map[string]string{},
		Network: c.Network,
		Paths:   r.Paths,
		Limits: run.Limits{
			Wall: c.Timeout, Idle: c.IdleTimeout, CPUs: c.CPUs, Memory: c.Memory, Pids: c.Pids, Output: c.OutputLimit,
		},
	}
	pass := func(names []string, get func(string) string) {
		for _, n := range names {
			if v := get(n); v != "" {
				out.Env[n] = v
			}
		}
	}
	pass(goAlways, e.goEnv)
	if c.Network {
		pass(passNetwork, e.Getenv)
		pass(goNetwork, e.goEnv)
		for _, f := range clientConfig {
			out.Forward = append(out.Forward, filepath.Join(e.Home, f))
		}
	}
	if err := e.declared(out, c, r.Path); err != nil {
		return nil, err
	}
	return out, nil
}

// declared lays over out's environment what the command declares: PATH, values, variables that pass by name, and secrets, whose values the log is not to show.
func (e *Environ) declared(out *run.Command, c *kind.Command, path string) error {
	if path == "" {
		path = run.AbsolutePath(e.Getenv("PATH"))
	}
	out.Env["PATH"] = path
	for _, n := range c.PassEnv {
		if v := e.Getenv(n); v != "" {
			out.Env[n] = v
		}
	}
	for n, v := range c.Env {
		out.Env[n] = v
	}
	for n, variable := range c.SecretEnv {
		if c.Secrets == nil {
			return fmt.Errorf("no value for the sensitive variable %s", variable)
		}
		v := c.Secrets(variable)
		out.Env[n] = v
		if len(v) >= 6 {
			out.Secrets = append(out.Secrets, []byte(v))
		}
	}
	return nil
}

// goEnv is a variable as the go command sees it; where there is no go command, as the environment has it.
func (e *Environ) goEnv(name string) string {
	e.goenv.Do(func() {
		cmd := exec.Command("go", append([]string{"env", "-json"}, append(goNetwork, goAlways...)...)...)
		cmd.Dir = "/"
		cmd.WaitDelay = time.Second
		if out, err := cmd.Output(); err == nil {
			_ = json.Unmarshal(out, &e.goset) // what it does not say passes as the environment has it
		}
	})
	if v, ok := e.goset[name]; ok {
		return v
	}
	return e.Getenv(name)
}
