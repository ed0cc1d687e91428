//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A drawn workspace is what random edits are made to: every choice is a number, and the files follow from the choices.
type drawn struct {
	rand   *rand.Rand
	choice map[string]int
}

// choices are the dimensions of a workspace, and how many ways each can go. The first way is the simplest.
var choices = map[string]int{
	"a.base": 3, "a.fix": 4, "a.check": 5, "a.helper": 2, "a.mode": 2, "a.extra": 3, "a.link": 2, "a.ignore": 2,
	"b.base": 3, "b.fix": 4, "b.check": 5, "b.helper": 2, "b.mode": 2, "b.extra": 3, "b.link": 2, "b.ignore": 2,
	"b": 2, "build": 5, "prepare": 3, "keep": 2, "format": 2, "ids": 4, "protect": 3, "env": 3, "data": 2, "fetch": 2, "cwd": 2, "probe": 2,
	"attempts": 2, "tries": 2, "strict": 2, "states": 2, "admit": 2, "prediction": 9, "agent": 6, "statement": 2, "exclude": 3, "ungated": 2,
	"salt": 2, "columns": 2, "formats": 2, "name": 2, "order": 2, "limit": 2, "timeout": 2, "version": 2,
}

func (d *drawn) is(name string, n int) bool { return d.choice[name] == n }

// pick is the way that a dimension goes.
func (d *drawn) pick(name string, ways ...string) string { return ways[d.choice[name]] }

// edit changes some dimensions.
func (d *drawn) edit() string {
	names := slices.Sorted(maps.Keys(choices))
	var did []string
	for range 1 + d.rand.IntN(3) {
		name := names[d.rand.IntN(len(names))]
		d.choice[name] = d.rand.IntN(choices[name])
		did = append(did, fmt.Sprintf("%s=%d", name, d.choice[name]))
	}
	return strings.Join(did, " ")
}

// files are the workspace's files by path; a value that begins with "->" is a link, and a path that ends in "*" is executable.
func (d *drawn) files() map[string]string {
	m := map[string]string{"w.hcl": d.declarations()}
	for _, id := range []string{"a", "b"} {
		d.tree(m, id, "base")
		d.tree(m, id, "fix")
	}
	var lines []string
	for _, id := range []string{"a", "b"} {
		if patch, ok := d.prediction(id); ok {
			line, _ := json.Marshal(map[string]string{"instance_id": id, "model_name_or_path": "m", "model_patch": patch})
			lines = append(lines, string(line))
		}
	}
	if d.is("order", 1) {
		slices.Reverse(lines)
	}
	m["predictions.jsonl"] = strings.Join(lines, "\n") + "\n"
	return m
}

// tree writes one of an instance's two trees. The program greets; the test asks whom.
func (d *drawn) tree(m map[string]string, id, which string) {
	dir := id + "/" + which + "/"
	lib := d.pick(id+".base", "echo hello\n", "echo hi # hello\n", "echo good bye\n")
	if which == "fix" {
		lib = d.pick(id+".fix", "echo hello you\n", "x=you; echo hello $x\n", "echo hello\n", "echo hello you; exit 3\n")
		m[dir+"check.sh"] = d.pick(id+".check",
			"echo 1..2; case $(sh lib.sh) in *you*) echo 'ok 1 - you'; echo 'ok 2 - runs';; *) echo 'not ok 1 - you'; echo 'ok 2 - runs'; exit 1;; esac\n",
			"echo 1..1; if sh lib.sh | grep -q you; then echo 'ok 1 - you'; else echo 'not ok 1 - you'; false; fi\n",
			"echo 1..1; echo 'ok 1 - you'\n",
			"echo 1..2; out=$(sh lib.sh) && echo 'ok 2 - runs' || { echo 'not ok 2 - runs'; bad=1; }; case $out in *you*) echo 'ok 1 - you';; *) echo 'not ok 1 - you'; bad=1;; esac; exit $bad\n",
			"echo 1..1; test -e built && sh lib.sh | grep -q you && echo 'ok 1 - you' || { echo 'not ok 1 - you'; exit 1; }\n")
		if d.is(id+".helper", 1) {
			m[dir+"testdata/whom"] = "you\n"
		}
	} else {
		m[dir+"check.sh"] = "echo 1..1; echo 'ok 2 - runs'\n"
	}
	m[dir+"lib.sh"] = lib
	tool := dir + "tool"
	if d.is(id+".mode", 1) {
		tool += "*"
	}
	m[tool] = "#!/bin/sh\necho tool > built\n"
	switch d.choice[id+".extra"] {
	case 1:
		m[dir+"src/notes.txt"] = "notes of " + which + "\n"
	case 2:
		m[dir+"src/notes.txt"], m[dir+"ignored.log"] = "the same\n", "noise of "+which+"\n"
	}
	if d.is(id+".link", 1) {
		m[dir+"ln"] = "->lib.sh"
	}
	if d.is(id+".ignore", 1) {
		m[dir+".gitignore"] = "*.log\nbuilt\n"
	}
}

