package kind

import (
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// SourceGit, SourceGoMod, SourceArchive and SourceDir have no dependencies and give a Tree.
type SourceGit struct {
	Commit     string
	Subdir     string
	Submodules bool
	URL        string `key:"-"`
}

func (s *SourceGit) Kind() *task.Kind { return Source }
func (s *SourceGit) Encode(e *digest.Encoder) {
	e.String("git_commit", s.Commit)
	e.String("subdir", s.Subdir)
	e.Bool("submodules", s.Submodules)
}

type SourceGoMod struct{ Path, Version, Sum string }

func (s *SourceGoMod) Kind() *task.Kind { return Source }
func (s *SourceGoMod) Encode(e *digest.Encoder) {
	e.String("gomod_path", s.Path)
	e.String("version", s.Version)
	e.String("sum", s.Sum)
}

type SourceArchive struct {
	SHA256 string // 64 hexadecimal digits
	Strip  int
	URL    string `key:"-"` // one of URL and Path
	Path   string `key:"-"` // absolute
}

func (s *SourceArchive) Kind() *task.Kind { return Source }
func (s *SourceArchive) Encode(e *digest.Encoder) {
	e.String("archive_sha256", s.SHA256)
	e.Int("strip", int64(s.Strip))
}

type SourceDir struct {
	Files  []task.FileInput // sorted, listed at plan; paths are relative to Path
	Ignore []string         `key:"-"` // already applied to Files
	Path   string           `key:"-"` // absolute
}

func (s *SourceDir) Kind() *task.Kind         { return Source }
func (s *SourceDir) Encode(e *digest.Encoder) { task.EncodeFiles(e, s.Files) }

// PatchesSpec derives gold and test patch. Roles: "base" (a Tree), and "fix" (a Tree) where Gold and Test are zero.
// Outputs: GoldPatch, TestPatch, BaseTestTree, GoldTree, GoldTestTree, GoldPaths, TestPaths.
type PatchesSpec struct {
	TestFiles, TestData []string // globs
	Gold, Test          Data     // given patches
}

func (s *PatchesSpec) Kind() *task.Kind { return Patches }
func (s *PatchesSpec) Encode(e *digest.Encoder) {
	e.Set("test_files", s.TestFiles)
	e.Set("test_data", s.TestData)
	e.Digest("gold", s.Gold.Digest)
	e.Digest("test", s.Test.Digest)
}
