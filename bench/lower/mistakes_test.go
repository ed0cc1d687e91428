package lower

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"

	"github.com/google/go-cmp/cmp"
)

// with is the small workspace after an edit, keyed by block address.
func with(edit map[string]attrs, more ...*decl.Block) (*decl.Workspace, *host) {
	ws, h := small()
	for address, as := range edit {
		typ, name, _ := strings.Cut(address, ".")
		b := ws.Find(typ, name)
		for n, v := range as {
			if v == nil {
				delete(b.Attrs, n)
				continue
			}
			e, ok := v.(decl.Expr)
			if !ok {
				e = value{v}
			}
			b.Attrs[n] = &decl.Attr{Name: n, Range: b.Range, Expr: e}
		}
	}
	ws.Blocks = append(ws.Blocks, more...)
	slices.SortStableFunc(ws.Blocks, func(a, b *decl.Block) int { return strings.Compare(a.Address(), b.Address()) })
	return ws, h
}

// outside is an instance whose test and build have more attributes.
func outside(test, build attrs) *decl.Block {
	with := func(typ string, more attrs) *decl.Block {
		as := attrs{"command": []string{"true"}}
		maps.Copy(as, more)
		return block(typ, "", as)
	}
	return block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g"), "test_patch": text("t")},
		block("source", "", nil, block("dir", "", attrs{"path": "src"})), with("build", build), with("test", test))
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		edit       map[string]attrs
		more       []*decl.Block
	}{
		{"no probe", "Host runtime without a probe", map[string]attrs{"runtime.go": {"probe": nil}}, nil},
		{"probe fails", "The probe of runtime.go: exit status 1", map[string]attrs{"runtime.go": {"probe": []string{"false"}}}, nil},
		{"platform", "runtime.go is for linux/amd64, not for linux/arm64", map[string]attrs{"instance.go": {"platform": "linux/arm64"}}, nil},
		{"user on the host", "user is for runtimes with an image", map[string]attrs{"runtime.go": {"user": "nobody"}}, nil},
		{"workdir on the host", "workdir is for runtimes with an image", map[string]attrs{"runtime.go": {"workdir": "/w"}}, nil},
		{"platform of another machine", "which is linux/amd64 and none of plan9/arm", map[string]attrs{"runtime.go": {"platforms": []string{"plan9/arm"}}}, nil},
		{"no state", "gate.go would run no test", map[string]attrs{"gate.go": {"states": []string{}}}, nil},
		{"nothing to derive lists from", "has neither fail_to_pass nor pass_to_pass, and it takes both states", map[string]attrs{"gate.go": {"states": []string{"gold"}}, "instance.go": {"fail_to_pass": nil, "pass_to_pass": nil}}, nil},
		{"no tests", "instance.go[\"a\"] has `fix` or `oracle` and no `test_files`", map[string]attrs{"instance.go": {"test_files": nil}}, nil},
		{"tests outside the tree", "\"/tests/**\" in `test_files` matches nothing: paths are relative to the tree's root, such as \"tests/**\"", map[string]attrs{"instance.go": {"test_files": []string{"/tests/**"}}}, nil},
		{"tests above the tree", "\"../t\" in `test_data` matches nothing", map[string]attrs{"instance.go": {"test_data": []string{"../t"}}}, nil},
		{"no glob", "\"a/[b\" in `test_data` is not a glob", map[string]attrs{"instance.go": {"test_data": []string{"a/[b"}}}, nil},
		{"paths outside", "\"../r.xml\" in `report` is not a path below the workspace", nil, []*decl.Block{outside(attrs{"report": []string{"../r.xml"}, "format": "junit"}, nil)}},
		{"cwd outside", "\"/etc\" in `cwd` is not a path below the workspace", nil, []*decl.Block{outside(attrs{"cwd": "/etc"}, nil)}},
		{"kept outside", "\"../x\" in `keep` is not a path below HOME", nil, []*decl.Block{outside(nil, attrs{"keep": []string{"ok", "../x"}})}},
		{"gold patch alone", "instance.x has `gold_patch` and no `test_patch`", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g")},
			block("source", "", nil, block("dir", "", attrs{"path": "src"})), command("test", "true"))}},
		{"junit without a report", "`format` \"junit\" is read from files", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g"), "test_patch": text("t")},
			block("source", "", nil, block("dir", "", attrs{"path": "src"})), block("test", "", attrs{"command": []string{"true"}, "format": "junit"}))}},
		{"limit of a program", "pbuild sees neither the steps nor the cost of a program", map[string]attrs{"agent.fixer": {"cost_limit": 1.5}}, nil},
		{"predictions without a file", "Predictions without a file", map[string]attrs{"agent.file": {"file": nil}}, nil},
		{"command agent without a command", "Agent without a command", map[string]attrs{"agent.fixer": {"command": nil}}, nil},
		{"exclusion of nothing known", `"colour" is none of instance, agent, model and sample`, map[string]attrs{"matrix.main": {"exclude": []any{map[string]any{"colour": "red"}}}}, nil},
		{"exclusion is no list", "It is not a list", map[string]attrs{"matrix.main": {"exclude": map[string]any{"agent": "nop"}}}, nil},
		{"two agents of one name", `agent.oracle and agent.more["oracle"] are both named "oracle"`, map[string]attrs{"matrix.main": {"agents": refs("agent.oracle", "agent.more")}},
			[]*decl.Block{overSet(block("agent", "more", attrs{"kind": "nop"}), "oracle")}},
		{"one agent twice", `agent.oracle and agent.oracle are both named "oracle"`, map[string]attrs{"matrix.main": {"agents": refs("agent.oracle", "agent.oracle")}}, nil},
		{"two gates over the same", "gate.go and gate.too both have instance.go[\"a\"]", map[string]attrs{"matrix.main": {"instances": refs("gate.go", "gate.too")}},
			[]*decl.Block{block("gate", "too", attrs{"instances": refs("instance.go")})}},
		{"zero byte in an argument", `"a\x00b" holds a zero byte`, map[string]attrs{"agent.fixer": {"command": []string{"x", "a\x00b"}}}, nil},
		{"zero byte in a task's argument", `"a\x00b" holds a zero byte`, nil, []*decl.Block{block("task", "x", attrs{"command": []string{"x", "a\x00b"}})}},
		{"zero byte in a path", `"a\x00b" holds a zero byte`, nil, []*decl.Block{block("task", "x", attrs{"command": []string{"x"}, "outputs": []string{"a\x00b"}})}},
		{"zero byte in a directory", `"a\x00b" in ` + "`cwd` holds a zero byte", nil, []*decl.Block{outside(attrs{"cwd": "a\x00b"}, nil)}},
		{"empty program", "names a program, and here it is empty", nil, []*decl.Block{outside(attrs{"command": []string{"", "x"}}, nil)}},
		{"empty program of a task", "names a program, and here it is empty", nil, []*decl.Block{block("task", "x", attrs{"command": []string{""}})}},
		{"empty program of an agent", "names a program, and here it is empty", map[string]attrs{"agent.fixer": {"command": []string{""}}}, nil},
		{"report in no file", `"out/" names no file: it is the report's path without the extension, such as "out/all"`, map[string]attrs{"report.all": {"path": "out/"}}, nil},
		{"report above a directory", `"out/.." names no file`, map[string]attrs{"report.all": {"path": "out/.."}}, nil},
		{"output in an output", `writes a as a file, which cannot hold another`, nil, []*decl.Block{block("task", "x", attrs{"command": []string{"x"}, "outputs": []string{"a", "a.b", "a/b/c"}})}},
		{"output in another's", `task.x writes a/b, and task.y (`, nil, []*decl.Block{block("task", "x", attrs{"command": []string{"x"}, "outputs": []string{"a/b"}}),
			block("task", "y", attrs{"command": []string{"x"}, "outputs": []string{"a"}})}},
		{"report in an output", `writes out as a file, which cannot hold another`, map[string]attrs{"report.all": {"path": "out/all"}},
			[]*decl.Block{block("task", "x", attrs{"command": []string{"x"}, "outputs": []string{"out"}})}},
		{"unknown agent", `agent.oracle has no member "x"`, map[string]attrs{"matrix.main": {"agents": refs(`agent.oracle["x"]`)}}, nil},
		{"unknown instance", `gate.go has no member "z"`, map[string]attrs{"matrix.main": {"instances": refs(`gate.go["z"]`)}}, nil},
		{"ungated without ids", `instance.go["b"] has neither fail_to_pass nor pass_to_pass`, map[string]attrs{"matrix.main": {"instances": refs("instance.go")}}, nil},
		{"all members for one", "runtime.go has many members", nil, nil}, // edited below
		{"for_each on a gate", "for_each is not supported here", nil, nil},
		{"short commit", "is not 40 hexadecimal digits", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g")},
			block("source", "", nil, block("git", "", attrs{"url": "u", "commit": "main"})), command("test", "true"))}},
		{"archive without a hash", "is not 64 hexadecimal digits", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g")},
			block("source", "", nil, block("archive", "", attrs{"url": "u", "sha256": "x"})), command("test", "true"))}},
		{"no fix", "instance.x has neither `fix` nor `gold_patch`", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go")},
			block("source", "", nil, block("dir", "", attrs{"path": "src"})), command("test", "true"))}},
		{"no source", "instance.x needs `source`", nil, []*decl.Block{block("instance", "x", attrs{"runtime": ref("runtime.go"), "gold_patch": text("g")}, command("test", "true"))}},
		{"Dockerfile", "Dockerfile cannot be read", nil, []*decl.Block{block("runtime", "img", nil, block("build", "", attrs{"context": "c"}))}},
		{"unknown column", `report.all has no column "outcom". Did you mean outcome? There are instance, agent,`, map[string]attrs{"report.all": {"columns": []string{"instance", "outcom"}}}, nil},
		{"group by what became of cells", `"outcome" tells what became of a cell`, map[string]attrs{"report.all": {"by": []string{"agent", "outcome"}}}, nil},
		{"unknown group", `report.all has no column "origin". There are instance, agent,`, map[string]attrs{"report.all": {"by": []string{"origin"}}}, nil},
		{"unknown column in a filter", `report.all has no column "colour"`, map[string]attrs{"report.all": {"filter": "outcome=failed,colour!=red"}}, nil},
		{"filter without a value", `filter term "x" is not COLUMN=VALUE`, map[string]attrs{"report.all": {"filter": "x"}}, nil},
		{"filter by no outcome", `"won" is none of the outcomes`, map[string]attrs{"report.all": {"filter": "outcome=won"}}, nil},
		{"circle of blocks", "depends on itself", map[string]attrs{"runtime.go": {"depends_on": refs("gate.go")}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws, h := with(c.edit, c.more...)
			switch c.name {
			case "all members for one":
				overSet(ws.Find("runtime", "go"), "a", "b")
			case "for_each on a gate":
				b := overSet(ws.Find("gate", "go"), "a", "b")
				b.Attrs["on_reject"] = &decl.Attr{Name: "on_reject", Expr: ofEach(func(e *decl.Each) any { return e.Key })}
			}
			mistake(t, c.want, ws, h)
		})
	}
}

