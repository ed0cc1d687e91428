package lower

import (
	"time"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
	"pbuild/engine/task"
)

// handshake lowers every runtime on every node.
func (l *lowerer) handshake(b *decl.Block, out *lowered) {
	maxAge := or(l, b, "max_age", nil, 24*time.Hour)
	tags, _ := get[[]string](l, b, "tags", nil)
	runtimes, _ := get[[]decl.Ref](l, b, "runtimes", nil)
	nodes, _ := get[[]decl.Ref](l, b, "nodes", nil)
	for _, ref := range runtimes {
		if r := l.ws.Find(ref.Type, ref.Name); r != nil {
			l.lower(r)
		}
	}
	l.under(b, nil, func() {
		l.many(runtimes, at(b, "runtimes"), func(rb *decl.Block, r member) {
			platforms := l.platforms(rb, r.each)
			probe, _ := get[[]string](l, rb, "probe", r.each)
			l.many(nodes, at(b, "nodes"), func(nb *decl.Block, n member) {
				for _, platform := range platforms {
					adapted, ok := l.adapts(nb, n.each, platform)
					if !ok {
						continue
					}
					env := l.environment(rb, r.each, platform)
					if env == nil {
						return
					}
					id := l.add(task.Task{MaxAge: maxAge, Deps: env.imageDep(),
						Spec: &kind.HandshakeSpec{Probe: probe, Platform: platform, Adaptation: adapted, Node: n.key}})
					index := []string{r.key, n.key}
					out.objects = append(out.objects, task.Object{Class: task.ClassHandshake, Block: b.Address(), Index: index, Tags: tags, Steps: []task.Step{{Task: id}}})
					out.cells = append(out.cells, cell{outcome: id, verdict: task.None,
						Cell: kind.Cell{Instance: r.key, Agent: n.key, Address: (task.Address{Block: b.Address(), Index: index}).String()}})
					return
				}
				l.errorf(at(b, "nodes"), n.each, "Node cannot run the runtime", "%s offers none of the platforms of %s: %v.",
					memberName(nb, n.each), memberName(rb, r.each), platforms)
			})
		})
	})
}
