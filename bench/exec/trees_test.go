package exec

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pbuild/bench/kind"
	"pbuild/bench/verdict"
	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// memory is a content store for tests.
type memory struct {
	mu sync.Mutex
	m  map[digest.Digest][]byte
}

func (s *memory) Put(b []byte) (digest.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[digest.Digest][]byte{}
	}
	s.m[digest.Of(b)] = bytes.Clone(b)
	return digest.Of(b), nil
}

func (s *memory) PutFrom(r io.Reader) (digest.Digest, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	d, err := s.Put(b)
	return d, int64(len(b)), err
}

func (s *memory) Get(d digest.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.m[d]
	if !ok {
		return nil, fmt.Errorf("blob %s is not there", d)
	}
	return b, nil
}

func (s *memory) Open(d digest.Digest) (io.ReadCloser, error) {
	b, err := s.Get(d)
	return io.NopCloser(bytes.NewReader(b)), err
}

// A bench is a repository and a store, with the executors over them.
type bench struct {
	t     testing.TB
	repo  *tree.Repo
	blobs *memory
}

func newBench(t testing.TB) *bench {
	t.Helper()
	repo, err := tree.Open(context.Background(), filepath.Join(t.TempDir(), "trees.git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return &bench{t, repo, new(memory)}
}

var emptyTree, _ = digest.OfGit("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// tree makes a tree of regular files, content by path.
func (b *bench) tree(files map[string]string) digest.Digest {
	b.t.Helper()
	var edits []tree.Edit
	for p, c := range files {
		edits = append(edits, tree.Edit{Path: p, Mode: 0o644, Content: []byte(c)})
	}
	return b.edit(emptyTree, edits...)
}

func (b *bench) edit(base digest.Digest, edits ...tree.Edit) digest.Digest {
	b.t.Helper()
	id, err := b.repo.Edit(context.Background(), base, edits)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *bench) blob(content string) digest.Digest {
	d, err := b.blobs.Put([]byte(content))
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

func (b *bench) files(id digest.Digest) map[string]string {
	b.t.Helper()
	entries, err := b.repo.Entries(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		c, err := b.repo.Read(context.Background(), e.Blob)
		if err != nil {
			b.t.Fatal(err)
		}
		out[e.Path] = string(c)
	}
	return out
}

func input(role string, d digest.Digest) task.Input {
	return task.Input{Dep: task.Dep{Role: role}, Digest: d, Status: task.OK}
}

func (b *bench) run(e task.Executor, spec task.Spec, inputs ...task.Input) task.Outcome {
	b.t.Helper()
	out, err := e.Run(context.Background(), &task.Attempt{Task: &task.Task{Spec: spec}, Number: 1, Inputs: inputs})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// text is the content of an output that is a blob.
func (b *bench) text(o task.Outcome, role string) string {
	b.t.Helper()
	out, ok := o.Find(role)
	if !ok {
		b.t.Fatalf("no output %s in %+v", role, o)
	}
	c, err := b.blobs.Get(out.Digest)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(c)
}

func (b *bench) patches(spec *kind.PatchesSpec, inputs ...task.Input) task.Outcome {
	b.t.Helper()
	return b.run(Patches(b.repo, b.blobs), spec, inputs...)
}

func data(s string) kind.Data {
	return kind.Data{Digest: digest.Of([]byte(s)), Bytes: []byte(s)}
}

func TestSourceDir(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	for p, c := range map[string]string{"a": "a\r\n", ".gitignore": "*.log\n", "x.log": "x", "skip/y": "y"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), []byte(c), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := tree.DirFiles(dir, []string{"skip"})
	if err != nil {
		t.Fatal(err)
	}
	var files []task.FileInput
	for _, e := range listed {
		files = append(files, task.FileInput{Path: e.Path, Mode: e.Mode, Digest: e.Blob})
	}
	spec := &kind.SourceDir{Files: files, Ignore: []string{"skip"}, Path: dir}
	out := b.run(Source(b.repo, ""), spec)
	got, ok := out.Find(kind.Tree)
	if out.Status != task.OK || !ok {
		t.Fatalf("got %+v", out)
	}
	if diff := cmp.Diff(map[string]string{"a": "a\r\n", ".gitignore": "*.log\n"}, b.files(got.Digest)); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := b.run(Source(b.repo, ""), spec); out.Status != task.Failed || out.Record || !strings.Contains(out.Reason, "plan again") {
		t.Errorf("a file changed after the plan: %+v", out)
	}
}

func TestSourceGitAndArchive(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `git init -q && echo a >a && git add a && git -c user.name=a -c user.email=a@example.com commit -q -m a && git rev-parse HEAD && git archive -o a.tar HEAD`)
	cmd.Dir = dir
	id, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	tarball, err := os.ReadFile(filepath.Join(dir, "a.tar"))
	if err != nil {
		t.Fatal(err)
	}
	want := b.tree(map[string]string{"a": "a\n"})
	for _, spec := range []task.Spec{
		&kind.SourceGit{URL: dir, Commit: strings.TrimSpace(string(id))},
		&kind.SourceGit{URL: "../" + filepath.Base(dir), Commit: strings.TrimSpace(string(id))},
		&kind.SourceArchive{Path: filepath.Join(dir, "a.tar"), SHA256: fmt.Sprintf("%x", sha256.Sum256(tarball))},
	} {
		out := b.run(Source(b.repo, dir), spec)
		if got, _ := out.Find(kind.Tree); got.Digest != want {
			t.Errorf("%T: got %+v", spec, out)
		}
	}
	for spec, says := range map[task.Spec]string{
		&kind.SourceGit{URL: dir, Commit: "main"}:                                                          "main",
		&kind.SourceArchive{Path: filepath.Join(dir, "a.tar"), SHA256: strings.Repeat("0", 64)}:            "sha256",
		&kind.SourceGoMod{Path: "example.com/x", Version: "latest"}:                                        "latest",
		&kind.SourceGit{URL: dir, Commit: strings.TrimSpace(string(id)), Subdir: "none", Submodules: true}: "none",
	} {
		if out := b.run(Source(b.repo, ""), spec); out.Status != task.Failed || out.Record || !strings.Contains(out.Reason, says) {
			t.Errorf("%T: got %+v", spec, out)
		}
	}
	a := &task.Attempt{Task: &task.Task{Spec: &kind.SourceGit{URL: "http://127.0.0.1:1/x", Commit: strings.Repeat("a", 40)}}}
	if _, err := Source(b.repo, "").Run(context.Background(), a); err == nil {
		t.Error("a server that does not answer is no error")
	}
}

func TestPatchesDerived(t *testing.T) {
	b := newBench(t)
	base := b.tree(map[string]string{"a.go": "a\n", "a_test.go": "t\n", "stale_test.go": "s\n", "testdata/x": "x\n", "README.md": "r\n", "go.sum": "s\n"})
	fix := b.tree(map[string]string{"a.go": "A\n", "new.go": "n\n", "a_test.go": "T\n", "testdata/x": "X\r\n", "cases.yaml": "c\n", "README.md": "R\n", "go.sum": "S\n"})
	spec := &kind.PatchesSpec{TestFiles: []string{"**/*_test.go", "**/testdata/**"}, TestData: []string{"cases.yaml"}}
	out := b.patches(spec, input("base", base), input("fix", fix))
	if out.Status != task.OK || !out.Has("patched") || out.Outcome != "" {
		t.Fatalf("got %+v", out)
	}
	if got := b.text(out, kind.GoldPaths); got != `{"production":["a.go","new.go"],"all":["README.md","a.go","go.sum","new.go"]}` {
		t.Errorf("gold_paths: %s", got)
	}
	if got := b.text(out, kind.TestPaths); got != `["a_test.go","cases.yaml","stale_test.go","testdata/x"]` {
		t.Errorf("test_paths: %s", got)
	}
	baseTest, _ := out.Find(kind.BaseTestTree)
	if diff := cmp.Diff(map[string]string{"a.go": "a\n", "a_test.go": "T\n", "testdata/x": "X\r\n", "cases.yaml": "c\n", "README.md": "r\n", "go.sum": "s\n"}, b.files(baseTest.Digest)); diff != "" {
		t.Errorf("base_test: %s", diff)
	}
	goldTest, _ := out.Find(kind.GoldTestTree)
	if goldTest.Digest != fix {
		t.Error("gold_test is not the fix")
	}
	// The same patches, given as bytes, make the same trees.
	given := b.patches(&kind.PatchesSpec{Gold: data(b.text(out, kind.GoldPatch)), Test: data(b.text(out, kind.TestPatch))}, input("base", base))
	for _, role := range []string{kind.BaseTestTree, kind.GoldTree, kind.GoldTestTree, kind.GoldPatch, kind.TestPatch, kind.TestPaths, kind.GoldPaths} {
		if a, b := out.Digest(role), given.Digest(role); a != b || a.IsZero() {
			t.Errorf("%s: derived %s, given %s", role, a, b)
		}
	}
}

func TestPatchesFailed(t *testing.T) {
	b := newBench(t)
	base := b.tree(map[string]string{"a.go": "a\n", "a_test.go": "t\n"})
	change := func(file, from, to string) kind.Data {
		return data(fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%[2]s\n+%[3]s\n", file, from, to))
	}
	isTest := []string{"*_test.go"}
	for _, c := range []struct {
		name string
		spec *kind.PatchesSpec
		fix  map[string]string
		says string
	}{
		{"gold does not apply", &kind.PatchesSpec{Gold: change("a.go", "x", "y"), Test: change("a_test.go", "t", "T")}, nil, "gold patch does not apply to base: patch failed: a.go:1"},
		{"test does not apply", &kind.PatchesSpec{Gold: change("a.go", "a", "A"), Test: change("a_test.go", "x", "T")}, nil, "test patch does not apply to base: patch failed: a_test.go:1"},
		{"test not over gold", &kind.PatchesSpec{Gold: change("a.go", "a", "A"), Test: change("a.go", "a", "T")}, nil, "test patch does not apply over the gold patch"},
		{"one file in both", &kind.PatchesSpec{Gold: data("diff --git a/a.go b/a.go\nold mode 100644\nnew mode 100755\n"), Test: change("a.go", "a", "T")}, nil, "a.go is in both patches"},
		{"garbage", &kind.PatchesSpec{Gold: data("not a patch"), Test: change("a_test.go", "t", "T")}, nil, "No valid patches"},
		{"empty gold", &kind.PatchesSpec{Gold: data(" \n"), Test: change("a_test.go", "t", "T")}, nil, "gold patch is empty"},
		{"no test", &kind.PatchesSpec{Gold: change("a.go", "a", "A")}, nil, "test patch is empty"},
		{"only tests", &kind.PatchesSpec{TestFiles: isTest}, map[string]string{"a.go": "a\n", "a_test.go": "T\n"}, "test_files matches all that differs between base and fix (a_test.go)"},
		{"only production", &kind.PatchesSpec{TestFiles: isTest}, map[string]string{"a.go": "A\n", "a_test.go": "t\n"}, "test_files matches nothing of what differs between base and fix (a.go)"},
		{"parts clash", &kind.PatchesSpec{TestFiles: []string{"a_test.go/x"}}, map[string]string{"a.go": "a\n", "a_test.go/x": "T\n"}, "a_test.go"},
		{"bad glob", &kind.PatchesSpec{TestFiles: []string{"[a"}}, map[string]string{"a.go": "A\n"}, `"[a" is not a glob`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inputs := []task.Input{input("base", base)}
			if c.fix != nil {
				inputs = append(inputs, input("fix", b.tree(c.fix)))
			}
			out := b.patches(c.spec, inputs...)
			if out.Status != task.Failed || !out.Record || out.Outcome != "patch_failed" || len(out.Facts) != 0 || len(out.Outputs) != 0 || !strings.Contains(out.Reason, c.says) {
				t.Errorf("got %+v", out)
			}
		})
	}
}

func TestProductionPaths(t *testing.T) {
	for _, c := range []struct{ all, production string }{
		{"a.py PKG-INFO src/x.egg-info/SOURCES.txt poetry.lock CHANGELOG.md CHANGES docs/conf.py README.rst", "a.py"},
		{"sub/Cargo.lock src/lib.rs LICENSE.txt requirements.txt", "requirements.txt src/lib.rs"},
		{"README.md docs/a.txt", "README.md docs/a.txt"},
		{"a.go a_test.go", "a.go"},
		{"a.py __pycache__/a.cpython-311.pyc", "a.py"},
		{"dist/a.js dist/a.min.js lib/a.js lib/a.min.js", "lib/a.js"},
		{"dist/a.js dist/a.min.js", "dist/a.js dist/a.min.js"},
		{"a.go internal/testutil/run.go", "a.go internal/testutil/run.go"}, // a helper by use, not by name
	} {
		p := patches{spec: &kind.PatchesSpec{TestFiles: []string{"**/*_test.go"}}, goldPaths: strings.Fields(c.all)}
		slices.Sort(p.goldPaths)
		if got := strings.Join(p.production(), " "); got != c.production {
			t.Errorf("of %s: got %s, want %s", c.all, got, c.production)
		}
	}
}

func (b *bench) extract(base digest.Digest, sample task.Outcome) task.Outcome {
	b.t.Helper()
	in := input("sample", digest.Digest{})
	in.Record = &task.Record{Outcome: sample}
	return b.run(Extract(b.repo, b.blobs), &kind.ExtractSpec{}, input("base", base), in)
}

func TestExtract(t *testing.T) {
	b := newBench(t)
	base := b.tree(map[string]string{"a": "a\n", "b": "b\n"})
	want := b.tree(map[string]string{"a": "A\n", "b": "b\n"})
	good := "some words\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+A\n"
	patch := func(s string) []task.Output { return []task.Output{{Role: kind.Patch, Digest: b.blob(s)}} }
	for _, c := range []struct {
		name    string
		sample  task.Outcome
		outcome string
		facts   string
		says    string
	}{
		{"patch", task.Outcome{Outputs: patch(good)}, "", "nonempty applies", ""},
		{"tree", task.Outcome{Outputs: []task.Output{{Role: kind.Tree, Digest: want}}}, "", "nonempty applies", ""},
		{"same tree", task.Outcome{Outputs: []task.Output{{Role: kind.Tree, Digest: base}}}, "empty", "", ""},
		{"empty patch", task.Outcome{Outputs: patch("")}, "empty", "", ""},
		{"blank patch", task.Outcome{Outputs: patch(" \n\t\r\n")}, "empty", "", ""},
		{"nothing", task.Outcome{}, "empty", "", ""},
		{"garbage", task.Outcome{Outputs: patch("I am done.")}, "does_not_apply", "nonempty", "No valid patches"},
		{"other base", task.Outcome{Outputs: patch(strings.Replace(good, "-a", "-x", 1))}, "does_not_apply", "nonempty", "patch failed: a:1"},
		{"hostile", task.Outcome{Outputs: patch("--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n")}, "does_not_apply", "nonempty", "../x"},
		{"missing", task.Outcome{Outcome: "missing", Reason: "predictions.json has no such instance"}, "missing", "", "no such instance"},
		{"limit, with a patch", task.Outcome{Outcome: "step_limit", Outputs: patch(good)}, "step_limit", "nonempty applies", ""},
		{"limit, with nothing", task.Outcome{Outcome: "cost_limit", Reason: "3.01 USD"}, "cost_limit", "", "3.01 USD"},
		{"crash, with garbage", task.Outcome{Outcome: "agent_crash", Outputs: patch("x")}, "agent_crash", "nonempty", "No valid patches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := b.extract(base, c.sample)
			if out.Status != task.OK || out.Outcome != c.outcome || strings.Join(out.Facts, " ") != c.facts || !strings.Contains(out.Reason, c.says) {
				t.Errorf("got %+v", out)
			}
			if !out.Has("applies") {
				if len(out.Outputs) != 0 {
					t.Errorf("outputs %+v", out.Outputs)
				}
				return
			}
			if got, _ := out.Find(kind.Tree); got.Digest != want {
				t.Errorf("got tree %q", b.files(got.Digest))
			}
			if got := b.text(out, kind.Patch); !strings.HasPrefix(got, "diff --git a/a b/a\n") {
				t.Errorf("the patch is not written anew: %q", got)
			}
		})
	}
}

// compose runs a compose over what patches made.
func (b *bench) compose(p task.Outcome, base, candidate digest.Digest, protect []string) (task.Outcome, composed) {
	b.t.Helper()
	out := b.run(Compose(b.repo, b.blobs), &kind.ComposeSpec{Protect: protect},
		input("base", base), input("candidate", candidate), input(kind.BaseTestTree, p.Digest(kind.BaseTestTree)),
		input(kind.TestPaths, p.Digest(kind.TestPaths)), input(kind.GoldPaths, p.Digest(kind.GoldPaths)))
	var did composed
	if out.Status == task.OK {
		if err := get(b.blobs, out.Digest(kind.Composed), &did); err != nil {
			b.t.Fatal(err)
		}
	}
	return out, did
}

var protectGo = []string{"**/*_test.go", "**/testdata/**", "go.work*", "~vendor/**"}

func TestCompose(t *testing.T) {
	b := newBench(t)
	base := b.tree(map[string]string{"a.go": "a\n", "a_test.go": "t\n", "b_test.go": "b\n", "old_test.go": "o\n", "testdata/x": "x\n", "helper_test.go": "h\n", "p/q_test.go": "q\n"})
	fix := b.tree(map[string]string{"a.go": "A\n", "a_test.go": "T\n", "b_test.go": "b\n", "testdata/x": "x\n", "helper_test.go": "H\n", "p/q_test.go": "q\n"})
	p := b.patches(&kind.PatchesSpec{TestFiles: []string{"a_test.go", "old_test.go"}}, input("base", base), input("fix", fix))
	put := func(path, content string) tree.Edit {
		return tree.Edit{Path: path, Mode: 0o644, Content: []byte(content)}
	}
	gold := p.Digest(kind.GoldTree)
	for _, c := range []struct {
		name    string
		edits   []tree.Edit // over gold
		want    map[string]string
		reset   string
		flagged bool
	}{
		{"oracle", nil, nil, "a_test.go old_test.go", false},
		{"an edited test", []tree.Edit{put("b_test.go", "skip\n")}, nil, "a_test.go b_test.go old_test.go", true},
		{"a deleted test", []tree.Edit{{Path: "b_test.go"}}, nil, "a_test.go b_test.go old_test.go", true},
		{"an added test", []tree.Edit{put("sub/z_test.go", "z\n")}, nil, "a_test.go old_test.go sub/z_test.go", true},
		{"a hidden test guessed", []tree.Edit{put("a_test.go", "mine\n")}, nil, "a_test.go old_test.go", true},
		{"the hidden tests had", []tree.Edit{put("a_test.go", "T\n"), {Path: "old_test.go"}}, nil, "", true},
		{"go.work", []tree.Edit{put("go.work", "x\n"), put("vendor/m/x.go", "x\n")}, nil, "a_test.go go.work old_test.go vendor/m/x.go", true},
		{"a directory in a test's place", []tree.Edit{{Path: "b_test.go"}, put("b_test.go/x", "x\n")}, nil, "a_test.go b_test.go old_test.go", true},
		{"a link in a directory's place", []tree.Edit{{Path: "p", Mode: 0o120000, Content: []byte("q")}}, nil, "a_test.go old_test.go p p/q_test.go", true},
		{"mode of a test", []tree.Edit{{Path: "b_test.go", Mode: 0o755, Content: []byte("b\n")}}, nil, "a_test.go b_test.go old_test.go", true},
		{"what gold changes is free", []tree.Edit{put("helper_test.go", "other\n")}, map[string]string{"a.go": "A\n", "a_test.go": "T\n", "b_test.go": "b\n", "testdata/x": "x\n", "helper_test.go": "other\n", "p/q_test.go": "q\n"}, "a_test.go old_test.go", false},
		{"production is free", []tree.Edit{put("new.go", "n\n")}, map[string]string{"a.go": "A\n", "new.go": "n\n", "a_test.go": "T\n", "b_test.go": "b\n", "testdata/x": "x\n", "helper_test.go": "H\n", "p/q_test.go": "q\n"}, "a_test.go old_test.go", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, did := b.compose(p, base, b.edit(gold, c.edits...), protectGo)
			want := p.Digest(kind.GoldTestTree)
			if c.want != nil {
				want = b.tree(c.want)
			}
			if got := out.Digest(kind.Tree); got != want {
				t.Errorf("composed %q", b.files(got))
			}
			if strings.Join(did.Reset, " ") != c.reset || strings.Join(did.Exempt, " ") != "helper_test.go" {
				t.Errorf("did %+v, want reset %s", did, c.reset)
			}
			if slices.Contains(out.Flags, "reset_protected") != c.flagged {
				t.Errorf("flags %v", out.Flags)
			}
		})
	}
	if out, _ := b.compose(p, base, gold, []string{"[a"}); out.Status != task.Failed || !strings.Contains(out.Reason, "[a") {
		t.Errorf("a bad glob: %+v", out)
	}
}

// Where base has a vendor directory, ~vendor/** protects nothing.
func TestComposeConditionalGlob(t *testing.T) {
	b := newBench(t)
	base := b.tree(map[string]string{"a.go": "a\n", "a_test.go": "t\n", "vendor/m.go": "m\n"})
	fix := b.tree(map[string]string{"a.go": "A\n", "a_test.go": "T\n", "vendor/m.go": "m\n"})
	p := b.patches(&kind.PatchesSpec{TestFiles: []string{"*_test.go"}}, input("base", base), input("fix", fix))
	candidate := b.edit(p.Digest(kind.GoldTree), tree.Edit{Path: "vendor/m.go", Mode: 0o644, Content: []byte("M\n")})
	out, _ := b.compose(p, base, candidate, protectGo)
	if got := b.files(out.Digest(kind.Tree)); got["vendor/m.go"] != "M\n" || len(out.Flags) != 0 {
		t.Errorf("got %q, flags %v", got, out.Flags)
	}
}

// The oracle's composed tree is gold_test, however a fix is parted; and composing again changes nothing.
func TestComposeOracle(t *testing.T) {
	b := newBench(t)
	names := []string{"a.go", "a_test.go", "p/b.go", "p/b_test.go", "testdata/x", "p/testdata/y/z", "go.work", "vendor/v.go", "cases.yaml"}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) map[string]string {
			m := map[string]string{"keep.go": "k\n"}
			for _, n := range names {
				if c := rapid.SampledFrom([]string{"", "1\n", "2\r\n", "\x00"}).Draw(rt, label+" "+n); c != "" {
					m[n] = c
				}
			}
			return m
		}
		base, fix := b.tree(draw("base")), b.tree(draw("fix"))
		p := b.patches(&kind.PatchesSpec{TestFiles: []string{"**/*_test.go"}, TestData: []string{"cases.yaml"}}, input("base", base), input("fix", fix))
		if p.Outcome == string(verdict.PatchFailed) {
			return
		}
		out, did := b.compose(p, base, p.Digest(kind.GoldTree), protectGo)
		if got := out.Digest(kind.Tree); got != p.Digest(kind.GoldTestTree) {
			rt.Fatalf("composed %q, want %q (%+v)", b.files(got), b.files(p.Digest(kind.GoldTestTree)), did)
		}
		if len(out.Flags) != 0 {
			rt.Fatalf("the oracle is flagged: %v %+v", out.Flags, did)
		}
		again, did := b.compose(p, base, out.Digest(kind.Tree), protectGo)
		if again.Digest(kind.Tree) != out.Digest(kind.Tree) || len(did.Reset) != 0 {
			rt.Fatalf("again: %+v", did)
		}
	})
}
