package tree

import (
	"slices"
	"testing"
)

func TestUnignored(t *testing.T) {
	ctx := t.Context()
	r, err := Open(ctx, t.TempDir()+"/trees.git")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	base, err := r.Edit(ctx, emptyTree, []Edit{
		{Path: ".gitignore", Mode: 0o644, Content: []byte("/build/\n*.o\n")},
		{Path: "lib/.gitignore", Mode: 0o644, Content: []byte("!keep.o\n")},
		{Path: "kept.o", Mode: 0o644, Content: []byte("tracked")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var edits []Edit
	for _, p := range []string{"a.c", "a.o", "build/x/y", "kept.o", "lib/keep.o", "lib/other.o", "sub/build/z"} {
		edits = append(edits, Edit{Path: p, Mode: 0o644, Content: []byte("x")})
	}
	edits = append(edits, Edit{Path: "gone.o"})
	got, err := r.Unignored(ctx, base, edits)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got {
		paths = append(paths, e.Path)
	}
	if want := []string{"a.c", "kept.o", "lib/keep.o", "sub/build/z", "gone.o"}; !slices.Equal(paths, want) {
		t.Errorf("kept %q, want %q", paths, want)
	}
}
