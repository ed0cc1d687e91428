// Package formats reads what other harnesses exchange: predictions of SWE-bench, SWE-bench Pro and mini-SWE-agent.
//
// Patches are bytes: what a file holds between its quotes, unescaped, is what comes out, with no line break added or changed. The package runs
// nothing and opens no file.
package formats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"pbuild/bench/decl"
)

// A Prediction is one candidate patch.
type Prediction struct {
	Instance string
	Patch    []byte // empty for a null patch
	Line     int    // where it begins
}

// ParsePredictions reads a .jsonl file (an object a line), a .json list of objects, or a .json object keyed by instance (mini-SWE-agent's
// preds.json), and returns its predictions sorted by instance. An object has instance_id, and model_patch or, in SWE-bench Pro, patch. An
// instance that occurs twice is an error that shows both places, a key that contradicts its object's instance_id another.
func ParsePredictions(name string, data []byte) ([]Prediction, decl.Diagnostics) {
	r := reader{name: name, data: data}
	for i, c := range data {
		if c == '\n' {
			r.breaks = append(r.breaks, i)
		}
	}
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	start := len(data) - len(trimmed)
	switch {
	case strings.HasSuffix(name, ".jsonl"):
		r.lines()
	case len(trimmed) == 0:
		r.errorf(1, "Empty predictions file", "It holds no JSON. An empty list is [].")
	case trimmed[0] == '[':
		r.list(start)
	case trimmed[0] == '{':
		r.object(start)
	default:
		r.errorf(r.line(start), "Not a predictions file", "It begins with neither [ nor {. A file with an object a line is to end in .jsonl.")
	}
	return r.finish()
}

type reader struct {
	name   string
	data   []byte
	breaks []int // offsets of line feeds
	found  []Prediction
	diags  decl.Diagnostics
}

// line is the number of the line that holds offset.
func (r *reader) line(offset int) int {
	n, _ := slices.BinarySearch(r.breaks, offset)
	return n + 1
}

func (r *reader) errorf(line int, summary, format string, args ...any) {
	r.diags.Errorf(decl.Range{File: r.name, Line: line, Col: 1, EndLine: line, EndCol: 1}, summary, format, args...)
}

// lines reads an object a line. A bad line does not hide the others.
func (r *reader) lines() {
	at := 0
	for line := range bytes.Lines(r.data) {
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if len(text) > 0 {
			r.entry("", text, r.line(at))
		}
		at += len(line)
	}
}

// list reads [ {...}, ... ].
func (r *reader) list(start int) {
	d := json.NewDecoder(bytes.NewReader(r.data[start:]))
	d.Token()
	for d.More() {
		at := r.next(start + int(d.InputOffset()))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			r.syntax(start)
			return
		}
		r.entry("", raw, r.line(at))
	}
	r.end(start, d)
}

// object reads { "ID": {...}, ... }.
func (r *reader) object(start int) {
	d := json.NewDecoder(bytes.NewReader(r.data[start:]))
	d.Token()
	for d.More() {
		at := r.next(start + int(d.InputOffset()))
		key, err := d.Token()
		if err != nil {
			r.syntax(start)
			return
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			r.syntax(start)
			return
		}
		if key == "instance_id" && len(raw) > 0 && raw[0] == '"' {
			r.errorf(r.line(at), "Not a predictions file", "It is one prediction. Put it in a list, or give the file a name that ends in .jsonl.")
			return
		}
		r.entry(key.(string), raw, r.line(at)) // More has seen an object's member, whose key is a string
	}
	r.end(start, d)
}

// end reads the closing bracket and demands that nothing follows it.
func (r *reader) end(start int, d *json.Decoder) {
	if _, err := d.Token(); err != nil {
		r.syntax(start)
		return
	}
	if _, err := d.Token(); err != io.EOF {
		r.errorf(r.line(r.next(start+int(d.InputOffset()))), "Not JSON", "Something follows the end of the list. A file with an object a line is to end in .jsonl.")
	}
}

// next skips to where a value begins.
func (r *reader) next(offset int) int {
	for offset < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[offset]) >= 0 {
		offset++
	}
	return offset
}

// syntax says where the file is no JSON. A Decoder's errors count from where it stood; the whole text's are absolute.
func (r *reader) syntax(start int) {
	err := json.Unmarshal(r.data[start:], new(json.RawMessage))
	at := len(r.data)
	if s, ok := err.(*json.SyntaxError); ok {
		at = start + int(s.Offset) - 1
	}
	r.errorf(r.line(min(at, len(r.data)-1)), "Not JSON", "%v.", err)
}

// entry reads one object; key is its key in a file that has one.
func (r *reader) entry(key string, raw []byte, line int) {
	var e struct {
		Instance *string         `json:"instance_id"`
		Patch    json.RawMessage `json:"model_patch"`
		Pro      json.RawMessage `json:"patch"`
	}
	if raw[0] == '[' {
		r.errorf(line, "Not a prediction", "Here is a list, and to be an object with instance_id and model_patch. Give a file that is a list a name that ends in .json, or write one object a line.")
		return
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		r.errorf(line, "Not a prediction", "Here is to be an object with instance_id and model_patch: %v.", err)
		return
	}
	p := Prediction{Instance: key, Line: line}
	if e.Instance != nil {
		p.Instance = *e.Instance
	}
	field, patch := "model_patch", e.Patch
	if patch == nil {
		field, patch = "patch", e.Pro
	}
	var err error
	switch p.Patch, err = unquote(patch); {
	case p.Instance == "":
		r.errorf(line, "Prediction without instance", "instance_id is missing or empty.")
	case key != "" && p.Instance != key:
		r.errorf(line, "Contradicting instance", "The key is %q, and instance_id %q.", key, p.Instance)
	case patch == nil:
		r.errorf(line, "Prediction without patch", "%q has neither model_patch nor patch. An empty patch is null or \"\".", p.Instance)
	case err != nil:
		r.errorf(line, "Patch is no text", "%s of %q: %v.", field, p.Instance, err)
	default:
		r.found = append(r.found, p)
	}
}

// finish sorts by instance and finds repetitions.
func (r *reader) finish() ([]Prediction, decl.Diagnostics) {
	slices.SortStableFunc(r.found, func(a, b Prediction) int { return cmp.Compare(a.Instance, b.Instance) })
	for i, p := range r.found {
		if i > 0 && p.Instance == r.found[i-1].Instance {
			r.errorf(p.Line, "Instance predicted twice", "%q is predicted at %s:%d and again at %s:%d. Keep one.", p.Instance, r.name, r.found[i-1].Line, r.name, p.Line)
		}
	}
	if r.diags.HasErrors() {
		return nil, r.diags.Sort()
	}
	return r.found, nil
}
