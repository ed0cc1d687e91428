package lower

import (
	"regexp"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// tree adds the source that an instance names as source, fix or oracle: a nested block, or a reference to one.
func (l *lowerer) tree(b *decl.Block, name string, each *decl.Each) (task.ID, bool) {
	from, with := b.Nested(name), each
	if from == nil {
		ref, ok := get[decl.Ref](l, b, name, each)
		if !ok {
			return task.None, false
		}
		if from, with, ok = l.one(ref, at(b, name), each); !ok {
			return task.None, false
		}
	}
	spec := l.source(from, with)
	if spec == nil {
		return task.None, false
	}
	return l.add(task.Task{Spec: spec}), true
}

var (
	fullCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	fullSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// source is the spec of a source block; nil after an error.
func (l *lowerer) source(b *decl.Block, each *decl.Each) task.Spec {
	for _, n := range b.Blocks {
		switch n.Type {
		case "git":
			s := &kind.SourceGit{}
			s.Commit, _ = get[string](l, n, "commit", each)
			s.URL, _ = get[string](l, n, "url", each)
			s.Subdir, _ = get[string](l, n, "subdir", each)
			s.Submodules, _ = get[bool](l, n, "submodules", each)
			if !fullCommit.MatchString(s.Commit) {
				l.errorf(at(n, "commit"), each, "Not a full commit", "%q is not 40 hexadecimal digits. A branch, a tag or a short commit can change its meaning.", s.Commit)
				return nil
			}
			return s
		case "gomod":
			s := &kind.SourceGoMod{}
			s.Path, _ = get[string](l, n, "path", each)
			s.Version, _ = get[string](l, n, "version", each)
			s.Sum, _ = get[string](l, n, "sum", each)
			if s.Path == "" || s.Version == "" {
				l.errorf(n.Range, each, "Incomplete source", "A Go module needs a path and a version.")
				return nil
			}
			return s
		case "archive":
			return l.archive(n, each)
		case "dir":
			path, _ := get[string](l, n, "path", each)
			s := &kind.SourceDir{Path: l.path(path)}
			s.Ignore, _ = get[[]string](l, n, "ignore", each)
			var err error
			if s.Files, err = l.host.Dir(s.Path, s.Ignore); err != nil {
				l.unread(at(n, "path"), each, "Directory cannot be read", path, err)
				return nil
			}
			return s
		}
	}
	l.errorf(b.Range, each, "Source without a kind", "A source needs one of git, gomod, archive and dir.")
	return nil
}

func (l *lowerer) archive(n *decl.Block, each *decl.Each) task.Spec {
	s := &kind.SourceArchive{}
	s.SHA256, _ = get[string](l, n, "sha256", each)
	strip, _ := get[int64](l, n, "strip", each)
	s.Strip = int(strip)
	s.URL, _ = get[string](l, n, "url", each)
	if path, ok := get[string](l, n, "path", each); ok {
		s.Path = l.path(path)
	}
	switch {
	case !fullSHA256.MatchString(s.SHA256):
		l.errorf(at(n, "sha256"), each, "Not a SHA-256", "%q is not 64 hexadecimal digits.", s.SHA256)
	case (s.URL == "") == (s.Path == ""):
		l.errorf(n.Range, each, "Incomplete source", "An archive needs one of url and path.")
	default:
		return s
	}
	return nil
}
