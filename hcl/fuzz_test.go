package hcl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzLoad loads any bytes as a workspace over one file of rows, in either syntax, and evaluates what comes of it. Nothing may panic, every mistake
// has a summary, and what loads without one loads again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(kinds), false)
	f.Add([]byte(secretText), false)
	f.Add([]byte(inJSON), true)
	paths, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data, filepath.Ext(a.Files[0].Name) == ".json")
	}
	f.Fuzz(func(t *testing.T, src []byte, json bool) {
		dir := t.TempDir()
		name := "b.hcl"
		if json {
			name = "b.hcl.json"
		}
		for name, data := range map[string]string{name: string(src), "d.jsonl": "{\"id\": \"a\", \"n\": 1, \"l\": [\"x\"], \"patch\": \"e\u0301\"}\n{\"id\": \"b\"}\n", "p.diff": "e\u0301"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o := Options{Environ: []string{"PBUILD_VAR_token=hunter22"}}
		w, diags := opened(dir, o)
		for _, d := range diags {
			if d.Summary == "" || d.Detail == "" || d.Range.File == "" {
				t.Errorf("a mistake without summary, detail or file: %#v", d)
			}
		}
		if diags.HasErrors() {
			return
		}
		evaluate(w)
		if _, again := opened(dir, o); listing(again) != listing(diags) {
			t.Errorf("loaded again, it says\n%s\nnot\n%s", listing(again), listing(diags))
		}
	})
}
