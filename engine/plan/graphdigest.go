package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// GraphDigest names everything that the plan was made from but the journal: salt, evaluated specs, edges, conditions, declared files, the
// content of input files, addresses, and what was chosen. Equal digests number their tasks alike.
func (p *Plan) GraphDigest() (digest.Digest, error) {
	h := sha256.New()
	k := p.Keyer()
	var e digest.Encoder
	var size [8]byte
	write := func() {
		binary.LittleEndian.PutUint64(size[:], uint64(len(e.Encoding())))
		h.Write(size[:])
		h.Write(e.Encoding())
		e.Reset()
	}
	e.String("domain", "pbuild graph")
	e.String("salt", p.Graph.Salt)
	write()
	for id := range p.Graph.Tasks {
		if err := p.encodeTask(&e, k, task.ID(id)); err != nil {
			return digest.Digest{}, err
		}
		encodeEdges(&e, &p.Graph.Tasks[id])
		write()
	}
	for i := range p.Graph.Objects {
		o := &p.Graph.Objects[i]
		e.String("class", string(o.Class))
		e.String("block", o.Block)
		e.Bool("indexed", o.Index != nil)
		e.List("index", o.Index)
		for _, s := range o.Steps {
			e.Int(s.Name, int64(s.Task))
		}
		write()
	}
	return digest.Digest(h.Sum(nil)), nil
}

// taskDigest names one task by what the user said of it and what its files hold; not by its edges, which are numbers.
func (p *Plan) taskDigest(e *digest.Encoder, k *Keyer, id task.ID) (digest.Digest, error) {
	e.Reset()
	if err := p.encodeTask(e, k, id); err != nil {
		return digest.Digest{}, err
	}
	return e.Sum(), nil
}

func (p *Plan) encodeTask(e *digest.Encoder, k *Keyer, id task.ID) error {
	t := &p.Graph.Tasks[id]
	kind := t.Spec.Kind()
	e.String("kind", kind.Name)
	e.Int("kind_version", int64(kind.Version))
	e.Bool("wanted", p.Wanted[id])
	e.Bool("replaced", p.Inputs.Replace[id])
	e.Group("spec", t.Spec.Encode)
	e.List("outputs", t.Outputs)
	e.List("inputs", t.Inputs)
	if len(t.Inputs) == 0 || !p.Wanted[id] {
		return nil
	}
	if err := k.readFiles(id, t); err != nil {
		return fmt.Errorf("plan: digest of %s: %w", p.Address(id), err)
	}
	for _, f := range k.read {
		e.Int(f.Path, int64(f.Mode))
		e.Digest("content", f.Digest)
	}
	return nil
}

func encodeEdges(e *digest.Encoder, t *task.Task) {
	for i := range t.Deps {
		d := &t.Deps[i]
		e.Int(d.Role, int64(d.On))
		e.String("output", d.Output)
		e.Int("use", int64(d.Use)<<8|int64(d.Tolerate))
	}
	for _, c := range t.When {
		e.Int("when", int64(c.On))
		e.String("fact", c.Fact)
		e.Bool("not", c.Not)
	}
}
