package cli

import "testing"

func TestEndsOfWhatAProbeComplained(t *testing.T) {
	for s, want := range map[string]string{
		"":                        "",
		"sh: go: not found.\n":    ": sh: go: not found",
		"no such option\na\nb.\n": ": no such option ... b",
	} {
		if got := ends(s); got != want {
			t.Errorf("ends(%q) is %q, not %q", s, got, want)
		}
	}
}
