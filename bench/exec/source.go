package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// Source brings the trees of sources. What trying again cannot mend (a commit that is not there, a sum that differs) is Failed and not recorded; a network that
// does not answer is an error. Dir is the workspace's directory.
func Source(repo *tree.Repo, dir string) task.Executor {
	return task.ExecutorFunc(func(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
		id, evidence, err := fetchSource(ctx, repo, dir, a.Task.Spec)
		var bad *tree.Bad
		switch {
		case errors.As(err, &bad):
			return task.Outcome{Status: task.Failed, Reason: err.Error()}, nil
		case err != nil:
			return task.Outcome{}, err
		}
		return task.Outcome{Status: task.OK, Outputs: []task.Output{{Role: kind.Tree, Digest: id}}, Evidence: evidence}, nil
	})
}

// A sumSeen is the evidence of a module's source.
type sumSeen struct {
	Sum string `json:"sum"`
}

func fetchSource(ctx context.Context, repo *tree.Repo, dir string, spec task.Spec) (id digest.Digest, evidence []byte, err error) {
	switch s := spec.(type) {
	case *kind.SourceGit:
		id, err = repo.FetchGit(ctx, tree.Git{URL: s.URL, Dir: dir, Commit: s.Commit, Subdir: s.Subdir, Submodules: s.Submodules})
	case *kind.SourceGoMod:
		var sum string
		if id, sum, err = repo.FetchGoMod(ctx, tree.GoMod{Path: s.Path, Version: s.Version, Sum: s.Sum}); err == nil {
			evidence, err = json.Marshal(sumSeen{sum})
		}
	case *kind.SourceArchive:
		id, err = repo.FetchArchive(ctx, tree.Archive{URL: s.URL, Path: s.Path, SHA256: s.SHA256, Strip: s.Strip})
	case *kind.SourceDir:
		id, err = importDir(ctx, repo, s)
	default:
		panic(fmt.Sprintf("pbuild bug: %T is no source", spec))
	}
	return id, evidence, err
}

// importDir stores a directory, and demands that it still holds what the key was made of.
func importDir(ctx context.Context, repo *tree.Repo, s *kind.SourceDir) (digest.Digest, error) {
	id, files, err := repo.ImportDir(ctx, s.Path, s.Ignore)
	if err != nil {
		return id, err
	}
	same := func(e tree.Entry, f task.FileInput) bool {
		return e.Path == f.Path && e.Mode == f.Mode && e.Blob == f.Digest
	}
	if !slices.EqualFunc(files, s.Files, same) {
		return id, &tree.Bad{Reason: s.Path + ": its files changed after the plan was made; plan again"}
	}
	return id, repo.CheckLFS(ctx, id)
}
