package exec

import (
	"errors"
	"testing"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

// full is a store on a full disk.
type full struct{ *memory }

var errFull = errors.New("no space left on device")

func (full) Put([]byte) (digest.Digest, error) { return digest.Digest{}, errFull }

// An agent that has come to its end is not run, and paid for, again because what it made could not be stored.
func TestSpentSampleIsNotTriedAgain(t *testing.T) {
	s := &scripted{level: run.IsolationSealed}
	cmds := newCommands(s)
	cmds.Blobs = full{new(memory)}
	a := &task.Attempt{Task: &task.Task{Spec: &kind.SampleSpec{Agent: "command", Command: kind.Command{Argv: []string{"agent"}}}}, Inputs: []task.Input{input("base", emptyTree)}}
	_, err := (&Samples{Commands: cmds}).Run(t.Context(), a)
	if !errors.Is(err, errFull) || !task.IsFinal(err) || s.said() != "agent" {
		t.Errorf("ran %q, err = %v, final %v", s.said(), err, task.IsFinal(err))
	}
}
