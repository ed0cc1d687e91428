package tree

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pbuild/engine/digest"
)

// The steps of a workspace, over a tree of 2,000 files in 200 directories (8 MB).
func BenchmarkSteps(b *testing.B) {
	r := open(b)
	ctx := context.Background()
	base := r.mustMake(b, manyFiles(2000))
	patch := []byte(newFile("d9/sub/new.go", "100644", "package sub"))
	tree, err := r.Apply(ctx, base, patch)
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.TempDir(), "w")
	if err := r.Checkout(ctx, tree, dir); err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"apply", func() error { _, err := r.Apply(ctx, base, patch); return err }},
		{"patch", func() error { _, err := r.Patch(ctx, base, tree, nil); return err }},
		{"diff", func() error { _, err := r.Diff(ctx, base, tree); return err }},
		{"entries", func() error { _, err := r.Entries(ctx, tree); return err }},
		{"edit", func() error {
			n++
			_, err := r.Edit(ctx, base, []Edit{{Path: "d9/f.go", Mode: modeFile, Content: []byte(strconv.Itoa(n))}})
			return err
		}},
		{"whole", func() error { r.whole(ctx, tree); return nil }},
		{"keep", func() error {
			n++
			t, err := r.Edit(ctx, base, []Edit{{Path: "d9/f.go", Mode: modeFile, Content: []byte(strconv.Itoa(n))}})
			if err != nil {
				return err
			}
			return r.Keep(ctx, t)
		}},
		{"checkout", func() error {
			n++
			to := filepath.Join(b.TempDir(), strconv.Itoa(n))
			defer os.RemoveAll(to)
			return r.Checkout(ctx, tree, to)
		}},
		{"import", func() error { _, err := r.Import(ctx, dir, nil); return err }},
		{"dirfiles", func() error { _, err := DirFiles(dir, nil); return err }},
	} {
		b.Run(step.name, func(b *testing.B) {
			for b.Loop() {
				if err := step.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	if err := r.Drop(ctx, func(digest.Digest) bool { return false }); err != nil {
		b.Fatal(err)
	}
}
