package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pbuild/bench/report"
	"pbuild/bench/verdict"
)

// WritePredictions writes predictions as SWE-bench reads them, an object a line, sorted by instance. JSON strings are text: a patch that is
// not UTF-8 cannot be written and is an error, never changed silently.
func WritePredictions(list []Prediction) ([]byte, error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Prediction) int { return strings.Compare(a.Instance, b.Instance) })
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	for _, p := range list {
		if !utf8.Valid(p.Patch) {
			return nil, fmt.Errorf("the patch of %s is not UTF-8, which predictions in JSON have to be", p.Instance)
		}
		if err := e.Encode(struct {
			Instance string `json:"instance_id"`
			Model    string `json:"model_name_or_path"`
			Patch    string `json:"model_patch"`
		}{p.Instance, p.Model, string(p.Patch)}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// A SWEbenchReport is the final report of the SWE-bench harness, schema version 2: MODEL.RUN.json.
type SWEbenchReport struct {
	Total            int               `json:"total_instances"`
	Submitted        int               `json:"submitted_instances"`
	Completed        int               `json:"completed_instances"`
	Resolved         int               `json:"resolved_instances"`
	Unresolved       int               `json:"unresolved_instances"`
	InfraFailure     int               `json:"infra_failure_instances"`
	AmbiguousFailure int               `json:"ambiguous_failure_instances"`
	EmptyPatch       int               `json:"empty_patch_instances"`
	Error            int               `json:"error_instances"`
	CompletedIDs     []string          `json:"completed_ids"`
	IncompleteIDs    []string          `json:"incomplete_ids"`
	EmptyPatchIDs    []string          `json:"empty_patch_ids"`
	SubmittedIDs     []string          `json:"submitted_ids"`
	ResolvedIDs      []string          `json:"resolved_ids"`
	UnresolvedIDs    []string          `json:"unresolved_ids"`
	InfraFailureIDs  []string          `json:"infra_failure_ids"`
	AmbiguousIDs     []string          `json:"ambiguous_failure_ids"`
	ErrorIDs         []string          `json:"error_ids"`
	FailureReasons   map[string]string `json:"failure_reasons"`
	SchemaVersion    int               `json:"schema_version"`
}

// SWEbench makes the report of one agent and model ("" for none) from a table's rows of one sample. Excluded instances are in no list and no
// total. Every instance that is left is submitted unless its prediction is missing or nothing could be sampled; a submitted one is exactly one
// of resolved, unresolved (both completed), empty, infra failure or error. A patch that does not apply and a time-out are errors there, a
// flaky one is ambiguous and unresolved.
func SWEbench(t *report.Table, agent, model string, sample int) *SWEbenchReport {
	r := &SWEbenchReport{FailureReasons: map[string]string{}, SchemaVersion: 2}
	for _, list := range []*[]string{&r.CompletedIDs, &r.IncompleteIDs, &r.EmptyPatchIDs, &r.SubmittedIDs, &r.ResolvedIDs,
		&r.UnresolvedIDs, &r.InfraFailureIDs, &r.AmbiguousIDs, &r.ErrorIDs} {
		*list = []string{}
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		m := ""
		if row.Model != nil {
			m = *row.Model
		}
		if row.Agent == agent && m == model && row.Sample == sample && row.Outcome != verdict.Excluded {
			r.add(row)
		}
	}
	r.Submitted, r.Completed, r.Resolved, r.Unresolved = len(r.SubmittedIDs), len(r.CompletedIDs), len(r.ResolvedIDs), len(r.UnresolvedIDs)
	r.InfraFailure, r.AmbiguousFailure, r.EmptyPatch, r.Error = len(r.InfraFailureIDs), len(r.AmbiguousIDs), len(r.EmptyPatchIDs), len(r.ErrorIDs)
	return r
}

func (r *SWEbenchReport) add(row *report.Row) {
	id := row.Instance
	r.Total++
	switch row.Outcome {
	case verdict.Missing, verdict.CellProvider, verdict.CellSkipped:
		r.IncompleteIDs = append(r.IncompleteIDs, id)
		return
	}
	r.SubmittedIDs = append(r.SubmittedIDs, id)
	list := &r.UnresolvedIDs
	switch row.Outcome {
	case verdict.Resolved:
		list = &r.ResolvedIDs
	case verdict.CellInfra:
		list = &r.InfraFailureIDs
	case verdict.DoesNotApply, verdict.CellTimeout:
		list = &r.ErrorIDs
	case verdict.CellFlaky:
		r.AmbiguousIDs = append(r.AmbiguousIDs, id)
	case verdict.Empty, verdict.StepLimit, verdict.WallLimit, verdict.CostLimit, verdict.FormatError, verdict.AgentCrash:
		list = &r.EmptyPatchIDs
		if row.Stages.Nonempty {
			list = &r.ErrorIDs
		}
	}
	*list = append(*list, id)
	if list == &r.ResolvedIDs || list == &r.UnresolvedIDs {
		r.CompletedIDs = append(r.CompletedIDs, id)
	}
	if row.Outcome != verdict.Resolved && row.Outcome != verdict.Unresolved && row.Outcome != verdict.Empty {
		r.FailureReasons[id] = string(row.Outcome)
	} else if row.Outcome == verdict.Unresolved && row.Reason != nil {
		r.FailureReasons[id] = *row.Reason
	}
}

// JSON is the report as a file, indented as the harness indents it.
func (r *SWEbenchReport) JSON() []byte {
	b, err := json.MarshalIndent(r, "", "    ")
	if err != nil {
		panic("pbuild bug: a report has no JSON: " + err.Error())
	}
	return append(b, '\n')
}
