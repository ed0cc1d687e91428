package kind

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pbuild/engine/digest"
	"pbuild/engine/task"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files anew")

// specs is a filled spec of every sort; a field that is zero here is found by TestEveryFieldIsFilled.
func specs() map[string]task.Spec {
	d := func(s string) digest.Digest { return digest.Of([]byte(s)) }
	data := func(s string) Data { return Data{Digest: d(s), Bytes: []byte(s)} }
	files := []task.FileInput{{Path: "a/b", Mode: 0o644, Digest: d("b")}}
	secrets := func(string) string { return "" }
	rt := Runtime{Host: true, Identity: d("go1"), Platform: "linux/amd64", Adaptation: []string{"qemu"}, Workdir: "/w", User: "u", Path: "/bin", Paths: []string{"/opt"}, Name: "runtime.go"}
	cmd := Command{Argv: []string{"go", "test"}, Cwd: "sub", Env: map[string]string{"A": "1"}, PassEnv: []string{"B"}, SecretEnv: map[string]string{"C": "key"},
		Network: true, Timeout: time.Minute, IdleTimeout: time.Second, CPUs: 1.5, Memory: 1 << 20, Pids: 7, OutputLimit: 1 << 10, Secrets: secrets}
	state := func(k *task.Kind) *StateSpec {
		return &StateSpec{Of: k, Runtime: rt, Command: cmd, Keep: []string{".cache"}, Watch: []string{"node_modules/**"}}
	}
	return map[string]task.Spec{
		"source git":      &SourceGit{Commit: "c0", Subdir: "s", Submodules: true, URL: "u"},
		"source gomod":    &SourceGoMod{Path: "example.org/m", Version: "v1", Sum: "h1:x"},
		"source archive":  &SourceArchive{SHA256: "00", Strip: 1, URL: "u", Path: "/p"},
		"source dir":      &SourceDir{Files: files, Ignore: []string{"x"}, Path: "/p"},
		"patches":         &PatchesSpec{TestFiles: []string{"*_test.go"}, TestData: []string{"data/**"}, Gold: data("gold"), Test: data("test")},
		"image":           &ImageSpec{Ref: "r", Dockerfile: d("df"), Context: files, Args: map[string]string{"A": "1"}, Target: "t", Platform: "linux/amd64", Bases: []string{"b"}, Secrets: []string{"s"}, Dir: "/d"},
		"runtime.prepare": state(RuntimePrepare),
		"fetch":           state(Fetch),
		"prepare":         state(Prepare),
		"fetch.gold":      state(FetchGold),
		"build":           state(Build),
		"test":            &TestSpec{Runtime: rt, Command: cmd, Reports: []string{"r.xml"}, Protect: []string{"*_test.go"}, Watch: []string{"venv/bin/**"}, Attempt: 1},
		"score":           &ScoreSpec{Format: "gotest", FailToPass: []string{"A"}, PassToPass: []string{"B"}, Derive: true, Parser: 1, Command: []string{"go"}, Cwd: "sub"},
		"verdict": &VerdictSpec{Format: "gotest", FailToPass: []string{"A"}, PassToPass: []string{"B"}, States: []string{"base"}, Attempts: 1, Quorum: "all",
			CompileFailure: "reject", Strict: true, Command: d("command"), Environment: d("environment"), OnReject: "error"},
		"sample": &SampleSpec{Agent: "command", Version: "1", Config: d("c"), Prompt: data("p"), Prediction: data("x"), Statement: data("s"), Command: cmd, Runtime: rt,
			StepLimit: 1, CostLimit: 0.5, WallLimit: time.Hour, OnLimit: "stop", Index: 1, Draw: 1, AllowUnsealed: true,
			Model: ModelSpec{Provider: "p", ID: "i", Revision: "r", EndpointClass: "e", Sampling: "{}"}},
		"extract":   &ExtractSpec{Options: []string{"o"}},
		"compose":   &ComposeSpec{Protect: []string{"*_test.go"}},
		"outcome":   &OutcomeSpec{HasBuild: true, Attempts: 1},
		"handshake": &HandshakeSpec{Probe: []string{"go"}, Platform: "linux/amd64", Adaptation: []string{"qemu"}, Node: "n"},
		"report": &ReportSpec{Format: "md", Gated: true, Columns: []string{"c"}, By: []string{"b"}, Filter: "f", Renderer: 1, Name: "r", Of: "matrix.m", File: "r.md",
			Cells: []Cell{{Instance: "i", Agent: "a", Model: "m", Sample: 1, Outcome: "0", Gate: "gate 0", Address: "x", Provenance: map[string]string{"origin": "o"}, Admits: []string{"gate.g"}}}},
		"task": &TaskSpec{Argv: []string{"cp"}, Env: map[string]string{"A": "1"}, SecretEnv: map[string]string{"C": "key"}, PassEnv: []string{"B"}, Runtime: rt,
			Outputs: []string{"o"}, Sandbox: true, Timeout: time.Minute, Secrets: secrets},
	}
}

