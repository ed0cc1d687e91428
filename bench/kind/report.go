package kind

import (
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// A Cell is one line of a report: which cell of the matrix, and the roles of the dependencies that tell of it.
type Cell struct {
	Instance, Agent, Model string // Model "" where the agent takes none
	Sample                 int
	Address                string            // reports show it
	Provenance             map[string]string // of the instance: what the report mentions
	Outcome, Gate          string            `key:"-"` // roles; Gate "" where ungated
	Admits                 []string          `key:"-"` // the gates that are to admit the instance's row, in order; AdmitRole has their names
}

// AdmitRole is the role of a verdict of c.Admits. It has the gate's name, which reports show.
func (c *Cell) AdmitRole(gate string) string { return "admit " + c.Outcome + " " + gate }

// A ReportSpec renders one file. Roles: cell N's outcome is "N", its gate's verdict "gate N", those that are to admit its row AdmitRole; TolerateAny.
type ReportSpec struct {
	Format   string // md, csv, json
	Gated    bool
	Columns  []string
	By       []string
	Filter   string
	Renderer int
	Cells    []Cell

	// The names are part of what is rendered, and the file is the role of the output.
	Name string
	Of   string // "matrix.main"
	File string // relative to the workspace
}

func (s *ReportSpec) Kind() *task.Kind { return Report }
func (s *ReportSpec) Encode(e *digest.Encoder) {
	e.String("format", s.Format)
	e.Bool("gated", s.Gated)
	e.List("columns", s.Columns)
	e.List("by", s.By)
	e.String("filter", s.Filter)
	e.Int("renderer", int64(s.Renderer))
	e.String("name", s.Name)
	e.String("of", s.Of)
	e.String("file", s.File)
	e.Group("cells", func(e *digest.Encoder) {
		for _, c := range s.Cells {
			e.List("cell", []string{c.Instance, c.Agent, c.Model, c.Address})
			e.Int("sample", int64(c.Sample))
			if len(c.Provenance) > 0 {
				e.Map("provenance", c.Provenance)
			}
		}
	})
}
