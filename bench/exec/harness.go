package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"pbuild/engine/digest"
	"pbuild/engine/task"
	"pbuild/engine/tree"

	"github.com/BurntSushi/toml"
	"golang.org/x/mod/modfile"
)

// harnessEdits compares manifests anywhere in the tree: it returns a line, sorted, for every replace, patch, override, script or plugin that the candidate has and that
// neither base nor gold has. A manifest that base's tools could read and the candidate's change made unreadable is a line too.
func harnessEdits(ctx context.Context, repo *tree.Repo, base, candidate, gold digest.Digest) ([]string, error) {
	changed, err := repo.Diff(ctx, base, candidate)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, e := range changed {
		read := manifests[path.Base(e.Path)]
		if read == nil || e.Mode == 0 {
			continue
		}
		more, err := manifestEdits(ctx, repo, e, base, gold, read)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	slices.Sort(lines)
	return lines, nil
}

func manifestEdits(ctx context.Context, repo *tree.Repo, e tree.Entry, base, gold digest.Digest, read manifestReader) ([]string, error) {
	if e.Mode == task.ModeLink { // tools follow it, and so would what is compared
		return []string{e.Path + ": is a link now"}, nil
	}
	content, err := repo.Read(ctx, e.Blob)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	had, readable := false, true
	for _, t := range []digest.Digest{base, gold} {
		old, ok, err := repo.ReadFile(ctx, t, e.Path)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		steers, err := read(old)
		had, readable = true, readable && err == nil
		for _, s := range steers {
			known[s] = true
		}
	}
	steers, err := read(content)
	if err != nil {
		if had && readable {
			return []string{fmt.Sprintf("%s: cannot be read: %v", e.Path, err)}, nil
		}
		return nil, nil
	}
	var lines []string
	for _, s := range steers {
		if !known[s] {
			lines = append(lines, e.Path+": "+s)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(lines))), nil
}

// A manifestReader lists what of a manifest can steer a test past the code under test, one line each.
type manifestReader func(content []byte) ([]string, error)

var manifests = map[string]manifestReader{
	"go.mod":           goMod,
	"go.work":          goWork,
	"Cargo.toml":       cargoToml.read(toml.Unmarshal),
	"package.json":     packageJSON.read(json.Unmarshal),
	"pyproject.toml":   pyprojectToml.read(toml.Unmarshal),
	"pom.xml":          pomXML,
	"entry_points.txt": entryPoints,
}

func goMod(content []byte) ([]string, error) {
	f, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		return nil, err
	}
	return replaces(f.Replace), nil
}

func goWork(content []byte) ([]string, error) {
	f, err := modfile.ParseWork("go.work", content, nil)
	if err != nil {
		return nil, err
	}
	return replaces(f.Replace), nil
}

func replaces(list []*modfile.Replace) (out []string) {
	for _, r := range list {
		out = append(out, strings.TrimSpace("replace "+strings.TrimSpace(r.Old.Path+" "+r.Old.Version)+" => "+r.New.Path+" "+r.New.Version))
	}
	return out
}

// A tables names what of a manifest counts by its keys; a star at the end of a key stands for every key that begins so.
type tables struct {
	steering [][]string
	sources  [][]string // of these only what does not come from a registry by its own name
}

var (
	cargoToml = tables{
		steering: [][]string{
			{"patch"}, {"replace"}, {"package", "build"}, {"package", "links"}, {"package", "autotests"}, {"build-dependencies"}, {"target", "*", "build-dependencies"},
			{"lib", "path"}, {"lib", "harness"}, {"lib", "test"}, {"lib", "doctest"}, {"bin", "*", "test"}, {"bin", "*", "harness"},
			{"test", "*", "path"}, {"test", "*", "harness"}, {"test", "*", "test"}, {"test", "*", "required-features"},
			{"dependencies", "*", "path"}, {"dependencies", "*", "git"}, {"dev-dependencies", "*", "path"}, {"dev-dependencies", "*", "git"},
			{"target", "*", "dependencies", "*", "path"}, {"target", "*", "dependencies", "*", "git"},
			{"target", "*", "dev-dependencies", "*", "path"}, {"target", "*", "dev-dependencies", "*", "git"},
			{"workspace", "dependencies", "*", "path"}, {"workspace", "dependencies", "*", "git"},
		},
	}
	pyprojectToml = tables{
		steering: [][]string{
			{"tool", "pytest*"}, {"tool", "tox"}, {"build-system", "backend-path"},
			{"project", "entry-points"}, {"project", "scripts"}, {"project", "gui-scripts"},
			{"tool", "poetry", "plugins"}, {"tool", "poetry", "scripts"}, {"tool", "pdm", "scripts"}, {"tool", "hatch", "build", "hooks"}, {"tool", "hatch", "envs", "*", "scripts"},
			{"tool", "uv", "sources"}, {"tool", "uv", "override-dependencies"},
			{"tool", "poetry", "dependencies", "*", "path"}, {"tool", "poetry", "dependencies", "*", "git"}, {"tool", "poetry", "dependencies", "*", "url"},
			{"tool", "poetry", "dev-dependencies", "*", "path"}, {"tool", "poetry", "dev-dependencies", "*", "git"}, {"tool", "poetry", "dev-dependencies", "*", "url"},
			{"tool", "poetry", "group", "*", "dependencies", "*", "path"}, {"tool", "poetry", "group", "*", "dependencies", "*", "git"}, {"tool", "poetry", "group", "*", "dependencies", "*", "url"},
		},
		sources: [][]string{{"project", "dependencies"}, {"project", "optional-dependencies"}, {"dependency-groups"}, {"build-system", "requires"}},
	}
	packageJSON = tables{
		steering: [][]string{
			{"scripts"}, {"overrides"}, {"resolutions"}, {"pnpm", "overrides"}, {"pnpm", "patchedDependencies"},
			{"mocha"}, {"jest"}, {"ava"}, {"vitest"}, {"tap"}, {"nyc", "require"}, {"babel", "plugins"}, {"babel", "presets"},
		},
		sources: [][]string{{"dependencies"}, {"devDependencies"}, {"optionalDependencies"}, {"peerDependencies"}},
	}
)