func TestWarnings(t *testing.T) {
	given := ofEach(func(*decl.Each) any { return []string{"TestA"} })
	for _, c := range []struct {
		name, want string
		edit       map[string]attrs
	}{
		{"ungated matrix", "gate.go covers it: `instances = gate.go`", map[string]attrs{"matrix.main": {"instances": refs("instance.go")}}},
		{"exclusion without effect", `No cell of matrix.main matches {"instance":"z"}`, map[string]attrs{"matrix.main": {"exclude": []any{map[string]any{"instance": "z"}}}}},
		{"tags of no task", "`tags` says nothing in agent.oracle", map[string]attrs{"agent.oracle": {"tags": []string{"a"}}}},
		{"order of no task", "`depends_on` says nothing in agent.oracle", map[string]attrs{"agent.oracle": {"depends_on": refs("gate.go")}}},
		{"limit of an agent that runs nothing", "`wall_limit` says nothing to an agent of kind \"oracle\"", map[string]attrs{"agent.oracle": {"wall_limit": time.Minute}}},
		{"steps of predictions", "`step_limit` says nothing to an agent of kind \"predictions\"", map[string]attrs{"agent.file": {"step_limit": int64(3)}}},
		{"prompt of nothing", "`prompt` says nothing to an agent of kind \"oracle\"", map[string]attrs{"agent.oracle": {"prompt": text("p")}}},
		{"nothing told", "matrix.main runs agents on instance.go, and 1 of 1 instances there have no `problem_statement`", map[string]attrs{"instance.go": {"problem_statement": nil}}},
		{"no repository", "/nosuch/r is not there", nil},
		{"no archive", "/nosuch/a.tar is not there", nil},
		{"no predictions", "holds no predictions", nil},
		{"all excluded", "matrix.main evaluates nothing. Its instances are 2 and its agents 3", map[string]attrs{"matrix.main": {"exclude": []any{map[string]any{"instance": []any{"a", "b"}}}}}},
		{"unknown predictions", "1 of the file's 2 predictions are for no instance of matrix.main and are not used: zz.", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws, h := with(c.edit)
			ws.Find("instance", "go").Nested("test").Attrs["fail_to_pass"].Expr = given
			source := ws.Find("instance", "go").Nested("source")
			switch c.name {
			case "unknown predictions":
				h.predictions["zz"] = kind.Data{Digest: digest.Of([]byte("zz"))}
			case "no predictions":
				h.predictions = map[string]kind.Data{}
			case "no repository":
				source.Blocks = []*decl.Block{block("git", "", attrs{"url": "/nosuch/r", "commit": strings.Repeat("a", 40)})}
			case "no archive":
				source.Blocks = []*decl.Block{block("archive", "", attrs{"path": "/nosuch/a.tar", "sha256": strings.Repeat("a", 64)})}
			}
			_, diags := lowered1(t, ws, h)
			if len(diags) != 1 || diags[0].Severity != decl.Warning || !strings.Contains(diags[0].Detail, c.want) {
				t.Errorf("got %v, want %s", diags, c.want)
			}
		})
	}
}