func replaceLine(path, old, with string) string {
	return fmt.Sprintf("diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-%s+%s", path, path, path, path, old, with)
}

func (d *drawn) prediction(id string) (string, bool) {
	lib := d.pick(id+".base", "echo hello\n", "echo hi # hello\n", "echo good bye\n")
	switch d.choice["prediction"] {
	case 0:
		return replaceLine("lib.sh", lib, "echo hello you there\n"), true
	case 1:
		return "", true
	case 2:
		return "", false
	case 3:
		return replaceLine("lib.sh", "no such line\n", "echo you\n"), true
	case 4:
		return replaceLine("lib.sh", lib, "false\n"), true
	case 5:
		return replaceLine("check.sh", "echo 'ok 2 - runs'\n", "echo 'ok 1 - you'\n"), true
	case 6:
		return "diff --git a/tool b/tool\ndeleted file mode 100" + d.pick(id+".mode", "644", "755") + "\n--- a/tool\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-#!/bin/sh\n-echo tool > built\n", true
	case 7:
		return replaceLine("lib.sh", lib, "echo hello you there\n") + "diff --git a/testdata/whom b/testdata/whom\nnew file mode 100644\n--- /dev/null\n+++ b/testdata/whom\n@@ -0,0 +1 @@\n+you\n", true
	}
	return " \n", true
}

func (d *drawn) declarations() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("pbuild {\n%s}", d.pick("salt", "", "salt = \"other\"\n"))
	line("runtime \"sh\" {\n host {}\n probe = [\"echo\", %q]\n env = { GREETING = %q }\n}", d.pick("probe", "1", "2"), d.pick("env", "", "one", "two"))
	ids := []string{"a", "b"}[:1+d.choice["b"]]
	if d.is("order", 1) {
		slices.Reverse(ids)
	}
	for _, id := range ids {
		d.instance(line, id)
	}
	line("gate \"all\" {\n instances = [%s]\n on_reject = \"exclude\"", "instance."+strings.Join(ids, ", instance."))
	line(" attempts = %d\n strict = %s\n compile_failure = %q\n states = [%s]\n}", 1+d.choice["attempts"], d.pick("strict", "false", "true"),
		d.pick("admit", "reject", "admit"), d.pick("states", `"base", "gold"`, `"gold", "base"`))
	line("agent \"oracle\" { kind = \"oracle\" }\nagent \"nop\" { kind = \"nop\" }")
	line("agent \"given\" {\n kind = \"predictions\"\n file = \"predictions.jsonl\"\n}")
	line("agent \"runs\" {\n kind = \"command\"\n allow_unsealed = true\n version = %q\n command = [\"sh\", \"-c\", %q]\n}", d.pick("version", "1", "2"), d.pick("agent",
		"echo 'echo hello you' > lib.sh", "true", "exit 4", "grep -q you $PBUILD_PROBLEM_STATEMENT && echo 'echo hello you' > lib.sh",
		"rm check.sh; mkdir check.sh; echo 'echo you' > lib.sh", "test -e prepared && echo \"echo hello you $GREETING\" > lib.sh; rm -f ln tool; echo x > new.log"))
	name := d.pick("name", "main", "other")
	over := "gate.all"
	if d.is("ungated", 1) && !(d.is("format", 1) && d.is("ids", 0)) {
		over = "instance." + strings.Join(ids, ", instance.")
	}
	line("matrix %q {\n instances = [%s]\n agents = [agent.oracle, agent.nop, agent.given, agent.runs]\n attempts = %d\n%s}", name, over, 1+d.choice["tries"],
		d.pick("exclude", "", " exclude = [{ agent = \"nop\" }]\n", " exclude = [{ instance = \"a\", agent = \"oracle\" }]\n"))
	line("report \"r\" {\n matrix = matrix.%s\n formats = [%s]\n%s}", name, d.pick("formats", `"json", "md"`, `"json", "csv"`), d.pick("columns", "", " columns = [\"instance\", \"agent\", \"outcome\", \"flags\"]\n"))
	return b.String()
}

