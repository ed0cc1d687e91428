package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run of the smallest workspace comes to its end and prints all its tables, in a directory that is named from here too.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds pbuild")
	}
	t.Chdir("..") // what is built is the program in the current directory
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Rel(here, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&options{rounds: 1, firstMax: 10, jobs: 2, log: io.Discard}, "10,20", dir, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| null plan | 10 |", "| why | 20 |", "| 20 |", "| from 10 to 20 tasks (x2) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
}