// Gates over the same instances are one mistake, however many these are.
func TestGatesOverTheSameAreOneMistake(t *testing.T) {
	ws, h := with(map[string]attrs{"matrix.main": {"instances": refs("gate.go", "gate.too")}}, block("gate", "too", attrs{"instances": refs("instance.go")}))
	if _, diags := Lower(ws, h); len(diags) != 1 {
		t.Errorf("got %v", diags)
	}
}

func TestDatasetHasNoTask(t *testing.T) {
	ws, h := with(nil, block("dataset", "d", attrs{"file": "d.jsonl", "tags": []string{"a"}, "depends_on": refs("gate.go")}))
	if _, diags := lowered1(t, ws, h); len(diags) != 1 || !strings.Contains(diags[0].Detail, "`tags` says nothing in dataset.d") {
		t.Errorf("got %v", diags)
	}
}

// A prediction for a cell that is excluded is not one for an instance that there is not.
func TestPredictionsBesideAnExclusion(t *testing.T) {
	ws, h := with(map[string]attrs{"matrix.main": {"exclude": []any{map[string]any{"agent": "file", "instance": "a"}}}})
	if _, diags := lowered1(t, ws, h); len(diags) != 0 {
		t.Errorf("got %v", diags)
	}
}

// A prediction for an instance that could not be lowered is not one for an instance that there is not.
func TestPredictionsBesideAMistake(t *testing.T) {
	ws, h := with(map[string]attrs{"instance.go": {"runtime": ref("runtime.none")}})
	_, diags := Lower(ws, h)
	if !diags.HasErrors() {
		t.Fatal("no error")
	}
	for _, d := range diags {
		if d.Severity == decl.Warning {
			t.Errorf("got %v", d)
		}
	}
}

