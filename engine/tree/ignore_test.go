package tree

import "testing"

// Two stars right behind a text that has no wildcard are special to git, though no slash stands before them.
func TestStarsBehindText(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"a**/b", "ab", true}, {"a**/b", "ax/y/b", true}, {"a**/b", "a/b", true}, {"a**/b", "xab", false}, {"?a**/b", "xab", false}, {"a/b", "a/b", true}, {"a/b", "a/bc", false},
	} {
		if got := globPath(c.pattern, c.path); got != c.want {
			t.Errorf("%s matches %s: %t", c.pattern, c.path, got)
		}
	}
}
