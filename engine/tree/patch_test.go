package tree

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawFiles makes a random tree of names and contents that git has to quote, detect or convert.
func drawFiles(t *rapid.T, label string) files {
	part := rapid.SampledFrom([]string{"a", "b", "c.go", "d e", "naïve", "\"q\"", "tab\there", "new\nline", "ü.txt", "-dash", "{x}", "a=>b", "\xff\xfe", "trailing ", "back\\slash", ".gitattributes", "[z]*"})
	content := rapid.OneOf(
		rapid.Just(""),
		rapid.Just("no newline at end"),
		rapid.SampledFrom([]string{"one\ntwo\nthree\n", "one\r\ntwo\r\n", "mixed\r\nends\nhere\r", "\n\n\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "* text=auto eol=crlf\n", "$Id$\n", " \t trailing \t\n", "\f\v\n"}),
		rapid.StringMatching(`([a-c]{0,3}\n){0,40}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) }),
	)
	out, taken := files{}, map[string]bool{}
	for range rapid.IntRange(0, 8).Draw(t, label+" files") {
		parts := rapid.SliceOfN(part, 1, 3).Draw(t, label+" path")
		p := strings.Join(parts, "/")
		if clashes(taken, p) {
			continue
		}
		taken[p] = true
		switch kind := rapid.SampledFrom([]string{"", "", "", "x:", "l:"}).Draw(t, "kind"); kind {
		case "l:":
			out[kind+p] = rapid.SampledFrom([]string{"a", "../x", "/etc/passwd", "with space", "new\nline"}).Draw(t, "target")
		default:
			out[kind+p] = content.Draw(t, "content")
		}
	}
	return out
}

func clashes(taken map[string]bool, p string) bool {
	for have := range taken {
		if have == p || strings.HasPrefix(have, p+"/") || strings.HasPrefix(p, have+"/") {
			return true
		}
	}
	return false
}

func TestPatchRoundTrip(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawFiles(rt, "a"), drawFiles(rt, "b")
		if rapid.Bool().Draw(rt, "kin") { // a change of a, and not another tree
			for p, c := range a {
				taken := map[string]bool{}
				for q := range b {
					taken[q[2*btoi(strings.HasPrefix(q, "x:") || strings.HasPrefix(q, "l:")):]] = true
				}
				bare := p[2*btoi(strings.HasPrefix(p, "x:") || strings.HasPrefix(p, "l:")):]
				if !clashes(taken, bare) {
					b[p] = c
				}
			}
		}
		ta, tb := r.mustMake(t, a), r.mustMake(t, b)
		patch, err := r.Patch(ctx, ta, tb, nil)
		if err != nil {
			rt.Fatal(err)
		}
		if ta == tb {
			if len(patch) != 0 {
				rt.Fatalf("equal trees differ by %q", patch)
			}
			return
		}
		got, err := r.Apply(ctx, ta, patch)
		if err != nil {
			rt.Fatalf("apply: %v\n%s", err, patch)
		}
		if got != tb {
			rt.Fatalf("got %q, want %q\n%s", r.read(t, got), b, patch)
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