func names() []string {
	var list []string
	for n := range specs() {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func key(s task.Spec) task.Key {
	var e digest.Encoder
	return task.EncodeKey(&e, s, "", nil, nil)
}

// fields visits every field of a struct, those of nested structs and of elements included, and says whether it is in the key.
func fields(v reflect.Value, path string, keyed bool, visit func(path string, v reflect.Value, keyed bool)) {
	for i := range v.NumField() {
		f, sf := v.Field(i), v.Type().Field(i)
		here, in := path+"."+sf.Name, keyed && sf.Tag.Get("key") != "-"
		switch {
		case f.Type() == reflect.TypeFor[digest.Digest]():
			visit(here, f, in)
		case f.Kind() == reflect.Struct:
			fields(f, here, in, visit)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			if f.Len() == 0 {
				visit(here, f, in)
			} else {
				fields(f.Index(0), here+"[0]", in, visit)
			}
		default:
			visit(here, f, in)
		}
	}
}

// change gives a field another value of its type.
func change(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "'")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(v.Uint() + 1)
	case reflect.Float64:
		v.SetFloat(v.Float() + 1)
	case reflect.Slice:
		more := reflect.New(v.Type().Elem()).Elem()
		if !change(more) {
			return false
		}
		v.Set(reflect.Append(v, more))
	case reflect.Map:
		v.SetMapIndex(reflect.ValueOf("more"), reflect.ValueOf("x"))
	case reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	case reflect.Func:
		v.SetZero()
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		return false
	}
	return true
}

func TestEveryFieldIsFilled(t *testing.T) {
	for name, s := range specs() {
		fields(reflect.ValueOf(s).Elem(), name, true, func(path string, v reflect.Value, _ bool) {
			if v.IsZero() {
				t.Errorf("%s is zero in the test's spec", path)
			}
		})
	}
}

// TestKeyedFields changes one field after the other: the key must change with it, unless the field is tagged `key:"-"`.
func TestKeyedFields(t *testing.T) {
	for _, name := range names() {
		var paths []string
		fields(reflect.ValueOf(specs()[name]).Elem(), name, true, func(path string, _ reflect.Value, _ bool) { paths = append(paths, path) })
		for _, want := range paths {
			s := specs()[name]
			before := key(s)
			fields(reflect.ValueOf(s).Elem(), name, true, func(path string, v reflect.Value, keyed bool) {
				if path != want || strings.HasSuffix(path, ".Of") && !keyed && v.Kind() == reflect.Pointer {
					return // Of is the kind, which every key holds apart from the spec
				}
				if !change(v) {
					t.Fatalf("%s: a field of kind %s cannot be changed", path, v.Kind())
				}
				switch after := key(s); {
				case keyed && after == before:
					t.Errorf("%s is not in the key", path)
				case !keyed && after != before:
					t.Errorf("%s is tagged `key:\"-\"`, but is in the key", path)
				}
			})
		}
	}
}

func TestUnorderedFieldsIgnoreOrder(t *testing.T) {
	a := &ScoreSpec{FailToPass: []string{"A", "B", "B"}, PassToPass: []string{"C", "D"}}
	b := &ScoreSpec{FailToPass: []string{"B", "A"}, PassToPass: []string{"D", "C"}}
	if key(a) != key(b) {
		t.Error("the order of expected ids changes the key")
	}
}

// One key of each sort is pinned. It changes only together with a kind's version or the schema of keys.
func TestGoldenKeys(t *testing.T) {
	var b strings.Builder
	for _, name := range names() {
		s := specs()[name]
		fmt.Fprintf(&b, "%s v%d %s\n", name, s.Kind().Version, key(s))
	}
	const file = "testdata/keys.golden"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("keys changed; raise the kind's version, then -update:\n%s", diff)
	}
}

func TestSampleKinds(t *testing.T) {
	for agent, want := range map[string]*task.Kind{"oracle": SamplePure, "nop": SamplePure, "predictions": SamplePure, "command": Sample, "llm": Sample} {
		if got := (&SampleSpec{Agent: agent}).Kind(); got != want {
			t.Errorf("%s: pure %t, frozen %t", agent, got.Pure, got.Frozen)
		}
	}
}
