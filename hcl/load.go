// Package hcl makes declarations from text: all *.hcl and *.hcl.json files of a directory are one workspace.
//
// It promises every mistake at once, each with its position; that nothing a declaration holds depends on the order of blocks, files or
// maps; that undefined names are found before anything is evaluated; that patches and statements keep their bytes; and that a sensitive
// value gets no further than to the places that may hold one. It knows the language and runs nothing. No step is quadratic,
// and a dataset's rows are never cty values: see compile.go.
package hcl

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	hashihcl "github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"

	"pbuild/bench/decl"
)

// Options are what a workspace is loaded with, beside its files.
type Options struct {
	Vars     []string // "name=value", of --var
	VarFiles []string // of --var-file, relative to the workspace
	Environ  []string // as of os.Environ; PBUILD_VAR_x counts
	Version  string   // pbuild's own, for required_version; "" satisfies every constraint
	// Made names datasets whose files, which tasks make, are as those will leave them. The rows of others that tasks make are unknown.
	Made map[string]bool
}

const (
	lockFile     = "pbuild.lock.hcl"
	varsFile     = "pbuild.vars.hcl"
	varsSuffix   = ".vars.hcl"
	nativeSuffix = ".hcl"
	jsonSuffix   = ".hcl.json"
	visible      = "[^.]*" // what begins with a dot is an editor's or a file manager's
)

// A Config is a loaded workspace and what is needed to talk about it: its text and the scope of its expressions.
type Config struct {
	Workspace   *decl.Workspace // never nil; incomplete if there are errors
	Diagnostics decl.Diagnostics

	l *loader
}

// Open reads and checks the workspace in dir.
func Open(dir string, o Options) *Config {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	l := &loader{
		o: o, reader: newReader(abs), sources: map[string][]byte{}, closed: map[string]bool{},
		blocks: map[string]*block{}, variables: map[string]*variable{}, locals: map[string]*local{},
		datasets: map[string]*dataset{}, eachs: map[string]*eachScope{}, edges: map[string][]edge{}, cyclic: map[string]bool{},
		secrets: secrets{values: map[string]string{}},
	}
	l.functions = functions(l.reader)
	w := &decl.Workspace{Dir: abs}
	l.load(w)
	w.Read = l.reader.all()
	w.Secrets = l.secrets.snapshot()
	l.diags = l.secrets.redactAll(l.diags)
	return &Config{Workspace: w, Diagnostics: l.diags, l: l}
}

// A loader takes a directory through the phases of load.
type loader struct {
	o       Options
	reader  *reader
	sources map[string][]byte // text of each parsed file, by the name that ranges use
	closed  map[string]bool   // files of which no line is shown: a wrong value of a sensitive variable is not known to be one
	diags   decl.Diagnostics
	broken  bool // a file does not parse

	tops      []*block          // every block at the top level, in order of file and position
	blocks    map[string]*block // those with names, but variables, by address
	variables map[string]*variable
	locals    map[string]*local
	functions map[string]function.Function

	localOrder []*local              // each after what it refers to
	ctx        *hashihcl.EvalContext // var, local and functions
	shadow     *hashihcl.EvalContext // see placeholders
	shadowOnce sync.Once

	datasets map[string]*dataset
	eachs    map[string]*eachScope // of blocks with for_each, by address
	edges    map[string][]edge     // what each block refers to
	unknown  []decl.UnknownRows
	cyclic   map[string]bool // blocks in a circle that was reported
	secrets  secrets
}

