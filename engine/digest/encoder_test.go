package digest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// A group is its tag, its name and what was written into it, whatever its length; one within another too.
func TestGroupIsFramed(t *testing.T) {
	for _, size := range []int{0, 1, 120, 127, 128, 129, 16_000, 17_000} {
		value := strings.Repeat("x", size)
		fields := func(e *Encoder) {
			e.Int("first", 1)
			e.String("value", value)
		}
		var inner, want, got Encoder
		fields(&inner)
		for _, name := range []string{"inner", "outer"} {
			want.Reset()
			framed := append([]byte{tagGroup, byte(len(name))}, name...)
			framed = binary.AppendUvarint(framed, uint64(len(inner.buf)))
			want.buf = append(framed, inner.buf...)
			inner.buf = append(inner.buf[:0], want.buf...)
		}
		got.Group("outer", func(e *Encoder) { e.Group("inner", fields) })
		if !bytes.Equal(got.Encoding(), want.Encoding()) {
			t.Fatalf("%d bytes: the group is not framed as a field", size)
		}
		parts, err := Explain(got.Encoding())
		if err != nil || len(parts) != 2 || parts[1].Name != "outer.inner.value" || parts[1].Digest != Of([]byte(value)) {
			t.Fatalf("%d bytes: read back as %v, %v", size, parts, err)
		}
	}
}

// Two encodings differ in what Explain tells of one and not, at the same place, of the other.
func TestDiffer(t *testing.T) {
	encode := func(command string, files ...string) []byte {
		var e Encoder
		e.String("kind", "task")
		e.Group("spec", func(e *Encoder) {
			e.List("command", []string{command})
			e.Int("timeout", 5)
		})
		e.Group("files", func(e *Encoder) {
			for _, f := range files {
				e.String(f, "content of "+f)
			}
		})
		return e.Encoding()
	}
	names := func(list []Component) (out []string) {
		for _, c := range list {
			out = append(out, c.Name+" "+c.Shown)
		}
		return out
	}
	a := encode("cp", "x", "y")
	for _, c := range []struct {
		b        []byte
		ofA, ofB []string
	}{
		{encode("cp", "x", "y"), nil, nil},
		{encode("mv", "x", "y"), []string{`spec.command ["cp"]`}, []string{`spec.command ["mv"]`}},
		{encode("cp", "x"), []string{`files.y "content of y"`}, nil},
		{encode("cp", "x", "y", "z"), nil, []string{`files.z "content of z"`}},
		{encode("cp", "y"), []string{`files.x "content of x"`, `files.y "content of y"`}, []string{`files.y "content of y"`}},
	} {
		ofA, ofB, err := Differ(a, c.b)
		if err != nil || !slices.Equal(names(ofA), c.ofA) || !slices.Equal(names(ofB), c.ofB) {
			t.Errorf("they differ in %q and %q, %v; want %q and %q", names(ofA), names(ofB), err, c.ofA, c.ofB)
		}
	}
	for cut := range len(a) {
		if _, _, err := Differ(a, a[:cut]); err == nil && !whole(a[:cut]) {
			t.Errorf("cut at %d: no error", cut)
		}
	}
}

// whole says whether an encoding reads back.
func whole(b []byte) bool {
	_, err := Explain(b)
	return err == nil
}

// A list of which the order does not matter is encoded alike whatever its order, and a short one as if it had been sorted.
func TestSetIsSorted(t *testing.T) {
	encode := func(v ...string) string {
		var e Encoder
		e.Set("s", v)
		return string(e.Encoding())
	}
	if encode("b", "a", "b") != encode("a", "b") || encode("a") != encode("a", "a") || encode() == encode("") {
		t.Error("a set is not its members")
	}
}

// Encoding into an encoder that is used again makes no garbage.
func TestEncoderReuses(t *testing.T) {
	var e Encoder
	list := []string{"a"}
	n := testing.AllocsPerRun(100, func() {
		e.Reset()
		e.Group("g", func(e *Encoder) {
			e.Set("set", list)
			e.Map("map", nil)
			e.String("s", "text")
		})
		e.Sum()
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}
