package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"pbuild/engine/run"
	"pbuild/engine/run/host"
	"pbuild/engine/tree"
)

// scriptCondition knows [pytest], that python3 has it, [sealed], that this machine isolates commands so far, and [root]. With REQUIRE_PYTEST=1 a missing
// pytest fails the script that asks instead of skipping it.
func scriptCondition(name string) (bool, error) {
	switch name {
	case "pytest":
		out, err := exec.Command("python3", "-c", "import pytest").CombinedOutput()
		if err != nil && os.Getenv("REQUIRE_PYTEST") == "1" {
			return false, fmt.Errorf("REQUIRE_PYTEST=1, and python3 has no pytest: %v\n%s", err, out)
		}
		return err == nil, nil
	case "root": // may write everywhere, whatever a mode says
		return os.Geteuid() == 0, nil
	case "sealed":
		return isolation() >= run.IsolationSealed, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// isolation is this machine's, found out once.
var isolation = sync.OnceValue(func() run.Isolation {
	dir, err := os.MkdirTemp("", "pbuild-isolation-")
	if err != nil {
		return run.IsolationNone
	}
	defer os.RemoveAll(dir)
	trees, err := tree.Open(context.Background(), filepath.Join(dir, "trees.git"))
	if err != nil {
		return run.IsolationNone
	}
	defer trees.Close()
	r, err := host.New(host.Options{States: filepath.Join(dir, "states"), Scratch: filepath.Join(dir, "scratch"), Trees: trees, MaxIsolation: run.IsolationSealed})
	if err != nil {
		return run.IsolationNone
	}
	return r.Isolation()
})
