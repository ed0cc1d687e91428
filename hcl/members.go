package hcl

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"pbuild/bench/decl"
)

// An eachScope is what for_each of a block came to.
type eachScope struct {
	at      hashihcl.Range
	dataset string       // its name, or "" for a map or set
	set     decl.Dataset // its rows; nil if they are unknown
	members []decl.Each  // of a map or set, sorted by key
	altered string       // where normalisation changed a text in members, or ""

	once sync.Once
	keys map[string]bool
}

// mayHave says whether set's rows may have a column. Where it has no rows and so no columns, those of a later time may have any.
func mayHave(set decl.Dataset, column string) bool {
	columns := set.Columns()
	_, found := slices.BinarySearch(columns, column)
	return found || len(columns) == 0
}

// len is how many members there are.
func (e *eachScope) len() int {
	if e.set != nil {
		return e.set.Len()
	}
	return len(e.members)
}

// member is the one at index i.
func (e *eachScope) member(i int) *decl.Each {
	if e.set != nil {
		return &decl.Each{Key: e.set.Key(i), Row: e.set.Row(i)}
	}
	return &e.members[i]
}

// unknown says that the members are not known before something has run.
func (e *eachScope) unknown() bool { return e.dataset != "" && e.set == nil }

// find returns the member's key that key means: itself, or in normal form, in which keys from HCL text are.
func (e *eachScope) find(key string) (string, bool) {
	e.once.Do(func() {
		e.keys = make(map[string]bool, e.len())
		for i := range e.len() {
			e.keys[e.key(i)] = true
		}
	})
	if !e.keys[key] {
		key = norm.NFC.String(key)
	}
	return key, e.keys[key]
}

func (e *eachScope) key(i int) string {
	if e.set != nil {
		return e.set.Key(i)
	}
	return e.members[i].Key
}

// someKeys are the keys for a suggestion, or none if there are too many to look through.
func (e *eachScope) someKeys() []string {
	if e.len() > manyNames {
		return nil
	}
	out := make([]string, e.len())
	for i := range out {
		out[i] = e.key(i)
	}
	return out
}

// form is e as declarations have it.
func (e *eachScope) form() *decl.ForEach {
	if e == nil {
		return nil
	}
	return &decl.ForEach{Range: rangeOf(e.at), Dataset: e.dataset, Members: e.members}
}

// resolveMembers finds the rows of all datasets and the members of all blocks.
func (l *loader) resolveMembers() {
	for _, b := range l.tops {
		if b.typ == "dataset" && l.blocks[b.address()] == b {
			l.datasets[b.labels[0]] = &dataset{block: b}
		}
	}
	for _, name := range sortedKeys(l.datasets) {
		l.resolveDataset(l.datasets[name], nil)
	}
	for _, address := range sortedKeys(l.blocks) {
		b := l.blocks[address]
		def := decl.Find(b.typ)
		a := b.body.attr("for_each")
		if a == nil || !def.Common {
			continue
		}
		l.eachs[address] = l.resolveEach(address, a)
	}
	l.warnOfNoRows()
}

// warnOfNoRows warns of datasets without rows of which something is to be made.
func (l *loader) warnOfNoRows() {
	empty := map[string]bool{}
	for _, each := range l.eachs {
		if each.set != nil && each.set.Len() == 0 {
			empty[each.dataset] = true
		}
	}
	for _, name := range sortedKeys(empty) {
		d, why := l.datasets[name], ""
		if d.of > 0 {
			why = fmt.Sprintf(": 0 of %d pass `where`", d.of)
		}
		l.warnf(d.block.at, "No rows", "%s has no rows%s. Blocks that are made of it have no members.", d.block.address(), why)
	}
}

// resolveEach evaluates for_each. It never returns nil: after a mistake there are no members.
func (l *loader) resolveEach(address string, a *attribute) *eachScope {
	out := &eachScope{at: a.expr.Range()}
	if name, ok := l.eachDataset(a); ok {
		d := l.datasets[name]
		if d == nil {
			l.undefinedBlock(out.at, "dataset", name)
			return out
		}
		l.edge(address, decl.Ref{Type: "dataset", Name: name}, out.at)
		out.dataset, out.set = name, d.rows
		return out
	}
	if !l.checkNames(a.expr, &scope{}) {
		return out
	}
	v, diags := valueOf(a.expr, l.ctx)
	l.diags.Add(foreign(diags, out.at)...)
	if diags.HasErrors() {
		return out
	}
	v, secrets, alterations := split(l.markAltered(v, a.at))
	if len(alterations) > 0 {
		out.altered = alterations[0]
	}
	switch t := v.Type(); {
	case len(secrets) > 0:
		l.errorf(out.at, "Sensitive value in for_each", "The members of a block are shown in addresses, but this comes from the sensitive %s.", variables(secrets))
	case !v.IsWhollyKnown():
	case v.IsNull():
		l.errorf(out.at, "Wrong type", "for_each: a dataset, a map or a set of strings is required here, not null.")
	case t.IsMapType() || t.IsObjectType():
		for k, e := range v.AsValueMap() {
			out.members = append(out.members, decl.Each{Key: k, Value: fromCty(e)})
		}
	case t.IsSetType() && t.ElementType() == cty.String:
		for _, e := range v.AsValueSlice() {
			if e.IsNull() {
				l.errorf(out.at, "Wrong type", "for_each: a set of strings may not hold null.")
				continue
			}
			out.members = append(out.members, decl.Each{Key: e.AsString(), Value: e.AsString()})
		}
	case t.IsSetType() && v.LengthInt() == 0:
	default:
		l.errorf(out.at, "Wrong type", "for_each: a dataset, a map or a set of strings is required here, not %s. toset([...]) makes a set of a list of strings.", t.FriendlyName())
	}
	slices.SortFunc(out.members, func(a, b decl.Each) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// eachDataset is the name of the dataset that for_each names, if it does.
func (l *loader) eachDataset(a *attribute) (string, bool) {
	t, ok := a.reference().(*hclsyntax.ScopeTraversalExpr)
	if !ok || t.Traversal.RootName() != "dataset" || len(t.Traversal) != 2 {
		return "", false
	}
	return step(t.Traversal, 1)
}

// undefinedBlock reports a reference to a block that does not exist.
func (l *loader) undefinedBlock(at hashihcl.Range, typ, name string) {
	var names []string
	for _, b := range l.blocks {
		if b.typ == typ {
			names = append(names, b.name())
		}
	}
	remedy := didYouMean(name, names)
	if remedy == "" {
		remedy = " Declare it, or correct the name"
		if slices.Sort(names); len(names) > 0 && len(names) <= 10 {
			remedy += ": there is " + strings.Join(names, ", ")
		}
		remedy += "."
	}
	l.errorf(at, "Undefined block", "There is no %s %q.%s", typ, name, remedy)
}
