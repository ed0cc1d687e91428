package decl

import (
	"cmp"
	"path"
	"slices"
)

// Wildcards are what makes a path of the language a pattern.
const Wildcards = "*?[{"

// extensions are those of formats that have another than their name.
var extensions = map[string]string{"latex": "tex"}

// ReportFiles are the formats of a report and the file of each, relative to the workspace and as the user wrote it.
func (w *Workspace) ReportFiles(b *Block) (formats, files []string) {
	stem, ok := Constant[string](b, "path")
	if !ok {
		dir, ok := Constant[string](w.Find("pbuild", ""), "report_dir")
		if !ok {
			dir = "reports"
		}
		stem = path.Join(dir, b.Name)
	}
	all, ok := Constant[[]string](b, "formats")
	if !ok {
		all = []string{"md"}
	}
	for _, f := range all {
		if !slices.Contains(formats, f) {
			formats, files = append(formats, f), append(files, stem+"."+cmp.Or(extensions[f], f))
		}
	}
	return formats, files
}
