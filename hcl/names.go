package hcl

import (
	"bytes"
	"fmt"
	"path"
	"slices"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"pbuild/bench/decl"
)

// A scope is what an expression may name beside functions.
type scope struct {
	plain   bool              // nothing: for variables' defaults and values
	each    *eachScope        // each.key and each.value; nil where there is no for_each
	row     func(string) bool // row.COLUMN: whether there is such a column; nil outside `where`
	rows    func() []string   // its columns, for suggestions
	secrets bool              // sensitive values may decide: in validations of variables
	nested  string            // the types of the nested blocks that hold the expression, joined by slashes
}

// in is the scope of a block that is nested in that of s.
func (s *scope) in(typ string) *scope {
	out := *s
	out.nested = path.Join(s.nested, typ)
	return &out
}

// checkNames reports every name in e that does not exist, and says whether all do. Nothing is evaluated: an undefined name is an undefined name,
// whatever else is wrong.
func (l *loader) checkNames(e hclsyntax.Expression, s *scope) bool {
	ok := true
	for _, t := range e.Variables() {
		ok = l.checkName(t, s) && ok
	}
	return l.checkFunctions(e) && ok
}

func (l *loader) checkName(t hashihcl.Traversal, s *scope) bool {
	root, at := t.RootName(), t.SourceRange()
	name, named := step(t, 1)
	switch {
	case s.plain:
		l.errorf(at, "Not a constant", "%s cannot stand here: the value of a variable is a constant.", root)
	case (root == "var" || root == "local") && !named:
		l.errorf(at, "Incomplete name", "%s is not a value: name one, as %s.NAME.", root, root)
	case root == "var" && l.variables[name] == nil:
		l.errorf(at, "Undefined name", "There is no variable %q.%s", name, didYouMean(name, sortedKeys(l.variables)))
	case root == "local" && l.locals[name] == nil:
		l.errorf(at, "Undefined name", "There is no local value %q.%s", name, didYouMean(name, sortedKeys(l.locals)))
	case root == "var" || root == "local":
		return true
	case root == "each":
		return l.checkEach(t, s)
	case root == "row" && s.row != nil:
		if !named {
			l.errorf(at, "Incomplete name", "row is not a value: name a column, as row.COLUMN.")
			return false
		}
		if !s.row(name) {
			l.errorf(at, "Undefined name", "No row has a column %q.%s", name, didYouMean(name, s.rows()))
			return false
		}
		return true
	case root == "row":
		l.errorf(at, "Undefined name", "row is known only in `where` of a dataset.")
	case root == "dataset":
		l.errorf(at, "Block is not a value", "A dataset may stand only in for_each and where an attribute takes a dataset, never in an expression.")
	case slices.Contains(decl.Referable, root):
		l.errorf(at, "Block is not a value", "%s names a block. A reference stands alone, in an attribute that takes one.", t.RootName()+"."+name)
	default:
		roots := append([]string{"var", "local", "each"}, decl.Referable...)
		remedy := "Text stands in quotes."
		if l.inTemplate(at) {
			remedy = fmt.Sprintf("Within quotes ${ begins a template: for a variable of the shell's write $${%s} or $%s.", root, root)
		}
		l.errorf(at, "Undefined name", "There is nothing named %q.%s %s", root, didYouMean(root, roots), remedy)
	}
	return false
}

// inTemplate says whether a name is the first of a template's part.
func (l *loader) inTemplate(at hashihcl.Range) bool {
	src := l.sources[at.Filename]
	return at.Start.Byte <= len(src) && bytes.HasSuffix(bytes.TrimRight(src[:at.Start.Byte], " ~"), []byte("${"))
}

func (l *loader) checkEach(t hashihcl.Traversal, s *scope) bool {
	at := t.SourceRange()
	if s.each == nil {
		l.errorf(at, "Undefined name", "each is known only in a block with for_each.")
		return false
	}
	part, _ := step(t, 1)
	switch part {
	case "key":
		return true
	case "value":
		column, named := step(t, 2)
		if named && s.each.set != nil && !mayHave(s.each.set, column) {
			l.errorf(at, "Undefined name", "No row of dataset.%s has a column %q.%s", s.each.dataset, column, didYouMean(column, s.each.set.Columns()))
			return false
		}
		return true
	}
	l.errorf(at, "Undefined name", "each has a key and a value: each.key, each.value.")
	return false
}

// step is the name in t at index i: .name or ["name"].
func step(t hashihcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch s := t[i].(type) {
	case hashihcl.TraverseAttr:
		return s.Name, true
	case hashihcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// checkFunctions reports calls of functions that do not exist.
func (l *loader) checkFunctions(e hclsyntax.Expression) bool {
	ok := true
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hashihcl.Diagnostics {
		if call, isCall := n.(*hclsyntax.FunctionCallExpr); isCall {
			if _, known := l.functions[call.Name]; !known {
				l.errorf(call.NameRange, "Undefined function", "There is no function %q.%s", call.Name, didYouMean(call.Name, sortedKeys(l.functions)))
				ok = false
			}
		}
		return nil
	})
	return ok
}

// callsFiles says whether e reads files when it is evaluated.
func callsFiles(e hclsyntax.Expression) bool {
	found := false
	hclsyntax.VisitAll(e, func(n hclsyntax.Node) hashihcl.Diagnostics {
		call, isCall := n.(*hclsyntax.FunctionCallExpr)
		found = found || isCall && (call.Name == "file" || call.Name == "fileset")
		return nil
	})
	return found
}
