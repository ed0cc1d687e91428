package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// A report is what was measured on one workspace.
type report struct {
	n               int
	cases           []*series
	snapshot, state int64 // bytes
}

// A bench measures the cases of one workspace, one after the other: each leaves the workspace built.
type bench struct {
	*options
	w *workspace
	r *report
}

func measure(o *options, dir string, n int) (*report, error) {
	w, err := newWorkspace(dir, n, n > o.firstMax)
	if err != nil {
		return nil, err
	}
	settle()
	b := &bench{options: o, w: w, r: &report{n: n}}
	for _, c := range []func() error{b.first, b.null, b.row, b.block, b.why, b.oneFile, b.touched} {
		if err := c(); err != nil {
			return nil, err
		}
	}
	b.r.snapshot, b.r.state, err = w.stored()
	return b.r, err
}

// settle lets what was written reach the disk, and grow older than the finest clock tick that a build system must mistrust.
func settle() {
	exec.Command("sync").Run() // a courtesy: where there is none, the first case pays
	time.Sleep(50 * time.Millisecond)
}

// own is a command line of pbuild.
func (b *bench) own(want string, args ...string) func(int) command {
	return func(int) command { return command{b.w.own, append([]string{b.pbuild}, args...), want} }
}

func (b *bench) apply(want string) func(int) command {
	return b.own(want, "apply", "-j", strconv.Itoa(b.jobs))
}

// builds are the peers, each with what comes before its build.
func (b *bench) builds(prepare func(peer string, round int) error) []bout {
	var out []bout
	for _, p := range b.peers {
		if b.w.given && p.name == "make" { // a minute for each null build
			continue
		}
		side := bout{name: p.name, command: func(int) command {
			return command{b.w.others, append([]string{p.name}, p.args(".", b.jobs)...), ""}
		}}
		if prepare != nil {
			side.prepare = func(round int) error { return prepare(p.name, round) }
		}
		out = append(out, side)
	}
	return out
}

func (b *bench) add(name, aim string, rounds int, own bout, others ...bout) error {
	own.name = "pbuild"
	s, err := interleave(b.options, name, aim, rounds, append([]bout{own}, others...)...)
	if err == nil {
		b.r.cases = append(b.r.cases, s)
	}
	return err
}

// first is the first apply, of everything.
func (b *bench) first() error {
	own := bout{command: b.apply(fmt.Sprintf("%d ran", b.w.n)), prepare: func(int) error { return b.fresh(b.w.own) }}
	if b.w.given {
		if err := b.w.give(); err != nil {
			return err
		}
		return b.add("first apply", "1.0", 1, own)
	}
	others := b.builds(func(string, int) error { return b.fresh(b.w.others) })
	err := b.add("first apply", "1.0", min(3, b.rounds), own, others...)
	if err != nil || len(others) < 2 {
		return err
	}
	// Make came last and left ninja no log.
	if err := b.fresh(b.w.others); err != nil {
		return err
	}
	_, err = others[0].command(0).run()
	return err
}

func (b *bench) fresh(dir string) error {
	err := b.w.clean(dir)
	settle()
	return err
}

func (b *bench) null() error {
	nothing := b.own("nothing to do", "plan")
	if _, err := nothing(0).run(); err != nil {
		return err
	}
	if err := b.add("null plan", "0.3", b.rounds, bout{command: nothing}, b.builds(nil)...); err != nil {
		return err
	}
	return b.add("null apply", "", b.rounds, bout{command: b.apply("0 ran")}, b.builds(nil)...)
}

// row edits another row before each plan. The peers' null builds are what it is compared with.
func (b *bench) row() error {
	own := bout{command: b.own("1 to run", "plan"), prepare: func(round int) error {
		defer settle()
		return b.w.rows((round*37 + 5) % b.w.n)
	}}
	if err := b.add("plan, one row edited", "0.5", b.rounds, own, b.builds(nil)...); err != nil {
		return err
	}
	return b.restored(b.w.rows(-1))
}

// block edits the command of all tasks before each plan.
func (b *bench) block() error {
	own := bout{command: b.own(fmt.Sprintf("%d to run", b.w.n), "plan"), prepare: func(round int) error {
		defer settle()
		return b.w.blocks(fmt.Sprintf("cp%d", round))
	}}
	if err := b.add("plan, one block edited", "0.5", b.rounds, own, b.builds(nil)...); err != nil {
		return err
	}
	return b.restored(b.w.blocks("cp"))
}

// restored makes sure that an edit taken back leaves nothing to do.
func (b *bench) restored(err error) error {
	if err == nil {
		settle()
		_, err = b.own("nothing to do", "plan")(0).run()
	}
	return err
}

func (b *bench) why() error {
	own := bout{command: b.own("is reused", "why", fmt.Sprintf("task.copy[%q]", strconv.Itoa(b.w.n/2)))}
	return b.add("why", "", b.rounds, own, b.builds(nil)...)
}

// oneFile edits an input before each apply.
func (b *bench) oneFile() error {
	own := bout{command: b.apply("1 ran"), prepare: func(round int) error { return b.edit(b.w.own, round) }}
	// The peers share a directory: each has an edit of its own.
	others := b.builds(func(peer string, round int) error { return b.edit(b.w.others, round*len(peers)+len(peer)) })
	return b.add("apply, one input edited", "", b.rounds, own, others...)
}

func (b *bench) edit(dir string, round int) error {
	defer settle()
	return b.w.edit(dir, b.w.n/3, round)
}

// touched gives all inputs another time before each plan: by content nothing has changed, by time everything has, and the peers say what they would run.
func (b *bench) touched() error {
	touch := func(dir string) error {
		defer settle()
		return b.w.touch(dir, time.Now())
	}
	own := bout{command: b.own("nothing to do", "plan"), prepare: func(int) error { return touch(b.w.own) }}
	var others []bout
	for _, side := range b.builds(nil) {
		others = append(others, bout{name: side.name, command: func(round int) command {
			c := side.command(round)
			c.argv = append(c.argv, "-n")
			return c
		}})
	}
	if err := touch(b.w.others); err != nil {
		return err
	}
	return b.add("plan, all inputs touched", "", min(3, b.rounds), own, others...)
}
