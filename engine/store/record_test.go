package store

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pbuild/engine/digest"
	"pbuild/engine/store/storetest"
	"pbuild/engine/task"
)

// anyDigest draws one of a few digests, the zero one among them.
func anyDigest(rt *rapid.T, label string) (d digest.Digest) {
	copy(d[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(rt, label))
	return d
}

func anyStrings(rt *rapid.T, label string) []string {
	if s := rapid.SliceOfN(rapid.String(), 0, 3).Draw(rt, label); len(s) > 0 {
		return s
	}
	return nil
}

func anyBytes(rt *rapid.T, label string) []byte {
	if b := rapid.SliceOf(rapid.Byte()).Draw(rt, label); len(b) > 0 {
		return b
	}
	return nil
}

func anyRecord(rt *rapid.T) *task.Record {
	text := func(label string) string { return rapid.String().Draw(rt, label) }
	number := func(label string) int { return int(rapid.Int32().Draw(rt, label)) }
	r := &task.Record{Key: task.Key(anyDigest(rt, "key")), Kind: text("kind"), Address: text("address"), Preimage: anyBytes(rt, "preimage"),
		Started: rapid.Int64().Draw(rt, "started"), Elapsed: time.Duration(rapid.Int64().Draw(rt, "elapsed")), Attempt: number("attempt"), Run: text("run")}
	r.Outcome = task.Outcome{Status: task.Status(text("status")), Verdict: task.Verdict(text("verdict")), Exit: number("exit"), Outcome: text("outcome"),
		Reason: text("reason"), Facts: anyStrings(rt, "facts"), Flags: anyStrings(rt, "flags"), Log: anyDigest(rt, "log"), Record: rapid.Bool().Draw(rt, "record"),
		Confirm: rapid.Bool().Draw(rt, "confirm"), Node: text("node"), Isolation: text("isolation"), Environment: text("environment"),
		Limits: text("limits"), Evidence: anyBytes(rt, "evidence"), USD: rapid.Float64().Draw(rt, "usd")}
	for range rapid.IntRange(0, 3).Draw(rt, "outputs") {
		r.Outputs = append(r.Outputs, task.Output{Role: text("role"), Digest: anyDigest(rt, "digest"), Size: rapid.Int64().Draw(rt, "size"), Mode: rapid.Uint32().Draw(rt, "mode")})
	}
	return r
}

// Every record comes back as it was; no prefix and no extension of its bytes is a record.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyRecord(rt)
		b := encodeRecord(r)
		got, err := decodeRecord(b)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
		key, tag, err := describeRecord(b)
		if err != nil || task.Key(key) != r.Key || tag != hashString(r.Address) {
			rt.Fatalf("described as %x %x %v", key, tag, err)
		}
		if _, err := decodeRecord(b[:rapid.IntRange(0, len(b)-1).Draw(rt, "cut")]); err == nil {
			rt.Fatal("a prefix decodes")
		}
		if _, err := decodeRecord(append(b, 0)); err == nil {
			rt.Fatal("an extension decodes")
		}
	})
}

// No field is forgotten: each that is set to something else changes the bytes, but for Tail, which is not recorded.
func TestRecordFields(t *testing.T) {
	base := encodeRecord(&task.Record{})
	var each func(v reflect.Value, path string, record *task.Record)
	each = func(v reflect.Value, path string, record *task.Record) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			if f.Kind() == reflect.Struct {
				each(f, name+".", record)
				continue
			}
			old := reflect.New(f.Type()).Elem()
			switch f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Int, reflect.Int64:
				f.SetInt(1)
			case reflect.Uint32:
				f.SetUint(1)
			case reflect.Float64:
				f.SetFloat(1)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Array:
				f.Index(0).SetUint(1)
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			default:
				t.Fatalf("%s: kind %s has no test", name, f.Kind())
			}
			changed := !bytes.Equal(encodeRecord(record), base)
			if want := name != "Outcome.Tail"; changed != want {
				t.Errorf("%s: the record's bytes changed: %v", name, changed)
			}
			f.Set(old)
		}
	}
	r := &task.Record{}
	each(reflect.ValueOf(r).Elem(), "", r)

	with := func(o task.Output) []byte {
		r := &task.Record{}
		r.Outputs = []task.Output{o}
		return encodeRecord(r)
	}
	zero := with(task.Output{})
	for _, o := range []task.Output{{Role: "x"}, {Digest: digest.Digest{1}}, {Size: 1}, {Mode: 1}} {
		if bytes.Equal(with(o), zero) {
			t.Errorf("output %+v is stored as none", o)
		}
	}
}

// Whatever the bytes, decoding a record does not panic, and what decodes encodes to a record that is equal.
func FuzzRecord(f *testing.F) {
	f.Add(encodeRecord(storetest.Record(1, "task.a")))
	f.Add(encodeRecord(&task.Record{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := decodeRecord(encodeRecord(r))
		if err != nil {
			t.Fatal(err)
		}
		if r.USD != r.USD && again.USD != again.USD {
			r.USD, again.USD = 0, 0
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever the bytes of a segment, a scan ends, and tells sound frames and gaps in order, without overlap.
func FuzzScan(f *testing.F) {
	m := mark{1, 2, 3, 4, 5, 6, 7, 8}
	two := appendFrame(appendFrame(nil, m, []byte("one")), m, bytes.Repeat([]byte("two"), 20))
	f.Add(two)
	f.Add(two[5:])
	f.Add(append([]byte("noise"), two...))
	f.Add(appendFrame(nil, m, two))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		end := scan(b, m, func(off int, payload []byte) {
			if off != at || !bytes.Equal(b[off+frameSize:off+frameSize+len(payload)], payload) {
				t.Fatalf("frame at %d, after %d", off, at)
			}
			at = off + frameSize + len(payload)
		}, func(from, to int) {
			if from != at || to <= from {
				t.Fatalf("gap %d-%d, after %d", from, to, at)
			}
			at = to
		})
		if end != at || end > len(b) {
			t.Fatalf("the end is %d, after %d of %d", end, at, len(b))
		}
	})
}

// Whatever the bytes of an index, it is taken only if every offset lies in what it covers.
func FuzzIndex(f *testing.F) {
	m := mark{1, 2, 3, 4, 5, 6, 7, 8}
	s := &segments{places: []place{{key: [32]byte{1}, tag: 2, off: headerSize}}}
	f.Add(s.encodeIndex(&segment{mark: m, size: 100}))
	f.Add([]byte(indexMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if covered, ok := checkIndex(b, m); ok && covered < headerSize {
			t.Fatalf("an index covers %d bytes", covered)
		}
	})
}

// A small blob comes back as it was, whatever its bytes, and no damage to it goes unnoticed.
func TestBlobRoundTrip(t *testing.T) {
	var c codec
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.SliceOf(rapid.Byte()).Draw(rt, "content")
		content = bytes.Repeat(content, rapid.IntRange(1, 300).Draw(rt, "times"))
		content = content[:min(len(content), smallLimit)]
		payload := encodeBlob(&c, digest.Of(content), content)
		got, err := decodeBlob(&c, payload)
		if err != nil || got == nil || !bytes.Equal(got, content) {
			rt.Fatalf("comes back as %d bytes, %v", len(got), err)
		}
		if len(payload) > blobHead+len(content) {
			rt.Fatalf("%d bytes take %d", len(content), len(payload))
		}
	})
}
