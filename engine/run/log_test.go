package run

import (
	"testing"

	"pgregory.net/rapid"
)

func TestLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log []byte
		var want [3]string
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			stream := rapid.SampledFrom([]byte{Stdout, Stderr}).Draw(t, "stream")
			data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
			log = AppendLog(log, stream, data)
			want[stream] += string(data)
			want[0] += string(data)
		}
		stdout, stderr, both, err := ParseLog(log)
		if err != nil || string(stdout) != want[Stdout] || string(stderr) != want[Stderr] || string(both) != want[0] {
			t.Fatalf("%q %q %q %v, want %q", stdout, stderr, both, err, want)
		}
	})
	for _, bad := range []string{"\x01", "\x03\x00", "\x01\x05abc", "\x01\xff"} {
		if _, _, _, err := ParseLog([]byte(bad)); err == nil {
			t.Errorf("ParseLog(%q) gives no error", bad)
		}
	}
}

func TestIsolationNames(t *testing.T) {
	for i := IsolationNone; i <= IsolationContainer; i++ {
		if got, ok := ParseIsolation(i.String()); !ok || got != i {
			t.Errorf("%v is read as %v, %v", i, got, ok)
		}
	}
	if _, ok := ParseIsolation("locked"); ok {
		t.Error("locked is a level")
	}
}
