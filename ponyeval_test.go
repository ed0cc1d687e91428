package main

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ponyHCL has the shape of a published benchmark at its size: 291 instances of 15 repositories over 72 historical compiler images, five nodes, one
// agent and five models.
const ponyHCL = `
dataset "rows" {
  file = "rows.jsonl"
  key  = "instance_id"
}
instance "pony" {
  for_each = dataset.rows
  source {
    git {
      url    = "https://git.example.org/${each.value.repo}"
      commit = each.value.base_commit
    }
  }
  gold_patch        = each.value.patch
  test_patch        = each.value.test_patch
  problem_statement = each.value.problem_statement
  runtime           = runtime.compiler[each.value.runtime]
  build { command = ["make", "build"] }
  test {
    command = ["make", "test"]
    format  = "exit"
  }
}
gate "two_state" {
  instances = instance.pony
}
agent "mini" {
  kind       = "mini-swe-agent"
  version    = "2"
  step_limit = 120
}
model "repair" {
  for_each = toset(["a", "b", "c", "d", "e"])
  provider = "openai-compatible"
  id       = each.key
  revision = "1"
}
matrix "main" {
  instances = gate.two_state
  agents    = [agent.mini]
  models    = model.repair
}
report "main" {
  matrix = matrix.main
}
locals {
  compilers = { for i in range(72) : format("c%02d", i) => i }
}
runtime "compiler" {
  for_each = local.compilers
  build {
    context    = "image"
    dockerfile = "Dockerfile"
    args       = { INDEX = tostring(each.value) }
  }
  platforms = ["linux/amd64"]
  probe     = ["compiler", "--version"]
}
node "one" {
  docker   = "ssh://one.example.org"
  platform = "linux/amd64"
}
node "two" {
  oci      = "ssh://two.example.org"
  platform = "linux/arm64"
  emulate  = ["linux/amd64"]
}
node "more" {
  for_each = toset(["m1", "m2", "m3"])
  docker   = "ssh://${each.key}.example.org"
  platform = "linux/arm64"
  emulate  = ["linux/amd64"]
}
handshake "all" {
  runtimes = runtime.compiler
  nodes    = [node.one, node.two, node.more]
}
`

