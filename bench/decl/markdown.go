package decl

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed language_intro.md
var languageIntro string

// Markdown is docs/language.md: the language in prose, then every block and attribute of the table.
func Markdown() string {
	var b strings.Builder
	b.WriteString(languageIntro)
	b.WriteString("\n## Blocks\n\nK: the value is in keys, so that another one makes the tasks concerned run again. Later: read and checked, but pbuild does not run it yet and says so.\n")
	b.WriteString("\nBlocks marked *common* have besides:\n\n")
	attributes(&b, Common, 0)
	nested(&b, &Precondition, 0)
	for i := range Table {
		block := &Table[i]
		fmt.Fprintf(&b, "\n### %s\n\n%s%s\n", header(block), marks(block), block.Doc)
		content(&b, block, 0)
	}
	return b.String()
}

func header(d *BlockDef) string {
	if d.Label {
		return d.Type + " NAME"
	}
	return d.Type
}

func marks(d *BlockDef) string {
	var m []string
	if d.Common {
		m = append(m, "common")
	}
	if d.Later {
		m = append(m, "later")
	}
	if len(m) == 0 {
		return ""
	}
	return "*" + strings.Join(m, ", ") + "*. "
}

// content writes what a block holds.
func content(b *strings.Builder, d *BlockDef, depth int) {
	for _, group := range d.OneOf {
		what := "One of " + code(group) + " must be given."
		if len(group) == 1 {
			what = code(group) + " must be given."
		}
		fmt.Fprintf(b, "\n%s%s\n", indent(depth), what)
	}
	if d.Free {
		fmt.Fprintf(b, "\n%sAny attributes.\n", indent(depth))
	}
	if len(d.Attrs) > 0 {
		b.WriteString("\n")
		attributes(b, d.Attrs, depth)
	}
	for i := range d.Blocks {
		nested(b, &d.Blocks[i], depth)
	}
}

func nested(b *strings.Builder, d *BlockDef, depth int) {
	many := ""
	if d.Many {
		many = "any number; "
	}
	if d.Later {
		many += "later; "
	}
	fmt.Fprintf(b, "\n%s- `%s { }`: %s%s\n", indent(depth), d.Type, many, d.Doc)
	content(b, d, depth+1)
}

func attributes(b *strings.Builder, attrs []AttrDef, depth int) {
	fmt.Fprintf(b, "%s| attribute | type | default | | |\n%s|---|---|---|---|---|\n", indent(depth), indent(depth))
	for i := range attrs {
		a := &attrs[i]
		key := ""
		if a.Keyed {
			key = "K"
		}
		fmt.Fprintf(b, "%s| `%s` | %s | %s | %s | %s |\n", indent(depth), a.Name, a.typeName(), a.defaultText(), key, a.docText())
	}
}

func (a *AttrDef) defaultText() string {
	switch {
	case a.Required:
		return "required"
	case a.Default == "":
		return ""
	case strings.ContainsAny(a.Default[:1], `"[0123456789`) || a.Default == "true" || a.Default == "false":
		return "`" + a.Default + "`"
	}
	return a.Default
}

func (a *AttrDef) docText() string {
	text := a.Doc
	if len(a.OneOf) > 0 {
		text += " One of " + code(a.OneOf) + "."
	}
	if len(a.NoneOf) > 0 {
		text += " None of " + code(a.NoneOf) + "."
	}
	if len(a.Soon) > 0 {
		text += " Later: " + code(a.Soon) + "."
	}
	if len(a.Needs) > 0 {
		text += " Needs " + code(a.Needs) + "."
	}
	if a.Later {
		text += " Later."
	}
	return text
}

// typeName is the type as the documentation names it.
func (a *AttrDef) typeName() string {
	switch a.Type {
	case RefType:
		return "reference to " + code(a.Refs)
	case Refs:
		if len(a.Refs) == len(Referable) {
			return "references"
		}
		return "references to " + code(a.Refs)
	}
	if a.Alone {
		return "string or list of strings"
	}
	return typeNames[a.Type]
}

var typeNames = map[Type]string{
	String: "string", Bool: "bool", Int: "whole number", Number: "number", Duration: "duration", Size: "size", Strings: "list of strings",
	StringMap: "map of strings", Env: "map of strings, sensitive ones too", BytesType: "bytes", Any: "any", Secret: "string, sensitive too", Condition: "condition",
}

func code(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

func indent(depth int) string { return strings.Repeat("  ", depth) }