func TestWithoutEffect(t *testing.T) {
	set := func(b *decl.Block, name string, v any) {
		b.Attrs[name] = &decl.Attr{Name: name, Range: b.Range, Expr: value{v}}
	}
	for _, c := range []struct {
		want string
		edit func(instance *decl.Block)
	}{
		{"`pass_to_pass` says nothing where `format` is \"exit\"", func(in *decl.Block) { set(in.Nested("test"), "pass_to_pass", []string{"TestA"}) }},
		{"`report` is not read where `format` is \"exit\"", func(in *decl.Block) { set(in.Nested("test"), "report", []string{"r.xml"}) }},
		{"instance.go[\"b\"] has no `test_patch`", func(in *decl.Block) {
			set(in, "gold_patch", decl.Bytes{Data: []byte("g")})
			in.Attrs["test_patch"] = &decl.Attr{Name: "test_patch", Range: in.Range, Expr: ofEach(func(e *decl.Each) any {
				if e.Key == "b" {
					return nil
				}
				return decl.Bytes{Data: []byte("t")}
			})}
		}},
	} {
		ws, h := small()
		test := ws.Find("instance", "go").Nested("test")
		set(test, "format", "exit")
		delete(test.Attrs, "fail_to_pass")
		if _, diags := lowered1(t, ws, h); len(diags) != 0 {
			t.Fatalf("before: %v", diags)
		}
		c.edit(ws.Find("instance", "go"))
		_, diags := lowered1(t, ws, h)
		if len(diags) != 1 || diags[0].Severity != decl.Warning || !strings.Contains(diags[0].Detail, c.want) {
			t.Errorf("got %v, want %s", diags, c.want)
		}
	}
}

