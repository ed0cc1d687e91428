// Package decl is what the language declares, free of its syntax: blocks, attributes with typed expressions, references, rows,
// diagnostics, and the table of attributes (table.go) from which decoder, documentation and editor support come.
//
// Package hcl makes these values from text, package lower makes tasks from them. Nothing here reads a file.
package decl

import (
	"fmt"
	"strconv"

	"pbuild/engine/digest"
)

// A Workspace is every declaration of a directory, resolved and type-checked.
type Workspace struct {
	Dir      string             // absolute
	Blocks   []*Block           // in order of type and name, so that no result depends on the order in the files
	Datasets map[string]Dataset // by name; rows known now
	Unknown  []UnknownRows      // datasets whose rows are not, by name
	Held     map[string]bool    // addresses of blocks that wait for such rows: they have no members yet
	Read     []Read             // everything that was read to get here
	Secrets  map[string]string  // sensitive variables: name to value, for redaction and for the processes that need them
}

// UnknownRows says that a dataset's file is made by what may have to run first.
type UnknownRows struct {
	Dataset string
	Makers  []Ref
	Last    int // how many rows the file has now; -1 if that cannot be told
}

// A Read is a file or directory that loading looked at, so that a later plan can tell whether anything has changed.
type Read struct {
	Path   string        // absolute
	Dir    bool          // its listing was read
	Match  []string      // of a directory: only names that match one of these patterns (path/filepath.Match) count; nil: all
	Absent bool          // it was looked for and was not there
	Digest digest.Digest // of a file's bytes, or of the set of a directory's names that count
}

// Find returns the block with the given type and name, or nil.
func (w *Workspace) Find(typ, name string) *Block {
	for _, b := range w.Blocks {
		if b.Type == typ && b.Name == name {
			return b
		}
	}
	return nil
}

// A Block is one declared block: TYPE NAME { ... }, or a nested one, which has no name.
type Block struct {
	Type, Name string
	Range      Range
	ForEach    *ForEach // nil: one member, whose index is nil
	Attrs      map[string]*Attr
	Blocks     []*Block // nested, in order
}

// Address is TYPE.NAME.
func (b *Block) Address() string { return b.Type + "." + b.Name }

// Nested returns the first nested block of the given type, or nil.
func (b *Block) Nested(typ string) *Block {
	for _, n := range b.Blocks {
		if n.Type == typ {
			return n
		}
	}
	return nil
}

// A ForEach says which members a block has.
type ForEach struct {
	Range   Range
	Dataset string // a dataset's name: one member a row
	Members []Each // else these, sorted by key
}

// Each is one member of a block with for_each: what `each` means while its attributes are evaluated. A nil *Each is the only member of a block without one.
type Each struct {
	Key   string
	Row   Row // of a dataset; nil for a map or set
	Value any // of a map or set: nil, bool, float64, Decimal, string, []any, map[string]any
}

// Address is that of the member of a block, TYPE.NAME["KEY"]; the block's own where there is no member.
func (e *Each) Address(block string) string {
	if e == nil || block == "" || e.Key == "" {
		return block
	}
	return memberAddress(block, e.Key)
}

// Place is where the member's row stands; "" where it has none.
func (e *Each) Place() string {
	if e == nil || e.Row == nil {
		return ""
	}
	return Place(e.Row)
}

