//go:build !unix

package tree

import "os/exec"

// gitSync is what git syncs by itself: everything, for here no call syncs a file system.
const gitSync = "all"

func (r *Repo) sync() error { return nil }

// OwnGroup does nothing: here a kill reaches a command alone.
func OwnGroup(*exec.Cmd) {}

func unbind(*exec.Cmd) {}
