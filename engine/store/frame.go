package store

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A segment is a header and frames:
//
//	header   8 "pbuild", kind, version   8 mark   4 CRC32C of these   4 zero
//	frame    8 mark   4 length   4 CRC32C of length and payload   payload
//
// The mark is random and the segment's own. It stands before every frame, so that reading can go on after a damaged stretch
// without taking for a frame what a log or a patch inside a frame only imitates: who wrote that could not know the mark.
const (
	headerSize = 24
	frameSize  = 16
	maxPayload = 1 << 28
)

const formatVersion = 1

type mark [8]byte

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newMark() (m mark) {
	rand.Read(m[:])
	return m
}

func appendHeader(dst []byte, kind byte, m mark) []byte {
	dst = append(dst, 'p', 'b', 'u', 'i', 'l', 'd', kind, formatVersion)
	return appendHeaderSum(append(dst, m[:]...))
}

// appendHeaderSum ends a header of which dst ends with the first part.
func appendHeaderSum(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[len(dst)-16:], castagnoli))
	return append(dst, 0, 0, 0, 0)
}

var (
	errHeader  = errors.New("the header is damaged")
	errVersion = errors.New("a newer pbuild wrote it")
)

// parseHeader returns a segment's mark.
func parseHeader(kind byte, header []byte) (mark, error) {
	switch {
	case crc32.Checksum(header[:16], castagnoli) != binary.LittleEndian.Uint32(header[16:]):
		return mark{}, errHeader
	case string(header[:7]) != "pbuild"+string(rune(kind)):
		return mark{}, errHeader
	case header[7] != formatVersion:
		return mark{}, errVersion
	}
	return mark(header[8:16]), nil
}

// mendHeader returns the mark of a segment with a damaged header: its first frame, which b begins with, repeats the mark.
func mendHeader(b []byte) (mark, error) {
	if len(b) < frameSize {
		return mark{}, errHeader
	}
	m := mark(b)
	if _, _, ok := cutFrame(b, m); !ok {
		return mark{}, errHeader
	}
	return m, nil
}

func appendFrame(dst []byte, m mark, payload []byte) []byte {
	dst = append(dst, m[:]...)
	at := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	sum := crc32.Update(crc32.Checksum(dst[at:], castagnoli), castagnoli, payload)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return append(dst, payload...)
}

// cutFrame returns the payload of the whole, sound frame that b begins with, and the frame's size.
func cutFrame(b []byte, m mark) (payload []byte, size int, ok bool) {
	n, ok := frameLength(b, m)
	if !ok || n > len(b)-frameSize {
		return nil, 0, false
	}
	payload = b[frameSize : frameSize+n : frameSize+n]
	sum := crc32.Update(crc32.Checksum(b[8:12], castagnoli), castagnoli, payload)
	return payload, frameSize + n, sum == binary.LittleEndian.Uint32(b[12:])
}

// frameLength is the length of the payload that the frame at the beginning of b claims to have.
func frameLength(b []byte, m mark) (int, bool) {
	if len(b) < frameSize || mark(b) != m {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(b[8:])
	return int(n), n <= maxPayload
}

// scan calls frame for every sound frame in b and gap for every damaged stretch that a sound frame follows. It returns the end of the last
// sound frame: what comes after that is a torn tail, of which nothing is known to have been whole.
func scan(b []byte, m mark, frame func(off int, payload []byte), gap func(from, to int)) (end int) {
	for pos := 0; pos < len(b); {
		payload, size, ok := cutFrame(b[pos:], m)
		if !ok {
			i := bytes.Index(b[pos+1:], m[:])
			if i < 0 {
				break
			}
			pos += 1 + i
			continue
		}
		if pos > end {
			gap(end, pos)
		}
		frame(pos, payload)
		pos += size
		end = pos
	}
	return end
}