// Place is FILE:LINE, as diagnostics name a row.
func Place(r Row) string {
	file, line := r.Pos()
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func memberAddress(block, key string) string { return block + "[" + strconv.Quote(key) + "]" }

// A Dataset is an ordered set of rows with unique identities.
type Dataset interface {
	Len() int
	Key(i int) string
	Row(i int) Row
	Columns() []string // sorted
}

// A Row is one row of a dataset. A column that the row lacks is nil.
type Row interface {
	// Value is nil, bool, float64, Decimal, string, []any or map[string]any.
	Value(column string) any
	// Bytes is a string column's raw bytes, which no normalisation has touched; false if the value is not a string.
	Bytes(column string) ([]byte, bool)
	// Pos is where the row stands; line is 1 or more, or 0 if the format has none.
	Pos() (file string, line int)
	Digest() digest.Digest
}

// A GatedRow is one of its dataset only if each of its gates admits the instance with the row's key.
type GatedRow interface {
	Row
	Gates() []string // their names, in order: the instances of each are made of what those before it admit
}

// Gates are the gates that are to admit a row; none for one that is there in any case.
func Gates(r Row) []string {
	if g, ok := r.(GatedRow); ok {
		return g.Gates()
	}
	return nil
}

// An Attr is NAME = EXPRESSION.
type Attr struct {
	Name  string
	Range Range // of the whole definition
	Expr  Expr
}

// An Expr is a compiled expression, checked against its attribute's type as far as that is possible without rows.
type Expr interface {
	// Eval returns the value in the Go form of the attribute's Type, or nil for null. A diagnostic names row and line.
	Eval(each *Each) (any, *Diagnostic)
	// Const says that Eval does not depend on each.
	Const() bool
}

// A Ref names a declared block, or one member of it.
type Ref struct {
	Type, Name string
	Key        string
	One        bool // the member Key; else the block: all its members
}

func (r Ref) String() string {
	block := r.Type + "." + r.Name
	if r.One {
		return memberAddress(block, r.Key)
	}
	return block
}

// Bytes is the value of a bytes attribute: exactly what the file or row held.
type Bytes struct {
	Data   []byte
	Digest digest.Digest
}

// An EnvVar is one variable of a command's environment. Secret is the name of the sensitive variable that its value comes from: then
// name and Secret, but never Value, may enter a key.
type EnvVar struct{ Name, Value, Secret string }

// As is the value of attribute a as a T; null, like a mistake, is the zero T, false. It panics if T is not the Go form of the attribute's type.
func As[T any](a *Attr, v any) (T, bool) {
	t, ok := v.(T)
	if !ok && v != nil {
		panic(fmt.Sprintf("pbuild bug: attribute %s is a %T, not a %T", a.Name, v, t))
	}
	return t, ok
}

// Constant is the value of an attribute that no member changes; zero, false where b is nil or does not have it.
func Constant[T any](b *Block, name string) (t T, ok bool) {
	if b == nil || b.Attrs[name] == nil {
		return t, false
	}
	v, _ := b.Attrs[name].Expr.Eval(nil) // what is wrong with it, its compiler has said
	return As[T](b.Attrs[name], v)
}

// Type is an attribute's type; its comment is the Go form that Eval returns.
type Type uint8

const (
	String    Type = iota // string
	Bool                  // bool
	Int                   // int64
	Number                // float64
	Duration              // time.Duration, from "60m" or "1h"
	Size                  // int64 bytes, from "10MiB"
	Strings               // []string
	StringMap             // map[string]string
	Env                   // []EnvVar, sorted by name
	BytesType             // Bytes
	RefType               // Ref, to one of AttrDef.Refs
	Refs                  // []Ref, from one reference or a list of them
	Any                   // nil, bool, float64, Decimal, string, []any, map[string]any
	Secret                // EnvVar: one value that may be sensitive
	Condition             // bool: evaluated when asked for, over `row` or `each`
)

// An AttrDef is one attribute of the table.
type AttrDef struct {
	Name     string
	Type     Type
	Refs     []string // for RefType and Refs: block types that it may name
	Required bool
	Default  string   // as written in the documentation; "" for none
	OneOf    []string // for String and Strings: the values allowed
	NoneOf   []string // for String, Strings and Env: values, or names, that are not allowed
	Alone    bool     // for Strings: one string stands for a list of one
	Soon     []string // of OneOf: values that are Later
	Needs    []string // attributes or nested blocks that must be given too
	Min      int64    // for Int: the least value
	Keyed    bool     // in a key
	Later    bool     // parsed and checked, but does not run yet: a warning says so
	Doc      string
}

// A BlockDef is one block of the table.
type BlockDef struct {
	Type   string
	Label  bool // takes a name
	Attrs  []AttrDef
	Blocks []BlockDef // nested; each at most once unless Many
	Many   bool
	Free   bool       // any attribute: locals, provenance, sampling; a block that is Free and Later holds anything
	OneOf  [][]string // exactly one of each group of attributes or nested blocks is to be given
	Common bool       // has for_each, depends_on, tags and precondition
	Later  bool
	Doc    string
}
