package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"pbuild/bench/exec"
	"pbuild/bench/kind"
	"pbuild/cli"
	"pbuild/engine/run"
	"pbuild/engine/run/host"
	"pbuild/engine/task"
)

// wire makes the table from kind to executor, over this machine's runner.
func wire(_ context.Context, p cli.Parts) (*cli.Machine, error) {
	getenv := environ(p.Environ)
	isolation, capped := run.ParseIsolation(getenv("PBUILD_ISOLATION"))
	if !capped {
		isolation = run.IsolationSealed
	}
	runner, err := host.New(host.Options{
		States: filepath.Join(p.State, "states"), Scratch: p.Scratch, Trees: p.Trees,
		MaxIsolation: isolation, HidePaths: []string{p.Dir, p.State},
	})
	if err != nil {
		return nil, err
	}
	m := &cli.Machine{Isolation: runner.Isolation().String(), Status: runner.Status(), States: runner}
	if p.Blobs == nil {
		return m, nil
	}
	node, err := os.Hostname()
	if err != nil {
		node = "this machine"
	}
	env := &exec.Environ{Getenv: getenv, Home: getenv("HOME")}
	commands := &exec.Commands{Runner: runner, Blobs: p.Blobs, Environ: env, Node: node}
	judge := &exec.Judge{Blobs: p.Blobs, Trees: p.Trees}
	tasks := &exec.Tasks{
		Dir: p.Dir, Home: filepath.Join(p.State, "home"), Blobs: p.Blobs, Environ: env, Runner: runner, Trees: p.Trees, Node: node, InPlace: new(host.InPlace).Run,
	}
	samples := &exec.Samples{Commands: commands, Trees: p.Trees}
	reports := &exec.Reports{Dir: p.Dir, Blobs: p.Blobs}
	m.Restore = tasks.Restore
	m.Executors = task.Executors{
		kind.Source.Name:         exec.Source(p.Trees, p.Dir),
		kind.Patches.Name:        exec.Patches(p.Trees, p.Blobs),
		kind.RuntimePrepare.Name: task.ExecutorFunc(commands.State),
		kind.Fetch.Name:          task.ExecutorFunc(commands.State),
		kind.Prepare.Name:        task.ExecutorFunc(commands.State),
		kind.FetchGold.Name:      task.ExecutorFunc(commands.State),
		kind.Build.Name:          task.ExecutorFunc(commands.State),
		kind.Test.Name:           task.ExecutorFunc(commands.Test),
		kind.Score.Name:          task.ExecutorFunc(judge.Score),
		kind.Verdict.Name:        task.ExecutorFunc(judge.Verdict),
		kind.Sample.Name:         samples,
		kind.Extract.Name:        exec.Extract(p.Trees, p.Blobs),
		kind.Compose.Name:        exec.Compose(p.Trees, p.Blobs),
		kind.Outcome.Name:        task.ExecutorFunc(judge.Outcome),
		kind.Report.Name:         reports,
		kind.Task.Name:           tasks,
	}
	return m, nil
}

// environ reads an environment in which the last of a name holds.
func environ(list []string) func(string) string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return func(name string) string { return m[name] }
}
