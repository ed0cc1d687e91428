package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// A remembered plan is what the snapshot keeps of one for people and scripts: a plan that finds nothing changed prints it.
type remembered struct {
	Counts      countsJSON       `json:"counts"`
	Restores    bool             `json:"restores"`
	Graph       string           `json:"graph"` // "" where nobody has asked for it yet
	Diagnostics []diagnosticJSON `json:"diagnostics"`
	Reports     []string         `json:"reports"`
	Excluded    int              `json:"excluded"` // cells that their gate does not admit
	Endings     []string         `json:"endings"`
	Tags        []string         `json:"tags"`  // for completion
	Fails       bool             `json:"fails"` // some record is a failure, or a rejection that is to be one: an apply has to look
}

// idle says that the plan had nothing to do.
func (r *remembered) idle() bool { return r.Counts.Run+r.Counts.Maybe == 0 && !r.Restores }

// writeSnapshot keeps a plan of the whole workspace. It is a courtesy to the next plan: what goes wrong is told, and nothing more.
func (s *session) writeSnapshot(st *store.Store, p *plan.Plan, graph string) {
	record := func(id task.ID) *task.Record { return p.Items[id].Record }
	recorded := func(id task.ID) bool { return record(id) != nil }
	r := remembered{Counts: countsOf(p.Counts()), Restores: restores(p) > 0, Graph: graph, Diagnostics: diagnosticsJSON(s.diags), Reports: reportFiles(p, recorded),
		Excluded: excludedCells(p), Endings: endings(p, record), Tags: s.tags(), Fails: fails(p)}
	counts, err := json.Marshal(r)
	if err != nil {
		panic("pbuild bug: a plan's counts have no JSON form: " + err.Error())
	}
	err = store.WriteSnapshot(s.stateDir(), &store.SnapshotData{
		Root: s.dir, Identity: s.app.cfg.Identity, Args: s.app.planArguments(), Generation: st.Generation(), Began: s.began,
		Reads: s.reads(), Table: s.files.Table(), Counts: counts, Names: s.addressList(),
	})
	if err != nil && s.stateExists() {
		s.app.view.notef("note: %v\n", err)
	}
}

// fails says whether a record that serves may make an apply exit with 1.
func fails(p *plan.Plan) bool {
	for i := range p.Items {
		if r := p.Items[i].Record; r != nil && p.Wanted[i] && (r.Status != task.OK || rejected(&p.Graph.Tasks[i], r)) {
			return true
		}
	}
	return false
}

// planArguments is what of the command line and the environment can change a plan of the whole workspace.
func (a *app) planArguments() digest.Digest {
	return argumentsDigest(a.flags.vars, a.flags.varFiles, a.cfg.Environ)
}

func argumentsDigest(vars, varFiles, environ []string) digest.Digest {
	var e digest.Encoder
	e.List("var", vars)
	e.List("var-file", varFiles)
	var env []string
	for _, kv := range environ {
		if strings.HasPrefix(kv, "PBUILD_VAR_") || strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "CI=") {
			env = append(env, kv)
		}
	}
	e.List("environ", env)
	return e.Sum()
}

// reads is everything that was read to get to the graph.
func (s *session) reads() []store.Read {
	var out []store.Read
	for _, r := range slices.Concat(s.ws.Read, s.host.reads()) {
		one := store.Read{Path: r.Path, Digest: r.Digest, Match: r.Match}
		switch {
		case r.Absent:
			one.Kind, one.Digest = store.ReadAbsent, digest.Digest{}
		case r.Dir: // its digest is that of what Match leaves of the listing
			one.Kind = store.ReadDir
		}
		out = append(out, one)
	}
	return out
}

// addressList is every address, sorted, for completion.
func (s *session) addressList() []string {
	var out []string
	for i := range s.graph.Objects {
		o := &s.graph.Objects[i]
		for k := range o.Steps {
			out = append(out, address(o, k))
		}
	}
	slices.Sort(out)
	return out
}

// tags is every tag, sorted.
func (s *session) tags() []string {
	seen := map[string]bool{}
	for i := range s.graph.Objects {
		for _, t := range s.graph.Objects[i].Tags {
			seen[t] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// snapshotNames reads the addresses and tags that the last plan left.
func (a *app) snapshotNames() (addresses, tags []string) {
	dir, err := a.workDir()
	if err != nil {
		return nil, nil
	}
	snap, err := store.OpenSnapshot(filepath.Join(dir, stateDir))
	if err != nil {
		return nil, nil
	}
	defer snap.Close()
	var r remembered
	if json.Unmarshal(snap.Counts(), &r) != nil {
		return nil, nil
	}
	return slices.Collect(snap.Names()), r.Tags
}
