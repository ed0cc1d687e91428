package verdict

import (
	"fmt"
	"strings"
	"testing"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// A log of 10,000 passing Go tests, as events.
func BenchmarkGoTest(b *testing.B) {
	var out strings.Builder
	for i := range 10000 {
		for _, a := range []string{`"Action":"run"`, `"Action":"output","Output":"=== RUN   TestX\n"`, `"Action":"output","Output":"--- PASS: TestX (0.00s)\n"`, `"Action":"pass","Elapsed":0`} {
			fmt.Fprintf(&out, "{\"Time\":\"2026-01-01T00:00:00.000000000Z\",%s,\"Package\":\"example.com/m/sub\",\"Test\":\"TestX/%d\"}\n", a, i)
		}
	}
	out.WriteString("{\"Action\":\"pass\",\"Package\":\"example.com/m/sub\"}\n")
	in := Input{Modules: map[string]string{"example.com/m": "."}, Stdout: []byte(out.String())}
	b.SetBytes(int64(len(in.Stdout)))
	b.ReportAllocs()
	for b.Loop() {
		if s := Parse(&kind.ScoreSpec{Format: "gotest", FailToPass: []string{"sub:TestX/7"}}, in, nil); s.Verdict != task.Pass {
			b.Fatal(s.Detail)
		}
	}
}
