package hcl

import (
	"fmt"
	"strings"
	"testing"

	"pbuild/bench/decl"
)

// BenchmarkRow evaluates the attributes of a row as a large workspace has them; slow forms are for comparison.
func BenchmarkRow(b *testing.B) {
	var rows strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&rows, "{\"id\": \"%d\", \"src\": \"in/0/%d.txt\", \"dst\": \"out/0/%d.txt\", \"list\": [\"a\", \"b\"]}\n", i, i, i)
	}
	for name, expr := range map[string]string{
		"column":   `[each.value.src]`,
		"command":  `["cp", each.value.src, each.value.dst]`,
		"template": `["cp", "in/${each.value.src}", "out/${each.key}"]`,
		"concat":   `concat(["go", "test"], each.value.list)`,
		"slow":     `[upper(each.value.src)]`,
	} {
		c := load(b, Options{}, "b.hcl", "dataset \"d\" {\n  file = \"d.jsonl\"\n  key  = \"id\"\n}\ntask \"t\" {\n  for_each = dataset.d\n  command  = "+expr+"\n}\n", "d.jsonl", rows.String())
		command := c.Workspace.Find("task", "t").Attrs["command"].Expr
		set := c.Workspace.Datasets["d"]
		each := make([]decl.Each, n)
		for i := range each {
			each[i] = decl.Each{Key: set.Key(i), Row: set.Row(i)}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, d := command.Eval(&each[i%n]); d != nil {
					b.Fatal(d)
				}
			}
		})
	}
}
