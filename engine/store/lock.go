package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A Holder says who writes to a store.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"` // the command line
	Since   time.Time `json:"since"`
}

// Locked is the error for a store that another process writes to.
type Locked struct {
	Dir    string
	Holder Holder // PID 0 where the holder has not said who it is
}

func (e *Locked) Error() string {
	who := "another pbuild"
	if h := e.Holder; h.PID != 0 {
		who = fmt.Sprintf("%q (process %d on %s, since %s)", h.Command, h.PID, h.Host, h.Since.Format(time.DateTime))
	}
	return fmt.Sprintf("store: %s is locked by %s; let it end, or stop that process: the lock ends with it", e.Dir, who)
}

// lockPoll is how often a held lock is tried again: no kernel can wait for one with a limit.
const lockPoll = 50 * time.Millisecond

// lockGrace is waited for in any case, since LockedBy holds the lock for an instant.
const lockGrace = 2 * lockPoll

// acquire takes the kernel lock on dir's lock file. The file's text is for people only: the lock is the kernel's, so what a dead
// holder wrote blocks nobody.
func acquire(ctx context.Context, dir string, h Holder, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("store: lock %s: %w", dir, err)
	}
	deadline := time.Now().Add(max(wait, lockGrace))
	for {
		held, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("store: lock %s: %w", dir, err)
		}
		if !held {
			break
		}
		left := time.Until(deadline)
		if left <= 0 {
			e := &Locked{Dir: dir, Holder: readHolder(f)}
			f.Close()
			return nil, e
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("store: lock %s: %w", dir, context.Cause(ctx))
		case <-time.After(min(lockPoll, left)):
		}
	}
	text, err := json.Marshal(h)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(append(text, '\n'), 0)
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store: lock %s: %w", dir, err)
	}
	return f, nil
}

// release empties the file while the lock still holds, so that it never names one who has gone.
func release(f *os.File) {
	f.Truncate(0)
	f.Close()
}

func readHolder(f *os.File) (h Holder) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}

// LockedBy says who writes to dir, if anyone does.
func LockedBy(dir string) (Holder, bool) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return Holder{}, false
	}
	defer f.Close()
	held, err := tryLock(f)
	return readHolder(f), err == nil && held
}
