package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func scriptRefuses(ts *testscript.TestScript, neg bool, args []string) {
	before := everyFile(ts)
	scriptExits(ts, neg, args)
	after := everyFile(ts)
	var changed []string
	for name := range maps.Keys(merged(before, after)) {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	if changed != nil {
		slices.Sort(changed)
		ts.Fatalf("made, changed or removed: %s", strings.Join(changed, ", "))
	}
	if text := ts.ReadFile("stderr"); strings.Contains(text, "pbuild bug") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("it crashed")
	}
}

// everyFile describes every file of the script's directory: its mode, time and content.
func everyFile(ts *testscript.TestScript) map[string]string {
	root := ts.Getenv("WORK")
	files := map[string]string{}
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		if rel == ".tmp" { // the program's own scratch, and testscript's
			return fs.SkipDir
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		described := fi.Mode().String()
		if fi.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil && !os.IsPermission(err) {
				return err
			}
			described += fmt.Sprintf(" %v %x", fi.ModTime(), sha256.Sum256(content))
		}
		files[rel] = described
		return nil
	}))
	return files
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
