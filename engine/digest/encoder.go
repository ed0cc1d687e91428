package digest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An Encoder writes named, typed fields one after the other. The encoding is framed and so injective: each field is a
// type byte, the name and the value, both with their lengths. Its bytes serve twice: hashed they are
// a key, and decoded by Explain they say what went into it. The zero Encoder is ready; Reset keeps its memory.
type Encoder struct{ buf []byte }

const (
	tagString = 's'
	tagBytes  = 'b'
	tagInt    = 'i'
	tagBool   = 't'
	tagDigest = 'd'
	tagList   = 'l'
	tagMap    = 'm'
	tagGroup  = 'g'
)

func (e *Encoder) head(tag byte, name string, size int) {
	e.buf = append(e.buf, tag)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(name)))
	e.buf = append(e.buf, name...)
	e.buf = binary.AppendUvarint(e.buf, uint64(size))
}

func (e *Encoder) String(name, v string) {
	e.head(tagString, name, len(v))
	e.buf = append(e.buf, v...)
}

func (e *Encoder) Bytes(name string, v []byte) {
	e.head(tagBytes, name, len(v))
	e.buf = append(e.buf, v...)
}

func (e *Encoder) Int(name string, v int64) {
	var b [binary.MaxVarintLen64]byte
	n := binary.PutVarint(b[:], v)
	e.head(tagInt, name, n)
	e.buf = append(e.buf, b[:n]...)
}

func (e *Encoder) Bool(name string, v bool) {
	e.head(tagBool, name, 1)
	if v {
		e.buf = append(e.buf, 1)
	} else {
		e.buf = append(e.buf, 0)
	}
}

func (e *Encoder) Digest(name string, d Digest) {
	e.head(tagDigest, name, len(d))
	e.buf = append(e.buf, d[:]...)
}

// List writes strings whose order matters.
func (e *Encoder) List(name string, v []string) { e.strings(tagList, name, v) }

// Set writes strings whose order and repetition do not matter.
func (e *Encoder) Set(name string, v []string) {
	if len(v) < 2 {
		e.strings(tagList, name, v)
		return
	}
	e.strings(tagList, name, slices.Compact(slices.Sorted(slices.Values(v))))
}

// Map writes key and value pairs, sorted by key.
func (e *Encoder) Map(name string, m map[string]string) {
	if len(m) == 0 {
		e.strings(tagMap, name, nil)
		return
	}
	flat := make([]string, 0, 2*len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		flat = append(flat, k, m[k])
	}
	e.strings(tagMap, name, flat)
}

func (e *Encoder) strings(tag byte, name string, v []string) {
	size := 0
	for _, s := range v {
		size += uvarintLen(uint64(len(s))) + len(s)
	}
	e.head(tag, name, size)
	for _, s := range v {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(s)))
		e.buf = append(e.buf, s...)
	}
}

// Group writes the fields that f writes as one field. f only writes.
func (e *Encoder) Group(name string, f func(*Encoder)) {
	e.head(tagGroup, name, 0)
	at := len(e.buf) // what f writes follows a length of one byte, and is moved if that takes more
	f(e)
	size := len(e.buf) - at
	for range uvarintLen(uint64(size)) - 1 {
		e.buf = append(e.buf, 0)
	}
	copy(e.buf[len(e.buf)-size:], e.buf[at:at+size])
	binary.PutUvarint(e.buf[at-1:], uint64(size))
}

func (e *Encoder) Reset() { e.buf = e.buf[:0] }

// Encoding returns what was written, valid until the next call.
func (e *Encoder) Encoding() []byte { return e.buf }

// Sum is the SHA-256 of what was written.
func (e *Encoder) Sum() Digest { return Of(e.buf) }

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// A Component is one field of an encoding, as `why` and `show` print it.
type Component struct {
	Name   string `json:"name"` // groups joined by dots: "spec.command"
	Digest Digest `json:"digest"`
	Shown  string `json:"shown"`
}

// Explain reads an encoding back into its fields, groups flattened, in the order in which they were written.
func Explain(encoding []byte) ([]Component, error) { return explain(nil, "", encoding) }

