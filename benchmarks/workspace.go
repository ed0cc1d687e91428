package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// perDir is how many tasks share a directory.
const perDir = 1000

// A workspace holds n tasks, each of which copies one small file, as declarations for pbuild and as files for its peers. Each has a
// directory of its own, so that none sees what another wrote.
type workspace struct {
	n           int
	own, others string // directories: pbuild's, and that of its peers
	given       bool   // the peers' outputs are written for them: their first build would take too long
}

func source(i int) string { return fmt.Sprintf("in/%d/%d.txt", i/perDir, i) }
func copied(i int) string { return fmt.Sprintf("out/%d/%d.txt", i/perDir, i) }

func newWorkspace(dir string, n int, given bool) (*workspace, error) {
	w := &workspace{n: n, given: given, own: filepath.Join(dir, "pbuild"), others: filepath.Join(dir, "peers")}
	for _, d := range []string{w.own, w.others} {
		if err := w.files(d); err != nil {
			return nil, err
		}
	}
	if err := w.rows(-1); err != nil {
		return nil, err
	}
	if err := w.blocks("cp"); err != nil {
		return nil, err
	}
	if err := w.ninja(); err != nil {
		return nil, err
	}
	return w, w.makefile()
}

func (w *workspace) files(dir string) error {
	for i := range w.n {
		if i%perDir == 0 {
			for _, sub := range []string{"in", "out"} {
				if err := os.MkdirAll(filepath.Join(dir, sub, strconv.Itoa(i/perDir)), 0o777); err != nil {
					return err
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, source(i)), fmt.Appendf(nil, "%d\n", i), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// rows writes the dataset; in the row edited, if there is one, the source is that of its neighbour.
func (w *workspace) rows(edited int) error {
	return writeLines(filepath.Join(w.own, "rows.jsonl"), func(out io.Writer) {
		for i := range w.n {
			from := i
			if i == edited {
				from = (i + 1) % w.n
			}
			fmt.Fprintf(out, "{\"id\": \"%d\", \"src\": \"%s\", \"dst\": \"%s\"}\n", i, source(from), copied(i))
		}
	})
}

// blocks writes the declarations, with a command that begins with program.
func (w *workspace) blocks(program string) error {
	return writeLines(filepath.Join(w.own, "benchmarks.hcl"), func(out io.Writer) {
		fmt.Fprintf(out, `dataset "rows" {
  file = "rows.jsonl"
  key  = "id"
}

runtime "here" {
  host {}
  probe = ["true"]
}

task "copy" {
  for_each = dataset.rows
  runtime  = runtime.here
  command  = [%q, each.value.src, each.value.dst]
  inputs   = [each.value.src]
  outputs  = [each.value.dst]
}
`, program)
	})
}

// ninja writes build.ninja. Where outputs are given, ninja has no log of having made them: a generator's outputs are judged by their
// times alone, which spares ninja the hashes of its commands.
func (w *workspace) ninja() error {
	return writeLines(filepath.Join(w.others, "build.ninja"), func(out io.Writer) {
		fmt.Fprint(out, "rule copy\n  command = cp $in $out\n")
		if w.given {
			fmt.Fprint(out, "  generator = 1\n")
		}
		for i := range w.n {
			fmt.Fprintf(out, "build %s: copy %s\n", copied(i), source(i))
		}
	})
}

func (w *workspace) makefile() error {
	return writeLines(filepath.Join(w.others, "Makefile"), func(out io.Writer) {
		fmt.Fprint(out, ".PHONY: all\nall:")
		for i := range w.n {
			fmt.Fprint(out, " ", copied(i))
		}
		fmt.Fprint(out, "\n\n")
		for i := range w.n {
			fmt.Fprintf(out, "%s: %s\n\t@cp $< $@\n", copied(i), source(i))
		}
	})
}

// clean makes dir as it was before its first build.
func (w *workspace) clean(dir string) error {
	for _, name := range []string{".pbuild", ".ninja_log", ".ninja_deps"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for i := range w.n {
		if err := os.Remove(filepath.Join(dir, copied(i))); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// give writes every output of the peers.
func (w *workspace) give() error {
	for i := range w.n {
		content, err := os.ReadFile(filepath.Join(w.others, source(i)))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.others, copied(i)), content, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// touch gives every input the time now.
func (w *workspace) touch(dir string, now time.Time) error {
	for i := range w.n {
		if err := os.Chtimes(filepath.Join(dir, source(i)), now, now); err != nil {
			return err
		}
	}
	return nil
}

// edit changes the content of one input.
func (w *workspace) edit(dir string, i, round int) error {
	return os.WriteFile(filepath.Join(dir, source(i)), fmt.Appendf(nil, "%d, edited in round %d\n", i, round), 0o666)
}

func writeLines(name string, write func(io.Writer)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	write(b)
	if err := b.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
