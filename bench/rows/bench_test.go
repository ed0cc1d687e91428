package rows

import (
	"fmt"
	"strings"
	"testing"
)

func text(rows int) string {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "{\"id\": \"%d\", \"src\": \"in/%d/%d.txt\", \"dst\": \"out/%d/%d.txt\"}\n", i, i/1000, i, i/1000, i)
	}
	return b.String()
}

func BenchmarkParse100k(b *testing.B) {
	t := text(100_000)
	b.SetBytes(int64(len(t)))
	b.ReportAllocs()
	for b.Loop() {
		if s, diags := Parse(t, Options{Name: "a.jsonl", Key: "id"}); s == nil {
			b.Fatal(diags)
		}
	}
}

func BenchmarkValue(b *testing.B) {
	s, _ := Parse(text(1000), Options{Name: "a.jsonl", Key: "id"})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Row(i % 1000).Value("dst")
	}
}
