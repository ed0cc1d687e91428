package hcl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pbuild/bench/decl"
)

const secretText = `
variable "token" {
  type      = string
  sensitive = true
}
variable "keys" {
  type      = map(string)
  sensitive = true
  default   = { a = "key-of-a", b = "key-of-b" }
}
variable "pin" {
  type      = number
  sensitive = true
  default   = 123456
}
locals {
  header = "Bearer ${var.token}"
  mixed  = { open = "open", hidden = var.token }
}
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
task "t" {
  command = ["echo", local.mixed.open]
  env = {
    AUTH   = local.header
    TOKEN  = var.token
    PIN    = var.pin
    PLAIN  = "plain"
    DIGEST = sha256(var.token)
    LIST   = join(",", [var.token, var.keys["a"]])
    NEXT   = var.pin + 1
  }
}
task "rows" {
  for_each = dataset.d
  command  = ["echo"]
  env      = { KEY = "${each.value.user}:${var.keys[each.key]}", USER = each.value.user }
}
model "m" {
  for_each = toset(["a", "c"])
  provider = "p"
  id       = each.key
  api_key  = lookup(var.keys, each.key, null)
}
`

func TestSecretsHaveNames(t *testing.T) {
	c := load(t, Options{Environ: []string{"PBUILD_VAR_token=hunter22"}}, "b.hcl", secretText, "d.jsonl", "{\"id\": \"a\", \"user\": \"u\"}\n{\"id\": \"b\", \"user\": \"v\"}\n")
	w := c.Workspace
	env := map[string]decl.EnvVar{}
	for _, v := range attr(t, w, "task", "t", "env", nil).([]decl.EnvVar) {
		env[v.Name] = v
	}
	for _, want := range []decl.EnvVar{
		{Name: "AUTH", Value: "Bearer hunter22", Secret: "Bearer ${var.token}"},
		{Name: "TOKEN", Value: "hunter22", Secret: "token"},
		{Name: "PIN", Value: "123456", Secret: "pin"},
		{Name: "PLAIN", Value: "plain"},
		{Name: "DIGEST", Value: sha("hunter22"), Secret: sha("${var.token}")},
		{Name: "LIST", Value: "hunter22,key-of-a", Secret: `${var.token},${var.keys["a"]}`},
		{Name: "NEXT", Value: "123457", Secret: "pin task.t env NEXT"},
	} {
		if diff := cmp.Diff(want, env[want.Name]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want := []decl.EnvVar{{Name: "KEY", Value: "v:key-of-b", Secret: `v:${var.keys["b"]}`}, {Name: "USER", Value: "v"}}
	if diff := cmp.Diff(want, attr(t, w, "task", "rows", "env", member(w, "d", 1))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	models := w.Find("model", "m").ForEach.Members
	if got := attr(t, w, "model", "m", "api_key", &models[0]); got != (decl.EnvVar{Name: "api_key", Value: "key-of-a", Secret: `keys["a"]`}) {
		t.Errorf("api_key is %v", got)
	}
	if got := attr(t, w, "model", "m", "api_key", &models[1]); got != nil {
		t.Errorf("api_key that is not there is %v", got)
	}
	// Whoever has a name finds the value.
	check := func(v decl.EnvVar) {
		if v.Secret != "" && w.Secrets[v.Secret] != v.Value {
			t.Errorf("the secret %q is %q, not %q", v.Secret, w.Secrets[v.Secret], v.Value)
		}
	}
	members(w, func(_, b *decl.Block, each *decl.Each) {
		for _, a := range b.Attrs {
			v, _ := a.Expr.Eval(each)
			vars, _ := v.([]decl.EnvVar)
			for _, v := range vars {
				check(v)
			}
			if v, ok := v.(decl.EnvVar); ok {
				check(v)
			}
		}
	})
	for _, v := range []string{"hunter22", "key-of-a", "key-of-b", "123456"} {
		found := false
		for _, s := range w.Secrets {
			found = found || s == v
		}
		if !found {
			t.Errorf("%q is not among the secrets", v)
		}
	}
}

func TestOtherValueOtherNameOnlyIfMadeOtherwise(t *testing.T) {
	secretOf := func(token string) string {
		w := load(t, Options{Vars: []string{"token=" + token}}, "b.hcl", secretText, "d.jsonl", "{\"id\": \"a\", \"user\": \"u\"}\n").Workspace
		var names strings.Builder
		for _, v := range attr(t, w, "task", "t", "env", nil).([]decl.EnvVar) {
			names.WriteString(v.Secret + "\n")
		}
		return names.String()
	}
	if a, b := secretOf("aaaaaaaa"), secretOf("bbbbbbbb"); a != b {
		t.Errorf("names depend on values:\n%s%s", a, b)
	}
}

func TestSecretsStayOutOfMessages(t *testing.T) {
	dir, _ := unpack(t, archive("b.hcl", "variable \"v\" {\n  sensitive = true\n}\ntask \"t\" {\n  command = [tonumber(var.v), jsondecode(var.v)]\n  env     = { A = var.v.x, B = regex(\"(\", var.v) }\n}\n"))
	c := Open(dir, Options{Vars: []string{"v=topsecret"}})
	if !c.Diagnostics.HasErrors() {
		t.Fatal("no errors")
	}
	if s := listing(c.Diagnostics); strings.Contains(s, "topsecret") {
		t.Error(s)
	}
}

func TestSnippetAndConsoleHideSecrets(t *testing.T) {
	c := load(t, Options{}, "b.hcl", "variable \"v\" {\n  sensitive = true\n  default   = \"topsecret\"\n}\n")
	if line, ok := c.Snippet(decl.Range{File: "b.hcl", Line: 3}); !ok || line != `  default   = "(sensitive value)"` {
		t.Errorf("snippet is %q", line)
	}
	if got, _, diags := c.Console(`"x${var.v}"`); len(diags) > 0 || got != "(sensitive value of var.v)" {
		t.Errorf("console says %q, %v", got, diags)
	}
}

// A secret that another begins with, or holds, takes none of that one's remainder with it, in whatever order they are known.
func TestSecretsInsideSecretsAreHidden(t *testing.T) {
	for range 20 { // a map's order is another each time
		s := secrets{values: map[string]string{"a": "hunter22", "b": "hunter22-and-more", "c": "so-hunter22"}}
		if got := s.redact("x hunter22-and-more y so-hunter22 z hunter22"); got != "x (sensitive value) y (sensitive value) z (sensitive value)" {
			t.Fatal(got)
		}
	}
}

func TestConsoleHidesSecretsInItsErrors(t *testing.T) {
	c := load(t, Options{}, "b.hcl", "variable \"v\" {\n  sensitive = true\n  default   = \"topsecret\"\n}\n")
	for _, e := range []string{`parseint(var.v, 10)`, `file(var.v)`, `regex("(", var.v)`, `{ topsecret = 1 }[var.v].x`, `tonumber("topsecret")`} {
		if got, _, diags := c.Console(e); strings.Contains(got+listing(diags), "topsecret") {
			t.Errorf("%s: %s%s", e, got, listing(diags))
		}
	}
}

// Two commands of one instance may make values of one name in ways that no placeholder shows: each keeps its own.
func TestSecretsOfTwoCommandsAreTwo(t *testing.T) {
	w := load(t, Options{}, "b.hcl", `
variable "pair" {
  sensitive = true
  default   = "first-one:second-one"
}
runtime "sh" {
  host {}
  probe = ["true"]
}
instance "i" {
  source {
    dir {
      path = "."
    }
  }
  gold_patch = "g"
  test_patch = "t"
  runtime    = runtime.sh
  build {
    command = ["true"]
    env     = { AUTH = split(":", var.pair)[0] }
  }
  test {
    command = ["true"]
    env     = { AUTH = split(":", var.pair)[1] }
  }
}
`).Workspace
	for step, want := range map[string]string{"build": "first-one", "test": "second-one"} {
		v := attr(t, w, "instance", "i", step+".env", nil).([]decl.EnvVar)[0]
		if got := w.Secrets[v.Secret]; got != want {
			t.Errorf("AUTH of %s is known as %q, which is %q, not %q", step, v.Secret, got, want)
		}
	}
}

// Names of environment variables are shown: one that an expression makes of a sensitive value is refused, those of a sensitive map are its own.
func TestNamesOfEnvironmentVariablesAreOpen(t *testing.T) {
	for env, refused := range map[string]bool{
		`{ (var.token) = "x" }`:                        true,
		`{ (upper(var.token)) = "x" }`:                 true,
		`{ for k in ["a"] : "${k}${var.token}" => k }`: true,
		`{ A = var.token }`:                            false,
		`var.all`:                                      false,
		`merge(var.all, { B = var.token })`:            false,
	} {
		dir, _ := unpack(t, archive("b.hcl", `
variable "token" {
  sensitive = true
  default   = "hunter22"
}
variable "all" {
  sensitive = true
  default   = { A = "hunter23" }
}
task "t" {
  command = ["x"]
  env     = `+env+`
}
`))
		said := listing(Open(dir, Options{}).Diagnostics)
		if strings.Contains(said, "A name in env comes from the sensitive var.token") != refused || !refused && said != "" {
			t.Errorf("%s: %q", env, said)
		}
	}
}

// What an element is chosen by is told by the element: upstream forgets that an object's key was sensitive.
func TestKeysAreOpen(t *testing.T) {
	const head = `
variable "s" {
  sensitive = true
  default   = "hunter22"
}
locals {
  m = { hunter22 = "x" }
  l = [{ hunter22 = "x" }]
}
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
task "x" {
  for_each = toset(["x"])
  command  = ["x"]
}
`
	for _, body := range []string{
		`task "t" { command = [local.m[var.s]] }`,
		`task "t" { command = [local.m["${var.s}"]] }`,
		`task "t" { command = local.l[*][var.s] }`,
		`task "t" { command = [for k in [var.s] : local.m[k]] }`,
		"task \"t\" {\n command = [each.key]\n for_each = toset([local.m[var.s]]) \n}",
		"task \"t\" {\n command = [each.key]\n for_each = { (local.m[var.s]) = 1 } \n}",
		"task \"t\" {\n command = [\"x\"]\n depends_on = [task.x[local.m[var.s]]] \n}",
		"task \"t\" {\n command = [\"x\"]\n outputs = [local.m[var.s]] \n}",
		"task \"t\" {\n command = [\"x\"]\n depends_on = [task.x[var.s]] \n}",
		"task \"t\" {\n command = [{ hunter22 = each.key }[var.s]]\n for_each = dataset.d\n}",
		"dataset \"e\" {\n filter {\n from = dataset.d\n where = row.id == local.m[var.s]\n }\n}",
		`locals { chosen = local.m[var.s] }`,
	} {
		dir, _ := unpack(t, archive("b.hcl", head+body, "d.jsonl", "{\"id\": \"a\"}\n"))
		said := listing(Open(dir, Options{}).Diagnostics)
		if !strings.Contains(said, "Sensitive value not allowed here") || !strings.Contains(said, "var.s") || strings.Contains(said, "hunter22") {
			t.Errorf("%s: %q", body, said)
		}
	}
	dir, _ := unpack(t, archive("b.hcl.json", `{"variable": {"s": {"sensitive": true, "default": "hunter22"}}, "locals": {"m": {"hunter22": "x"}},
		"task": {"t": {"command": ["${local.m[var.s]}"]}}}`))
	if said := listing(Open(dir, Options{}).Diagnostics); !strings.Contains(said, "var.s") {
		t.Errorf("JSON: %q", said)
	}
}
