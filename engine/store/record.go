package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A record's payload:
//
//	1 version   32 key   head, preimage, evidence: each with its length
//
// The head holds the address first, and then every other field. Lengths and counts are uvarints, integers varints,
// a float its bits. A decoder takes exactly this: nothing may be left over.
const recordVersion = 1

const (
	flagRecord  = 1 << 0
	flagConfirm = 1 << 1
)

func encodeRecord(r *task.Record) []byte {
	head := make(writer, 0, 512)
	head.string(r.Address)
	head.string(r.Kind)
	head.int(r.Started)
	head.int(int64(r.Elapsed))
	head.int(int64(r.Attempt))
	head.string(r.Run)
	head.string(string(r.Status))
	head.string(string(r.Verdict))
	head.int(int64(r.Exit))
	head.string(r.Outcome.Outcome)
	head.string(r.Reason)
	head.uint(uint64(len(r.Outputs)))
	for _, o := range r.Outputs {
		head.string(o.Role)
		head.digest(o.Digest)
		head.int(o.Size)
		head.uint(uint64(o.Mode))
	}
	head.strings(r.Facts)
	head.strings(r.Flags)
	head.digest(r.Log)
	flags := byte(0)
	if r.Record {
		flags |= flagRecord
	}
	if r.Confirm {
		flags |= flagConfirm
	}
	head = append(head, flags)
	head.string(r.Node)
	head.string(r.Isolation)
	head.string(r.Environment)
	head.string(r.Limits)
	head.uint(math.Float64bits(r.USD))

	out := make(writer, 0, 1+32+len(head)+len(r.Preimage)+len(r.Evidence)+3*binary.MaxVarintLen64)
	out = append(out, recordVersion)
	out = append(out, r.Key[:]...)
	out.bytes(head)
	out.bytes(r.Preimage)
	out.bytes(r.Evidence)
	return out
}

var errRecord = errors.New("the record cannot be decoded")

// describeRecord gives the key and the address's hash, without the rest.
func describeRecord(payload []byte) (key [32]byte, tag uint64, err error) {
	key, head, _, _, err := cutRecord(payload)
	if err != nil {
		return key, 0, err
	}
	in := reader{rest: string(head)}
	tag = hashString(in.string())
	if in.bad {
		return key, 0, errRecord
	}
	return key, tag, nil
}

func cutRecord(payload []byte) (key [32]byte, head, preimage, evidence []byte, err error) {
	if len(payload) < 1+32 {
		return key, nil, nil, nil, errRecord
	}
	if payload[0] != recordVersion {
		return key, nil, nil, nil, fmt.Errorf("%w (version %d)", errVersion, payload[0])
	}
	key = [32]byte(payload[1:])
	rest := payload[1+32:]
	for _, part := range []*[]byte{&head, &preimage, &evidence} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return key, nil, nil, nil, errRecord
		}
		*part, rest = rest[size:size+int(n)], rest[size+int(n):]
	}
	if len(rest) > 0 {
		return key, nil, nil, nil, errRecord
	}
	return key, head, preimage, evidence, nil
}

// decodeRecord makes a record that does not refer to payload. What it holds shares one copy of that.
func decodeRecord(payload []byte) (*task.Record, error) {
	key, head, preimage, evidence, err := cutRecord(bytes.Clone(payload))
	if err != nil {
		return nil, err
	}
	in := reader{rest: viewString(head)}
	r := &task.Record{Key: key, Preimage: whole(preimage)}
	r.Evidence = whole(evidence)
	r.Address = in.string()
	r.Kind = in.string()
	r.Started = in.int()
	r.Elapsed = time.Duration(in.int())
	r.Attempt = int(in.int())
	r.Run = in.string()
	r.Status = task.Status(in.string())
	r.Verdict = task.Verdict(in.string())
	r.Exit = int(in.int())
	r.Outcome.Outcome = in.string()
	r.Reason = in.string()
	if n := in.count(1 + 32 + 1 + 1); n > 0 {
		r.Outputs = make([]task.Output, n)
		for i := range r.Outputs {
			r.Outputs[i] = task.Output{Role: in.string(), Digest: in.digest(), Size: in.int(), Mode: uint32(in.uint())}
		}
	}
	r.Facts = in.strings()
	r.Flags = in.strings()
	r.Log = in.digest()
	flags := in.byte()
	r.Record, r.Confirm = flags&flagRecord != 0, flags&flagConfirm != 0
	r.Node = in.string()
	r.Isolation = in.string()
	r.Environment = in.string()
	r.Limits = in.string()
	r.USD = math.Float64frombits(in.uint())
	if in.bad || in.rest != "" || flags&^(flagRecord|flagConfirm) != 0 {
		return nil, errRecord
	}
	return r, nil
}

// whole is b, which nothing appends to; nil where it is empty.
func whole(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b[:len(b):len(b)]
}

// A writer appends fields; a reader cuts them off again.
type writer []byte

func (w *writer) uint(v uint64) { *w = binary.AppendUvarint(*w, v) }
func (w *writer) int(v int64)   { *w = binary.AppendVarint(*w, v) }

func (w *writer) bytes(b []byte) {
	w.uint(uint64(len(b)))
	*w = append(*w, b...)
}

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	*w = append(*w, s...)
}

func (w *writer) digest(d digest.Digest) { *w = append(*w, d[:]...) }

func (w *writer) strings(list []string) {
	w.uint(uint64(len(list)))
	for _, s := range list {
		w.string(s)
	}
}

// A reader is bad, and gives zeros, once a field was not whole.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) cut(n uint64) string {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad = true
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) byte() byte {
	if s := r.cut(1); s != "" {
		return s[0]
	}
	return 0
}

func (r *reader) uint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		if shift == 63 && b > 1 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.bad = true
	return 0
}

func (r *reader) int() int64 {
	u := r.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) string() string { return r.cut(r.uint()) }

func (r *reader) digest() (d digest.Digest) {
	copy(d[:], r.cut(32))
	return d
}

// count reads how many things follow, each of which takes at least size bytes: so a damaged count allocates no more than its input.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.rest)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) strings() []string {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = r.string()
	}
	return out
}
