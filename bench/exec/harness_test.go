package exec

import (
	"context"
	"strings"
	"testing"

	"pbuild/engine/tree"
)

func TestHarnessEdits(t *testing.T) {
	b := newBench(t)
	const plugin = "<project><build><plugins><plugin><artifactId>surefire</artifactId></plugin></plugins></build></project>"
	for _, c := range []struct {
		name, file            string
		base, candidate, gold string // "" is absent
		want                  string // the lines, joined by |
	}{
		{"go: a replace", "go.mod", "module m\n", "module m\nreplace example.com/assert v1.0.0 => ./mine\n", "module m\n", "go.mod: replace example.com/assert v1.0.0 => ./mine"},
		{"go: gold's own", "go.mod", "module m\n", "module m\nreplace a => ./b\n", "module m\n\nreplace (\n\ta => ./b\n)\n", ""},
		{"go: base's own", "go.mod", "module m\nreplace a => ./b\n", "module m\n\ngo 1.21\n\nreplace a => ./b // kept\n", "module m\nreplace a => ./b\n", ""},
		{"go: a requirement", "go.mod", "module m\n", "module m\nrequire example.com/x v1.2.3\n", "module m\n", ""},
		{"go: nested and new", "sub/go.mod", "", "module m/sub\nreplace m => ../other\n", "", "sub/go.mod: replace m => ../other"},
		{"go: made unreadable", "go.mod", "module m\n", "module m\nreplace x\n", "module m\n", "go.mod: cannot be read"},
		{"cargo: patch", "Cargo.toml", "[package]\nname='x'\n", "[package]\nname='x'\n[patch.crates-io]\nassert_eq = { path = 'mine' }\n", "[package]\nname='x'\n", `Cargo.toml: patch.crates-io.assert_eq.path = "mine"`},
		{"cargo: build script", "Cargo.toml", "[package]\nname='x'\n", "[package]\nname='x'\nbuild='evil.rs'\n[dependencies]\nlog='1'\n", "[package]\nname='x'\n", `Cargo.toml: package.build = "evil.rs"`},
		{"cargo: replace", "Cargo.toml", "", "[replace]\n\"a:1.0.0\" = { path = 'b' }\n", "", `Cargo.toml: replace.a:1.0.0.path = "b"`},
		{"cargo: another target in the place of a test", "Cargo.toml", "[[test]]\nname='a'\npath='tests/a.rs'\n", "[lib]\npath='evil.rs'\n[[test]]\nname='b'\npath='evil.rs'\n[[test]]\nname='a'\npath='tests/a.rs'\nharness=false\n[package]\nautotests=false\n", "",
			`Cargo.toml: lib.path = "evil.rs"|Cargo.toml: package.autotests = false|Cargo.toml: test.a.harness = false|Cargo.toml: test.b.path = "evil.rs"`},
		{"npm", "package.json", `{"scripts":{"test":"mocha"}}`, `{"scripts":{"test":"true","pretest":"x"},"overrides":{"chai":"1"},"resolutions":{"a/b":"2"},"dependencies":{"z":"1"}}`, `{"scripts":{"test":"mocha"}}`,
			`package.json: overrides.chai = "1"|package.json: resolutions.a/b = "2"|package.json: scripts.pretest = "x"|package.json: scripts.test = "true"`},
		{"npm: runners", "package.json", `{"jest":{"bail":true}}`, `{"mocha":{"require":["./evil.js"]},"jest":{"bail":true,"setupFiles":["./evil.js"]},"ava":{"files":["!x"]}}`, "",
			`package.json: ava.files = ["!x"]|package.json: jest.setupFiles = ["./evil.js"]|package.json: mocha.require = ["./evil.js"]`},
		{"npm: made unreadable", "package.json", `{}`, `{`, `{}`, "package.json: cannot be read"},
		{"npm: never readable", "package.json", `{`, `{{`, `{`, ""},
		{"python: pytest", "pyproject.toml", "[tool.black]\nline=1\n", "[tool.pytest.ini_options]\naddopts = '-p mine'\n[tool.black]\nline=2\n", "", `pyproject.toml: tool.pytest.ini_options.addopts = "-p mine"`},
		{"python: plugin", "pyproject.toml", "", "[project.entry-points.pytest11]\nmine = 'x'\n", "", `pyproject.toml: project.entry-points.pytest11.mine = "x"`},
		{"python: an installed plugin", "evil-1.0.dist-info/entry_points.txt", "", "# mine\n[console_scripts]\nevil = evil:main\n\n[pytest11]\nevil = evil\n", "", "evil-1.0.dist-info/entry_points.txt: pytest11: evil = evil"},
		{"python: an installed program", "src/x.egg-info/entry_points.txt", "", "[console_scripts]\nx = x:main\n", "", ""},
		{"maven: where tests are", "pom.xml", plugin, strings.Replace(plugin, "<build>", "<properties><maven.test.skip>true</maven.test.skip><x>1</x></properties><build><testSourceDirectory>evil</testSourceDirectory>", 1), "",
			"pom.xml: maven.test.skip: true|pom.xml: testSourceDirectory: evil"},
		{"maven: a plugin", "pom.xml", plugin, strings.Replace(plugin, "<artifactId>", "<configuration><skipTests>true</skipTests></configuration><artifactId>", 1), plugin, "pom.xml: plugin:"},
		{"maven: spaces and comments", "pom.xml", plugin, strings.Replace(plugin, "<plugin>", "<plugin>\n  <!-- why -->\n  ", 1), plugin, ""},
		{"go: a replace in go.work", "go.work", "go 1.21\nuse .\nreplace a => ./b\n", "go 1.21\nuse .\nuse ./c\nreplace a => ./b\nreplace c => ./d\n", "", "go.work: replace c => ./d"},
		{"npm: patches and plugins", "package.json", `{"nyc":{"all":true}}`,
			`{"pnpm":{"patchedDependencies":{"chai@1":"x.patch"}},"vitest":{"globals":true},"nyc":{"all":false,"require":["./x"]},"babel":{"plugins":["./x"],"comments":true}}`, "",
			`package.json: babel.plugins = ["./x"]|package.json: nyc.require = ["./x"]|package.json: pnpm.patchedDependencies.chai@1 = "x.patch"|package.json: vitest.globals = true`},
		{"npm: where dependencies are from", "package.json", `{"dependencies":{"old":"file:./old","kept":"1"}}`,
			`{"dependencies":{"old":"file:./old","kept":"^2 || 3","gold":"link:../g"},"devDependencies":{"chai":"git+https://x/y","a":"user/repo","b":"npm:evil@1","c":"workspace:*","d":"latest"}}`,
			`{"dependencies":{"gold":"link:../g"}}`, `package.json: devDependencies.a = "user/repo"|package.json: devDependencies.b = "npm:evil@1"|package.json: devDependencies.chai = "git+https://x/y"`},
		{"python: scripts and sources", "pyproject.toml", "",
			"[project]\nscripts={pytest='evil:main'}\n[tool.poetry.scripts]\npytest='evil:main'\n[tool.uv.sources]\npytest={path='evil'}\n[tool.uv]\noverride-dependencies=['x']\n" +
				"[build-system]\nbuild-backend='setuptools.build_meta'\nbackend-path=['.']\n[tool.tox]\nlegacy_tox_ini='x'\n", "",
			`pyproject.toml: build-system.backend-path = ["."]|pyproject.toml: project.scripts.pytest = "evil:main"|pyproject.toml: tool.poetry.scripts.pytest = "evil:main"|` +
				`pyproject.toml: tool.tox.legacy_tox_ini = "x"|pyproject.toml: tool.uv.override-dependencies = ["x"]|pyproject.toml: tool.uv.sources.pytest.path = "evil"`},
		{"python: where dependencies are from", "pyproject.toml", "[project]\nversion='1'\n",
			"[project]\nversion='2'\ndependencies=['attrs>=1; python_version<\"3\"','pytest @ file:///x']\n[tool.poetry.group.dev.dependencies]\npytest={path='evil'}\nz={url='https://x/z.whl'}\nx='^1'\n[tool.hatch.envs.test.scripts]\nrun='true'\n[tool.black]\nline=1\n", "",
			`pyproject.toml: project.dependencies = "pytest @ file:///x"|pyproject.toml: tool.hatch.envs.test.scripts.run = "true"|` +
				`pyproject.toml: tool.poetry.group.dev.dependencies.pytest.path = "evil"|pyproject.toml: tool.poetry.group.dev.dependencies.z.url = "https://x/z.whl"`},
		{"cargo: where dependencies are from", "Cargo.toml", "[dependencies]\nold={path='old'}\nlog='1'\n",
			"[package]\nversion='2'\n[dependencies]\nold={path='old'}\nlog={version='2',features=['std']}\nassert={path='evil'}\n[dev-dependencies]\nnew='1'\nassert={git='x'}\n[target.x.dependencies]\ny={path='z'}\n", "",
			`Cargo.toml: dependencies.assert.path = "evil"|Cargo.toml: dev-dependencies.assert.git = "x"|Cargo.toml: target.x.dependencies.y.path = "z"`},
		{"maven: the machine and its class path", "pom.xml", "<project><parent><relativePath>../pom.xml</relativePath></parent></project>",
			"<project><parent><version>2</version><relativePath>evil</relativePath></parent><properties><argLine>-javaagent:x</argLine><jvm>./java</jvm><guava.version>2</guava.version></properties>" +
				"<dependencies><dependency><artifactId>new</artifactId></dependency><dependency><systemPath>x.jar</systemPath></dependency></dependencies></project>", "",
			"pom.xml: argLine: -javaagent:x|pom.xml: jvm: ./java|pom.xml: relativePath: evil|pom.xml: systemPath: x.jar"},
		{"removed", "go.mod", "module m\nreplace a => ./b\n", "", "", ""},
		{"no manifest", "lib/go.mod.txt", "", "replace a => b", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := func(content string) map[string]string {
				m := map[string]string{"x": "x"}
				if content != "" {
					m[c.file] = content
				}
				return m
			}
			got, err := harnessEdits(context.Background(), b.repo, b.tree(files(c.base)), b.tree(files(c.candidate)), b.tree(files(c.gold)))
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got, "|"); s != c.want && !(c.want != "" && strings.HasPrefix(s, c.want) && len(got) == strings.Count(c.want, "|")+1) {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
	base := b.tree(map[string]string{"go.mod": "module m\n"})
	link := b.edit(base, tree.Edit{Path: "go.mod", Mode: 0o120000, Content: []byte("other.mod")})
	if got, err := harnessEdits(context.Background(), b.repo, base, link, base); err != nil || len(got) != 1 || !strings.Contains(got[0], "link") {
		t.Errorf("a link: %q, %v", got, err)
	}
}