func TestMissingHostPath(t *testing.T) {
	ws, h := small()
	b := ws.Find("runtime", "go")
	nested := b.Nested("host")
	if nested == nil {
		nested = block("host", "", nil)
		b.Blocks = append(b.Blocks, nested)
	}
	nested.Attrs["paths"] = &decl.Attr{Name: "paths", Expr: value{[]string{"/usr", "/nosuch/tools"}}}
	_, diags := lowered1(t, ws, h)
	if len(diags) != 1 || diags[0].Severity != decl.Warning || !strings.Contains(diags[0].Detail, "/nosuch/tools is among the paths of runtime.go") {
		t.Errorf("got %v", diags)
	}
}

func TestPredictions(t *testing.T) {
	ws, h := small()
	g, _ := lowered1(t, ws, h)
	for id, want := range map[string]digest.Digest{"a": digest.Of([]byte("patch a")), "b": {}} {
		s := g.Tasks[lookup(t, g, `matrix.main["`+id+`","file","-",0]/sample`)].Spec.(*kind.SampleSpec)
		if s.Prediction.Digest != want {
			t.Errorf("%s has the prediction %s, want %s", id, s.Prediction.Digest, want)
		}
	}
}

// A matrix that a report names twice has its cells there once: a line would count them double.
func TestReportOverOneMatrixTwice(t *testing.T) {
	ws, h := with(map[string]attrs{"report.all": {"matrix": nil, "of": refs("matrix.main", "matrix.main")}})
	_, diags := Lower(ws, h)
	if len(diags) != 1 || diags[0].Severity != decl.Error || !strings.Contains(diags[0].Detail, "report.all is over matrix.main twice") {
		t.Errorf("got %v", diags)
	}
}

// Two matrices may share a cell, which then counts once; two cells that differ may not share a name, or they would count as one candidate's.
func TestReportOverMatricesThatMeet(t *testing.T) {
	ws, h := with(map[string]attrs{"report.all": {"matrix": nil, "of": refs("matrix.main", "matrix.more")}},
		block("agent", "nop", attrs{"kind": "nop"}), block("matrix", "more", attrs{"instances": refs("gate.go"), "agents": refs("agent.file", "agent.nop")}))
	g, _ := lowered1(t, ws, h)
	if s := g.Tasks[lookup(t, g, "report.all/md")].Spec.(*kind.ReportSpec); len(s.Cells) != 7 { // 5 of main, and nop's two
		t.Errorf("%d cells: %+v", len(s.Cells), s.Cells)
	}
	ws, h = with(map[string]attrs{"report.all": {"matrix": nil, "of": refs("matrix.main", "matrix.more")}},
		block("matrix", "more", attrs{"instances": refs("instance.go"), "agents": refs("agent.file")}))
	_, diags := Lower(ws, h)
	if !slices.ContainsFunc(diags, func(d decl.Diagnostic) bool { return d.Summary == "Two cells of one name" }) {
		t.Errorf("got %v", diags)
	}
}

func TestReportOverSeveralMatrices(t *testing.T) {
	ws, h := with(map[string]attrs{"report.all": {"matrix": nil, "of": refs("matrix.main", "matrix.nop"), "formats": []string{"md", "md"}}},
		block("agent", "nop", attrs{"kind": "nop"}), block("matrix", "nop", attrs{"instances": refs("gate.go"), "agents": refs("agent.nop"), "samples": int64(3)}))
	g, _ := lowered1(t, ws, h)
	s := g.Tasks[lookup(t, g, "report.all/md")].Spec.(*kind.ReportSpec)
	if len(s.Cells) != 7 || s.Of != "matrix.main, matrix.nop" || s.Cells[2].Agent != "nop" || s.Cells[2].Sample != 0 {
		t.Errorf("%d cells of %s: %+v", len(s.Cells), s.Of, s.Cells)
	}
}

