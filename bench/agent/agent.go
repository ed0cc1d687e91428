// Package agent makes candidates: how a patch is produced, before anyone judges it.
package agent

import (
	"fmt"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
)

// Kinds are the agents that this version runs.
var Kinds = []string{"oracle", "nop", "predictions", "command"}

// A Candidate is what a sample gives without running anything: the digest of a stored patch, or its bytes, or the one word for why there is none.
type Candidate struct {
	Patch   digest.Digest
	Bytes   []byte
	Outcome string
}

// Static is the candidate of an agent whose sample is a function of its inputs: the oracle gives the gold patch, nop an empty one, predictions its
// entry for the instance, or "missing" where the file has none.
func Static(spec *kind.SampleSpec, gold digest.Digest) (Candidate, error) {
	switch spec.Agent {
	case "oracle":
		if gold.IsZero() {
			return Candidate{}, fmt.Errorf("the oracle has no gold patch to give")
		}
		return Candidate{Patch: gold}, nil
	case "nop":
		return Candidate{}, nil
	case "predictions":
		if spec.Prediction.Digest.IsZero() {
			return Candidate{Outcome: "missing"}, nil
		}
		return Candidate{Bytes: spec.Prediction.Bytes}, nil
	}
	return Candidate{}, fmt.Errorf("this version cannot run agents of kind %q yet", spec.Agent)
}
