package task

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pbuild/engine/digest"
)

var fakeKind = &Kind{Name: "fake", Version: 3}

// fakeSpec writes fields of every type.
type fakeSpec struct {
	Command []string
	Globs   []string
	Env     map[string]string
	Network bool
	Timeout int64
	Config  digest.Digest
}

func (s *fakeSpec) Kind() *Kind { return fakeKind }
func (s *fakeSpec) Encode(e *digest.Encoder) {
	e.List("command", s.Command)
	e.Set("globs", s.Globs)
	e.Map("env", s.Env)
	e.Bool("network", s.Network)
	e.Int("timeout_ns", s.Timeout)
	e.Group("config", func(e *digest.Encoder) { e.Digest("digest", s.Config) })
}

// A key is for ever: this one may change only together with schema, for it disowns every record that users have.
func TestGoldenKey(t *testing.T) {
	s := &fakeSpec{
		Command: []string{"go", "test", "./..."}, Globs: []string{"b", "a", "b"}, Env: map[string]string{"LANG": "C", "A": ""},
		Network: true, Timeout: 1800e9, Config: digest.Of([]byte("config")),
	}
	files := []FileInput{{Path: "z.txt", Mode: 0o755, Digest: digest.Of([]byte("z"))}, {Path: "a.txt", Mode: 0o644, Digest: digest.Of(nil)}}
	inputs := []InputDigest{{Role: "tree", Digest: digest.Of([]byte("tree"))}, {Role: "below"}}
	var e digest.Encoder
	key := EncodeKey(&e, s, "salt", files, inputs)
	const wantKey = "76fe280f1b91a733e4567e071a0e1c55f7185d59f3f930fcd676d3f99c08bd51"
	const wantPreimage = "" +
		"7306646f6d61696e0b706275696c64207461736b6906736368656d61010273046b696e640466616b65690c6b696e645f76657273696f6e0106730473616c740473616c746704" +
		"7370656384016c07636f6d6d616e640e02676f0474657374052e2f2e2e2e6c05676c6f627304016101626d03656e760a014100044c414e47014374076e6574776f726b010169" +
		"0a74696d656f75745f6e730680c0e285e3686706636f6e66696729640664696765737420b79606fb3afea5bd1609ed40b622142f1c98125abcfe89a76a661b0e8e3439106705" +
		"66696c6573766705612e7478743369046d6f646502c8066407636f6e74656e7420e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85567057a2e74" +
		"78743369046d6f646502da076407636f6e74656e7420594e519ae499312b29433b7dd8a97ff068defcba9755b6d5d00e84c524d67b066706696e707574734f640562656c6f77" +
		"20000000000000000000000000000000000000000000000000000000000000000064047472656520dc9c5edb8b2d479e697b4b0b8ab874f32b325138598ce9e7b759eb829211" +
		"0622"
	if got := hex.EncodeToString(e.Encoding()); got != wantPreimage {
		t.Errorf("preimage\n%s, want\n%s", got, wantPreimage)
	}
	if key.String() != wantKey {
		t.Errorf("key %s, want %s", key, wantKey)
	}
	components, err := digest.Explain(e.Encoding())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range components {
		got = append(got, c.Name)
	}
	want := []string{
		"domain", "schema", "kind", "kind_version", "salt", "spec.command", "spec.globs", "spec.env", "spec.network", "spec.timeout_ns", "spec.config.digest",
		"files.a.txt.mode", "files.a.txt.content", "files.z.txt.mode", "files.z.txt.content", "inputs.below", "inputs.tree",
	}
	if !slices.Equal(got, want) {
		t.Errorf("components %q", got)
	}
}

// keyed is everything that EncodeKey hashes.
type keyed struct {
	spec   fakeSpec
	salt   string
	files  []FileInput
	inputs []InputDigest
}

func (k *keyed) key() Key {
	var e digest.Encoder
	return EncodeKey(&e, &k.spec, k.salt, slices.Clone(k.files), slices.Clone(k.inputs))
}

// canonical prints k so that two print alike exactly when their keys are to be equal.
func (k *keyed) canonical() string {
	s := k.spec
	s.Globs = slices.Compact(slices.Sorted(slices.Values(s.Globs)))
	return fmt.Sprintf("%#v %q %v %v", s, k.salt, k.files, k.inputs)
}

