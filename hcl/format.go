package hcl

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"pbuild/bench/decl"
)

// Format is a file in canonical form; file is its name in diagnostics. Text that does not parse is not formatted.
// A JSON file, whose form is other tools' affair, comes back as it is.
func Format(src []byte, file string) ([]byte, decl.Diagnostics) {
	if strings.HasSuffix(file, ".json") {
		return src, nil
	}
	if _, diags := parseNative(src, file); diags.HasErrors() {
		return nil, diags.Sort()
	}
	if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		src = append(bytes.Clone(src), '\n')
	}
	return hclwrite.Format(src), nil
}
