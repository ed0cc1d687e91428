// Command pbuild is a build system whose products are verdicts about code-repair benchmarks. This file puts its parts together; wire.go makes the
// executors.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pbuild/cli"
	"pbuild/engine/run/host"
)

const version = "0.1.0"

func main() {
	host.Init() // where this process is the first of a sandbox, it goes no further
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(interrupts, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that goes away ends no apply: writes to it fail, and what runs goes on
	cfg := cli.Config{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Version: version, Identity: cli.Identity(), Interrupts: interrupts, Clock: time.Now, Wire: wire,
	}
	if code, ok := cli.Null(cfg); ok {
		os.Exit(int(code))
	}
	os.Exit(int(cli.Run(context.Background(), cfg)))
}
