package hcl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const inJSON = `{
  "//": "the workspace of kinds, in the other syntax",
  "variable": {"n": {"type": "number", "default": 3}},
  "locals": {"pair": ["a", "${local.one}"], "one": "b-${var.n}"},
  "pbuild": {"slots": 4, "disk_budget": "1.5GiB", "keep": "1h30m", "salt": 7},
  "runtime": {
    "host": {
      "host": {"paths": ["/opt"]}, "probe": "${concat([\"go\"], local.pair)}",
      "env": {"B": true, "A": 1.5, "${\"C\"}": "${local.one}"}, "pass_env": ["A", "Z"], "cpus": "1.5", "memory": 1024
    },
    "many": {"for_each": {"x": {"v": "1"}, "a": {"v": "2"}}, "host": {}, "probe": ["echo", "${each.key}", "${each.value.v}"]}
  },
  "agent": {"mini": {"kind": "command", "command": ["run"], "config": {"steps": [1, null, {"deep": true}]}, "prompt": "${file(\"prompt.md\")}", "workers": 2}},
  "task": [
    {"t": {
      "command": "${[for s in local.pair : upper(s)]}", "inputs": "${fileset(\".\", \"*.md\")}", "runtime": "runtime.many[\"a\"]",
      "depends_on": ["${runtime.many}", "task.u"], "sandbox": "${var.n == 3}"
    }},
    {"u": {"command": ["u"], "runtime": "var.n > 5 ? runtime.many[\"x\"] : runtime.host", "cache": null}}
  ]
}`

func TestBothSyntaxesMeanTheSame(t *testing.T) {
	want := render(t, load(t, Options{}, "b.hcl", kinds, "prompt.md", "p\xff").Workspace)
	got := render(t, load(t, Options{}, "b.hcl.json", inJSON, "prompt.md", "p\xff").Workspace)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-native +JSON:\n%s", diff)
	}
}

func TestJSONTakesBlocksWhereTheValueIsOne(t *testing.T) {
	w := load(t, Options{}, "b.hcl.json", `{
  "dataset": {"d": {"file": "d.jsonl", "key": "id"}, "e": {"filter": {"from": "dataset.d", "where": "${row.id == \"a\"}"}}},
  "source": {"s": {"dir": {"path": "."}}},
  "runtime": {"r": {"host": {}, "probe": ["true"]}},
  "instance": {"i": {
    "for_each": "dataset.e", "source": "source.s", "fix": {"dir": {"path": "fix"}}, "runtime": "runtime.r", "test": [{"command": ["true", "${each.value.id}"]}],
    "precondition": [{"condition": "${each.key == \"a\"}", "error_message": "x"}, {"condition": true, "error_message": "y"}]
  }}
}`, "d.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n").Workspace
	i := w.Find("instance", "i")
	if i.Attrs["source"] == nil || i.Nested("source") != nil || i.Attrs["fix"] != nil || i.Nested("fix") == nil {
		t.Error("source is an attribute and fix a block")
	}
	if i.ForEach == nil || i.ForEach.Dataset != "e" || w.Datasets["e"].Len() != 1 {
		t.Error("for_each names the one row of e")
	}
}
