// Package kind lists the kinds of task of the field, and their specs. Each spec is a plain struct: what Encode writes is in the key, and a field
// tagged `key:"-"` is not; a test changes every other field and demands another key. The doc of each says which dependencies it has, by role.
//
// Package lower makes specs, package exec runs them.
package kind

import (
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// The kinds. A version is raised by hand when the kind's result may differ for equal inputs.
var (
	Source         = &task.Kind{Name: "source", Version: 1}
	Patches        = &task.Kind{Name: "patches", Version: 3, Pure: true}
	Image          = &task.Kind{Name: "image", Version: 1}
	RuntimePrepare = &task.Kind{Name: "runtime.prepare", Version: 1, Opaque: true}
	Fetch          = &task.Kind{Name: "fetch", Version: 1, Opaque: true}
	Prepare        = &task.Kind{Name: "prepare", Version: 1, Opaque: true}
	FetchGold      = &task.Kind{Name: "fetch.gold", Version: 1, Opaque: true}
	Build          = &task.Kind{Name: "build", Version: 2, Opaque: true}
	Test           = &task.Kind{Name: "test", Version: 4}
	Score          = &task.Kind{Name: "score", Version: 2, Pure: true}
	Verdict        = &task.Kind{Name: "verdict", Version: 4, Pure: true}
	SamplePure     = &task.Kind{Name: "sample", Version: 1, Pure: true}   // oracle, nop, predictions
	Sample         = &task.Kind{Name: "sample", Version: 1, Frozen: true} // what cannot be recomputed
	Extract        = &task.Kind{Name: "extract", Version: 2, Pure: true}
	Compose        = &task.Kind{Name: "compose", Version: 3, Pure: true}
	Outcome        = &task.Kind{Name: "outcome", Version: 4, Pure: true}
	Handshake      = &task.Kind{Name: "handshake", Version: 1}
	Report         = &task.Kind{Name: "report", Version: 2, Pure: true, Files: true}
	Task           = &task.Kind{Name: "task", Version: 1, Files: true}
)

// Roles of outputs. A source's output is its Tree.
const (
	Tree         = "tree"
	GoldPatch    = "gold_patch"
	TestPatch    = "test_patch"
	BaseTestTree = "base_test"
	GoldTree     = "gold"
	GoldTestTree = "gold_test"
	GoldPaths    = "gold_paths" // a blob of JSON: {"production":[paths],"all":[paths]}
	TestPaths    = "test_paths" // a blob of JSON: [paths] of the test patch
	Result       = "result"     // of build and test: a blob of JSON, a Run
	Patch        = "patch"      // of sample and extract
	Trajectory   = "trajectory" // of sample, of agents that run
	ScoreBlob    = "score"      // a blob of JSON, verdict.Score
	Evidence     = "evidence"   // of verdict: a blob of JSON
	OutcomeBlob  = "outcome"    // a blob of JSON
	Composed     = "composed"   // of compose: a blob of JSON, what was reset and what was exempt
	Below        = "below"      // role of the state that a command starts from
)

// Facts of outcomes, which conditions ask for.
const (
	Patched  = "patched"  // patches: the trees are there
	Passed   = "pass"     // build, test and score
	Nonempty = "nonempty" // extract
	Applies  = "applies"  // extract
	Admitted = "admitted" // verdict
	Resolved = "resolved" // outcome
)

// Data is bytes from a row or file, which the key names by digest. The zero Data is none.
type Data struct {
	Digest digest.Digest
	Bytes  []byte `key:"-"`
}
