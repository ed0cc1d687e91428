package runtest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pbuild/engine/run"
)

func isolation(h *harness) {
	h.sub("workspace and HOME have fixed names", func(h *harness) {
		h.sealed()
		h.want(h.ok(sh("pwd; echo $HOME $TMPDIR")), run.Workspace+"\n"+run.Home+" /tmp\n")
	})
	h.sub("the command is nobody in particular", func(h *harness) {
		h.sealed()
		h.want(h.ok(sh("test $(id -u) -ne 0 && grep -E '^(CapEff|CapPrm|NoNewPrivs):' /proc/self/status | tr -d '\\t '")),
			"CapPrm:0000000000000000\nCapEff:0000000000000000\nNoNewPrivs:1\n")
	})
	h.sub("the system cannot be written to", func(h *harness) {
		h.sealed()
		for _, p := range []string{"/x", "/usr/x", "/usr/bin/x", "/etc/x", "/dev/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"} {
			if res := h.run(sh("echo x >" + p)); res.Exit == 0 {
				h.Errorf("%s was written", p)
			}
		}
		before, err := os.Stat(os.DevNull)
		if err != nil {
			h.Fatal(err)
		}
		if res := h.run(sh("chmod 600 /dev/null")); res.Exit == 0 {
			h.Error("the machine's /dev/null was changed")
		}
		if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() {
			h.Errorf("the machine's /dev/null is %v, %v", after, err)
		}
	})
	h.sub("other processes are not to be seen", func(h *harness) {
		h.sealed()
		out := h.ok(sh("ls /proc | grep -c '^[0-9]'; cat /proc/1/environ 2>/dev/null; for f in /proc/1/fd/*; do (: <$f) 2>/dev/null && echo read $f; (: >$f) 2>/dev/null && echo written $f; done; readlink /proc/1/root; true"))
		n, rest, _ := strings.Cut(out, "\n")
		if len(n) > 1 {
			h.Errorf("%s processes", n)
		}
		h.want(rest, "")
	})
	h.sub("devices that programs expect", func(h *harness) {
		h.want(h.ok(sh(`echo gone >/dev/null; head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; echo a >/dev/stdout; echo b | cat /dev/stdin; ls -d /dev/fd/1 /dev/shm`)),
			"2\n2\na\nb\n/dev/fd/1\n/dev/shm\n")
	})
	network(h)
	hidden(h)
}

// network demands that only what asks for the network has it, and that loopback is always there.
func network(h *harness) {
	h.sub("no network but loopback", func(h *harness) {
		h.sealed()
		h.needs("bash")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			h.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		c := sh("")
		c.Argv = []string{"bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/" + port}
		if res := h.run(c); res.Exit == 0 {
			h.Error("the host's loopback was reached")
		}
		h.want(h.ok(sh("sed 1,2d /proc/net/dev | tr -d ' ' | cut -d: -f1")), "lo\n")
		h.want(h.ok(sh("grep -c 00000000000000000000000000000001 /proc/net/if_inet6 || ls /sys/none 2>/dev/null; true")), "1\n")
		c.Network = true
		h.ok(c)
	})
	h.sub("names are resolved with network", func(h *harness) {
		c := sh("cat /etc/resolv.conf")
		c.Network = true
		want, err := os.ReadFile("/etc/resolv.conf")
		if err != nil {
			h.Skip("this machine has no /etc/resolv.conf")
		}
		h.want(h.ok(c), string(want))
	})
	h.sub("client configuration is shown with network, and not kept", func(h *harness) {
		user := h.TempDir()
		h.Setenv("HOME", user)
		conf := filepath.Join(user, ".config", "tool", "conf")
		if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
			h.Fatal(err)
		}
		if err := os.WriteFile(conf, []byte("mirror\n"), 0o644); err != nil {
			h.Fatal(err)
		}
		c := keep("configured", sh("cat $HOME/.config/tool/conf; mkdir -p $HOME/.config/mine"))
		c.Network, c.Forward = true, []string{conf, filepath.Join(user, "absent")}
		h.want(h.ok(c), "mirror\n")
		h.want(h.ok(from("configured", noTree, sh("cd $HOME && find . | sort"))), ".\n./.config\n./.config/mine\n")
		c.Keep, c.Network = nil, false
		h.want(h.ok(from("", noTree, &run.Command{Argv: []string{"sh", "-c", "ls -A $HOME"}, Env: c.Env, Forward: c.Forward})), "")
	})
}

func hidden(h *harness) {
	h.Run("what is hidden cannot be read", func(t *testing.T) {
		// A toolchain whose directory is shown, with a secret place inside it.
		top := t.TempDir()
		secret := filepath.Join(top, "tool", "workspace")
		for _, d := range []string{secret, filepath.Join(top, "tool", "bin"), filepath.Join(top, "other")} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for file, content := range map[string]string{"tool/workspace/rows": "gold", "tool/lib": "library", "other/rows": "gold", "tool/bin/hello": "#!/bin/sh\ncat $(dirname $0)/../lib\n"} {
			if err := os.WriteFile(filepath.Join(top, file), []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		h := h.with(t, []string{secret})
		h.sealed()
		c := sh("hello && cat " + secret + "/rows " + top + "/other/rows 2>/dev/null")
		c.Env["PATH"] = filepath.Join(top, "tool", "bin") + ":" + c.Env["PATH"]
		res := h.run(c)
		out, _, _ := h.parse(res)
		if res.Exit == 0 {
			h.Error("what is hidden was read")
		}
		h.want(out, "library")
		c = sh("cat " + top + "/other/rows; echo x >" + top + "/other/x")
		c.Paths = []string{filepath.Join(top, "other")}
		res = h.run(c)
		out, _, _ = h.parse(res)
		h.want(out, "gold")
		if _, err := os.Stat(filepath.Join(top, "other", "x")); err == nil || res.Exit == 0 {
			h.Error("a path that is shown was written to")
		}
	})
}
