package lower

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/task"
)

// An environment is one member of a runtime on one platform: what commands that run in it have in common.
type environment struct {
	spec   kind.Runtime
	vars   variables
	cpus   float64
	memory int64
	pids   int64

	image, prepare task.ID
}

type envKey struct {
	block    *decl.Block
	key      string
	platform string
}

// variables are a process's, by where their values come from.
type variables struct {
	values, secrets map[string]string
	pass            []string
}

// with is v with a block's own variables over it.
func (v variables) with(own []decl.EnvVar) variables {
	if len(own) == 0 {
		return v
	}
	out := variables{values: maps.Clone(v.values), secrets: maps.Clone(v.secrets)}
	if out.values == nil {
		out.values = map[string]string{}
	}
	if out.secrets == nil {
		out.secrets = map[string]string{}
	}
	for _, e := range own {
		if e.Secret != "" {
			out.secrets[e.Name] = e.Secret
			delete(out.values, e.Name)
		} else {
			out.values[e.Name] = e.Value
			delete(out.secrets, e.Name)
		}
	}
	for _, name := range v.pass {
		if !slices.ContainsFunc(own, func(e decl.EnvVar) bool { return e.Name == name }) {
			out.pass = append(out.pass, name)
		}
	}
	return out
}

// imageDep is the edge to an environment's image, if it has one.
func (e *environment) imageDep() []task.Dep {
	if e.image == task.None {
		return nil
	}
	return []task.Dep{{On: e.image, Role: "image", Output: "content"}}
}

// runtimes lowers each member of a runtime on its first platform, so that all declared images are in the plan.
func (l *lowerer) runtimes(b *decl.Block, out *lowered) {
	l.members(b, func(m member) {
		platform := l.platforms(b, m.each)[0]
		env := l.environment(b, m.each, platform)
		if env == nil {
			return
		}
		tags, _ := get[[]string](l, b, "tags", m.each)
		if env.image != task.None {
			out.objects = append(out.objects, task.Object{Class: task.ClassImage, Block: b.Address(), Index: m.index, Tags: tags,
				Steps: []task.Step{{Name: "image", Task: env.image}}})
		}
		if env.prepare != task.None {
			out.objects = append(out.objects, task.Object{Class: task.ClassRuntime, Block: b.Address(), Index: m.index, Tags: tags,
				Steps: []task.Step{{Name: "prepare", Task: env.prepare}}})
		}
	})
}

// platforms are what a runtime is declared for, never none.
func (l *lowerer) platforms(b *decl.Block, each *decl.Each) []string {
	if isHost(b) {
		return []string{l.host.Platform()}
	}
	if list, _ := get[[]string](l, b, "platforms", each); len(list) > 0 {
		return list
	}
	return []string{l.host.Platform()}
}

func isHost(b *decl.Block) bool { return b.Attrs["image"] == nil && b.Nested("build") == nil }

// resolve is the environment that an attribute's reference names, on the platform asked for ("" is the runtime's first); nil after an error.
func (l *lowerer) resolve(ref decl.Ref, platform string, r decl.Range, from *decl.Each) *environment {
	b, each, ok := l.one(ref, r, from)
	if !ok {
		return nil
	}
	l.lower(b)
	have := l.platforms(b, each)
	if platform == "" {
		platform = have[0]
	} else if !slices.Contains(have, platform) {
		l.errorf(r, from, "Platform not offered", "%s is for %s, not for %s.", ref, strings.Join(have, ", "), platform)
		return nil
	}
	return l.environment(b, each, platform)
}

// environment makes a member's environment once for each platform; nil after an error.
func (l *lowerer) environment(b *decl.Block, each *decl.Each, platform string) *environment {
	key := envKey{b, "", platform}
	if each != nil {
		key.key = each.Key
	}
	if e, ok := l.envs[key]; ok {
		return e
	}
	var e *environment
	l.under(b, each, func() { e = l.makeEnvironment(b, each, platform) })
	l.envs[key] = e
	return e
}

func (l *lowerer) makeEnvironment(b *decl.Block, each *decl.Each, platform string) *environment {
	own, _ := get[[]decl.EnvVar](l, b, "env", each)
	e := &environment{image: task.None, prepare: task.None}
	e.vars.pass, _ = get[[]string](l, b, "pass_env", each)
	e.vars = e.vars.with(own)
	e.cpus, _ = get[float64](l, b, "cpus", each)
	e.memory, _ = get[int64](l, b, "memory", each)
	e.pids, _ = get[int64](l, b, "pids", each)
	e.spec = kind.Runtime{Host: isHost(b), Platform: platform, Name: memberName(b, each)}
	e.spec.Path, _ = get[string](l, b, "path", each)
	e.spec.Paths, _ = get[[]string](l, b.Nested("host"), "paths", each)
	if e.spec.Host {
		if !l.onHost(b, each, e) || !l.probe(b, each, e) {
			return nil
		}
	} else {
		e.spec.Workdir, _ = get[string](l, b, "workdir", each)
		e.spec.User, _ = get[string](l, b, "user", each)
		image, ok := l.image(b, each, platform)
		if !ok {
			return nil
		}
		e.image = l.add(task.Task{Spec: image})
		e.spec.Adaptation = l.adaptation(platform)
	}
	if p := b.Nested("prepare"); p != nil {
		cmd := l.command(p, each, e, true)
		e.prepare = l.add(task.Task{Spec: &kind.StateSpec{Of: kind.RuntimePrepare, Runtime: e.spec, Command: cmd}, Deps: e.imageDep(), Timeout: cmd.Timeout})
	}
	return e
}

