package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A sample is what one process cost.
type sample struct {
	wall, cpu time.Duration // cpu is of all threads and children, user and system
	memory    int64         // the most that was resident, in bytes; 0 where that is not known
}

// A command is a process to be measured.
type command struct {
	dir  string
	argv []string
	want string // its output holds this, or what was measured is not what was meant
}

func (c command) run() (sample, error) {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Dir = c.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	s := sample{wall: time.Since(began)}
	if err != nil {
		return s, fmt.Errorf("%s: %w\n%s", strings.Join(c.argv, " "), err, lastBytes(out.Bytes(), 2000))
	}
	if !bytes.Contains(out.Bytes(), []byte(c.want)) {
		return s, fmt.Errorf("%s: no %q in its output\n%s", strings.Join(c.argv, " "), c.want, lastBytes(out.Bytes(), 2000))
	}
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.memory = mostResident(cmd.ProcessState)
	return s, nil
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// A bout is one side of a case: its name, what to do before each round, what to measure.
type bout struct {
	name    string
	prepare func(round int) error // not measured; nil for nothing
	command func(round int) command
}

// A series is what the rounds of one case gave, by the name of the side.
type series struct {
	name  string
	aim   string // of the ratio to ninja; "" for none
	sides map[string][]sample
}

// interleave measures the sides in turn, round after round.
func interleave(o *options, name, aim string, rounds int, sides ...bout) (*series, error) {
	s := &series{name: name, aim: aim, sides: map[string][]sample{}}
	for round := range rounds {
		for _, b := range sides {
			if b.prepare != nil {
				if err := b.prepare(round); err != nil {
					return nil, err
				}
			}
			got, err := b.command(round).run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			s.sides[b.name] = append(s.sides[b.name], got)
		}
	}
	o.say("  %s: %.3f s", name, s.median("pbuild", wall).Seconds())
	return s, nil
}

func wall(s sample) time.Duration { return s.wall }
func cpu(s sample) time.Duration  { return s.cpu }

// median of one measure of a side; 0 where it was not measured.
func (s *series) median(side string, of func(sample) time.Duration) time.Duration {
	var all []time.Duration
	for _, one := range s.sides[side] {
		all = append(all, of(one))
	}
	return middle(all)
}

// ratio is the median over the rounds of pbuild's cost by that of a peer; ok is false where the peer was not measured.
func (s *series) ratio(peer string, of func(sample) time.Duration) (r float64, ok bool) {
	var all []float64
	for i, other := range s.sides[peer] {
		if of(other) > 0 {
			all = append(all, float64(of(s.sides["pbuild"][i]))/float64(of(other)))
		}
	}
	return middle(all), len(all) > 0
}

// memory is the most of all rounds.
func (s *series) memory(side string) (most int64) {
	for _, one := range s.sides[side] {
		most = max(most, one.memory)
	}
	return most
}

// middle is the median, the lower of the two middle ones where the count is even; 0 of none.
func middle[T interface{ ~int64 | ~float64 }](list []T) T {
	if len(list) == 0 {
		return 0
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

// sizes of what pbuild keeps, in bytes.
func (w *workspace) stored() (snapshot, state int64, err error) {
	info, err := os.Stat(filepath.Join(w.own, ".pbuild", "snapshot"))
	if err != nil {
		return 0, 0, err
	}
	err = filepath.Walk(filepath.Join(w.own, ".pbuild"), func(_ string, fi os.FileInfo, err error) error {
		if err == nil && fi.Mode().IsRegular() {
			state += fi.Size()
		}
		return err
	})
	return info.Size(), state, err
}
