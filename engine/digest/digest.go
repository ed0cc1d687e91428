// Package digest names content by its SHA-256 and writes the canonical encoding that keys are hashed from.
//
// It promises that two encodings are equal exactly when the same named, typed fields were written, and that
// what was hashed can be read back (Explain). It knows nothing of tasks.
package digest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// A Digest names content: a SHA-256, or a git object id (SHA-1) behind twelve zero bytes. A SHA-256 that begins
// so has probability 2^-96, so one type serves both and a tree's digest is its id.
type Digest [32]byte

const gitPad = 12

// Of returns the SHA-256 of b.
func Of(b []byte) Digest { return sha256.Sum256(b) }

// OfGit returns the digest that stands for a git object id of 40 hexadecimal digits.
func OfGit(id string) (Digest, error) {
	var d Digest
	if len(id) != 40 {
		return d, fmt.Errorf("digest: %q is not a git object id of 40 digits", id)
	}
	if _, err := hex.Decode(d[gitPad:], []byte(id)); err != nil {
		return d, fmt.Errorf("digest: %q is not a git object id", id)
	}
	return d, nil
}

// OfObject returns the digest that stands for the id which git gives an object of a kind (blob, tree) with the given content.
func OfObject(kind string, content []byte) (d Digest) {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	h.Sum(d[:gitPad]) // appends within d
	return d
}

// IsZero says whether d names nothing.
func (d Digest) IsZero() bool { return d == Digest{} }

// Git returns the object id of 40 hexadecimal digits, and whether d is one.
func (d Digest) Git() (string, bool) {
	if d.IsZero() || [gitPad]byte(d[:gitPad]) != [gitPad]byte{} {
		return "", false
	}
	return hex.EncodeToString(d[gitPad:]), true
}

// String is "sha256:" or "git:" and all digits; the zero Digest is "none".
func (d Digest) String() string {
	if d.IsZero() {
		return "none"
	}
	if id, ok := d.Git(); ok {
		return "git:" + id
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// Short is the first twelve digits, for people.
func (d Digest) Short() string {
	if id, ok := d.Git(); ok {
		return id[:12]
	}
	return hex.EncodeToString(d[:6])
}

// Hex is all 64 digits, for file names.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// MarshalText and UnmarshalText make the JSON form the one that String prints.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = Parse(string(b))
	return err
}

// Parse reads what String prints.
func Parse(s string) (Digest, error) {
	if s == "none" {
		return Digest{}, nil
	}
	if id, ok := strings.CutPrefix(s, "git:"); ok {
		return OfGit(id)
	}
	var d Digest
	h, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(h) != 64 {
		return d, fmt.Errorf("digest: %q is neither sha256:<64 digits> nor git:<40 digits>", s)
	}
	if _, err := hex.Decode(d[:], []byte(h)); err != nil {
		return d, fmt.Errorf("digest: %q: %w", s, err)
	}
	return d, nil
}

// From returns the SHA-256 of everything that r gives.
func From(r io.Reader) (Digest, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return Digest{}, err
	}
	return Digest(h.Sum(nil)), nil
}
