package decl

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMarkdownIsTheReference(t *testing.T) {
	const path = "../../docs/language.md"
	got := Markdown()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("docs/language.md is not what the table says; run go test ./bench/decl -update")
	}
}

// each calls f for every block of the table, nested ones too, with its path.
func each(f func(path string, d *BlockDef)) {
	var walk func(prefix string, defs []BlockDef)
	walk = func(prefix string, defs []BlockDef) {
		for i := range defs {
			f(prefix+defs[i].Type, &defs[i])
			walk(prefix+defs[i].Type+".", defs[i].Blocks)
		}
	}
	walk("", Table)
}

func TestTableIsSound(t *testing.T) {
	for i := range Table {
		if Find(Table[i].Type) != &Table[i] {
			t.Errorf("the block %s stands twice in the table", Table[i].Type)
		}
	}
	each(func(path string, d *BlockDef) {
		names := map[string]bool{}
		for i := range d.Attrs {
			a := &d.Attrs[i]
			if names[a.Name] {
				t.Errorf("%s.%s stands twice", path, a.Name)
			}
			names[a.Name] = true
			if a.Doc == "" || !strings.HasSuffix(a.Doc, ".") {
				t.Errorf("%s.%s has no sentence of documentation", path, a.Name)
			}
			if (a.Type == RefType || a.Type == Refs) != (len(a.Refs) > 0) {
				t.Errorf("%s.%s: a reference names types of blocks, and nothing else does", path, a.Name)
			}
			for _, r := range a.Refs {
				if Find(r) == nil || !Find(r).Label {
					t.Errorf("%s.%s refers to blocks %q, of which there are none with a name", path, a.Name, r)
				}
			}
			for _, s := range a.Soon {
				if !slices.Contains(a.OneOf, s) {
					t.Errorf("%s.%s: %q is to run later, but is not allowed", path, a.Name, s)
				}
			}
			if len(a.NoneOf) > 0 && a.Type != String && a.Type != Strings && a.Type != Env {
				t.Errorf("%s: nothing looks at NoneOf", path)
			}
			if len(a.OneOf) > 0 && a.Type != String && a.Type != Strings {
				t.Errorf("%s.%s has a list of values, but holds no strings", path, a.Name)
			}
			if a.Alone && a.Type != Strings {
				t.Errorf("%s.%s may stand for a list of one, but holds no list", path, a.Name)
			}
			if a.Required && a.Default != "" {
				t.Errorf("%s.%s is required and has a default", path, a.Name)
			}
			if typeNames[a.Type] == "" && len(a.Refs) == 0 {
				t.Errorf("%s.%s: its type has no name", path, a.Name)
			}
		}
		for _, group := range d.OneOf {
			for _, name := range group {
				if d.Attr(name) == nil && d.Block(name) == nil {
					t.Errorf("%s: %q of a group is neither attribute nor block", path, name)
				}
			}
		}
		if d.Doc == "" {
			t.Errorf("%s has no documentation", path)
		}
	})
}

func TestCommonNamesAreFound(t *testing.T) {
	task := Find("task")
	for _, name := range []string{"command", "for_each", "depends_on", "tags"} {
		if task.Attr(name) == nil {
			t.Errorf("task has no attribute %q", name)
		}
	}
	if task.Block("precondition") == nil {
		t.Error("task has no precondition")
	}
	if v := Find("variable"); v.Attr("for_each") != nil || v.Block("precondition") != nil {
		t.Error("a variable has what only blocks with Common have")
	}
	if Find("taks") != nil {
		t.Error("there is a block taks")
	}
}