func (t *tables) read(unmarshal func([]byte, any) error) manifestReader {
	return func(content []byte) ([]string, error) {
		var doc map[string]any
		if err := unmarshal(content, &doc); err != nil {
			return nil, err
		}
		var out []string
		add := func(name []string, value any) {
			shown, err := json.Marshal(value)
			if err != nil { // a number that JSON lacks
				shown = fmt.Append(nil, value)
			}
			out = append(out, strings.Join(name, ".")+" = "+string(shown))
		}
		for _, keys := range t.steering {
			leaves(nil, doc, keys, add)
		}
		for _, keys := range t.sources {
			leaves(nil, doc, keys, func(name []string, value any) {
				for _, v := range each(value) {
					if foreign(v) {
						add(name, v)
					}
				}
			})
		}
		return out, nil
	}
}

// each are the values of an array, or the one that is none.
func each(value any) []any {
	if array, ok := value.([]any); ok {
		return array
	}
	return []any{value}
}

// foreign says whether what a dependency is taken from is a path, an address or another package. In npm's workspaces and catalogs it is only a version.
func foreign(value any) bool {
	s, _ := value.(string)
	return strings.ContainsAny(s, ":/") && !strings.HasPrefix(s, "workspace:") && !strings.HasPrefix(s, "catalog:")
}

// leaves visits the values below keys, each with its full name. An array of tables is one table, of which each goes by its name.
func leaves(name []string, value any, keys []string, visit func(name []string, value any)) {
	if array, ok := value.([]map[string]any); ok {
		table := map[string]any{}
		for _, t := range array {
			table[fmt.Sprint(t["name"])] = t
		}
		value = table
	}
	table, ok := value.(map[string]any)
	if !ok {
		if len(keys) == 0 {
			visit(name, value)
		}
		return
	}
	for k, v := range table {
		rest := keys
		if len(keys) > 0 {
			prefix, open := strings.CutSuffix(keys[0], "*")
			if k != keys[0] && !(open && strings.HasPrefix(k, prefix)) {
				continue
			}
			rest = keys[1:]
		}
		leaves(append(slices.Clip(name), k), v, rest, visit)
	}
}

// entryPoints lists the plugins that an installed package has for pytest, which loads those of packages in the workspace too.
func entryPoints(content []byte) (out []string, _ error) {
	section := ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		case section == "pytest11":
			out = append(out, section+": "+line)
		}
	}
	return out, nil
}

// pomXML lists plugins and extensions, each with all that it is told, where tests are, and what the machine that runs them or its class path is given.
func pomXML(content []byte) ([]string, error) {
	d := xml.NewDecoder(bytes.NewReader(content))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var out []string
	for {
		t, err := d.Token()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		start, ok := t.(xml.StartElement)
		if !ok || !slices.Contains(pomElements, start.Name.Local) && !pomProperty(start.Name.Local) {
			continue
		}
		text, err := flat(d, start.Name.Local)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
}

var pomElements = []string{"plugin", "extension", "testSourceDirectory", "testOutputDirectory", "testResource", "argLine", "jvm", "relativePath", "systemPath"}

// pomProperty says whether a property steers the plugins that run tests, which no plugin's configuration need name.
func pomProperty(name string) bool {
	return name == "skipTests" || name == "skipITs" || strings.HasPrefix(name, "maven.test.") || strings.HasPrefix(name, "surefire.") || strings.HasPrefix(name, "failsafe.")
}

// flat writes an element's content on one line, without comments and white space.
func flat(d *xml.Decoder, name string) (string, error) {
	var b strings.Builder
	b.WriteString(name + ":")
	for depth := 1; depth > 0; {
		t, err := d.Token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			b.WriteString(" <" + t.Name.Local + ">")
		case xml.EndElement:
			if depth--; depth > 0 {
				b.WriteString(" </>")
			}
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				b.WriteString(" " + text)
			}
		}
	}
	return b.String(), nil
}
