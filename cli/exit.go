package cli

import (
	"errors"
	"fmt"
)

// An Exit is a process's exit code. The table is part of the interface (docs/formats.md).
type Exit int

const (
	ExitDone        Exit = 0   // whatever the candidates' verdicts
	ExitFailed      Exit = 1   // something that was to hold does not: a task failed, a gate rejected, a check said no
	ExitUsage       Exit = 2   // configuration or usage; nothing was started
	ExitWorld       Exit = 3   // daemon or node missing, disk full, lock held, only infra or provider outcomes left
	ExitBudget      Exit = 4   // stopped by a budget with work left
	ExitInterrupted Exit = 130 // Ctrl-C
)

// ExitChanges is what `plan --detailed-exitcode` returns where there is something to do. It shares its number with ExitUsage, as in
// Terraform, so that under that flag every error is 1.
const ExitChanges Exit = 2

// precedence orders the codes of one apply: the first that was seen is returned.
var precedence = []Exit{ExitInterrupted, ExitFailed, ExitWorld, ExitBudget}

// worst returns the code to exit with when several are due.
func worst(seen ...Exit) Exit {
	for _, p := range precedence {
		for _, s := range seen {
			if s == p {
				return p
			}
		}
	}
	return ExitDone
}

// An exitError ends a command with a code. With a nil err everything has been said already.
type exitError struct {
	code Exit
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitWith(code Exit, err error) error { return &exitError{code: code, err: err} }

// said ends a command whose failure the view has shown.
func said(code Exit) error {
	if code == ExitDone {
		return nil
	}
	return &exitError{code: code}
}

func usagef(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func worldf(format string, args ...any) error {
	return &exitError{code: ExitWorld, err: fmt.Errorf(format, args...)}
}

// codeOf is the code that err ends the process with. An error without a code is the world's.
func codeOf(err error) Exit {
	if err == nil {
		return ExitDone
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return ExitWorld
}
