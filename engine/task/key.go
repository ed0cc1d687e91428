package task

import (
	"cmp"
	"encoding/hex"
	"slices"

	"pbuild/engine/digest"
)

// A Key is the hash of everything that can change a task's outcome. It is not a Digest: a Key names what would run, a Digest what came out.
type Key [32]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Short is the first twelve digits, for people.
func (k Key) Short() string { return hex.EncodeToString(k[:6]) }

func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// schema changes when the encoding of keys does, and disowns every record.
const schema = 1

// ModeLink is the mode of a link, as git has it. Files have 0644 or 0755.
const ModeLink = 0o120000

// A FileInput is one file that a task reads: of the workspace, or of a directory that its spec names.
type FileInput struct {
	Path   string
	Mode   uint32 // 0644, 0755 or ModeLink
	Digest digest.Digest
}

// An InputDigest is what one dependency contributes: the digest of its output, its Key if it is opaque, zero if it is unneeded.
type InputDigest struct {
	Role   string
	Digest digest.Digest
}

// EncodeKey writes the preimage of a task's key: its hash is the Key, and digest.Explain reads it back for `why`. The order of files and inputs does not
// matter; they are sorted in place.
func EncodeKey(e *digest.Encoder, s Spec, salt string, files []FileInput, inputs []InputDigest) Key {
	slices.SortFunc(files, func(a, b FileInput) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(inputs, func(a, b InputDigest) int { return cmp.Compare(a.Role, b.Role) })
	k := s.Kind()
	e.Reset()
	e.String("domain", "pbuild task")
	e.Int("schema", schema)
	e.String("kind", k.Name)
	e.Int("kind_version", int64(k.Version))
	if salt != "" {
		e.String("salt", salt)
	}
	e.Group("spec", s.Encode)
	EncodeFiles(e, files)
	if len(inputs) > 0 {
		e.Group("inputs", func(e *digest.Encoder) {
			for _, in := range inputs {
				e.Digest(in.Role, in.Digest)
			}
		})
	}
	return Key(e.Sum())
}

// EncodeFiles writes sorted files as the group "files", each under its path, so that `why` names the one that differs.
func EncodeFiles(e *digest.Encoder, files []FileInput) {
	if len(files) == 0 {
		return
	}
	e.Group("files", func(e *digest.Encoder) {
		for _, f := range files {
			e.Group(f.Path, func(e *digest.Encoder) {
				e.Int("mode", int64(f.Mode))
				e.Digest("content", f.Digest)
			})
		}
	})
}