func (d *drawn) instance(line func(string, ...any), id string) {
	line("instance %q {\n source {\n  dir { path = \"%s/base\" }\n }\n fix {\n  dir { path = \"%s/fix\" }\n }\n runtime = runtime.sh", id, id, id)
	line(" problem_statement = %q\n test_files = [\"check.sh\"]", d.pick("statement", "greet you", "greet nobody"))
	if d.is("data", 1) {
		line(" test_data = [\"testdata/**\"]")
	}
	if d.is("fetch", 1) {
		line(" fetch {\n  network = false\n  command = [\"sh\", \"-c\", \"cat lib.sh > ~/fetched; touch x\"]\n }")
	}
	switch d.choice["prepare"] {
	case 1:
		line(" prepare {\n  command = [\"sh\", \"-c\", \"echo $GREETING > prepared; echo y > ~/prepared\"]\n }")
	case 2:
		line(" prepare {\n  command = [\"sh\", \"-c\", \"grep -q hello lib.sh\"]\n }")
	}
	if build := d.pick("build", "", "true", "sh ./tool", "./tool && mkdir -p ~/cache && cp lib.sh ~/cache/ && ! grep -q false lib.sh", "mkdir -p testdata; echo x > testdata/made"); build != "" {
		line(" build {\n  command = [\"sh\", \"-c\", %q]\n  keep = [%s]\n }", build, d.pick("keep", "", `"cache"`))
	}
	line(" test {\n  command = [\"sh\", %s]\n  format = %q", d.pick("cwd", `"check.sh"`, `"-c", "sh check.sh; r=$?; ls ~ | grep -v fetched; cat ~/cache/lib.sh 2>/dev/null; exit $r"`), d.pick("format", "exit", "tap"))
	if d.is("format", 1) {
		line("%s", d.pick("ids", "", "  fail_to_pass = [\"you\"]", "  fail_to_pass = [\"you\"]\n  pass_to_pass = [\"runs\"]", "  fail_to_pass = [\"never\"]"))
	}
	line("  protect = [%s]\n  timeout = %q\n  output_limit = %q\n }\n}", d.pick("protect", "", `"testdata/**", "tool"`, `"lib.sh"`), d.pick("timeout", "1m", "2m"), d.pick("limit", "1MiB", "2MiB"))
}

