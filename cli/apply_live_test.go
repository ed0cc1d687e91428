package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pbuild/engine/apply"
	"pbuild/engine/store"
)

// The summary of an apply that is interrupted while it waits for the lock says what the process exits with.
func TestInterruptedAtTheLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b.hcl"), []byte(`task "a" { command = ["true"] }`), 0o666); err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenWriter(t.Context(), filepath.Join(dir, stateDir), store.Holder{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var out bytes.Buffer
	interrupts := make(chan os.Signal, 1)
	interrupts <- os.Interrupt
	code := Run(t.Context(), Config{Args: []string{"-C", dir, "apply", "--json", "--lock-timeout", "1h"}, Stdout: &out, Stderr: io.Discard,
		Clock: time.Now, Interrupts: interrupts})
	var last summaryJSON
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		t.Fatal(err)
	}
	if code != ExitInterrupted || last.Type != "summary" || last.Exit != code {
		t.Errorf("exit %d; the stream ends with %s", code, lines[len(lines)-1])
	}
}

// What listens for interrupts hears them until it gives them back; then the next ends the command.
func TestInterruptsAreGivenBack(t *testing.T) {
	interrupts := make(chan os.Signal)
	a := &app{cfg: Config{Interrupts: interrupts}}
	err := a.interruptible(t.Context(), func(ctx context.Context) error {
		own, stop, cancel := a.interrupts(ctx, func(string) {})
		defer cancel()
		interrupts <- os.Interrupt
		<-stop
		interrupts <- os.Interrupt
		<-own.Done()
		if ctx.Err() != nil {
			t.Error("an interrupt that was listened for ended the command")
		}
		a.listen(nil)
		interrupts <- os.Interrupt
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if codeOf(err) != ExitInterrupted {
		t.Errorf("the command ended with %v", err)
	}
}

// An apply in several parts is one to its user: of every count the summary has the sum.
func TestPartsAddUp(t *testing.T) {
	part := func(usd float64, drift int, near string) *applying {
		p := testPlan()
		return &applying{session: &session{named: p}, plan: p, sum: &apply.Summary{Run: 1, USD: &usd, Wall: time.Second}, stream: &stream{},
			progress: &progress{spent: map[string]time.Duration{"test": time.Second}}, drift: drift, near: []string{near}}
	}
	ap := part(2, 3, "b")
	ap.before = part(1, 1, "a")
	ap.addBefore(ap.sum)
	if s := ap.sum; s.Run != 2 || *s.USD != 3 || s.Wall != 2*time.Second || ap.drift != 4 || len(ap.near) != 2 || ap.near[0] != "a" {
		t.Errorf("the parts add up to %+v, USD %v, drift %d, near %q", s, *s.USD, ap.drift, ap.near)
	}
	ap.sum.USD = nil
	if ap.addBefore(ap.sum); *ap.sum.USD != 1 || *ap.before.sum.USD != 1 {
		t.Errorf("a part that cost nothing makes %v of 1", *ap.sum.USD)
	}
}
