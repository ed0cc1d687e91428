package exec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
	"pbuild/engine/tree"
)

// maxStored is the largest output of a task that is stored without cache = true, in bytes.
const maxStored = 64 << 10

// maxLog is where the log of a task is cut, in bytes.
const maxLog = 10 << 20

// Tasks runs Makefile-style tasks: in the workspace directory, in place, or in a sandbox that holds only the declared inputs.
type Tasks struct {
	Dir     string // the workspace
	Home    string // HOME of tasks in place
	Blobs   task.Blobs
	Environ *Environ
	Runner  run.Runner
	Trees   *tree.Repo
	Node    string
	// InPlace starts a command in Dir and waits for it; its process group is dead when it returns.
	InPlace func(ctx context.Context, c *run.Command, dir string, env []string) (*run.Result, error)
}

func (t *Tasks) Run(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.TaskSpec)
	cmd, err := t.Environ.command(&kind.Command{
		Argv: spec.Argv, Env: spec.Env, PassEnv: spec.PassEnv, SecretEnv: spec.SecretEnv, Secrets: spec.Secrets,
		Network: !spec.Sandbox, Timeout: spec.Timeout, OutputLimit: maxLog,
	}, &spec.Runtime)
	if err != nil {
		return task.Outcome{}, err
	}
	cmd.Log = a.Log
	if stale := t.stale(a); stale != "" && !spec.Sandbox {
		return task.Outcome{Status: task.Failed, Reason: "its input " + stale + " is there, left by a task that is no longer needed: remove it"}, nil
	}
	if err := t.clearOutputs(a.Task.Outputs); err != nil {
		return spoiled(task.Outcome{}, err)
	}
	var res *run.Result
	if spec.Sandbox {
		res, err = t.sandboxed(ctx, cmd, a)
	} else {
		res, err = t.inPlace(ctx, cmd)
	}
	if err != nil {
		return unstarted(t.Blobs, err)
	}
	out := task.Outcome{Status: task.OK, Exit: res.Exit, Node: t.Node, Isolation: res.Isolation.String()}
	if len(res.Log) > 0 {
		if out.Log, err = t.Blobs.Put(res.Log); err != nil {
			return out, err
		}
	}
	if res.Truncated {
		out.Flags = []string{verdict.FlagOutputTruncated}
	}
	if res.TimedOut != "" || res.Exit != 0 {
		out.Status, out.Reason, out.Tail = task.Failed, "the command "+ended(res), tail(res.Log)
		return out, nil
	}
	return t.collect(out, a.Task)
}

func (t *Tasks) inPlace(ctx context.Context, cmd *run.Command) (*run.Result, error) {
	if err := os.MkdirAll(t.Home, 0o777); err != nil {
		return nil, err
	}
	maps.Copy(cmd.Env, run.Fixed(t.Home, "/tmp"))
	env := make([]string, 0, len(cmd.Env))
	for name, value := range cmd.Env {
		env = append(env, name+"="+value)
	}
	return t.InPlace(ctx, cmd, t.Dir, env)
}

// isFile says whether an input is a file that another task makes, and not only that task's end.
func isFile(in *task.Input) bool { return in.Output != "" && in.Output == in.Role }

// stale is a file that is there, of a task on which the attempt does not stand since it is not needed; "" for none.
func (t *Tasks) stale(a *task.Attempt) string {
	for i := range a.Inputs {
		if in := &a.Inputs[i]; isFile(in) && in.Status == "" {
			if _, err := os.Lstat(filepath.Join(t.Dir, filepath.FromSlash(in.Output))); err == nil {
				return in.Output
			}
		}
	}
	return ""
}

// clearOutputs removes the declared outputs and makes their directories.
func (t *Tasks) clearOutputs(outputs []string) error {
	for _, o := range outputs {
		full := filepath.Join(t.Dir, filepath.FromSlash(o))
		if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if fi, e := os.Lstat(full); e == nil && fi.IsDir() {
				return noFile{o, "a directory"}
			}
			return err
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil { // another task may have removed it
			return err
		}
	}
	return nil
}

