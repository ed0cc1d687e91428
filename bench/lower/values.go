package lower

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"pbuild/bench/decl"
	"pbuild/bench/kind"
)

// get evaluates an attribute; one that does not depend on the member is evaluated once. A missing or null attribute is the zero T, false.
func get[T any](l *lowerer, b *decl.Block, name string, each *decl.Each) (T, bool) {
	var a *decl.Attr
	if b != nil {
		a = b.Attrs[name]
	}
	if a == nil {
		var zero T
		return zero, false
	}
	v, ok := l.consts[a]
	if !ok {
		var d *decl.Diagnostic
		if v, d = a.Expr.Eval(each); d != nil {
			l.diags.Add(*d)
			v = nil
		}
		if a.Expr.Const() {
			l.consts[a] = v
		}
	}
	return decl.As[T](a, v)
}

// or is get with a default.
func or[T any](l *lowerer, b *decl.Block, name string, each *decl.Each, otherwise T) T {
	if v, ok := get[T](l, b, name, each); ok {
		return v
	}
	return otherwise
}

// at is where an attribute stands, or its block where it is not given.
func at(b *decl.Block, name string) decl.Range {
	if a := b.Attrs[name]; a != nil {
		return a.Range
	}
	return b.Range
}

func (l *lowerer) errorf(r decl.Range, each *decl.Each, summary, format string, args ...any) {
	l.diags.Add(decl.Diagnostic{Severity: decl.Error, Summary: summary, Detail: fmt.Sprintf(format, args...), Range: r, Row: each.Place()})
}

// A member is one member of a block. Its each is valid only while it is visited.
type member struct {
	key   string // each.key, or the label of a block without for_each
	index []string
	each  *decl.Each
	count int // how many members the block has
}

// members visits every member of a block.
func (l *lowerer) members(b *decl.Block, visit func(member)) {
	if b.ForEach == nil {
		visit(member{key: b.Name, count: 1})
		return
	}
	n := l.count(b)
	indices := make([]string, n)
	var each decl.Each
	for i := range n {
		each = *l.nth(b, i, &each)
		indices[i] = each.Key
		visit(member{key: each.Key, index: indices[i : i+1 : i+1], each: &each, count: n})
	}
}

func (l *lowerer) count(b *decl.Block) int {
	if b.ForEach.Dataset == "" {
		return len(b.ForEach.Members)
	}
	if set := l.ws.Datasets[b.ForEach.Dataset]; set != nil {
		return set.Len()
	}
	return 0
}

// nth is member i of a block with for_each; scratch may be used for it.
func (l *lowerer) nth(b *decl.Block, i int, scratch *decl.Each) *decl.Each {
	if b.ForEach.Dataset == "" {
		return &b.ForEach.Members[i]
	}
	set := l.ws.Datasets[b.ForEach.Dataset]
	*scratch = decl.Each{Key: set.Key(i), Row: set.Row(i)}
	return scratch
}

func memberName(b *decl.Block, each *decl.Each) string {
	if each == nil {
		return b.Address()
	}
	return decl.Ref{Type: b.Type, Name: b.Name, Key: each.Key, One: true}.String()
}

// find is the member of b with the given key.
func (l *lowerer) find(b *decl.Block, key string) (*decl.Each, bool) {
	if b.ForEach == nil {
		return nil, false
	}
	keys := l.rows[b]
	if keys == nil {
		n := l.count(b)
		keys = make(map[string]int, n)
		var each decl.Each
		for i := range n {
			keys[l.nth(b, i, &each).Key] = i
		}
		l.rows[b] = keys
	}
	i, ok := keys[key]
	if !ok {
		return nil, false
	}
	return l.nth(b, i, new(decl.Each)), true
}

// one resolves a reference that must name one member, and returns that with its block.
func (l *lowerer) one(ref decl.Ref, r decl.Range, from *decl.Each) (*decl.Block, *decl.Each, bool) {
	b := l.ws.Find(ref.Type, ref.Name)
	if b == nil {
		l.errorf(r, from, "Undefined name", "There is no %s.", ref)
		return nil, nil, false
	}
	if ref.One {
		each, ok := l.find(b, ref.Key)
		if !ok {
			l.errorf(r, from, "Undefined member", "%s has no member %q.", b.Address(), ref.Key)
		}
		return b, each, ok
	}
	if b.ForEach != nil {
		l.errorf(r, from, "Reference to all members", "%s has many members; one is %s[KEY].", ref, ref)
		return nil, nil, false
	}
	return b, nil, true
}

// many visits every member that a list of references names, in order. No two may have one name, for they are an axis.
func (l *lowerer) many(refs []decl.Ref, r decl.Range, visit func(b *decl.Block, m member)) {
	seen := map[string]decl.Ref{}
	for _, ref := range refs {
		b := l.ws.Find(ref.Type, ref.Name)
		if b == nil {
			l.errorf(r, nil, "Undefined name", "There is no %s.", ref)
			continue
		}
		found := false
		l.members(b, func(m member) {
			if ref.One && m.key != ref.Key {
				return
			}
			found = true
			here := decl.Ref{Type: b.Type, Name: b.Name, Key: m.key, One: m.each != nil}
			if l.axis(seen, m.key, here, r) {
				visit(b, m)
			}
		})
		if ref.One && !found {
			l.errorf(r, nil, "Undefined member", "%s has no member %q.", b.Address(), ref.Key)
		}
	}
}

// axis says whether a name is new on its axis, and reports one that is not.
func (l *lowerer) axis(seen map[string]decl.Ref, name string, here decl.Ref, r decl.Range) bool {
	if first, ok := seen[name]; ok {
		l.errorf(r, nil, "Two members of one name", "%s and %s are both named %q here, and their addresses would be equal. Rename one or leave it out.", first, here, name)
		return false
	}
	seen[name] = here
	return true
}

// singles are the types of blocks whose members would have no address.
var singles = []string{"gate", "matrix", "handshake", "report"}

// checkSingles reports each for_each in such a block, whose attributes can then not be evaluated.
func (l *lowerer) checkSingles() {
	for _, b := range l.ws.Blocks {
		if b.ForEach != nil && slices.Contains(singles, b.Type) {
			l.errorf(b.ForEach.Range, nil, "for_each is not supported here", "A %s has no members of its own: its parts are addressed by what it is over. Declare one block for each.", b.Type)
		}
	}
}

// path is absolute, whatever the workspace says.
func (l *lowerer) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(l.ws.Dir, p)
}

// unread reports a file or directory that could not be read, by the name that the user gave it.
func (l *lowerer) unread(r decl.Range, each *decl.Each, summary, name string, err error) {
	if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(name) {
		l.errorf(r, each, summary, "%s does not exist in the workspace; paths are relative to its directory.", name)
		return
	}
	l.errorf(r, each, summary, "%s.", strings.TrimSuffix(strings.ReplaceAll(err.Error(), l.ws.Dir+string(filepath.Separator), ""), "."))
}

func data(b decl.Bytes) kind.Data { return kind.Data{Digest: b.Digest, Bytes: b.Data} }

// sorted is a sorted copy without repetitions.
func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