func explain(out []Component, prefix string, b []byte) ([]Component, error) {
	for len(b) > 0 {
		f, rest, err := cutField(b)
		if err != nil {
			return nil, err
		}
		if out, err = f.explain(out, prefix); err != nil {
			return nil, err
		}
		b = rest
	}
	return out, nil
}

// A field is one field of an encoding, undecoded.
type field struct {
	tag         byte
	name, value []byte
}

func cutField(b []byte) (f field, rest []byte, err error) {
	f.tag = b[0]
	var ok bool
	if f.name, rest, ok = cut(b[1:]); !ok {
		return f, nil, errors.New("digest: an encoding is cut short")
	}
	if f.value, rest, ok = cut(rest); !ok {
		return f, nil, fmt.Errorf("digest: field %q is cut short", f.name)
	}
	return f, rest, nil
}

func (f *field) explain(out []Component, prefix string) ([]Component, error) {
	name := prefix + string(f.name)
	if f.tag == tagGroup {
		return explain(out, name+".", f.value)
	}
	shown, err := show(f.tag, f.value)
	if err != nil {
		return nil, fmt.Errorf("digest: field %q: %w", name, err)
	}
	c := Component{Name: name, Digest: Of(f.value), Shown: shown}
	if f.tag == tagDigest {
		copy(c.Digest[:], f.value)
	}
	return append(out, c), nil
}

// Differ is Explain of two encodings without the fields that stand in both at the same place, which is most of them and costs little.
func Differ(a, b []byte) (ofA, ofB []Component, err error) { return differ(nil, nil, "", a, b) }

func differ(ofA, ofB []Component, prefix string, a, b []byte) (_, _ []Component, err error) {
	for len(a) > 0 && len(b) > 0 {
		f, restA, err := cutField(a)
		if err != nil {
			return nil, nil, err
		}
		g, restB, err := cutField(b)
		if err != nil {
			return nil, nil, err
		}
		alike := f.tag == g.tag && bytes.Equal(f.name, g.name)
		switch {
		case alike && bytes.Equal(f.value, g.value):
		case alike && f.tag == tagGroup:
			ofA, ofB, err = differ(ofA, ofB, prefix+string(f.name)+".", f.value, g.value)
		case alike:
			if ofA, err = f.explain(ofA, prefix); err == nil {
				ofB, err = g.explain(ofB, prefix)
			}
		default: // one has a field more: what follows no longer stands side by side
			restA, restB = nil, nil
			if ofA, err = explain(ofA, prefix, a); err == nil {
				ofB, err = explain(ofB, prefix, b)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		a, b = restA, restB
	}
	if ofA, err = explain(ofA, prefix, a); err == nil {
		ofB, err = explain(ofB, prefix, b)
	}
	return ofA, ofB, err
}

func show(tag byte, v []byte) (string, error) {
	switch tag {
	case tagString:
		return strconv.Quote(string(v)), nil
	case tagBytes:
		return fmt.Sprintf("%d bytes", len(v)), nil
	case tagInt:
		n, size := binary.Varint(v)
		if size != len(v) {
			return "", errors.New("not an integer")
		}
		return strconv.FormatInt(n, 10), nil
	case tagBool:
		return strconv.FormatBool(len(v) == 1 && v[0] == 1), nil
	case tagDigest:
		if len(v) != len(Digest{}) {
			return "", errors.New("not a digest")
		}
		return Digest(v).String(), nil
	case tagList, tagMap:
		var parts []string
		for len(v) > 0 {
			s, rest, ok := cut(v)
			if !ok {
				return "", errors.New("a list is cut short")
			}
			parts, v = append(parts, strconv.Quote(string(s))), rest
		}
		if tag == tagList {
			return "[" + strings.Join(parts, ", ") + "]", nil
		}
		var b strings.Builder
		for i := 0; i+1 < len(parts); i += 2 {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(parts[i] + " = " + parts[i+1])
		}
		return "{" + b.String() + "}", nil
	}
	return "", fmt.Errorf("unknown type %q", tag)
}

func cut(b []byte) (field, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}
