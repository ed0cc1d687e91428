package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pbuild/cli"
	"pbuild/engine/run/host"
	"pbuild/engine/store"
	"pbuild/engine/task"
)

// The scripts of testdata/script are the specification of the command line: each runs the program itself, `pbuild`, in a directory of its own, and
// says of every phase also what did not run.
//
// Beside testscript's own commands they have
//
//	json FILE PATH VALUE         the member of a JSON document (or of the last line of a stream) is VALUE: counts.run 3
//	ran N                        the last pbuild apply ran N tasks, by its summary
//	lines N FILE                 a file has N lines; absent counts as none
//	edit FILE OLD NEW            replace every OLD; it is an error if there is none. \n in NEW is a line break
//	predict FILE ID BASE OVER    write a prediction whose patch turns BASE into BASE with OVER laid over it; OVER/.removed lists what goes
//	exits CODE ARG...            pbuild with these arguments exits with that code
//	refuses CODE ARG...          the same, and no file of the script's directory was made, changed or removed
//	pack FILE ENTRY...           write a tar.gz, and set SHA256 to its digest; see scriptPack
//	schema NAME FILE             every JSON document in FILE is as docs/schema/NAME.schema.json says
//	began [STEP=N...]            the last pbuild apply --json began exactly so many tasks of each step, and no others: test.base=2 md=1
//	rebuilt FILE                 write the program as another build of it: with another identity
//	states [STEP...]             the states that are there are those of such steps, each named as often as there are
//	outcome REPORT ID AGENT OUTCOME [REASON]    one cell of a report

func TestMain(m *testing.M) {
	host.Init()
	testscript.Main(plainRun{m}, map[string]func(){"pbuild": main})
}

// A plainRun runs the tests in an environment of their own, so that what a developer or CI has set says nothing in them, nor in what they start.
type plainRun struct{ *testing.M }

func (m plainRun) Run() int {
	home, err := os.MkdirTemp("", "pbuild-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	plain := map[string]string{
		"HOME": home, "LANG": "C.UTF-8", "TZ": "UTC", "GIT_CONFIG_NOSYSTEM": "1",
		"GORACE": "atexit_sleep_ms=0", // the race detector would sleep a second at the end of every process
	}
	for _, name := range []string{"PATH", "TMPDIR", "GORACE", "REQUIRE_PYTEST", "CRASH_SEED"} {
		if v, ok := os.LookupEnv(name); ok {
			plain[name] = v
		}
	}
	os.Clearenv()
	for name, v := range plain {
		os.Setenv(name, v)
	}
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	schemas, err := filepath.Abs("docs/schema")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PBUILD_SCRATCH", filepath.Join(e.WorkDir, ".tmp", "scratch"))
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Condition: scriptCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": scriptJSON, "ran": scriptRan, "lines": scriptLines, "edit": scriptEdit, "predict": scriptPredict, "outcome": scriptOutcome, "began": scriptBegan,
			"rebuilt": scriptRebuilt, "states": scriptStates,
			"exits": scriptExits, "refuses": scriptRefuses, "pack": scriptPack, "schema": scriptSchema(schemas),
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	code := 0
	err := ts.Exec("pbuild", args[1:]...)
	if e, ok := err.(*exec.ExitError); ok {
		code = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	got := member(ts, lastDocument(ts, ts.ReadFile(args[0])), args[1])
	if (got == args[2]) == neg {
		ts.Fatalf("%s of %s is %s", args[1], args[0], got)
	}
}

// lastDocument decodes a document, or the last of a stream of them.
func lastDocument(ts *testscript.TestScript, text string) any {
	var last any
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		last = nil
		ts.Check(d.Decode(&last))
	}
	return last
}

// member follows a path of names and indices; "len" is a length. Strings come bare, everything else as JSON.
func member(ts *testscript.TestScript, v any, path string) string {
	for _, name := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[name]; !ok {
				ts.Fatalf("there is no %s on the way of %s", name, path)
			}
		case []any:
			if name == "len" {
				v = float64(len(x))
				continue
			}
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(x) {
				ts.Fatalf("%s is no index on the way of %s", name, path)
			}
			v = x[i]
		default:
			ts.Fatalf("%s has no members on the way of %s", name, path)
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	ts.Check(err)
	return string(b)
}

var ranPattern = regexp.MustCompile(`in [0-9a-z.]+: (\d+) ran`)

func scriptRan(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: ran N")
	}
	out := ts.ReadFile("stdout")
	m := ranPattern.FindStringSubmatch(out)
	if m == nil {
		ts.Fatalf("the output holds no summary")
	}
	if m[1] != args[0] {
		ts.Fatalf("%s tasks ran, not %s", m[1], args[0])
	}
}

func scriptLines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: lines N FILE")
	}
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	if err != nil && !os.IsNotExist(err) {
		ts.Fatalf("%v", err)
	}
	if got := fmt.Sprint(strings.Count(string(b), "\n")); got != args[0] {
		ts.Fatalf("%s has %s lines, not %s:\n%s", args[1], got, args[0], b)
	}
}

