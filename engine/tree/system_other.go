//go:build !unix

package tree

import "os/exec"

// gitSync is what git syncs by itself: everything, for here no call syncs a file system.
const gitSync = "all"

func (r *Repo) sync() error { return nil }

func group(*exec.Cmd)  {}
func unbind(*exec.Cmd) {}
