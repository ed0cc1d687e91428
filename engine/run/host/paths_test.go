//go:build linux

package host

import (
	"os"
	"path/filepath"
	"testing"

	"pbuild/engine/run"
	"pbuild/engine/run/runtest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Programs are found under every name that PATH may have for them, with what lies around them; HOME itself is never shown.
func TestToolchainsAreShown(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	write(t, home+"/secret", "s")
	write(t, home+"/sdk/tool1.2/bin/tool", "#!/bin/sh\ncat $(dirname $0)/../lib/data\n")
	write(t, home+"/sdk/tool1.2/lib/data", "data")
	write(t, home+"/sdk/tool1.2/credentials", "token")
	write(t, home+"/bin/mine", "#!/bin/sh\necho mine\n")
	write(t, home+"/far/away/bin/linked", "#!/bin/sh\ncat "+home+"/far/away/share\n")
	write(t, home+"/far/away/share", "shared")
	for name, to := range map[string]string{"sdk/tool": home + "/sdk/tool1.2", "programs": home + "/sdk/tool1.2/bin", "bin/linked": home + "/far/away/bin/linked"} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := runner(t, runtest.NewTrees(), nil)
	if r.Isolation() < run.IsolationSealed {
		t.Skipf("%q", r.Status())
	}
	for _, c := range []struct{ path, program, want string }{
		{home + "/sdk/tool1.2/bin", "tool", "data"},
		{home + "/sdk/tool/bin", "tool", "data"},
		{home + "/programs", "tool", ""}, // its own idea of where its data is does not survive the link
		{home + "/bin", "mine", "mine\n"},
		{home + "/bin", "linked", "shared"},
	} {
		cmd := &run.Command{Argv: []string{c.program}, Env: map[string]string{"PATH": c.path + ":/usr/bin:/bin"}}
		res, err := r.Run(t.Context(), cmd)
		if err != nil {
			t.Errorf("%s in %s: %v", c.program, c.path, err)
			continue
		}
		if out, _, both, _ := run.ParseLog(res.Log); c.want != "" && string(out) != c.want {
			t.Errorf("%s in %s: %q", c.program, c.path, both)
		}
		cmd.Argv = []string{"sh", "-c", "cat " + home + "/secret " + home + "/sdk/tool1.2/credentials 2>/dev/null; true"}
		if got := stdout(t, r, cmd); got != "" {
			t.Errorf("with %s: %q is to be read", c.path, got)
		}
	}
}

func TestToolchain(t *testing.T) {
	for in, want := range map[string]string{
		"/h/u/sdk/go1.26/bin": "/h/u/sdk/go1.26", "/h/u/.pyenv/shims": "/h/u/.pyenv", "/h/u/bin": "/h/u/bin", "/h/u": "", "/h": "", "/": "",
		"/opt/x": "/opt/x", "/bin": "/bin", "/srv/sbin": "/srv", "/h/user/bin": "/h/user",
	} {
		if got := toolchain(in, "/h/u"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
