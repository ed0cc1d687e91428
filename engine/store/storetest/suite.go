// Package storetest is the contract of a store, as tests. Every store passes it.
package storetest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A Store is what the contract is about.
type Store interface {
	Lookup(task.Key) *task.Record
	Latest(address string) *task.Record
	History(address string) []*task.Record
	Generation() uint64
	Append([]*task.Record) error
	Blobs() task.Blobs
	Has(digest.Digest) bool
	Close() error
}

// Opener makes a store that is empty at first and remembers from one writer to the next.
type Opener struct {
	Writer func(t testing.TB) Store
	Reader func(t testing.TB) Store
}

// Record is a record with something in every field that the journal keeps; n makes it different from others.
func Record(n int, address string) *task.Record {
	preimage := []byte(fmt.Sprintf("preimage %d of %s", n, address))
	r := &task.Record{Key: task.Key(digest.Of(preimage)), Kind: "task", Address: address, Preimage: preimage,
		Started: int64(n) * 1e9, Elapsed: 1234567, Attempt: 1 + n%3, Run: fmt.Sprintf("run-%d", n)}
	r.Status, r.Verdict, r.Exit, r.Reason = task.OK, task.Fail, 1, "one test failed"
	r.Outcome.Outcome = "failed"
	r.Outputs = []task.Output{{Role: "out/a", Digest: digest.Of(preimage), Size: int64(len(preimage)), Mode: 0o644}}
	r.Facts, r.Flags = []string{"pass"}, []string{"near_limit", "flaky"}
	r.Log = digest.Of([]byte("log"))
	r.Record, r.Confirm = true, true
	r.Node, r.Isolation, r.Environment, r.Limits = "local", "sealed", "linux/amd64", "wall 30m"
	r.Evidence = []byte(`{"n":1}`)
	r.USD = 0.25
	return r
}

// Test runs the contract over the stores that open makes, a fresh one each time.
func Test(t *testing.T, open func(t *testing.T) Opener) {
	for name, f := range map[string]func(*testing.T, Opener){
		"records come back whole":            recordsComeBack,
		"the newest record of a key wins":    newestWins,
		"an address has a history":           history,
		"the generation moves":               generation,
		"a store that nobody wrote is empty": empty,
		"blobs come back":                    blobs,
		"a missing blob is an error":         missingBlob,
		"many may put the same":              concurrentPuts,
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) { f(t, open(t)) })
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func recordsComeBack(t *testing.T, o Opener) {
	w := o.Writer(t)
	var want []*task.Record
	for n := range 300 {
		want = append(want, Record(n, fmt.Sprintf(`task.copy["%d"]`, n)))
	}
	want = append(want, &task.Record{Key: task.Key{1}}) // nothing but a key
	check(t, w.Append(want[:100]))
	check(t, w.Append(nil))
	check(t, w.Append(want[100:]))
	demand := func(s Store) {
		for _, r := range want {
			equal(t, "Lookup", s.Lookup(r.Key), r)
			equal(t, "Latest", s.Latest(r.Address), r)
		}
	}
	demand(w)
	demand(o.Reader(t))
	check(t, w.Close())
	demand(o.Reader(t))
	w = o.Writer(t)
	demand(w)
	check(t, w.Close())
}

func newestWins(t *testing.T, o Opener) {
	w := o.Writer(t)
	old, other, now := Record(1, "task.a"), Record(2, "task.b"), Record(1, "task.a")
	now.Verdict, now.Address = task.Pass, "task.renamed"
	check(t, w.Append([]*task.Record{old, other}))
	check(t, w.Append([]*task.Record{now}))
	equal(t, "Lookup", w.Lookup(old.Key), now)
	equal(t, "Latest of the old name", w.Latest("task.a"), old)
	check(t, w.Close())
	equal(t, "Lookup after reopening", o.Reader(t).Lookup(old.Key), now)
}

func history(t *testing.T, o Opener) {
	w := o.Writer(t)
	var want []*task.Record
	for n := range 20 {
		r := Record(n, "gate.go/verdict")
		check(t, w.Append([]*task.Record{Record(n, "gate.other"), r}))
		want = append(want, r)
	}
	slices.Reverse(want)
	equal(t, "History", w.History("gate.go/verdict"), want)
	if h := w.History("gate.go"); h != nil {
		t.Errorf("an address that nothing ran under has history %v", h)
	}
	check(t, w.Close())
	equal(t, "History after reopening", o.Reader(t).History("gate.go/verdict"), want)
}

