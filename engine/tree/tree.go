// Package tree keeps source trees and patched trees in a bare git repository, so that a tree is named by its content, patches apply without a working tree, and
// checkouts have no history. Every id that the package returns is a git object id as a digest.Digest.
package tree

import (
	"context"

	"pbuild/engine/digest"
)

// A Repo is trees.git. Its methods may be called from many goroutines and processes at once.
type Repo struct{ dir string }

// Open opens the repository in dir, and makes it if it is not there.
func Open(ctx context.Context, dir string) (*Repo, error) { panic("pbuild bug: not written") }

// An Entry is one file of a tree.
type Entry struct {
	Path string
	Mode uint32 // 0644, 0755 or 0120000
	Blob digest.Digest
}

// An Edit changes one path of a tree. Mode 0 removes it. Content is used where Blob is zero.
type Edit struct {
	Path    string
	Mode    uint32
	Blob    digest.Digest
	Content []byte
}

// A Rejection says why a patch does not apply: git's own words, one for each hunk or file.
type Rejection struct{ Reasons []string }

func (r *Rejection) Error() string { panic("pbuild bug: not written") }

// Entries lists a tree, sorted by path.
func (r *Repo) Entries(ctx context.Context, tree digest.Digest) ([]Entry, error) {
	panic("pbuild bug: not written")
}

// Diff lists the paths that differ between two trees, sorted, each as it is in b (Mode 0: it is not there). No rename detection.
func (r *Repo) Diff(ctx context.Context, a, b digest.Digest) ([]Entry, error) {
	panic("pbuild bug: not written")
}

// Read returns the content of a blob; ReadFile that of a path, with ok false if the tree has none.
func (r *Repo) Read(ctx context.Context, blob digest.Digest) ([]byte, error) {
	panic("pbuild bug: not written")
}
func (r *Repo) ReadFile(ctx context.Context, tree digest.Digest, path string) (content []byte, ok bool, err error) {
	panic("pbuild bug: not written")
}

// Edit returns base with edits applied. A path that is empty, absolute, leaves the tree, enters .git or passes a link is refused.
func (r *Repo) Edit(ctx context.Context, base digest.Digest, edits []Edit) (digest.Digest, error) {
	panic("pbuild bug: not written")
}

// Patch returns the difference from a to b, over only the paths that keep accepts (nil: all), as `git diff --binary --full-index` writes it, renames not detected.
func (r *Repo) Patch(ctx context.Context, a, b digest.Digest, keep func(path string) bool) ([]byte, error) {
	panic("pbuild bug: not written")
}

// Apply applies a patch strictly, as `git apply --cached`: offsets yes, fuzz no. A patch that does not apply is a *Rejection.
func (r *Repo) Apply(ctx context.Context, base digest.Digest, patch []byte) (digest.Digest, error) {
	panic("pbuild bug: not written")
}

// Paths lists the paths that a patch touches, sorted: both names of a rename.
func (r *Repo) Paths(ctx context.Context, patch []byte) ([]string, error) {
	panic("pbuild bug: not written")
}

// Import makes a tree of the files below dir that keep accepts (nil: all; .git never). Empty directories are dropped; modes become 0644, 0755 or link.
func (r *Repo) Import(ctx context.Context, dir string, keep func(path string, isDir bool) bool) (digest.Digest, error) {
	panic("pbuild bug: not written")
}

// Checkout writes a tree's files below dir, which must be empty or absent, with the current time.
func (r *Repo) Checkout(ctx context.Context, tree digest.Digest, dir string) error {
	panic("pbuild bug: not written")
}

// Has says whether a tree is there, whole.
func (r *Repo) Has(ctx context.Context, tree digest.Digest) bool { panic("pbuild bug: not written") }

// Keep gives each tree a ref, so that no collection takes it; Drop takes the refs of all trees but those that live says away, and prunes.
func (r *Repo) Keep(ctx context.Context, trees ...digest.Digest) error {
	panic("pbuild bug: not written")
}
func (r *Repo) Drop(ctx context.Context, live func(digest.Digest) bool) error {
	panic("pbuild bug: not written")
}

// A Git is where a commit comes from.
type Git struct {
	URL        string
	Commit     string // 40 hexadecimal digits
	Subdir     string
	Submodules bool
}

// FetchGit brings the tree of a commit: shallow by commit where the server allows it, else the branches and tags.
func (r *Repo) FetchGit(ctx context.Context, g Git) (digest.Digest, error) {
	panic("pbuild bug: not written")
}

// A GoMod is a module version; Sum ("h1:...") is verified if it is not empty.
type GoMod struct{ Path, Version, Sum string }

// FetchGoMod brings a module's zip through `go mod download -json`, and returns its tree and the sum that was seen. A zip without go.mod gets the one that the proxy gives with it.
func (r *Repo) FetchGoMod(ctx context.Context, m GoMod) (tree digest.Digest, sum string, err error) {
	panic("pbuild bug: not written")
}

// An Archive is a tar or zip, plain or compressed with gzip, bzip2, xz or zstd.
type Archive struct {
	URL    string // one of URL and Path
	Path   string
	SHA256 string
	Strip  int
}

// FetchArchive brings an archive's tree. An entry that would leave the tree, and a checksum that differs, are *Bad.
func (r *Repo) FetchArchive(ctx context.Context, a Archive) (digest.Digest, error) {
	panic("pbuild bug: not written")
}

// A Bad is an error that trying again cannot mend: wrong content, not a failed download.
type Bad struct{ Reason string }

func (e *Bad) Error() string { return e.Reason }
