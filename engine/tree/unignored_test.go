package tree

import (
	"slices"
	"strings"
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
	got, ignored, err := r.Unignored(ctx, base, edits)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got {
		paths = append(paths, e.Path)
	}
	if want := []string{"a.o", "build/x/y", "lib/other.o"}; !slices.Equal(ignored, want) {
		t.Errorf("ignored %q, want %q", ignored, want)
	}
	if want := []string{"a.c", "kept.o", "lib/keep.o", "sub/build/z", "gone.o"}; !slices.Equal(paths, want) {
		t.Errorf("kept %q, want %q", paths, want)
	}
}

// What no tree can hold is parted from the rest, so that Edit takes what is kept.
func TestHoldable(t *testing.T) {
	r := open(t)
	long := strings.Repeat("d/", 2500) + "f"
	kept, refused := Holdable([]Edit{
		{Path: "f", Mode: 0o644, Content: []byte("x")}, {Path: "sub/.GIT/config", Mode: 0o644, Content: []byte("x")}, {Path: "git~1", Mode: 0o644},
		{Path: long, Mode: 0o644}, {Path: "l", Mode: 0o120000, Content: []byte(strings.Repeat("t", 4090))}, {Path: "gone"},
	})
	if len(kept) != 2 || kept[0].Path != "f" || kept[1].Path != "gone" || len(refused) != 4 || refused["git~1"] == "" || refused[long] == "" {
		t.Errorf("kept %v, refused %d", kept, len(refused))
	}
	if _, err := r.Edit(t.Context(), emptyTree, kept); err != nil {
		t.Error(err)
	}
}
