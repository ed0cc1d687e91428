package cli

import (
	"pbuild/bench/decl"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

// formatVersion is in every JSON document. It rises when a reader of the old form would misread the new one.
const formatVersion = 1

// A planJSON is the document of `plan --json`.
type planJSON struct {
	FormatVersion int              `json:"format_version"`
	Pbuild        string           `json:"pbuild"`
	Graph         string           `json:"graph"`
	Counts        countsJSON       `json:"counts"`
	Samples       samplesJSON      `json:"samples"`
	Unknown       []unknownJSON    `json:"unknown"`
	Tasks         []planTaskJSON   `json:"tasks"`
	Diagnostics   []diagnosticJSON `json:"diagnostics"`
}

type countsJSON struct {
	Run      int                       `json:"run"`
	Maybe    int                       `json:"maybe"`
	Reuse    int                       `json:"reuse"`
	Unneeded int                       `json:"unneeded"`
	ByKind   map[string]kindCountsJSON `json:"by_kind"`
}

type kindCountsJSON struct {
	Run   int `json:"run"`
	Maybe int `json:"maybe"`
	Reuse int `json:"reuse"`
}

type samplesJSON struct {
	New         int      `json:"new"`
	EstimateUSD *float64 `json:"estimate_usd"`
}

type unknownJSON struct {
	Dataset  string `json:"dataset"`
	LastRows *int   `json:"last_rows"`
}

type planTaskJSON struct {
	Address  string       `json:"address"`
	Kind     string       `json:"kind"`
	Decision string       `json:"decision"`
	Reasons  []reasonJSON `json:"reasons"`
}

// A reasonJSON has all four members always; old and new are "" where the reason has none.
type reasonJSON struct {
	Code   plan.Code `json:"code"`
	Detail string    `json:"detail"`
	Old    string    `json:"old"`
	New    string    `json:"new"`
}

func reasonsJSON(rs []plan.Reason) []reasonJSON {
	out := make([]reasonJSON, 0, len(rs))
	for _, r := range rs {
		out = append(out, reasonJSON(r))
	}
	return out
}

func countsOf(c plan.Counts) countsJSON {
	out := countsJSON{Run: c.Run, Maybe: c.Maybe, Reuse: c.Reuse, Unneeded: c.Unneeded, ByKind: map[string]kindCountsJSON{}}
	for _, class := range countedClasses {
		t := c.ByClass[class]
		out.ByKind[string(class)] = kindCountsJSON{Run: t.Run, Maybe: t.Maybe, Reuse: t.Reuse}
	}
	return out
}

// countedClasses are the members of by_kind, each always present.
var countedClasses = []task.Class{task.ClassInstance, task.ClassGate, task.ClassCandidate, task.ClassHandshake, task.ClassImage, task.ClassReport, task.ClassTask}

// planDocument makes the document without its tasks.
func planDocument(version string, graph string, p *plan.Plan, ds decl.Diagnostics) *planJSON {
	d := &planJSON{FormatVersion: formatVersion, Pbuild: version, Graph: graph,
		Unknown: []unknownJSON{}, Tasks: []planTaskJSON{}, Diagnostics: diagnosticsJSON(ds)}
	c := plan.Counts{}
	if p != nil {
		c = p.Counts()
	}
	d.Counts = countsOf(c)
	if p == nil {
		return d
	}
	for i := range p.Items {
		if p.Wanted[i] && p.Items[i].Decision == plan.Run && p.Graph.Tasks[i].Spec.Kind().Frozen {
			d.Samples.New++
		}
	}
	if d.Samples.New == 0 {
		d.Samples.EstimateUSD = new(float64)
	}
	return d
}

// planTasks lists the tasks that run or may run, with all also those that are reused.
func planTasks(p *plan.Plan, all bool) []planTaskJSON {
	out := []planTaskJSON{}
	for i := range p.Items {
		item := &p.Items[i]
		if !p.Wanted[i] || item.Decision == plan.Unneeded || item.Decision == plan.Reuse && !all {
			continue
		}
		id := task.ID(i)
		out = append(out, planTaskJSON{p.Address(id), p.Graph.Tasks[id].Spec.Kind().Name, item.Decision.String(), reasonsJSON(p.Reasons(id))})
	}
	return out
}