func scriptEdit(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	name := ts.MkAbs(args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	if !strings.Contains(string(b), args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(name, []byte(strings.ReplaceAll(string(b), args[1], strings.ReplaceAll(args[2], `\n`, "\n"))), 0o666))
}

func scriptPredict(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 4 || neg {
		ts.Fatalf("usage: predict FILE ID BASE OVER")
	}
	file, over := ts.MkAbs(args[0]), ts.MkAbs(args[3])
	tmp, err := os.MkdirTemp(ts.Getenv("WORK"), "predict-")
	ts.Check(err)
	defer os.RemoveAll(tmp)
	ts.Check(os.CopyFS(filepath.Join(tmp, "a"), os.DirFS(ts.MkAbs(args[2]))))
	ts.Check(os.CopyFS(filepath.Join(tmp, "b"), os.DirFS(ts.MkAbs(args[2]))))
	ts.Check(layOver(filepath.Join(tmp, "b"), over))
	cmd := exec.Command("git", "diff", "--no-index", "--no-prefix", "--no-renames", "--binary", "--full-index", "a", "b")
	cmd.Dir = tmp
	patch, err := cmd.Output()
	if e, ok := err.(*exec.ExitError); err != nil && (!ok || e.ExitCode() != 1) { // 1: they differ
		ts.Fatalf("git diff: %v", err)
	}
	line, err := json.Marshal(map[string]string{"instance_id": args[1], "model_name_or_path": "script", "model_patch": string(patch)})
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o777))
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	ts.Check(err)
	_, err = f.Write(append(line, '\n'))
	ts.Check(err)
	ts.Check(f.Close())
}

// layOver copies what is in over into dir, and removes what over/.removed lists.
func layOver(dir, over string) error {
	err := filepath.WalkDir(over, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(over, path)
		if err != nil || relErr != nil || d.IsDir() || rel == ".removed" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, rel)), 0o777); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, rel), b, fi.Mode().Perm())
	})
	if err != nil {
		return err
	}
	removed, err := os.ReadFile(filepath.Join(over, ".removed"))
	if err != nil {
		return nil // nothing is
	}
	for name := range strings.FieldsSeq(string(removed)) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func scriptOutcome(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 4 || len(args) > 5 || neg {
		ts.Fatalf("usage: outcome REPORT ID AGENT OUTCOME [REASON]")
	}
	ts.Check(ts.Exec("pbuild", "report", args[0], "--json"))
	var doc struct {
		Rows []struct{ Instance, Agent, Outcome, Reason string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc))
	for _, r := range doc.Rows {
		if r.Instance != args[1] || r.Agent != args[2] {
			continue
		}
		got := []string{r.Outcome}
		if len(args) == 5 {
			got = append(got, r.Reason)
		}
		if !slices.Equal(got, args[3:]) {
			ts.Fatalf("%s by %s ends as %s (%s), not %s", args[1], args[2], r.Outcome, r.Reason, strings.Join(args[3:], " "))
		}
		return
	}
	ts.Fatalf("%s has no row of %s by %s", args[0], args[1], args[2])
}

// step is what an address ends with, without the attempt's number: "test.base" of gate.go["x"]/test.base.0. Of a task without steps it is its block.
func step(address string) string {
	at := strings.LastIndex(address, "]") + 1
	if i := strings.LastIndex(address[at:], "/"); i >= 0 {
		return strings.TrimRight(address[at+i+1:], ".0123456789")
	}
	name, _, _ := strings.Cut(address, "[")
	return name
}

func scriptBegan(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: began [STEP=N...]")
	}
	count := map[string]int{}
	var all []string
	summary := false
	for d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout"))); d.More(); {
		var e struct {
			Type, Address string
			Attempt       int
		}
		ts.Check(d.Decode(&e))
		summary = summary || e.Type == "summary"
		if e.Type == "start" && e.Attempt == 1 {
			count[step(e.Address)]++
			all = append(all, e.Address)
		}
	}
	if !summary {
		ts.Fatalf("the output is no event stream that came to its end")
	}
	var got []string
	for name, n := range count {
		got = append(got, fmt.Sprintf("%s=%d", name, n))
	}
	slices.Sort(got)
	slices.Sort(args)
	if !slices.Equal(got, args) {
		slices.Sort(all)
		ts.Fatalf("began %s, not %s:\n%s", strings.Join(got, " "), strings.Join(args, " "), strings.Join(all, "\n"))
	}
}

func scriptRebuilt(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: rebuilt FILE")
	}
	self, err := os.Executable()
	ts.Check(err)
	b, err := os.ReadFile(self)
	ts.Check(err)
	if i := bytes.Index(b, []byte(cli.Identity())); i >= 0 {
		b[i] ^= 1
	} else { // test programs may have none, and are known by their size
		b = append(b, 0)
	}
	name := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o777))
	syscall.ForkLock.RLock() // a child of another script would hold the file open for writing, and it could not be run
	defer syscall.ForkLock.RUnlock()
	ts.Check(os.WriteFile(name, b, 0o777))
}

func scriptStates(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: states [STEP...]")
	}
	entries, err := os.ReadDir(ts.MkAbs(".pbuild/states"))
	if err != nil && !os.IsNotExist(err) {
		ts.Fatalf("%v", err)
	}
	st, err := store.Open(ts.MkAbs(".pbuild"))
	ts.Check(err)
	defer st.Close()
	var got []string
	for _, e := range entries {
		key, err := hex.DecodeString(e.Name())
		if err != nil || len(key) != len(task.Key{}) {
			continue // layers, checkouts
		}
		if r := st.Lookup(task.Key(key)); r != nil {
			got = append(got, r.Kind)
		} else {
			got = append(got, "unrecorded")
		}
	}
	slices.Sort(got)
	slices.Sort(args)
	if !slices.Equal(got, args) {
		ts.Fatalf("there are states of %q, not of %q", got, args)
	}
}
