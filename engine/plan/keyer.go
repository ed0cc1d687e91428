package plan

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A MissingInput is a declared input file that is not there and that no task makes.
type MissingInput struct {
	Task task.ID
	Path string
}

func (e *MissingInput) Error() string { return fmt.Sprintf("input file %s does not exist", e.Path) }

// MissingInputs are all of a plan's, in the order of tasks and paths.
type MissingInputs []*MissingInput

func (e MissingInputs) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%s, and %d more are missing", e[0].Error(), len(e)-1)
}

// A Keyer computes the keys of a graph's tasks. It reuses its memory, so it serves one goroutine.
type Keyer struct {
	graph  *task.Graph
	files  Files
	enc    digest.Encoder
	inputs []task.InputDigest
	made   []string // paths that dependencies make
	read   []task.FileInput
	places map[string]string // where files outside of the workspace are, by their names in read
}

// Keyer returns a new Keyer for the plan's graph and files.
func (p *Plan) Keyer() *Keyer {
	return &Keyer{graph: p.Graph, files: p.Inputs.Files, places: map[string]string{}}
}

// Key computes the key of a task whose dependencies have all ended in ways that it accepts. A file that is not there is a MissingInputs.
func (k *Keyer) Key(id task.ID, ends task.Ends) (task.Key, error) {
	key, _, err := k.key(id, func(d *task.Dep) (digest.Digest, bool) { return d.Contribution(ends), true })
	return key, err
}

// Preimage is what the last key was hashed from, valid until the next.
func (k *Keyer) Preimage() []byte { return k.enc.Encoding() }

// Files are the files that the last key holds, each with the path that it is read at.
func (k *Keyer) Files() []task.FileInput {
	files := slices.Clone(k.read)
	for i := range files {
		files[i].Path = k.place(&files[i])
	}
	return files
}

func (k *Keyer) place(f *task.FileInput) string { return cmp.Or(k.places[f.Path], f.Path) }

// key is Key with what dependencies contribute told by a function; known is false if it does not know one.
// Missing files are found even then.
func (k *Keyer) key(id task.ID, contribution func(*task.Dep) (digest.Digest, bool)) (key task.Key, known bool, err error) {
	t := &k.graph.Tasks[id]
	if err := k.readFiles(id, t); err != nil {
		return key, false, err
	}
	k.inputs = k.inputs[:0]
	for i := range t.Deps {
		d := &t.Deps[i]
		if d.Use == task.UseOrder {
			continue
		}
		c, ok := contribution(d)
		if !ok {
			return key, false, nil
		}
		k.inputs = append(k.inputs, task.InputDigest{Role: d.Role, Digest: c})
	}
	return task.EncodeKey(&k.enc, t.Spec, k.graph.Salt, k.read, k.inputs), true, nil
}

// readFiles fills k.read with t's input files, and what those of them lead to that are links, but those that a dependency makes: they enter the key by that dependency.
func (k *Keyer) readFiles(id task.ID, t *task.Task) error {
	k.read = k.read[:0]
	clear(k.places)
	if len(t.Inputs) == 0 {
		return nil
	}
	k.made = k.made[:0]
	for i := range t.Deps {
		d := &t.Deps[i]
		if d.Use == task.UseOutput && d.Output != "" && k.graph.Tasks[d.On].Spec.Kind().Files {
			k.made = append(k.made, d.Output)
		}
	}
	slices.Sort(k.made)
	var missing MissingInputs
	for _, path := range t.Inputs {
		if _, made := slices.BinarySearch(k.made, path); made {
			continue
		}
		in, ok, err := k.files.Input(path)
		if err != nil {
			return fmt.Errorf("plan: read input %s: %w", path, err)
		}
		if !ok {
			missing = append(missing, &MissingInput{Task: id, Path: path})
			continue
		}
		in.Path = path
		k.read = append(k.read, in)
		if in.Mode == task.ModeLink {
			if err := k.follow(t, path); err != nil {
				return err
			}
		}
	}
	if missing != nil {
		return missing
	}
	return nil
}

// maxLinks bounds how many links are followed, as the kernel does.
const maxLinks = 40

// follow adds to k.read what a link leads to, for that is what a command reads. What is not there is not missing: a link is an input as it is.
// A Key must not depend on where the workspace lies, so what is outside of it is named after the link in it that leads there.
func (k *Keyer) follow(t *task.Task, path string) error {
	links, ok := k.files.(Links)
	if !ok {
		return nil
	}
	name := path
	for range maxLinks {
		if path, ok = links.Leads(path); !ok {
			return nil
		}
		_, declared := slices.BinarySearch(t.Inputs, path)
		_, made := slices.BinarySearch(k.made, path)
		if declared || made || slices.ContainsFunc(k.read, func(f task.FileInput) bool { return k.place(&f) == path }) {
			return nil
		}
		in, ok, err := k.files.Input(path)
		if err != nil {
			return fmt.Errorf("plan: read input %s: %w", path, err)
		}
		if !ok {
			return nil
		}
		if filepath.IsAbs(path) {
			name += " ->"
			k.places[name] = path
		} else {
			name = path
		}
		in.Path = name
		k.read = append(k.read, in)
	}
	return nil
}
