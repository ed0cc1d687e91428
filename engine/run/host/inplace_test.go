//go:build unix

package host

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"pbuild/engine/run"
)

var here InPlace

func inPlaceSh(t *testing.T, script string, limits run.Limits) (*run.Result, string, string) {
	t.Helper()
	res, err := here.Run(t.Context(), &run.Command{Argv: []string{"sh", "-c", script}, Limits: limits}, t.TempDir(), append(os.Environ(), "MARK="+t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	out, errs, _, err := run.ParseLog(res.Log)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(out), string(errs)
}

func TestInPlace(t *testing.T) {
	res, out, errs := inPlaceSh(t, "pwd; echo err >&2; cat; exit 5", run.Limits{})
	if res.Exit != 5 || !strings.Contains(out, "TestInPlace") || errs != "err\n" || res.Elapsed <= 0 || res.MaxRSS <= 0 || res.Isolation != run.IsolationNone {
		t.Errorf("%+v, %q, %q", res, out, errs)
	}
	if res, _, _ := inPlaceSh(t, "kill -9 $$", run.Limits{}); res.Exit != 137 {
		t.Errorf("exit %d", res.Exit)
	}
	if res, _, _ := inPlaceSh(t, "head -c 100000 /dev/zero", run.Limits{Output: 1000}); !res.Truncated || len(res.Log) > 1200 {
		t.Errorf("truncated %v, %d bytes", res.Truncated, len(res.Log))
	}
	if res, _, _ := inPlaceSh(t, "exec >&- 2>&-; sleep 0.2; exit 3", run.Limits{}); res.Exit != 3 {
		t.Errorf("one that closes its output: exit %d", res.Exit)
	}
}

func TestInPlaceCannotStart(t *testing.T) {
	_, err := here.Run(t.Context(), &run.Command{Argv: []string{"no-such-program"}}, t.TempDir(), []string{"PATH=/nowhere"})
	if missing, ok := errors.AsType[*run.NotFound](err); !ok || missing.Program != "no-such-program" || missing.Path != "/nowhere" {
		t.Errorf("got %v", err)
	}
	for _, program := range []string{"/nowhere/program", "./no-such-program"} {
		_, err := here.Run(t.Context(), &run.Command{Argv: []string{program}}, t.TempDir(), []string{"PATH=/nowhere"})
		if missing, ok := errors.AsType[*run.NotFound](err); !ok || missing.Program != program || missing.Path != "" {
			t.Errorf("%s: got %v", program, err)
		}
	}
	if _, err := here.Run(t.Context(), &run.Command{Argv: []string{"sh"}}, "/no/such/dir", os.Environ()); err == nil {
		t.Error("it ran in no directory")
	}
}

func TestInPlaceEndsWithItsCommand(t *testing.T) {
	for name, script := range map[string]string{
		"one that holds the output": "sleep 1000 & echo done",
		"one that left the group":   "setsid sleep 3 & echo done",
		"one that goes on writing":  "setsid timeout 4 yes & echo done",
	} {
		began := time.Now()
		_, out, _ := inPlaceSh(t, script, run.Limits{Output: 1000})
		if !strings.Contains(out, "done\n") && !strings.Contains(name, "writing") || time.Since(began) > 2500*time.Millisecond {
			t.Errorf("%s: %q after %v", name, out, time.Since(began))
		}
	}
}

func TestInPlaceLimits(t *testing.T) {
	if res, out, _ := inPlaceSh(t, "echo up; sleep 1000 & sleep 1000", run.Limits{Wall: 200 * time.Millisecond}); res.TimedOut != "wall" || out != "up\n" || res.Exit != 137 {
		t.Errorf("%+v, %q", res, out)
	}
	if res, out, _ := inPlaceSh(t, "for i in 1 2 3; do echo $i; sleep 0.1; done; sleep 1000", run.Limits{Idle: 400 * time.Millisecond}); res.TimedOut != "idle" || out != "1\n2\n3\n" {
		t.Errorf("%+v, %q", res, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := here.Run(ctx, &run.Command{Argv: []string{"sh", "-c", "echo up; sleep 1000"}, Log: func(string, []byte) { cancel() }}, t.TempDir(), os.Environ())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
