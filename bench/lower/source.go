package lower

import (
	"fmt"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

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
		l.used[memberName(from, with)] = true
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
			commit, given := get[string](l, n, "commit", each)
			s.Commit = commit
			s.URL, _ = get[string](l, n, "url", each)
			s.Subdir, _ = get[string](l, n, "subdir", each)
			s.Submodules, _ = get[bool](l, n, "submodules", each)
			if given && !fullCommit.MatchString(s.Commit) {
				l.errorf(at(n, "commit"), each, "Not a full commit", "%q is not 40 hexadecimal digits. A branch, a tag or a short commit can change its meaning.", s.Commit)
				return nil
			}
			l.sought(at(n, "url"), each, s.URL, l.host.Repository(s.URL))
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
			return l.dir(n, each)
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
	path, ok := get[string](l, n, "path", each)
	if ok {
		s.Path = l.path(path)
	}
	switch {
	case !fullSHA256.MatchString(s.SHA256):
		l.errorf(at(n, "sha256"), each, "Not a SHA-256", "%q is not 64 hexadecimal digits.", s.SHA256)
	case (s.URL == "") == (s.Path == ""):
		l.errorf(n.Range, each, "Incomplete source", "An archive needs one of url and path.")
	default:
		l.sought(at(n, "path"), each, path, s.Path)
		return s
	}
	return nil
}

// sought warns, once a path, of a source that is not on this machine, where it is to be. It is no mistake, for its tree may be there from before;
// and what a member waits for may make it.
func (l *lowerer) sought(r decl.Range, each *decl.Each, name, path string) {
	if path == "" || l.looked[path] || len(l.after) > 0 {
		return
	}
	l.looked[path] = true
	if !l.host.Exists(path) {
		l.diags.Add(decl.Diagnostic{Severity: decl.Warning, Summary: "Source does not exist", Range: r, Row: each.Place(),
			Detail: fmt.Sprintf("%s is not there; paths are relative to the workspace's directory. Only a tree that was brought before can do without it.", name)})
	}
}

// dir is a directory as it is now. What a task writes into it would come too late, so that is an error; what pbuild itself writes there is left out.
func (l *lowerer) dir(n *decl.Block, each *decl.Each) task.Spec {
	path, _ := get[string](l, n, "path", each)
	s := &kind.SourceDir{Path: l.path(path)}
	s.Ignore, _ = get[[]string](l, n, "ignore", each)
	for file, inside := range l.madeIn(s.Path) {
		takes, err := l.host.DirTakes(s.Path, s.Ignore, inside)
		switch m := l.made[file]; {
		case err != nil:
			l.unread(at(n, "path"), each, "Directory cannot be read", path, err)
			return nil
		case !takes:
		case m.report != nil:
			s.Ignore = append(slices.Clip(s.Ignore), "/"+literal.Replace(inside))
		default:
			l.errorf(at(n, "path"), each, "Output in a source", "%s writes %s, which lies in this directory, and a directory is read before any task runs. "+
				"Write it elsewhere, leave it out with `ignore`, or make it before pbuild and not by a task.", m, file)
			return nil
		}
	}
	var err error
	if s.Files, err = l.host.Dir(s.Path, s.Ignore); err != nil {
		l.unread(at(n, "path"), each, "Directory cannot be read", path, err)
		return nil
	}
	return s
}

// literal makes a pattern of .gitignore of a path.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `)

// madeIn are the declared files below a directory, each with its path there.
func (l *lowerer) madeIn(dir string) iter.Seq2[string, string] {
	return func(yield func(file, inside string) bool) {
		prefix, above := "", ""
		if rel, err := filepath.Rel(l.ws.Dir, dir); err == nil && filepath.IsLocal(rel) {
			if rel != "." {
				prefix = filepath.ToSlash(rel) + "/"
			}
		} else if rel, err := filepath.Rel(dir, l.ws.Dir); err == nil && filepath.IsLocal(rel) {
			above = filepath.ToSlash(rel) + "/"
		} else {
			return
		}
		all := l.allMade()
		for _, file := range all[sort.SearchStrings(all, prefix):] {
			inside, ok := strings.CutPrefix(file, prefix)
			if !ok || !yield(file, above+inside) {
				return
			}
		}
	}
}