// ponyWorkspace writes the workspace. Two pairs of its rows share a base commit.
func ponyWorkspace(t *testing.T) string {
	dir := t.TempDir()
	var rows strings.Builder
	e := json.NewEncoder(&rows)
	for n := range 291 {
		repo, base := fmt.Sprintf("pony/r%d", n%15), n
		if n == 45 || n == 120 {
			base = n - 15
		}
		diff := func(file string) string {
			return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+new %[2]d\n", file, n)
		}
		if err := e.Encode(map[string]any{
			"instance_id": fmt.Sprintf("pony-%d", 1000+n), "repo": repo, "base_commit": fmt.Sprintf("%x", sha1.Sum(fmt.Append(nil, repo, base))),
			"patch": diff("src.pony"), "test_patch": diff("test.pony"), "problem_statement": fmt.Sprintf("Issue %d.", n), "runtime": fmt.Sprintf("c%02d", n%72),
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"benchmarks.hcl": ponyHCL, "rows.jsonl": rows.String(), "image/Dockerfile": "FROM scratch\nARG INDEX\nLABEL index=\"${INDEX}\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A benchmark whose images, nodes and models are all elsewhere is planned here, with no network, no Docker, and not one other program.
func TestPlanOfALargeBenchmark(t *testing.T) {
	self, err := exec.LookPath("pbuild")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(self))
	dir := ponyWorkspace(t)
	var plan struct {
		Counts struct {
			Run, Maybe, Reuse, Unneeded int
			ByKind                      map[string]map[string]int `json:"by_kind"`
		}
	}
	if err := json.Unmarshal([]byte(pbuildIn(t, dir, "plan", "--json")), &plan); err != nil {
		t.Fatal(err)
	}
	if c := plan.Counts; c.Run == 0 || c.Maybe != 0 || c.Reuse != 0 || c.Unneeded != 0 {
		t.Errorf("not everything is to run: %+v", c)
	}
	for kind, n := range map[string]int{"instance": 291, "gate": 291, "candidate": 1455, "handshake": 360, "image": 72, "report": 1, "task": 0} {
		if want := map[string]int{"run": n, "maybe": 0, "reuse": 0}; !maps.Equal(plan.Counts.ByKind[kind], want) {
			t.Errorf("%s: %v, not %v", kind, plan.Counts.ByKind[kind], want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".pbuild")); !os.IsNotExist(err) {
		t.Errorf("the plan left a state directory: %v", err)
	}
	for _, n := range []int{0, 44, 290} {
		dependenciesOfOne(t, dir, fmt.Sprintf("pony-%d", 1000+n), fmt.Sprintf(`runtime.compiler["c%02d"]/image`, n%72))
	}
	// Rows of one base commit ask for one source, which is one task under the address of the first.
	if twin := pbuildIn(t, dir, "why", `instance.pony["pony-1045"]/patches`); !strings.Contains(twin, `run  instance.pony["pony-1030"]/source  as base`) {
		t.Errorf("two rows of one base commit do not share its source:\n%s", twin)
	}
}

// dependenciesOfOne asks list, why and graph about one instance: they show its own source, patches, gate and image, and nothing of another's.
func dependenciesOfOne(t *testing.T, dir, id, image string) {
	t.Helper()
	instance, gate, cells := fmt.Sprintf("instance.pony[%q]", id), fmt.Sprintf("gate.two_state[%q]", id), fmt.Sprintf("matrix.main[%q,", id)
	own := func(address string) bool {
		return address == image || strings.HasPrefix(address, instance+"/") || strings.HasPrefix(address, gate+"/") || strings.HasPrefix(address, cells)
	}
	listed := strings.Fields(pbuildIn(t, dir, "list", instance))
	if want := []string{instance + "/source", instance + "/patches"}; !slices.Equal(listed, want) {
		t.Errorf("list of %s: %q, not %q", id, listed, want)
	}
	var graph struct {
		Tasks []struct {
			Address string
			Depends []struct{ Address string }
		}
	}
	if err := json.Unmarshal([]byte(pbuildIn(t, dir, "graph", "--format", "json", cells+"*]")), &graph); err != nil {
		t.Fatal(err)
	}
	depends := map[string][]string{}
	for _, task := range graph.Tasks {
		if !own(task.Address) {
			t.Errorf("the graph of %s has %s", id, task.Address)
		}
		for _, d := range task.Depends {
			if !slices.Contains(depends[task.Address], d.Address) {
				depends[task.Address] = append(depends[task.Address], d.Address)
			}
		}
		slices.Sort(depends[task.Address])
	}
	if want := 2 + 1 + 7 + 5*7; len(graph.Tasks) != want {
		t.Errorf("the graph of %s has %d tasks, not %d", id, len(graph.Tasks), want)
	}
	for address, want := range map[string][]string{
		instance + "/source":          nil,
		instance + "/patches":         {instance + "/source"},
		gate + "/build.base":          {instance + "/source", image},
		gate + "/test.gold.0":         {gate + "/build.gold", instance + "/patches", image},
		cells + `"mini","b",0]/build`: {cells + `"mini","b",0]/extract`, image},
	} {
		if !slices.Equal(depends[address], want) {
			t.Errorf("%s depends on %q, not %q", address, depends[address], want)
		}
	}
	why := pbuildIn(t, dir, "why", gate+"/test.gold.0")
	for _, line := range strings.Split(why, "\n") {
		for _, word := range strings.Fields(line) {
			if strings.Contains(word, "/") && !own(word) {
				t.Errorf("why of %s names %s", id, word)
			}
		}
	}
	for _, want := range []string{image, instance + "/source", "never ran"} {
		if !strings.Contains(why, want) {
			t.Errorf("why of %s does not name %s:\n%s", id, want, why)
		}
	}
}