// collect hashes the declared outputs, each of which must now exist, and stores the small ones.
func (t *Tasks) collect(out task.Outcome, tk *task.Task) (task.Outcome, error) {
	for _, o := range tk.Outputs {
		got, content, err := t.readOutput(o, tk.Store)
		if errors.Is(err, fs.ErrNotExist) {
			out.Status, out.Reason = task.Failed, fmt.Sprintf("the command exited with 0 and did not make its output %s", o)
			return out, nil
		}
		if err != nil {
			return spoiled(out, err)
		}
		if content != nil {
			if _, err := t.Blobs.Put(content); err != nil {
				return out, err
			}
		}
		out.Outputs = append(out.Outputs, got)
	}
	return out, nil
}

// noFile says that something stands in an output's place that is neither a file nor a link.
type noFile struct{ output, what string }

func (e noFile) Error() string { return "output " + e.output + " is " + e.what + "; outputs are files" }

// spoiled is the outcome of a task after an error with its outputs: trying again mends no noFile.
func spoiled(out task.Outcome, err error) (task.Outcome, error) {
	var no noFile
	if errors.As(err, &no) {
		out.Status, out.Reason = task.Failed, no.Error()
		return out, nil
	}
	return out, err
}

// readOutput returns what a record says of an output, and its content if it is to be stored.
func (t *Tasks) readOutput(role string, store bool) (task.Output, []byte, error) {
	name := filepath.Join(t.Dir, filepath.FromSlash(role))
	fi, err := os.Lstat(name)
	if err != nil {
		return task.Output{}, nil, err
	}
	out := task.Output{Role: role, Size: fi.Size(), Mode: 0o644}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		if err != nil {
			return out, nil, err
		}
		out.Mode, out.Digest = task.ModeLink, digest.Of([]byte(target))
		return out, []byte(target), nil
	case fi.IsDir():
		return out, nil, noFile{role, "a directory"}
	case !fi.Mode().IsRegular():
		return out, nil, noFile{role, "neither a file nor a link"}
	case fi.Mode()&0o111 != 0:
		out.Mode = 0o755
	}
	if fi.Size() > maxStored && !store {
		f, err := os.Open(name)
		if err != nil {
			return out, nil, err
		}
		defer f.Close()
		out.Digest, err = digest.From(f)
		return out, nil, err
	}
	content, err := os.ReadFile(name)
	if content == nil {
		content = []byte{}
	}
	out.Digest = digest.Of(content)
	return out, content, err
}

// Restore writes an output back from the store.
func (t *Tasks) Restore(o task.Output) error {
	content, err := t.Blobs.Get(o.Digest)
	if err != nil {
		return err
	}
	if err := t.clearOutputs([]string{o.Role}); err != nil {
		return err
	}
	return writeFile(filepath.Join(t.Dir, filepath.FromSlash(o.Role)), o.Mode, content)
}

func writeFile(name string, mode uint32, content []byte) error {
	switch mode {
	case task.ModeLink:
		return os.Symlink(string(content), name)
	case 0o755:
		return os.WriteFile(name, content, 0o777)
	}
	return os.WriteFile(name, content, 0o666)
}

// sandboxed runs the command over a tree of the declared inputs alone, and lays the declared outputs into the workspace.
func (t *Tasks) sandboxed(ctx context.Context, cmd *run.Command, a *task.Attempt) (*run.Result, error) {
	inputs := slices.Clone(a.Task.Inputs)
	for i := range a.Inputs {
		if in := &a.Inputs[i]; isFile(in) && in.Status != "" {
			inputs = append(inputs, in.Output)
		}
	}
	keep := map[string]bool{}
	for _, in := range inputs {
		for p := in; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
			keep[p] = true
		}
	}
	inputTree, err := t.Trees.Import(ctx, t.Dir, func(p string, _ bool) bool { return keep[p] })
	if err != nil {
		return nil, err
	}
	cmd.Changes = true
	cmd.Start.Tree = inputTree
	res, err := t.Runner.Run(ctx, cmd)
	if err != nil {
		return nil, err
	}
	for _, ch := range res.Changes {
		if ch.Mode != 0 && slices.Contains(a.Task.Outputs, ch.Path) {
			if err := writeFile(filepath.Join(t.Dir, filepath.FromSlash(ch.Path)), ch.Mode, ch.Content); err != nil {
				return nil, err
			}
		}
	}
	return res, nil
}