func generation(t *testing.T, o Opener) {
	seen := map[uint64]bool{o.Reader(t).Generation(): true}
	w := o.Writer(t)
	for n := range 10 {
		check(t, w.Append([]*task.Record{Record(n, "a")}))
		g := w.Generation()
		if seen[g] {
			t.Errorf("generation %d twice", g)
		}
		seen[g] = true
		if r := o.Reader(t).Generation(); r != g {
			t.Errorf("a reader sees generation %d, the writer %d", r, g)
		}
	}
	before := w.Generation()
	check(t, w.Close())
	w = o.Writer(t)
	check(t, w.Close())
	if after := o.Reader(t).Generation(); after != before {
		t.Errorf("opening and closing moved the generation")
	}
}

func empty(t *testing.T, o Opener) {
	s := o.Reader(t)
	if s.Lookup(task.Key{1}) != nil || s.Latest("a") != nil || s.History("a") != nil || s.Has(digest.Of(nil)) {
		t.Error("there is something in an empty store")
	}
	if err := s.Append([]*task.Record{Record(1, "a")}); err == nil {
		t.Error("a reader may append")
	}
	if _, err := s.Blobs().Put([]byte("x")); err == nil {
		t.Error("a reader may put")
	}
	check(t, s.Close())
}

// contents are sizes around every limit, compressible and not.
func contents() [][]byte {
	var out [][]byte
	seed := uint64(1)
	for _, size := range []int{0, 1, 100, 4095, 4096, 4097, 65535, 65536, 65537, 300_000, 3 << 20} {
		noise := make([]byte, size)
		for i := range noise {
			seed = seed*6364136223846793005 + 1442695040888963407
			noise[i] = byte(seed >> 56)
		}
		out = append(out, noise, bytes.Repeat([]byte("ok  \tpkg\t0.1s\n"), size/14+1))
	}
	return out
}

func blobs(t *testing.T, o Opener) {
	w := o.Writer(t)
	var names []digest.Digest
	for i, c := range contents() {
		var d digest.Digest
		var err error
		if i%3 == 0 {
			d, err = w.Blobs().Put(c)
		} else {
			var n int64
			d, n, err = w.Blobs().PutFrom(io.MultiReader(bytes.NewReader(c[:len(c)/2]), bytes.NewReader(c[len(c)/2:])))
			equal(t, "size", n, int64(len(c)))
		}
		check(t, err)
		equal(t, "digest", d, digest.Of(c))
		names = append(names, d)
	}
	demand := func(s Store) {
		for i, c := range contents() {
			if !s.Has(names[i]) {
				t.Fatalf("blob %d is not there", i)
			}
			got, err := s.Blobs().Get(names[i])
			check(t, err)
			if !bytes.Equal(got, c) {
				t.Fatalf("blob %d is not what was put", i)
			}
			r, err := s.Blobs().Open(names[i])
			check(t, err)
			got, err = io.ReadAll(r)
			check(t, err)
			check(t, r.Close())
			if !bytes.Equal(got, c) {
				t.Fatalf("blob %d does not stream as it was put", i)
			}
		}
	}
	demand(w)
	check(t, w.Append([]*task.Record{Record(1, "a")}))
	demand(o.Reader(t))
	check(t, w.Close())
	demand(o.Reader(t))
}

func missingBlob(t *testing.T, o Opener) {
	d := digest.Of([]byte("nobody put this"))
	_, err := o.Reader(t).Blobs().Get(d)
	if err == nil || !strings.Contains(err.Error(), d.String()) {
		t.Errorf("a missing blob gives %v, which does not name it", err)
	}
}

func concurrentPuts(t *testing.T, o Opener) {
	w := o.Writer(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for n := range 50 {
				c := bytes.Repeat([]byte{byte(n), 'x'}, 1+n*1000)
				d, err := w.Blobs().Put(c)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := w.Blobs().Get(d); err != nil || !bytes.Equal(got, c) {
					t.Errorf("blob %d comes back wrong: %v", n, err)
				}
				if n%10 == 0 {
					if err := w.Append([]*task.Record{Record(n, "a")}); err != nil {
						t.Error(err)
					}
					w.Lookup(task.Key{1})
				}
			}
		})
	}
	group.Wait()
	check(t, w.Close())
}
