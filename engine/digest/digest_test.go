package digest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStrings(t *testing.T) {
	tree, err := OfGit("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	if err != nil {
		t.Fatal(err)
	}
	if empty := OfObject("tree", nil); empty != tree {
		t.Errorf("the empty tree is %s", empty)
	}
	if blob := OfObject("blob", []byte("hello\n")); blob.String() != "git:ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Errorf("a blob is %s", blob)
	}
	for _, c := range []struct {
		d           Digest
		long, short string
	}{
		{Digest{}, "none", "000000000000"},
		{Of(nil), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "e3b0c44298fc"},
		{tree, "git:4b825dc642cb6eb9a060e54bf8d69288fbee4904", "4b825dc642cb"},
	} {
		if c.d.String() != c.long || c.d.Short() != c.short {
			t.Errorf("%s, %s; want %s, %s", c.d, c.d.Short(), c.long, c.short)
		}
		back, err := Parse(c.long)
		if err != nil || back != c.d {
			t.Errorf("Parse(%s) = %s, %v", c.long, back, err)
		}
		b, err := json.Marshal(c.d)
		if err != nil || string(b) != `"`+c.long+`"` {
			t.Errorf("JSON of %s is %s, %v", c.d, b, err)
		}
	}
	for _, s := range []string{"", "sha256:", "sha256:zz", "git:12", "git:" + strings.Repeat("g", 40), "md5:" + strings.Repeat("0", 32), strings.Repeat("0", 64)} {
		if d, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) = %s", s, d)
		}
	}
}

// A written field is one call of an Encoder.
type written struct {
	Kind  int
	Name  string
	Text  string
	Int   int64
	List  []string
	Map   map[string]string
	Group []written
}

func (f written) write(e *Encoder) {
	switch f.Kind {
	case 0:
		e.String(f.Name, f.Text)
	case 1:
		e.Bytes(f.Name, []byte(f.Text))
	case 2:
		e.Int(f.Name, f.Int)
	case 3:
		e.Bool(f.Name, f.Int > 0)
	case 4:
		e.Digest(f.Name, Of([]byte(f.Text)))
	case 5:
		e.List(f.Name, f.List)
	case 6:
		e.Map(f.Name, f.Map)
	case 7:
		e.Group(f.Name, func(e *Encoder) {
			for _, g := range f.Group {
				g.write(e)
			}
		})
	}
}

func fields(t *rapid.T, depth int) []written {
	text := rapid.StringMatching(`[a-c\x00.]{0,4}`)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) written {
		f := written{Kind: rapid.IntRange(0, 6+min(depth, 1)).Draw(t, "kind"), Name: text.Draw(t, "name"), Text: text.Draw(t, "text"),
			Int: rapid.Int64Range(-2, 2).Draw(t, "int"), List: rapid.SliceOfN(text, 0, 3).Draw(t, "list"), Map: rapid.MapOfN(text, text, 0, 2).Draw(t, "map")}
		if f.Kind == 7 {
			f.Group = fields(t, depth-1)
		}
		return f
	}), 0, 4).Draw(t, "fields")
}

func encode(fs []written) string {
	var e Encoder
	for _, f := range fs {
		f.write(&e)
	}
	return string(e.Encoding())
}

// shown is the fields as text, in which all that was written is told apart.
func shown(fs []written) string {
	var b strings.Builder
	for _, f := range fs {
		var one any
		switch f.Kind {
		case 0, 1, 4:
			one = f.Text
		case 2:
			one = f.Int
		case 3:
			one = f.Int > 0
		case 5:
			one = append([]string{}, f.List...)
		case 6:
			one = f.Map
			if len(f.Map) == 0 {
				one = map[string]string{}
			}
		case 7:
			one = shown(f.Group)
		}
		j, _ := json.Marshal([]any{f.Kind, f.Name, one})
		b.Write(j)
	}
	return b.String()
}

// Two encodings are equal exactly when the same fields were written.
func TestInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := fields(t, 2), fields(t, 2)
		if (encode(a) == encode(b)) != (shown(a) == shown(b)) {
			t.Fatalf("%s and %s: encodings equal is %v", shown(a), shown(b), encode(a) == encode(b))
		}
	})
}

// What was written can be read back, and damage is an error, never a panic.
func TestExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := fields(t, 2)
		enc := encode(fs)
		got, err := Explain([]byte(enc))
		if err != nil {
			t.Fatal(err)
		}
		var count func([]written) int
		count = func(fs []written) (n int) {
			for _, f := range fs {
				if f.Kind == 7 {
					n += count(f.Group)
				} else {
					n++
				}
			}
			return n
		}
		if len(got) != count(fs) {
			t.Fatalf("%d components of %s", len(got), shown(fs))
		}
		if len(enc) > 0 {
			cut := rapid.IntRange(0, len(enc)-1).Draw(t, "cut")
			_, _ = Explain([]byte(enc[:cut])) // a cut between fields is an encoding too
		}
	})
	var e Encoder
	e.Group("spec", func(e *Encoder) {
		e.List("command", []string{"go", "test"})
		e.Map("env", map[string]string{"B": "2", "A": "1"})
		e.Int("timeout_ns", -5)
		e.Bool("network", true)
	})
	e.Digest("tree", Of(nil))
	comps, err := Explain(e.Encoding())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range comps {
		lines = append(lines, c.Name+" "+c.Shown)
	}
	want := []string{`spec.command ["go", "test"]`, `spec.env {"A" = "1", "B" = "2"}`, "spec.timeout_ns -5", "spec.network true", "tree " + Of(nil).String()}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q", lines)
	}
	for _, bad := range []string{"s", "s\x01a", "s\x01a\x05abc", "d\x01a\x01x", "x\x00\x00", "l\x01a\x02\x05a", "g\x01a\x02s\x01"} {
		if c, err := Explain([]byte(bad)); err == nil {
			t.Errorf("Explain(%q) = %v", bad, c)
		}
	}
}

// A set has neither order nor repetition; a list has both.
func TestSet(t *testing.T) {
	of := func(f func(*Encoder)) Digest { var e Encoder; f(&e); return e.Sum() }
	a := of(func(e *Encoder) { e.Set("s", []string{"b", "a", "b"}) })
	b := of(func(e *Encoder) { e.Set("s", []string{"a", "b"}) })
	l := of(func(e *Encoder) { e.List("s", []string{"b", "a"}) })
	if a != b || a == l {
		t.Errorf("%s %s %s", a.Short(), b.Short(), l.Short())
	}
}