// A report knows an instance's provenance by name, also behind a gate; its key holds what it mentions, and nothing else of it.
func TestProvenanceIsAColumn(t *testing.T) {
	provenance := func(year string) *task.Graph {
		ws, h := with(map[string]attrs{"report.all": {"columns": []string{"instance", "origin", "seconds"}, "by": []string{"pull"}, "filter": "origin!=x"}})
		in := ws.Find("instance", "go")
		in.Blocks = append(in.Blocks, block("provenance", "", attrs{"origin": column("base"), "pull": []any{float64(7)}, "year": year}))
		g, _ := lowered1(t, ws, h)
		return g
	}
	g, other := provenance("2024"), provenance("2025")
	id := lookup(t, g, "report.all/md")
	got := g.Tasks[id].Spec.(*kind.ReportSpec).Cells[0].Provenance
	if diff := cmp.Diff(map[string]string{"origin": "v1", "pull": "[7]"}, got); diff != "" {
		t.Error(diff)
	}
	if keys(g)[id] != keys(other)[id] {
		t.Error("what no report mentions is in a key")
	}
}

// What an agent is configured with and what a report shows are as exact as numbers are.
func TestNumbersInSpecsAreExact(t *testing.T) {
	keyOf := func(seed string) (task.Key, string) {
		n, _ := decl.ParseNumber(seed)
		ws, h := with(map[string]attrs{"agent.fixer": {"config": map[string]any{"seed": n}}, "report.all": {"columns": []string{"seed"}}})
		in := ws.Find("instance", "go")
		in.Blocks = append(in.Blocks, block("provenance", "", attrs{"seed": n}))
		g, _ := lowered1(t, ws, h)
		for i, tk := range g.Tasks {
			if s, ok := tk.Spec.(*kind.SampleSpec); ok && s.Agent == "command" {
				return keys(g)[i], g.Tasks[lookup(t, g, "report.all/md")].Spec.(*kind.ReportSpec).Cells[0].Provenance["seed"]
			}
		}
		t.Fatal("no sample")
		return task.Key{}, ""
	}
	seen := map[task.Key]string{}
	for _, seed := range []string{"9007199254740991", "9007199254740992", "9007199254740993", "12345678901234567890", "0.1", "0.10000000000000000001"} {
		key, shown := keyOf(seed)
		if first, ok := seen[key]; ok || shown != seed {
			t.Errorf("the seed %s has the key of %q and is shown as %s", seed, first, shown)
		}
		seen[key] = seed
	}
}

func TestOrderEdgesOfAnInstance(t *testing.T) {
	ws, h := with(map[string]attrs{"instance.go": {"depends_on": refs("task.make")}}, block("task", "make", attrs{"command": []string{"x"}}))
	g, _ := lowered1(t, ws, h)
	made := lookup(t, g, "task.make")
	for _, step := range []string{"/source", "/patches", "/fetch.gold"} {
		if on := dep(&g.Tasks[lookup(t, g, `instance.go["b"]`+step)], "after.0"); on != made {
			t.Errorf("%s does not wait for what the instance depends on", step)
		}
	}
}

