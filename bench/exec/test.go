package exec

import (
	"context"
	"slices"
	"strings"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// Test runs one attempt of a test, over the state that build left and the tree with the hidden tests laid.
func (c *Commands) Test(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.TestSpec)
	cmd, err := c.command(&spec.Command, &spec.Runtime, a)
	if err != nil {
		return task.Outcome{}, err
	}
	cmd.Reports, cmd.Watch = spec.Reports, spec.Watch
	if cmd.Start.Reset, err = c.protected(spec, a); err != nil {
		return task.Outcome{}, err
	}
	out, res, err := c.execute(ctx, cmd, a)
	if err != nil {
		return out, err
	}
	err = c.keepResult(&out, res, spec.Reports...)
	return out, err
}

// protected are the globs of what is put back before the test, with every path of the test patch.
func (c *Commands) protected(spec *kind.TestSpec, a *task.Attempt) ([]string, error) {
	globs := slices.Clone(spec.Protect)
	if in := a.Input(kind.TestPaths); in != nil {
		var paths []string
		if err := get(c.Blobs, in.Digest, &paths); err != nil {
			return nil, err
		}
		for _, p := range paths {
			globs = append(globs, literal.Replace(p))
		}
	}
	return globs, nil
}

// literal makes a path into the glob that matches it alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, "~", `\~`, "=", `\=`, "!", `\!`)
