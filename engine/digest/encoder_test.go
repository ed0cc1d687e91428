package digest

import (
	"bytes"
	"encoding/binary"
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