func TestProtect(t *testing.T) {
	for _, c := range []struct{ format, argv, cwd, want string }{
		{"exit", "sh run.sh", "", "own/**"},
		{"gotest", "go test ./...", "", "**/*_test.go **/go.work **/go.work.sum **/testdata/** own/** ~=**/vendor/** ~vendor/**"},
		{"gotest", "go -C b test ./...", "a", "**/*_test.go **/go.work **/go.work.sum **/testdata/** own/** ~=**/vendor/** ~a/b/vendor/** ~a/vendor/** ~vendor/**"},
		{"junit", "python3 -m pytest -q", "", "!=**/site-packages/** **/*.pth **/.pytest.ini **/.pytest.toml **/conftest.py **/pytest.ini **/pytest.toml **/setup.cfg **/tox.ini " +
			"=**/{pytest,_pytest,sitecustomize,usercustomize}.{py*,*so} =**/{site,user}customize/** _pytest/** own/** pytest/** " +
			"{pytest,_pytest,sitecustomize,usercustomize}.{py*,*so} {site,user}customize/** ~=**/_pytest/** ~=**/pytest/**"},
		{"junit", "mvn test", "a", ".mvn/** =**/.mvn/** a/.mvn/** own/**"},
		{"exit", "nice /usr/bin/cargo test", "", ".cargo/** =**/.cargo/** =**/rust-toolchain =**/rust-toolchain.toml own/** rust-toolchain rust-toolchain.toml"},
		{"exit", "make test", "", "=**/GNUmakefile =**/Makefile =**/makefile GNUmakefile makefile own/**"},
		{"exit", "timeout 60 make -skC sub -j4 test", "d", "=**/GNUmakefile =**/Makefile =**/makefile GNUmakefile d/GNUmakefile d/makefile d/sub/GNUmakefile d/sub/makefile makefile own/**"},
		{"exit", "make -f x/build.mk --file=more.mk -kfthird.mk", "", "=**/GNUmakefile =**/Makefile =**/build.mk =**/makefile =**/more.mk =**/third.mk GNUmakefile makefile own/**"},
	} {
		if got := strings.Join(protect(c.format, strings.Fields(c.argv), c.cwd, []string{"own/**"}), " "); got != c.want {
			t.Errorf("%s, %s in %q:\ngot  %s\nwant %s", c.format, c.argv, c.cwd, got, c.want)
		}
	}
}

// What a command's words do not say is protected by name; what they say is only where a build's additions count too.
func TestPlaces(t *testing.T) {
	for _, c := range []struct{ argv, cwd, want string }{
		{"go|test|./...", "", ""},
		{"go|test|./...", "a/b", "|a|a/b"},
		{"make|-C|x|check", "a", "|a|a/x"},
		{"make|-C=x/y", "", "|x|x/y"},
		{"sh|-c|cd x && (cd 'y'; make --directory=z)", "", "|x|x/y|x/y/z|y|z"},
		{"sh|-c|cd $DIR && cd .. && cd /tmp && make -C", "", ""},
	} {
		if got := strings.Join(places(strings.Split(c.argv, "|"), c.cwd), "|"); got != c.want {
			t.Errorf("%s in %q: got %s, want %s", c.argv, c.cwd, got, c.want)
		}
	}
}

func TestInstalled(t *testing.T) {
	for _, c := range []struct{ argv, cwd, path, want string }{
		{"npm test", "", "node_modules/.bin/mocha", "yes"}, {"npm test", "", "node_modules/@x/y/z.js", "yes"}, {"npm test", "", "node_modules/.cache/x", "no"},
		{"npm test", "a", "node_modules/x/i.js", "yes"}, {"npm test", "a", "a/node_modules/x/i.js", "yes"}, {"npm test", "a", "b/node_modules/x/i.js", "no"},
		{".venv/bin/pytest", "", ".venv/bin/python", "yes"}, {"sh t", "", "venv/lib/python3.12/site-packages/_pytest/x.py", "yes"}, {"sh t", "", "venv/lib/python3.12/site-packages/calc/x.py", "no"},
		{"./made/run", "sub", "sub/made/run", "yes"}, {"/made/run", "", "made/run", "no"},
		{"env A=1 made/run", "", "made/run", "yes"}, {"make -C sub", "", "sub/node_modules/x/i.js", "yes"},
	} {
		match := func(g string) bool { return doublestar.MatchUnvalidated(g, c.path) }
		argv := strings.Fields(c.argv)
		if got := slices.ContainsFunc(slices.Concat(installed(argv, c.cwd), programs(argv, c.cwd)), match); got != (c.want == "yes") {
			t.Errorf("%s in %q: %s is watched: %t", c.argv, c.cwd, c.path, got)
		}
	}
}