// onHost reports what a host runtime declares and this machine cannot give. It says nothing of what is true and needs no doing.
func (l *lowerer) onHost(b *decl.Block, each *decl.Each, e *environment) bool {
	for _, name := range []string{"user", "workdir"} {
		if b.Attrs[name] != nil {
			l.errorf(at(b, name), each, "Not for a host runtime", "%s runs on this machine, as you and in a directory of pbuild's choice; %s is for runtimes with an image.", e.spec.Name, name)
			return false
		}
	}
	if list, _ := get[[]string](l, b, "platforms", each); len(list) > 0 && !slices.Contains(list, e.spec.Platform) {
		l.errorf(at(b, "platforms"), each, "Impossible platform", "%s runs on this machine, which is %s and none of %s.", e.spec.Name, e.spec.Platform, strings.Join(list, ", "))
		return false
	}
	for _, p := range e.spec.Paths {
		if !l.host.Exists(p) {
			l.diags.Add(decl.Diagnostic{Severity: decl.Warning, Summary: "Path does not exist", Range: at(b.Nested("host"), "paths"), Row: each.Place(),
				Detail: fmt.Sprintf("%s is among the paths of %s and is not there, so no command will see it.", p, e.spec.Name)})
		}
	}
	return true
}

// probe asks for a host runtime's identity.
func (l *lowerer) probe(b *decl.Block, each *decl.Each, e *environment) bool {
	argv, _ := get[[]string](l, b, "probe", each)
	if len(argv) == 0 || argv[0] == "" {
		l.errorf(b.Range, each, "Host runtime without a probe",
			"%s runs on this machine, whose tools are part of every key: give `probe`, a command that prints their version.", e.spec.Name)
		return false
	}
	id, err := l.host.Probe(e.spec.Name, argv, e.vars.values, e.spec.Path)
	if err != nil {
		l.errorf(at(b, "probe"), each, "Probe failed", "The probe of %s: %v.", e.spec.Name, err)
		return false
	}
	e.spec.Identity = id
	return true
}

// image is the spec of a declared or built image.
func (l *lowerer) image(b *decl.Block, each *decl.Each, platform string) (*kind.ImageSpec, bool) {
	build := b.Nested("build")
	if build == nil {
		ref, ok := get[string](l, b, "image", each)
		return &kind.ImageSpec{Ref: ref, Platform: platform}, ok
	}
	context, _ := get[string](l, build, "context", each)
	s := &kind.ImageSpec{Platform: platform, Dir: l.path(context)}
	s.Args, _ = get[map[string]string](l, build, "args", each)
	s.Target, _ = get[string](l, build, "target", each)
	secrets, _ := get[[]decl.EnvVar](l, build, "secrets", each)
	for _, v := range secrets {
		s.Secrets = append(s.Secrets, v.Name)
	}
	file := or(l, build, "dockerfile", each, "Dockerfile")
	text, err := l.host.File(filepath.Join(s.Dir, file))
	if err != nil {
		l.errorf(at(build, "dockerfile"), each, "Dockerfile cannot be read", "%v.", err)
		return nil, false
	}
	s.Dockerfile = digest.Of(text)
	ignore, err := l.host.File(filepath.Join(s.Dir, ".dockerignore"))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		s.Context, err = l.host.Dir(s.Dir, ignoreLines(ignore))
	}
	if err != nil {
		l.errorf(at(build, "context"), each, "Build context cannot be read", "%v.", err)
		return nil, false
	}
	return s, true
}

func ignoreLines(text []byte) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		if s := strings.TrimSpace(string(line)); s != "" && !strings.HasPrefix(s, "#") {
			lines = append(lines, s)
		}
	}
	return lines
}

// adaptation is how declared nodes run a platform: natively if any can, else as the first that emulates it does. Without nodes it is native.
func (l *lowerer) adaptation(platform string) []string {
	var found []string
	done := false
	for _, b := range l.ws.Blocks {
		if b.Type != "node" || done {
			continue
		}
		l.members(b, func(m member) {
			if list, ok := l.adapts(b, m.each, platform); ok && !done {
				if found == nil {
					found = list
				}
				if len(list) == 0 {
					found, done = nil, true
				}
			}
		})
	}
	return found
}

// adapts is what a node needs to run a platform, and whether it can.
func (l *lowerer) adapts(b *decl.Block, each *decl.Each, platform string) ([]string, bool) {
	own, declared := get[string](l, b, "platform", each)
	emulate, _ := get[[]string](l, b, "emulate", each)
	var list []string
	if declared && own != platform {
		if !slices.Contains(emulate, platform) {
			return nil, false
		}
		list = append(list, "qemu")
	}
	overlay, _ := get[map[string]string](l, b, "overlay", each)
	for _, name := range slices.Sorted(maps.Keys(overlay)) {
		list = append(list, path.Base(overlay[name]))
	}
	return list, true
}
