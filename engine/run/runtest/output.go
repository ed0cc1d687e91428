package runtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"pbuild/engine/run"
)

func output(h *harness) {
	h.sub("streams are apart and in order", func(h *harness) {
		// Each write comes from a process of its own, so that the order is one that a reader can see.
		res := h.run(sh("for i in 1 2 3; do /bin/echo o$i; sleep 0.01; /bin/echo e$i >&2; sleep 0.01; done"))
		stdout, stderr, both := h.parse(res)
		h.want(stdout, "o1\no2\no3\n")
		h.want(stderr, "e1\ne2\ne3\n")
		h.want(both, "o1\ne1\no2\ne2\no3\ne3\n")
	})
	h.sub("equal output is an equal log, in however many reads it comes", func(h *harness) {
		slow, fast := h.run(sh("for i in 1 2 3; do /bin/echo o$i; sleep 0.02; done; echo e >&2; sleep 0.02; echo f >&2")), h.run(sh(`printf 'o1\no2\no3\n'; sleep 0.02; printf 'e\nf\n' >&2`))
		if !bytes.Equal(slow.Log, fast.Log) {
			h.Errorf("%q and %q", slow.Log, fast.Log)
		}
	})
	h.sub("bytes that are no text", func(h *harness) {
		h.want(h.ok(sh(`printf '\377\000\376 ok'`)), "\xff\x00\xfe ok")
	})
	h.sub("the middle is cut out", func(h *harness) {
		c := sh("echo first; i=0; while [ $i -lt 3000 ]; do echo line $i of many; i=$((i+1)); done; echo last >&2")
		c.Limits.Output = 4000
		res := h.run(c)
		_, _, both := h.parse(res)
		if !res.Truncated || len(both) > 4200 || len(both) < 4000 {
			h.Errorf("truncated %v, %d bytes", res.Truncated, len(both))
		}
		if !strings.HasPrefix(both, "first\nline 0 ") || !strings.HasSuffix(both, "of many\nlast\n") || !strings.Contains(both, "bytes of output are cut out here") {
			h.Errorf("got %q", both)
		}
		c.Limits.Output = 1 << 20
		if res := h.run(c); res.Truncated {
			h.Error("cut although it fits")
		}
	})
	h.sub("secrets are redacted, over writes too", func(h *harness) {
		c := sh("printf s3cr; sleep 0.1; printf 'et-value and s3'; sleep 0.1; printf 'x s3cret-value' >&2")
		c.Secrets = [][]byte{[]byte("s3cret-value"), {}}
		var mu sync.Mutex
		var live bytes.Buffer
		c.Log = func(_ string, b []byte) { mu.Lock(); live.Write(b); mu.Unlock() }
		res := h.run(c)
		stdout, stderr, _ := h.parse(res)
		h.want(stdout, "*** and s3")
		h.want(stderr, "x ***")
		if bytes.Contains(live.Bytes(), []byte("s3cret")) || live.Len() == 0 {
			h.Errorf("passed on: %q", live.Bytes())
		}
	})
	h.sub("much output comes whole", func(h *harness) {
		if out := h.ok(sh("head -c 3000000 /dev/zero")); len(out) != 3000000 {
			h.Errorf("%d bytes", len(out))
		}
	})
}

