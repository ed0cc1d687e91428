package kind

import (
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// An ImageSpec is a declared or built image. Output: "content".
type ImageSpec struct {
	Ref        string // a declared image
	Dockerfile digest.Digest
	Context    []task.FileInput // its files after .dockerignore, sorted
	Args       map[string]string
	Target     string
	Platform   string
	Bases      []string // content digests from the lock file
	Secrets    []string // names
	Dir        string   `key:"-"`
}

func (s *ImageSpec) Kind() *task.Kind { return Image }
func (s *ImageSpec) Encode(e *digest.Encoder) {
	e.String("ref", s.Ref)
	e.Digest("dockerfile", s.Dockerfile)
	task.EncodeFiles(e, s.Context)
	e.Map("args", s.Args)
	e.String("target", s.Target)
	e.String("platform", s.Platform)
	e.List("bases", s.Bases)
	e.Set("secrets", s.Secrets)
}

// A HandshakeSpec runs a runtime's probe on a node. Role: "image".
type HandshakeSpec struct {
	Probe      []string
	Platform   string
	Adaptation []string
	Node       string
}

func (s *HandshakeSpec) Kind() *task.Kind { return Handshake }
func (s *HandshakeSpec) Encode(e *digest.Encoder) {
	e.List("probe", s.Probe)
	e.String("platform", s.Platform)
	e.List("adaptation", s.Adaptation)
	e.String("node", s.Node)
}
