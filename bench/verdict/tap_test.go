package verdict

import (
	"encoding/json"
	"strings"
	"testing"

	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// A directive begins at the first # that can be one; its reason may hold others.
func TestTAPDirectives(t *testing.T) {
	for line, want := range map[string]found{
		"ok 1 - net # SKIP see issue #7":           {"net", Skipped},
		"not ok 1 - zz # TODO see #12":             {"zz", Todo},
		"ok 1 - net # SKIP see # 7":                {"net", Skipped},
		"ok 1 - issue #7 is mended":                {"issue #7 is mended", Passed},
		"ok 1 - issue #7 # skip":                   {"issue #7", Skipped},
		"ok 1 - a # time=3ms # SKIP slow #1":       {"a", Skipped},
		"ok 1 - a # SKIP slow # time=3ms":          {"a", Skipped},
		"ok 1 - a # time=3ms":                      {"a", Passed},
		`ok 1 - a \# SKIP b`:                       {"a # SKIP b", Passed},
		`ok 1 - a \# b # ToDo`:                     {"a # b", Todo},
		"ok 1 # SKIP":                              {"", Skipped},
		"ok 1 - a#SKIP":                            {"a#SKIP", Passed},
		"ok 1 - a #skip":                           {"a", Skipped},
		"not ok 1 - a # TIME=1ms # what is to be?": {"a", Failed},
	} {
		if p := readPoint(line); p.name != want.id || p.result != want.result {
			t.Errorf("%s: %q, %s", line, p.name, p.result)
		}
	}
}

// The plan of a subtest is held to as the outermost is, unless the subtest says itself that it failed. One without a plan has its parent's point.
func TestTAPPlans(t *testing.T) {
	const p = "# Subtest: p\n"
	for _, c := range []struct{ name, stdout, detail string }{
		{"it agrees", "1..1\n" + p + "    1..1\n    ok 1 - t\nok 1 - p\n", ""},
		{"too few", "1..1\n" + p + "    1..3\n    ok 1 - t\nok 1 - p\n", "the plan of p names 3 tests, and 1 ran"},
		{"too many", "1..1\n" + p + "    ok 1 - t\n    ok 2 - u\n    1..1\nok 1 - p\n", "the plan of p names 1 tests, and 2 ran"},
		{"in braces", "1..1\nok 1 - p {\n    1..2\n    ok 1 - t\n}\n", "the plan of p names 2 tests, and 1 ran"},
		{"in braces after a time, as vitest has it", "1..1\nok 1 - p # time=5ms {\n    1..1\n    ok 1 - t # time=1ms\n}\n", ""},
		{"deeper", "1..2\n" + p + "    # Subtest: q\n        1..2\n        ok 1 - x\n    ok 1 - q\n    1..1\nok 1 - p\n" + p + "    ok 1 - t\n    1..1\nok 2 - p\n", "the plan of q names 2 tests, and 1 ran"},
		{"no plan", "1..1\n" + p + "    ok 1 - t\nok 1 - p\n", ""},
		{"another failed on its way", "1..2\n" + p + "    ok 1 - t\n    1..1\nok 1 - p\n# Subtest: q\n    1..3\n    ok 1 - x\nnot ok 2 - q\n", ""},
		{"one that is still to do", "1..2\n" + p + "    ok 1 - t\n    1..1\nok 1 - p\n# Subtest: q\n    1..3\n    ok 1 - x\nnot ok 2 - q # TODO later\n", ""},
		{"all are skipped", "1..2\n" + p + "    ok 1 - t\n    1..1\nok 1 - p\n# Subtest: q\n    1..0 # SKIP no net\nok 2 # skip no net\n", ""},
		{"nothing closes it", "1..1\n" + p + "    1..1\n    ok 1 - t\n", "the plan names 1 tests, and 0 ran"},
	} {
		exit := 0
		if strings.Contains(c.stdout, "not ok") && !strings.Contains(c.stdout, "TODO") {
			exit = 1
		}
		s := Parse(&kind.ScoreSpec{Format: "tap", FailToPass: []string{"p > t"}}, Input{Stdout: []byte(c.stdout), Exit: exit}, nil)
		if s.Detail != c.detail || (s.Reason == ReportMismatch) != (c.detail != "") {
			t.Errorf("%s: %s, %s", c.name, s.Reason, s.Detail)
		}
	}
	lost := Input{Stdout: []byte("1..1\n    not ok 1 - x\nok 1 - p {\n    ok 1 - t\n}\n"), Exit: 1}
	if s := Parse(&kind.ScoreSpec{Format: "tap", FailToPass: []string{"p > t"}}, lost, nil); s.Counts.Failed != 1 {
		t.Errorf("what stood open before the braces is lost: %+v", s.Counts)
	}
}

// What a score names must be what a later one finds: ids come back from JSON, which holds nothing but UTF-8.
func TestTAPIDsSurviveJSON(t *testing.T) {
	long := strings.Repeat("é", maxTAPID) // of two bytes each, one more than whole ones fit behind "a"
	in := Input{Stdout: []byte("ok 1 - caf\xe9 \xff\xfe\nok 2 - a" + long + "\n1..2\n"), Workspace: "/workspace"}
	first := Parse(&kind.ScoreSpec{Format: "tap", Derive: true}, in, nil)
	b, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var stored Score
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	var expected Expected
	for _, f := range stored.Found {
		expected.FailToPass = append(expected.FailToPass, f.ID)
	}
	if again := Parse(&kind.ScoreSpec{Format: "tap", Derive: true}, in, &expected); again.Verdict != task.Pass || len(expected.FailToPass) != 2 {
		t.Errorf("%s: %s", again.Verdict, again.Detail)
	}
}
