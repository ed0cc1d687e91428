package store

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const lockEnv = "PBUILD_STORE_TEST_LOCK"

// TestMain lets the test binary be the second process: it takes the lock, says so, and holds it until its input ends or it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(lockEnv); dir != "" {
		s, err := OpenWriter(context.Background(), dir, Holder{PID: os.Getpid(), Host: "elsewhere", Command: "pbuild apply -j 8", Since: longAgo}, 0)
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(3)
		}
		os.Stdout.WriteString("held\n")
		bufio.NewReader(os.Stdin).ReadString('\n')
		s.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holdElsewhere starts a process that holds dir's lock.
func holdElsewhere(t *testing.T, dir string) (p *exec.Cmd, release func()) {
	t.Helper()
	p = exec.Command(os.Args[0])
	p.Env = append(os.Environ(), lockEnv+"="+dir)
	in, err := p.StdinPipe()
	check(t, err)
	out, err := p.StdoutPipe()
	check(t, err)
	check(t, p.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	if line != "held\n" {
		t.Fatalf("the other process says %q", line)
	}
	return p, func() { in.Close(); p.Wait() }
}

// A second writer is refused at once with the first one's name, may wait for it, and is let in as soon as the first has gone, however it went.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pbuild")
	p, release := holdElsewhere(t, dir)
	_, err := OpenWriter(context.Background(), dir, holder, 0)
	var locked *Locked
	if !errors.As(err, &locked) {
		t.Fatalf("a held lock gives %v", err)
	}
	if h := locked.Holder; h.PID != p.Process.Pid || h.Host != "elsewhere" || !h.Since.Equal(longAgo) {
		t.Errorf("the holder is %+v", h)
	}
	for _, part := range []string{dir, "pbuild apply -j 8", "elsewhere", "2020-01-02"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not say %q", err, part)
		}
	}
	if h, held := LockedBy(dir); !held || h.PID != p.Process.Pid {
		t.Errorf("LockedBy says %+v, %v", h, held)
	}
	sameRecords(t, openForReading(t, dir), nil) // readers need no lock

	cancelled, cancel := context.WithCancelCause(context.Background())
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if _, err := OpenWriter(cancelled, dir, holder, time.Hour); !errors.Is(err, interrupted) {
		t.Errorf("waiting for a lock under a cancelled context gives %v", err)
	}
	got := make(chan error)
	go func() {
		s, err := OpenWriter(context.Background(), dir, holder, time.Hour)
		if err == nil {
			err = s.Close()
		}
		got <- err
	}()
	release()
	check(t, <-got)
	if _, held := LockedBy(dir); held {
		t.Error("the lock is held after its holder has gone")
	}

	p, release = holdElsewhere(t, dir)
	defer release()
	check(t, p.Process.Kill())
	p.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "lock"))
	check(t, err)
	if !strings.Contains(string(text), "elsewhere") {
		t.Fatalf("a killed process left %q in the lock file", text)
	}
	s, err := OpenWriter(context.Background(), dir, holder, 0) // its text blocks nobody
	check(t, err)
	check(t, s.Close())
}
