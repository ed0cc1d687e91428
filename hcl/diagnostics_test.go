package hcl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"pbuild/bench/decl"
)

var update = flag.Bool("update", false, "write the golden files")

// unpack writes the files of an archive into a fresh directory. A line of its comment "OPTION: VALUE" is an option.
func unpack(t testing.TB, a *txtar.Archive) (dir string, o Options) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range a.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(string(a.Comment)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case !ok:
		case name == "var":
			o.Vars = append(o.Vars, value)
		case name == "env":
			o.Environ = append(o.Environ, value)
		case name == "var-file":
			o.VarFiles = append(o.VarFiles, value)
		case name == "version":
			o.Version = value
		}
	}
	return dir, o
}

// members calls f for every member of every block, nested ones with their owner's members.
func members(w *decl.Workspace, f func(owner, b *decl.Block, each *decl.Each)) {
	var visit func(owner, b *decl.Block, each *decl.Each)
	visit = func(owner, b *decl.Block, each *decl.Each) {
		f(owner, b, each)
		for _, n := range b.Blocks {
			visit(owner, n, each)
		}
	}
	for _, b := range w.Blocks {
		switch {
		case b.ForEach == nil:
			visit(b, b, nil)
		case b.ForEach.Dataset != "":
			if rows := w.Datasets[b.ForEach.Dataset]; rows != nil {
				for i := range rows.Len() {
					visit(b, b, &decl.Each{Key: rows.Key(i), Row: rows.Row(i)})
				}
			}
		default:
			for i := range b.ForEach.Members {
				visit(b, b, &b.ForEach.Members[i])
			}
		}
	}
}

// evaluate evaluates every attribute of every member, as lowering does.
func evaluate(w *decl.Workspace) decl.Diagnostics {
	var diags decl.Diagnostics
	members(w, func(_, b *decl.Block, each *decl.Each) {
		for _, a := range b.Attrs {
			if a.Name == "condition" || a.Name == "where" {
				continue // of rows, not of members
			}
			if _, d := a.Expr.Eval(each); d != nil {
				diags.Add(*d)
			}
		}
	})
	return diags
}

func listing(ds decl.Diagnostics) string {
	var b strings.Builder
	for _, d := range ds.Sort() {
		fmt.Fprintf(&b, "%s %s: %s\n    %s\n", d.Severity, d.Range, d.Summary, d.Detail)
		if d.Row != "" {
			fmt.Fprintf(&b, "    row %s\n", d.Row)
		}
		if d.Address != "" {
			fmt.Fprintf(&b, "    of %s\n", d.Address)
		}
	}
	return b.String()
}

// TestDiagnostics loads each archive of testdata/diagnostics and compares all that is reported with its last file, "want".
func TestDiagnostics(t *testing.T) {
	paths, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(paths) < 45 {
		t.Fatalf("%d archives, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if last := len(a.Files) - 1; last >= 0 && a.Files[last].Name == "want" {
				want = string(a.Files[last].Data)
				a.Files = a.Files[:last]
			}
			dir, o := unpack(t, a)
			w, diags := opened(dir, o)
			if !diags.HasErrors() {
				diags.Add(evaluate(w)...)
			}
			got := strings.ReplaceAll(listing(diags), dir, "DIR")
			if *update {
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
