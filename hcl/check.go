package hcl

import (
	"slices"
	"strings"

	"pbuild/bench/decl"
)

// checkCondition evaluates a block with condition and error_message for each member, and reports those for which it is false.
func (l *loader) checkCondition(n *block, s *scope, def *decl.BlockDef, summary, address string) {
	condAttr, messageAttr := n.body.attr("condition"), n.body.attr("error_message")
	if condAttr == nil || messageAttr == nil {
		return // said before
	}
	cond := l.compile(condAttr, def.Attr("condition"), s, address)
	message := l.compile(messageAttr, def.Attr("error_message"), &scope{each: s.each}, address) // which is shown
	if cond == nil || message == nil {
		return
	}
	t := &tally{l: l}
	check := func(each *decl.Each) {
		v, d := cond.Eval(each)
		if d != nil || v == true {
			t.add(d)
			return
		}
		said, d := message.Eval(each)
		if d != nil {
			t.add(d)
			return
		}
		out := errorAt(condAttr.expr.Range(), summary, "%v", said)
		out.Address, out.Row = each.Address(address), each.Place()
		t.add(out)
	}
	if s.each == nil {
		check(nil)
	} else {
		for i := range s.each.len() {
			check(s.each.member(i))
		}
	}
	t.finish(condAttr.at)
}

// checkEdges looks for blocks that refer to each other in a circle. An edge to one member may lead to another member of the same block, so only
// references to whole blocks count.
func (l *loader) checkEdges() {
	phases := map[string]phase{}
	var path []string
	var visit func(address string, from edge)
	visit = func(address string, from edge) {
		switch phases[address] {
		case closed:
			return
		case open:
			cycle := append(slices.Clone(path[slices.Index(path, address):]), address)
			if slices.ContainsFunc(cycle, func(member string) bool { return l.cyclic[member] }) {
				return // said when the rows were found
			}
			l.errorf(from.at, "Reference cycle", "Blocks refer to each other in a circle: %s. Take one of these references away.", strings.Join(cycle, " -> "))
			return
		}
		phases[address] = open
		path = append(path, address)
		for _, e := range l.edges[address] {
			if !e.one {
				visit(e.to, e)
			}
		}
		path = path[:len(path)-1]
		phases[address] = closed
	}
	for _, address := range sortedKeys(l.edges) {
		visit(address, edge{})
	}
}

// checkWhole checks what one block alone does not tell.
func (l *loader) checkWhole(w *decl.Workspace) {
	for _, b := range w.Blocks {
		switch b.Type {
		case "agent":
			l.checkAgent(b)
		case "runtime":
			if b.Nested("host") != nil && b.Attrs["probe"] == nil && l.blocks[b.Address()].body.attr("probe") == nil {
				l.diags.Errorf(b.Range, "Missing attribute", "%s is this machine itself, so that it needs probe: a command whose output tells one machine's tools from another's.", b.Address())
			}
		}
	}
}

// checkAgent demands what an agent's kind needs.
func (l *loader) checkAgent(b *decl.Block) {
	needs := map[string]string{"predictions": "file", "command": "command"}
	a := b.Attrs["kind"]
	if a == nil || !a.Expr.Const() {
		return
	}
	kind, _ := a.Expr.Eval(nil)
	body := l.blocks[b.Address()].body
	for _, name := range []string{"predictions", "command"} {
		need := needs[name]
		switch given := body.attr(need); {
		case kind == name && given == nil:
			l.diags.Errorf(b.Range, "Missing attribute", "%s is of the kind %q, which needs %s.", b.Address(), kind, need)
		case kind != name && given != nil:
			l.errorf(given.nameAt, "Unused attribute", "%s belongs to agents of the kind %q, and %s is of the kind %q.", need, name, b.Address(), kind)
		}
	}
}