func TestProgramsAreFoundInTheTextOfAShell(t *testing.T) {
	for _, c := range []struct {
		argv, glob string
		want       bool
	}{
		{"sh|-c|cd x && pytest -q --junitxml=r.xml", "**/conftest.py", true}, {"python3|-m|pytest", "**/conftest.py", true}, {"/venv/bin/py.test", "**/conftest.py", true},
		{"mvn|test", "**/conftest.py", false},
		{"sh|-c|cargo test | tee log", "=**/.cargo/**", true}, {"sh|-c|cd x&&make check", "=**/Makefile", true}, {"sh|-c|cmake --build x", "=**/Makefile", true},
		{"sh|maker.sh", "=**/Makefile", false}, {"sh|-c|pnpm test > log", ".npmrc", true}, {"node|--test", ".npmrc", false},
	} {
		if got := slices.Contains(protect("junit", strings.Split(c.argv, "|"), ""), c.glob); got != c.want {
			t.Errorf("%s: %s is protected: %t", c.argv, c.glob, got)
		}
	}
}

// Two gates that differ in on_reject alone have verdicts of equal keys, each with its own policy, in whatever order they stand.
func TestOnRejectOfSharedVerdicts(t *testing.T) {
	for _, order := range [][]string{{"error", "exclude"}, {"exclude", "error"}} {
		ws, h := small()
		ws.Blocks = slices.DeleteFunc(ws.Blocks, func(b *decl.Block) bool { return b.Type == "gate" })
		for i, on := range order {
			name := []string{"go", "second"}[i]
			ws.Blocks = append(ws.Blocks, block("gate", name, attrs{"instances": refs("instance.go"), "on_reject": on}))
		}
		g, _ := lowered1(t, ws, h)
		n := 0
		for _, o := range g.Objects {
			if o.Class != task.ClassGate {
				continue
			}
			n++
			want := order[0]
			if o.Block == "gate.second" {
				want = order[1]
			}
			if v := g.Tasks[o.Steps[len(o.Steps)-1].Task].Spec.(*kind.VerdictSpec); v.OnReject != want {
				t.Errorf("gates in the order %q: a verdict of %s has on_reject = %q", order, o.Block, v.OnReject)
			}
		}
		if n != 4 {
			t.Errorf("%d verdicts of two gates over two instances", n)
		}
	}
}

// An exclusion names what it names, whatever letters JSON would escape.
func TestExclusionOfAnyName(t *testing.T) {
	const name = `Test<A&B>\"x"`
	ws, h := with(map[string]attrs{"matrix.main": {"exclude": []any{map[string]any{"instance": name, "sample": float64(1)}}}})
	l := &lowerer{ws: ws, host: h, consts: map[*decl.Attr]any{}}
	x := l.exclusions(ws.Find("matrix", "main"))
	if len(x) != 1 {
		t.Fatal(l.diags)
	}
	if !x.match(&kind.Cell{Instance: name, Sample: 1}) || x.match(&kind.Cell{Instance: name}) {
		t.Errorf("%s is not matched as it is: %v", name, x[0].names)
	}
}

// What no block names is looked at too, but not while some block waits for its rows: it may name it, and make first what it needs.
func TestMistakesInWhatNothingNames(t *testing.T) {
	for want, b := range map[string]*decl.Block{
		"`step_limit` says nothing to an agent":      block("agent", "x", attrs{"kind": "oracle", "step_limit": int64(3)}),
		"needs `file`, where the patches are":        block("agent", "x", attrs{"kind": "predictions"}),
		"this one":                                   block("model", "x", attrs{"id": ofEach(func(*decl.Each) any { return nil }), "provider": failing{"this one"}}),
		`"main" is not 40 hexadecimal digits`:        block("source", "x", nil, block("git", "", attrs{"url": "u", "commit": "main"})),
		"/nosuch/r is not there; paths are relative": block("source", "x", nil, block("git", "", attrs{"url": "/nosuch/r", "commit": strings.Repeat("a", 40)})),
	} {
		ws, h := with(nil, b)
		_, diags := Lower(ws, h)
		if len(diags) != 1 || !strings.Contains(diags[0].Detail, want) {
			t.Errorf("got %v, want %s", diags, want)
		}
		ws.Held = map[string]bool{"task.waiting": true}
		if _, diags := Lower(ws, h); len(diags) != 0 {
			t.Errorf("beside a block that waits: got %v", diags)
		}
	}
}

// failing is an expression that cannot be evaluated.
type failing struct{ why string }

func (f failing) Const() bool { return false }
func (f failing) Eval(*decl.Each) (any, *decl.Diagnostic) {
	return nil, &decl.Diagnostic{Severity: decl.Error, Detail: f.why}
}
