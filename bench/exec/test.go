package exec

import (
	"context"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// Test runs one attempt of a test, over the state that build left and the tree with the hidden tests laid.
func (c *Commands) Test(ctx context.Context, a *task.Attempt) (task.Outcome, error) {
	spec := a.Task.Spec.(*kind.TestSpec)
	cmd, err := c.Environ.command(&spec.Command, &spec.Runtime)
	if err != nil {
		return task.Outcome{}, err
	}
	cmd.Log = a.Log
	cmd.Reports = spec.Reports
	cmd.Start = start(a)
	cmd.Start.Reset = spec.Protect
	res, err := c.run(ctx, cmd, a)
	if err != nil {
		return task.Outcome{}, err
	}
	out, err := c.outcome(res, cmd, a)
	if err != nil {
		return out, err
	}
	err = c.keepResult(&out, res)
	return out, err
}
