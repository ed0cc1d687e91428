package host

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pbuild/engine/run"
)

// However output is cut into reads, no secret survives, and what is no secret does.
func TestRedactionIgnoresHowOutputIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]byte("abc"))
		var secrets [][]byte
		for range rapid.IntRange(1, 3).Draw(t, "secrets") {
			secrets = append(secrets, rapid.SliceOfN(alphabet, 2, 5).Draw(t, "secret"))
		}
		text := rapid.SliceOfN(alphabet, 0, 60).Draw(t, "text")
		whole, _ := redact(text, secrets, true)
		l := newLogger(0, secrets, nil)
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			l.write(run.Stdout, rest[:n])
			rest = rest[n:]
		}
		log, _ := l.finish()
		got, _, _, err := run.ParseLog(log)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, whole) {
			t.Fatalf("text %q, secrets %q: cut %q, whole %q", text, secrets, got, whole)
		}
		for _, s := range secrets {
			if bytes.Contains(got, s) {
				t.Fatalf("%q holds %q", got, s)
			}
		}
	})
}

// The head and the tail are exactly those of the output, and together as long as the limit.
func TestTheMiddleIsCutOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 50).Draw(t, "limit")
		l := newLogger(limit, nil, nil)
		var all []byte
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			stream := rapid.SampledFrom([]byte{run.Stdout, run.Stderr}).Draw(t, "stream")
			data := []byte(rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "data"))
			all = append(all, data...)
			l.write(stream, data)
		}
		log, truncated := l.finish()
		_, _, both, err := run.ParseLog(log)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(all)) <= limit {
			if truncated || !bytes.Equal(both, all) {
				t.Fatalf("cut although it fits: %q, %q", both, all)
			}
			return
		}
		head, rest, ok := strings.Cut(string(both), "\n[pbuild: ")
		_, tail, ok2 := strings.Cut(rest, "]\n")
		if !truncated || !ok || !ok2 || int64(len(head)) != limit/2 || int64(len(tail)) != limit-limit/2 {
			t.Fatalf("limit %d: %q", limit, both)
		}
		if !bytes.HasPrefix(all, []byte(head)) || !bytes.HasSuffix(all, []byte(tail)) {
			t.Fatalf("%q is not the ends of %q", both, all)
		}
	})
}

func TestMemoryOfTheTailIsBounded(t *testing.T) {
	l := newLogger(1000, nil, nil)
	chunk := bytes.Repeat([]byte("x"), 5000)
	for i := range 20000 {
		l.write(byte(1+i%2), chunk[:1+i%700])
	}
	if n := cap(l.tail.data) + 16*cap(l.tail.frames); n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}
