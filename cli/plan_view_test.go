package cli

import (
	"testing"

	"pbuild/engine/plan"
)

// A task whose key differs in many components is one task.
func TestReasonsCountTasks(t *testing.T) {
	b := &blockSummary{reasons: map[plan.Code]*reasonSummary{}}
	for range 3 {
		b.count([]plan.Reason{
			{Code: plan.UpstreamChanged, Detail: "inputs.a"}, {Code: plan.SpecChanged, Detail: "spec.columns"}, {Code: plan.UpstreamChanged, Detail: "inputs.b"},
		})
	}
	if got, want := b.why(), "3 declared otherwise (spec.columns); 3 upstream changed (inputs.a, ...)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
