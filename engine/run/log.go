package run

import (
	"encoding/binary"
	"fmt"
)

// A log is a sequence of frames, each a stream byte (1 or 2), the length and the data, in the order in which the data came.
// stdout and stderr stay apart and in order. A runner's log has no two frames of one stream in a row: how many reads it took to
// get some output is chance, and equal output must be an equal log.

const (
	Stdout = 1
	Stderr = 2
)

// AppendLog appends one frame.
func AppendLog(log []byte, stream byte, data []byte) []byte {
	log = append(log, stream)
	log = binary.AppendUvarint(log, uint64(len(data)))
	return append(log, data...)
}

// JoinFrames makes one frame of those of one stream that follow each other.
func JoinFrames(log []byte) ([]byte, error) {
	out := make([]byte, 0, len(log))
	var open []byte
	var of byte
	flush := func() {
		if len(open) > 0 {
			out = AppendLog(out, of, open)
			open = open[:0]
		}
	}
	err := EachFrame(log, func(stream byte, data []byte) {
		if stream != of {
			flush()
			of = stream
		}
		open = append(open, data...)
	})
	flush()
	return out, err
}

// EachFrame calls f for every frame of a log.
func EachFrame(log []byte, f func(stream byte, data []byte)) error {
	for rest := log; len(rest) > 0; {
		n, size := binary.Uvarint(rest[1:])
		if rest[0] != Stdout && rest[0] != Stderr || size <= 0 || n > uint64(len(rest)-1-size) {
			return fmt.Errorf("run: log is damaged at byte %d", len(log)-len(rest))
		}
		f(rest[0], rest[1+size:1+size+int(n)])
		rest = rest[1+size+int(n):]
	}
	return nil
}

// ParseLog splits a log into stdout, stderr, and both in order.
func ParseLog(log []byte) (stdout, stderr, both []byte, err error) {
	err = EachFrame(log, func(stream byte, data []byte) {
		if stream == Stdout {
			stdout = append(stdout, data...)
		} else {
			stderr = append(stderr, data...)
		}
		both = append(both, data...)
	})
	return stdout, stderr, both, err
}
