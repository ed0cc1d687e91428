package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestGroupsOfTheKilledAreSwept(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	c := &controls{parents: map[string]string{"cpu": t.TempDir()}}
	hour := time.Now().Add(-time.Hour)
	for _, g := range []struct {
		name  string
		made  time.Time
		stays bool
	}{
		{fmt.Sprintf("pbuild-%d-0a", dead.Process.Pid), hour, false},
		{fmt.Sprintf("pbuild-probe-%d", dead.Process.Pid), hour, false},
		{fmt.Sprintf("pbuild-%d-0b", dead.Process.Pid), time.Now(), true},
		{fmt.Sprintf("pbuild-%d-0c", os.Getpid()), hour, true},
		{"pbuild-other", hour, true},
	} {
		dir := filepath.Join(c.parents["cpu"], g.name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, g.made, g.made); err != nil {
			t.Fatal(err)
		}
		c.sweep()
		if _, err := os.Stat(dir); (err == nil) != g.stays {
			t.Errorf("%s: %v", g.name, err)
		}
	}
}

// A limit of memory that swap makes none is not held.
func TestMemoryIsHeldWithItsSwap(t *testing.T) {
	uncounted := filepath.Join(t.TempDir(), "no", "such", "file")
	for _, v2 := range []bool{false, true} {
		if (&controls{swap: true}).limitSwap(uncounted, v2, "1") {
			t.Error("nothing limits the machine's swap")
		}
		if !(&controls{}).limitSwap(uncounted, v2, "1") {
			t.Error("the machine has no swap")
		}
	}
}
