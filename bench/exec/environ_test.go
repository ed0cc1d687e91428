package exec

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/run"
)

func testEnviron(vars map[string]string) *Environ {
	e := &Environ{Getenv: func(n string) string { return vars[n] }, Home: "/home/user"}
	e.goenv.Do(func() { e.goset = map[string]string{"GOPROXY": "mirror", "GOSUMDB": "sums", "GOPRIVATE": ""} })
	return e
}

func TestWhatPassesThrough(t *testing.T) {
	e := testEnviron(map[string]string{"PATH": "/usr/bin:bin:/bin", "HTTPS_PROXY": "proxy", "HOME": "/home/user", "EXTRA": "x", "OTHER": "y"})
	for _, c := range []struct {
		command kind.Command
		path    string
		want    string
	}{
		{kind.Command{}, "", "GOSUMDB=sums PATH=/usr/bin:/bin"},
		{kind.Command{Network: true}, "", "GOPROXY=mirror GOSUMDB=sums HTTPS_PROXY=proxy PATH=/usr/bin:/bin"},
		{kind.Command{Network: true, Env: map[string]string{"GOPROXY": "off"}}, "/opt/bin", "GOPROXY=off GOSUMDB=sums HTTPS_PROXY=proxy PATH=/opt/bin"},
		{kind.Command{PassEnv: []string{"EXTRA", "ABSENT"}}, "", "EXTRA=x GOSUMDB=sums PATH=/usr/bin:/bin"},
	} {
		got, err := e.command(&c.command, &kind.Runtime{Path: c.path})
		if err != nil {
			t.Fatal(err)
		}
		var env []string
		for _, n := range slices.Sorted(maps.Keys(got.Env)) {
			env = append(env, n+"="+got.Env[n])
		}
		if s := strings.Join(env, " "); s != c.want {
			t.Errorf("%+v: %s, want %s", c.command, s, c.want)
		}
		if (len(got.Forward) > 0) != c.command.Network {
			t.Errorf("%+v: forwards %v", c.command, got.Forward)
		}
	}
}

func TestSecretsReachOnlyTheirCommand(t *testing.T) {
	c := kind.Command{SecretEnv: map[string]string{"TOKEN": "token", "PIN": "pin"}, Secrets: func(n string) string {
		return map[string]string{"token": "s3cret-value", "pin": "123"}[n]
	}}
	got, err := testEnviron(nil).command(&c, &kind.Runtime{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Env["TOKEN"] != "s3cret-value" || got.Env["PIN"] != "123" {
		t.Errorf("env %v", got.Env)
	}
	if len(got.Secrets) != 1 || string(got.Secrets[0]) != "s3cret-value" {
		t.Errorf("redacts %q: values of under six bytes would eat the log", got.Secrets)
	}
}

// The language refuses just the variables that commands are given anyway.
func TestFixedVariables(t *testing.T) {
	if fixed := slices.Sorted(maps.Keys(run.Fixed("", ""))); !slices.Equal(fixed, decl.FixedEnv) {
		t.Errorf("commands are given %q, and the language refuses %q", fixed, decl.FixedEnv)
	}
}