// load runs the phases: text, then names, then values, then rows, then every block.
func (l *loader) load(w *decl.Workspace) {
	l.parse()
	if l.broken {
		return // what a file that does not parse would have declared cannot be told from what is missing
	}
	l.declare()
	l.evaluateVariables()
	l.evaluateLocals()
	l.finishVariables()
	l.checkVersion()
	l.resolveMembers()
	w.Datasets = map[string]decl.Dataset{}
	for name, d := range l.datasets {
		if d.rows != nil {
			w.Datasets[name] = d.rows
		}
	}
	for _, b := range l.tops {
		if b.typ == "variable" || b.typ == "locals" || decl.Find(b.typ) == nil {
			continue
		}
		if out := l.decode(b); out != nil {
			w.Blocks = append(w.Blocks, out)
		}
	}
	slices.SortStableFunc(w.Blocks, func(a, b *decl.Block) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	w.Unknown, w.Held = l.unknown, l.held(w)
	l.checkEdges()
	l.checkWhole(w)
}

// parse reads the files of the directory.
func (l *loader) parse() {
	entries, err := l.reader.list(".", visible+nativeSuffix, visible+jsonSuffix)
	if err != nil {
		l.errorf(hashihcl.Range{Filename: l.reader.dir}, "Workspace cannot be read", "%v.", err)
		return
	}
	found := false
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || name[0] == '.' || name == lockFile || strings.HasSuffix(name, varsSuffix) || strings.HasSuffix(name, varsSuffix+".json") ||
			!strings.HasSuffix(name, nativeSuffix) && !strings.HasSuffix(name, jsonSuffix) {
			continue
		}
		found = true
		f := l.reader.read(name)
		if f.err != nil {
			l.errorf(hashihcl.Range{Filename: name}, "File cannot be read", "%v.", f.err)
			continue
		}
		l.tops = append(l.tops, l.parseFile(f.bytes, name)...)
	}
	if !found {
		l.errorf(hashihcl.Range{Filename: l.reader.dir}, "No workspace here", "The directory holds no *.hcl file. Change to the workspace's directory, name it with -C, or let pbuild init write one.")
	}
}

// parseFile returns the blocks of one file; attributes do not belong at its top.
func (l *loader) parseFile(src []byte, name string) []*block {
	l.sources[name] = src
	var b *body
	var diags decl.Diagnostics
	if strings.HasSuffix(name, jsonSuffix) {
		b, diags = parseJSON(src, name, decl.Table)
	} else {
		b, diags = parseNative(src, name)
	}
	l.diags.Add(diags...)
	l.broken = l.broken || diags.HasErrors()
	for _, a := range b.attrs {
		l.unknownBlock(a.nameAt, a.name)
	}
	return b.blocks
}

func (l *loader) unknownBlock(at hashihcl.Range, name string) {
	var types []string
	for _, d := range decl.Table {
		types = append(types, d.Type)
	}
	l.errorf(at, "Unknown block", "There is no block %q.%s", name, didYouMean(name, types))
}

// declare checks the headers of all blocks and indexes them by name.
func (l *loader) declare() {
	pbuild := (*block)(nil)
	for _, b := range l.tops {
		def := decl.Find(b.typ)
		switch {
		case def == nil:
			l.unknownBlock(b.at, b.typ)
		case !l.checkLabels(b, def):
		case b.typ == "locals":
			l.declareLocals(b)
		case b.typ == "variable":
			l.declareVariable(b)
		case b.typ == "pbuild" && pbuild != nil:
			l.errorf(b.at, "Duplicate block", "The block pbuild is already at %s. A workspace has one.", rangeOf(pbuild.at))
		case b.typ == "pbuild":
			pbuild = b
		case l.blocks[b.address()] != nil:
			l.errorf(b.at, "Duplicate block", "%s is already declared at %s. Names are unique among the blocks of a type.", b.address(), rangeOf(l.blocks[b.address()].at))
		default:
			l.blocks[b.address()] = b
		}
	}
}

func (l *loader) checkLabels(b *block, def *decl.BlockDef) bool {
	want := 0
	if def.Label {
		want = 1
	}
	switch {
	case len(b.labels) < want:
		l.errorf(b.at, "Block without a name", "The block %s needs one: %s \"name\" { ... }.", b.typ, b.typ)
	case len(b.labels) > want && want == 0:
		l.errorf(b.at, "Too many names", "The block %s takes no name.", b.typ)
	case len(b.labels) > want:
		l.errorf(b.at, "Too many names", "The block %s takes one name, not %d.", b.typ, len(b.labels))
	case want == 1 && !validName(b.labels[0]):
		l.errorf(b.at, "Invalid name", "%q cannot name a block: a letter or _ first, then letters, digits, _ and -.", b.labels[0])
	default:
		return true
	}
	return false
}

func validName(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