func drawKeyed(t *rapid.T) *keyed {
	word := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00b", "l\x01"})
	words := rapid.SliceOfN(word, 0, 3)
	sum := rapid.Custom(func(t *rapid.T) digest.Digest { return digest.Of([]byte(word.Draw(t, "content"))) })
	k := &keyed{salt: word.Draw(t, "salt")}
	k.spec = fakeSpec{
		Command: words.Draw(t, "command"), Globs: words.Draw(t, "globs"), Env: rapid.MapOfN(word, word, 0, 2).Draw(t, "env"),
		Network: rapid.Bool().Draw(t, "network"), Timeout: rapid.Int64Range(-1, 1).Draw(t, "timeout"), Config: sum.Draw(t, "config"),
	}
	for _, path := range []string{"p", "q"} {
		if rapid.Bool().Draw(t, path) {
			k.files = append(k.files, FileInput{Path: path, Mode: rapid.SampledFrom([]uint32{0o644, 0o755}).Draw(t, "mode"), Digest: sum.Draw(t, "file")})
			k.inputs = append(k.inputs, InputDigest{Role: path, Digest: sum.Draw(t, "input")})
		}
	}
	return k
}

// Two keys are equal exactly when everything that is in them is.
func TestKeyIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKeyed(t), drawKeyed(t)
		if (a.key() == b.key()) != (a.canonical() == b.canonical()) {
			t.Fatalf("%s\n%s", a.canonical(), b.canonical())
		}
	})
}

// A dependent may put the reason of what it depends on into what it makes.
func TestDigestHoldsEverythingThatDependentsSee(t *testing.T) {
	seen := map[digest.Digest]string{}
	for name, o := range map[string]Outcome{
		"status": {Status: Failed}, "verdict": {Verdict: Fail}, "outcome": {Outcome: "patch_failed"}, "reason": {Reason: "f:1 does not apply"},
		"facts": {Facts: []string{"applies"}}, "outputs": {Outputs: []Output{{Role: "tree", Digest: digest.Of(nil)}}}, "nothing": {},
	} {
		if other, ok := seen[o.Digest("")]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[o.Digest("")] = name
	}
}

// A Key must not depend on the order in which files and inputs were listed.
func TestKeyIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawKeyed(t)
		b := *a
		b.files, b.inputs = rapid.Permutation(a.files).Draw(t, "files"), rapid.Permutation(a.inputs).Draw(t, "inputs")
		b.spec.Globs = append(rapid.Permutation(a.spec.Globs).Draw(t, "globs"), a.spec.Globs...)
		if a.key() != b.key() {
			t.Fatal("the order makes another key")
		}
	})
}

// Every field changes the key, even where its bytes moved over from its neighbour.
func TestEveryFieldIsKeyed(t *testing.T) {
	base := keyed{spec: fakeSpec{Command: []string{"a"}}, files: []FileInput{{Path: "p"}}, inputs: []InputDigest{{Role: "r"}}}
	seen := map[Key]string{base.key(): "base"}
	for name, change := range map[string]func(*keyed){
		"command":  func(k *keyed) { k.spec.Command = []string{"a", ""} },
		"globs":    func(k *keyed) { k.spec.Globs = []string{"a"} },
		"env":      func(k *keyed) { k.spec.Env = map[string]string{"": ""} },
		"network":  func(k *keyed) { k.spec.Network = true },
		"timeout":  func(k *keyed) { k.spec.Timeout = 1 },
		"config":   func(k *keyed) { k.spec.Config[31] = 1 },
		"salt":     func(k *keyed) { k.salt = "a" },
		"path":     func(k *keyed) { k.files = []FileInput{{Path: "q"}} },
		"mode":     func(k *keyed) { k.files = []FileInput{{Path: "p", Mode: 1}} },
		"content":  func(k *keyed) { k.files = []FileInput{{Path: "p", Digest: digest.Of(nil)}} },
		"role":     func(k *keyed) { k.inputs = []InputDigest{{Role: "s"}} },
		"input":    func(k *keyed) { k.inputs = []InputDigest{{Role: "r", Digest: digest.Of(nil)}} },
		"no input": func(k *keyed) { k.inputs = nil },
		"no file":  func(k *keyed) { k.files = nil },
	} {
		k := base
		change(&k)
		if other, ok := seen[k.key()]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[k.key()] = name
	}
	fakeKind.Version++
	defer func() { fakeKind.Version-- }()
	if _, ok := seen[base.key()]; ok {
		t.Error("the kind's version is not in the key")
	}
}