func death(h *harness) {
	// Each leaves something behind that holds the output open.
	left := map[string]string{
		"a background process": `sleep 1000 & exit 0`,
		"a new session":        `setsid sleep 1000 & exit 0`,
		"a double fork":        `(setsid sh -c '(sleep 1000; echo up) & exit' &) ; sleep 0.1; exit 0`,
		"one that ignores":     `(trap "" TERM HUP INT; sleep 1000; sleep 1000) & exit 0`,
		"one without output":   `setsid sleep 1000 </dev/null >/dev/null 2>&1 & exit 0`,
	}
	for name, script := range left {
		h.sub(name+" dies with the command", func(h *harness) {
			h.needs("setsid")
			began := time.Now()
			c := sh(script)
			c.Env["PBUILD_TEST_MARK"] = h.Name()
			h.ok(c)
			if d := time.Since(began); d > deadline/2 {
				h.Errorf("the run waited for what was left: %v", d)
			}
			h.nobody("PBUILD_TEST_MARK=" + h.Name())
		})
	}
	h.sub("a timeout kills the whole tree", func(h *harness) {
		c := sh(`(sleep 1000 & setsid sleep 1000) & echo started; sleep 1000`)
		c.Env["PBUILD_TEST_MARK"] = h.Name()
		c.Limits.Wall = 200 * time.Millisecond
		began := time.Now()
		res := h.run(c)
		if res.TimedOut != "wall" || time.Since(began) > deadline/2 {
			h.Errorf("timed out %q after %v", res.TimedOut, time.Since(began))
		}
		out, _, _ := h.parse(res)
		h.want(out, "started\n")
		h.nobody("PBUILD_TEST_MARK=" + h.Name())
	})
}

// nobody demands that no process of the machine has the mark in its environment, which everything that a command starts inherits.
func (h *harness) nobody(mark string) {
	h.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(files) == 0 {
		h.Skip("this machine does not tell its processes")
	}
	for _, f := range files {
		if b, _ := os.ReadFile(f); bytes.Contains(b, []byte(mark)) {
			h.Errorf("%s is alive", f)
		}
	}
}

func limits(h *harness) {
	h.waits("idle time", func(h *harness) {
		c := sh("for i in 1 2 3 4; do echo $i; sleep 0.15; done; sleep 1000")
		c.Limits.Idle = 600 * time.Millisecond
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "1\n2\n3\n4\n")
		h.want(res.TimedOut, "idle")
		if !strings.Contains(res.Limits, "idle 600ms") {
			h.Errorf("limits %q", res.Limits)
		}
	})
	h.sub("what is within its limits is not touched", func(h *harness) {
		c := sh("sleep 0.1")
		c.Limits = run.Limits{Wall: deadline, Idle: deadline, Memory: 1 << 30, Pids: 200, CPUs: 1, Output: 1000}
		if res := h.run(c); res.Exit != 0 || res.TimedOut != "" || res.OutOfMem || res.Truncated {
			h.Errorf("got %+v", res)
		}
	})
	h.sub("memory", func(h *harness) {
		c := sh("a=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#a}")
		c.Limits.Memory = 64 << 20
		res := h.run(c)
		if strings.Contains(res.Limits, "not held: memory") {
			h.Skipf("this machine cannot: %s", res.Limits)
		}
		if res.Exit == 0 || !res.OutOfMem {
			h.Errorf("exit %d, out of memory %v", res.Exit, res.OutOfMem)
		}
	})
	h.sub("a fork bomb", func(h *harness) {
		c := sh("f() { f & f & wait; }; f 2>/dev/null; echo over")
		c.Limits.Pids, c.Limits.Wall = 40, 2*time.Second
		c.Limits.Output = 1 << 20
		probe := sh("true")
		probe.Limits.Pids = 40
		if text := h.run(probe).Limits; strings.Contains(text, "not held: pids") || strings.Contains(text, "resource limit") {
			h.Skipf("this machine cannot: %s", text)
		}
		began := time.Now()
		h.run(c)
		if d := time.Since(began); d > deadline/2 {
			h.Errorf("took %v", d)
		}
		h.want(h.ok(sh("echo fine")), "fine\n")
	})
	h.waits("processors", func(h *harness) {
		c := sh("i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done")
		c.Limits.CPUs = 0.25
		res := h.run(c)
		if strings.Contains(res.Limits, "not held: cpu") {
			h.Skipf("this machine cannot: %s", res.Limits)
		}
		if ratio := res.CPU.Seconds() / res.Elapsed.Seconds(); ratio > 0.6 {
			h.Errorf("used %.2f processors (%v in %v)", ratio, res.CPU, res.Elapsed)
		}
	})
}