// lay makes dir hold exactly files beside what pbuild keeps there. A file that has not changed is not touched.
func (w workspace) lay(dir string, files map[string]string) {
	w.Helper()
	keep := map[string]bool{".pbuild": true, "reports": true}
	for name, text := range files {
		path, exec := strings.CutSuffix(name, "*")
		keep[path] = true
		for p := filepath.Dir(path); p != "."; p = filepath.Dir(p) {
			keep[p] = true
		}
		full := filepath.Join(dir, path)
		mode := os.FileMode(0o644)
		if exec {
			mode = 0o755
		}
		if target, link := strings.CutPrefix(text, "->"); link {
			if have, err := os.Readlink(full); err == nil && have == target {
				continue
			}
			os.RemoveAll(full)
			os.MkdirAll(filepath.Dir(full), 0o755)
			if err := os.Symlink(target, full); err != nil {
				w.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(full); err != nil || string(have) != text {
			w.writeTo(full, text)
		}
		if fi, err := os.Stat(full); err != nil || fi.Mode().Perm() != mode {
			if err := os.Chmod(full, mode); err != nil {
				w.Fatal(err)
			}
		}
	}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		switch {
		case err != nil || rel == ".":
			return err
		case !keep[rel]:
			os.RemoveAll(p)
		}
		if e.IsDir() && (!keep[rel] || rel == ".pbuild" || rel == "reports") {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w workspace) writeTo(full, text string) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// outcomes are all that a workspace says: its reports, and how each gate and cell ended.
func (w workspace) outcomes(files map[string]string) map[string]string {
	w.Helper()
	got := map[string]string{}
	entries, _ := os.ReadDir(filepath.Join(w.dir, "reports"))
	for _, e := range entries {
		declared := strings.Contains(files["w.hcl"], `"`+strings.TrimPrefix(filepath.Ext(e.Name()), ".")+`"`)
		if declared { // else it is of an earlier declaration
			got[e.Name()] = w.read("reports/" + e.Name())
		}
	}
	table, _ := w.pbuild(0, "report", "r", "--json")
	got["report r"] = table
	list, _ := w.pbuild(0, "list", "--json", "kind:verdict")
	var all struct {
		Tasks []struct{ Address string }
	}
	if err := json.Unmarshal([]byte(list), &all); err != nil || len(all.Tasks) == 0 {
		w.Fatalf("no gate in %s: %v", list, err)
	}
	for _, o := range all.Tasks {
		out, _ := w.pbuild(0, "show", "--json", o.Address)
		var shown struct {
			Record *struct {
				Status, Outcome string
				BaseKind        *string `json:"base_kind"`
				Flags           []string
				Evidence        any
			}
		}
		if err := json.Unmarshal([]byte(out), &shown); err != nil {
			w.Fatalf("%v in %s", err, out)
		}
		text, _ := json.MarshalIndent(shown.Record, "", " ")
		got[o.Address] = string(text)
	}
	return got
}

// TestIncrementalEqualsClean edits a workspace at random, and after each edit compares what an apply over all that is remembered says with what an apply in a
// fresh workspace of the same files says: reports byte for byte, and how each gate and cell ended.
func TestIncrementalEqualsClean(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel() // most of its time goes by waiting for the disk
			w := newWorkspace(t, nil)
			d := &drawn{rand: rand.New(rand.NewPCG(seed, 0)), choice: map[string]int{}}
			w.sameAsClean(d, "first")
			for range incrementalEdits {
				edit := d.edit()
				edit += w.lose(d.rand)
				if d.rand.IntN(4) == 0 {
					w.lay(w.dir, d.files())
					w.applied("gate.**")
				}
				w.sameAsClean(d, edit)
			}
		})
	}
}

// TestNoReportIsStale makes edits after which every test that runs again ends as before, while the report does not.
func TestNoReportIsStale(t *testing.T) {
	for _, c := range []struct{ before, after map[string]int }{
		{nil, map[string]int{"protect": 2}},                        // what gold changes is protected: exempt
		{map[string]int{"build": 4}, map[string]int{"protect": 1}}, // what the build changes is put back
	} {
		w := newWorkspace(t, nil)
		d := &drawn{rand: rand.New(rand.NewPCG(0, 0)), choice: map[string]int{}}
		maps.Copy(d.choice, c.before)
		w.sameAsClean(d, fmt.Sprint(c.before))
		maps.Copy(d.choice, c.after)
		w.sameAsClean(d, fmt.Sprint(c.after))
	}
}

// sameAsClean applies what d is now, and compares all that the workspace says with what a fresh one of the same files says.
func (w workspace) sameAsClean(d *drawn, edit string) {
	w.Helper()
	files := d.files()
	w.lay(w.dir, files)
	code := w.applied()
	clean := w
	clean.dir = w.TempDir()
	clean.lay(clean.dir, files)
	if want := clean.applied(); code != want {
		w.Fatalf("%s: exit %d, and %d in a fresh workspace; %v", edit, code, want, d.choice)
	}
	got, want := w.outcomes(files), clean.outcomes(files)
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			w.Fatalf("%s: %s is\n%s\nin a fresh workspace\n%s\n%v", edit, k, got[k], want[k], d.choice)
		}
	}
}

const incrementalEdits = 8

// applied runs an apply and returns its exit code.
func (w workspace) applied(args ...string) int {
	w.Helper()
	cmd := w.command(append([]string{"apply", "-q"}, args...)...)
	out, _ := cmd.CombinedOutput()
	code := cmd.ProcessState.ExitCode()
	if code != 0 && code != 1 {
		w.Fatalf("apply %v: exit %d\n%s", args, code, out)
	}
	return code
}

// lose removes, now and then, something that pbuild can do without.
func (w workspace) lose(r *rand.Rand) string {
	parts := []string{"states", "snapshot", "home", "reports"}
	if i := r.IntN(3 * len(parts)); i < len(parts) {
		p := ".pbuild/" + parts[i]
		if parts[i] == "reports" {
			p = "reports"
		}
		os.RemoveAll(filepath.Join(w.dir, p))
		return "; lost " + p
	}
	return ""
}
