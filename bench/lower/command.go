package lower

import (
	"strings"
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

const (
	defaultTimeout     = 30 * time.Minute
	defaultOutputLimit = 10 << 20
)

// command is a command block over its environment: its own variables and limits win.
func (l *lowerer) command(b *decl.Block, each *decl.Each, e *environment, network bool) kind.Command {
	own, _ := get[[]decl.EnvVar](l, b, "env", each)
	vars := e.vars.with(own)
	c := kind.Command{Env: vars.values, SecretEnv: vars.secrets, PassEnv: vars.pass, Secrets: l.host.Secret}
	c.Argv = l.argv(b, each)
	if c.Cwd, _ = get[string](l, b, "cwd", each); c.Cwd != "" {
		l.within("the workspace", b, "cwd", each, c.Cwd)
	}
	c.Network = or(l, b, "network", each, network)
	c.Timeout = or(l, b, "timeout", each, defaultTimeout)
	c.IdleTimeout, _ = get[time.Duration](l, b, "idle_timeout", each)
	c.CPUs = or(l, b, "cpus", each, e.cpus)
	c.Memory = or(l, b, "memory", each, e.memory)
	c.Pids = or(l, b, "pids", each, e.pids)
	c.OutputLimit = or(l, b, "output_limit", each, int64(defaultOutputLimit))
	if b.Attrs["command"] != nil && len(c.Argv) == 0 {
		l.errorf(at(b, "command"), each, "Empty command", "A command names a program: [\"make\", \"test\"].")
	}
	return c
}

// argv is the command of a block.
func (l *lowerer) argv(b *decl.Block, each *decl.Each) []string {
	argv, _ := get[[]string](l, b, "command", each)
	if len(argv) > 0 && argv[0] == "" {
		l.errorf(at(b, "command"), each, "Empty command", "The first element of a command names a program, and here it is empty.")
	}
	for _, arg := range argv {
		if strings.Contains(arg, "\x00") {
			l.errorf(at(b, "command"), each, "Invalid argument", "%q holds a zero byte, and no program can be given one. Put the text into a file that the command reads.", arg)
		}
	}
	return argv
}

// below is the edge to the state that a command starts from, if there is one.
func below(id task.ID) []task.Dep {
	if id == task.None {
		return nil
	}
	return []task.Dep{{On: id, Role: kind.Below, Use: task.UseKey}}
}

// first is the first task that exists.
func first(ids ...task.ID) task.ID {
	for _, id := range ids {
		if id != task.None {
			return id
		}
	}
	return task.None
}
