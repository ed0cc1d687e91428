package tree

import (
	"bytes"
	"path"
	"strings"
)

// A pattern is one line of a .gitignore.
type pattern struct {
	text     string
	negated  bool
	dirOnly  bool
	baseName bool // it has no slash, and so is matched against the last part of a path
}

// An ignoreFile is the patterns of one directory's .gitignore; the last that matches counts.
type ignoreFile struct {
	dir      string // "" is the root
	patterns []pattern
}

// parseIgnore reads a .gitignore as gitignore(5) says.
func parseIgnore(dir string, content []byte) ignoreFile {
	f := ignoreFile{dir: dir}
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	for line := range strings.SplitSeq(string(content), "\n") {
		if p, ok := parsePattern(strings.TrimSuffix(line, "\r")); ok {
			f.patterns = append(f.patterns, p)
		}
	}
	return f
}

func parsePattern(line string) (p pattern, ok bool) {
	if line == "" || line[0] == '#' {
		return p, false
	}
	line = trimSpaces(line)
	if line, p.negated = strings.CutPrefix(line, "!"); line == "" {
		return p, false
	}
	if line, p.dirOnly = strings.CutSuffix(line, "/"); line == "" {
		return p, false
	}
	p.baseName = !strings.Contains(line, "/")
	p.text = strings.TrimPrefix(line, "/")
	return p, true
}

// trimSpaces drops the spaces at the end that no backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// match says whether some pattern matches the path, and what the last of these says.
func (f *ignoreFile) match(p string, isDir bool) (ignored, matched bool) {
	if f.dir != "" {
		p = p[len(f.dir)+1:]
	}
	for i := len(f.patterns) - 1; i >= 0; i-- {
		pat := &f.patterns[i]
		if pat.dirOnly && !isDir {
			continue
		}
		if pat.baseName && glob(pat.text, path.Base(p)) || !pat.baseName && globPath(pat.text, p) {
			return !pat.negated, true
		}
	}
	return false, false
}

// globPath matches a whole path. git compares what stands before the first wildcard as text, so that a `**` right behind that may be special.
func globPath(pat, s string) bool {
	n := strings.IndexAny(pat, `*?[\`)
	if n < 0 {
		return pat == s
	}
	return strings.HasPrefix(s, pat[:n]) && glob(pat[n:], s[n:])
}

// glob matches as git does: `*` and `?` stop at slashes, `**` between slashes is any number of directories.
func glob(pat, s string) bool { return globAt(pat, s, true) }

// atStart says that what stands before pat is a slash or nothing, so that `**` may be special.
func globAt(pat, s string, atStart bool) bool {
	for pat != "" {
		switch c := pat[0]; c {
		case '*':
			return globStar(pat, s, atStart)
		case '?':
			if s == "" || s[0] == '/' {
				return false
			}
			pat, s, atStart = pat[1:], s[1:], false
		case '[':
			if s == "" {
				return false
			}
			rest, ok := globClass(pat[1:], s[0])
			if !ok {
				return false
			}
			pat, s, atStart = rest, s[1:], false
		default:
			if c == '\\' {
				if len(pat) == 1 {
					return false
				}
				pat = pat[1:]
				c = pat[0]
			}
			if s == "" || s[0] != c {
				return false
			}
			pat, s, atStart = pat[1:], s[1:], c == '/'
		}
	}
	return s == ""
}

func globStar(pat, s string, atStart bool) bool {
	rest := strings.TrimLeft(pat, "*")
	if len(pat)-len(rest) >= 2 && atStart {
		if rest == "" {
			return true
		}
		if rest[0] == '/' { // any number of directories, none too
			if globAt(rest[1:], s, true) {
				return true
			}
			for i := range len(s) {
				if globAt(rest, s[i:], false) {
					return true
				}
			}
			return false
		}
		if strings.HasPrefix(rest, `\/`) {
			return globStar(pat[:2]+rest[1:], s, atStart)
		}
	}
	for i := 0; ; i++ {
		if globAt(rest, s[i:], false) {
			return true
		}
		if i == len(s) || s[i] == '/' {
			return false
		}
	}
}

// globClass matches one byte against a class whose bracket was read, and returns the pattern after it. A class that is not closed matches nothing.
func globClass(pat string, c byte) (rest string, ok bool) {
	negated := pat != "" && (pat[0] == '!' || pat[0] == '^')
	if negated {
		pat = pat[1:]
	}
	matched := false
	for first := true; ; first = false {
		if pat == "" {
			return "", false
		}
		lo := pat[0]
		if lo == ']' && !first {
			pat = pat[1:]
			break
		}
		if lo == '[' && strings.HasPrefix(pat, "[:") {
			end := strings.IndexByte(pat[2:], ']')
			if end < 0 {
				return "", false
			}
			if name, named := strings.CutSuffix(pat[2:2+end], ":"); named {
				in, known := posixClass(name, c)
				if !known {
					return "", false
				}
				matched, pat = matched || in, pat[2+end+1:]
				continue
			}
			matched, pat = matched || c == '[', pat[1:] // a bracket like any other
			continue
		}
		if lo, pat, ok = classByte(pat); !ok {
			return "", false
		}
		hi := lo
		if len(pat) > 1 && pat[0] == '-' && pat[1] != ']' {
			if hi, pat, ok = classByte(pat[1:]); !ok {
				return "", false
			}
		}
		matched = matched || lo <= c && c <= hi
	}
	return pat, matched != negated && c != '/'
}

func classByte(pat string) (c byte, rest string, ok bool) {
	if pat[0] == '\\' {
		pat = pat[1:]
	}
	if pat == "" {
		return 0, "", false
	}
	return pat[0], pat[1:], true
}

func posixClass(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alpha":
		in = lower || upper
	case "digit":
		in = digit
	case "alnum":
		in = lower || upper || digit
	case "lower":
		in = lower
	case "upper":
		in = upper
	case "space":
		in = c == ' ' || c >= '\t' && c <= '\r'
	case "blank":
		in = c == ' ' || c == '\t'
	case "punct":
		in = graph && !lower && !upper && !digit
	case "graph":
		in = graph
	case "print":
		in = graph || c == ' '
	case "cntrl":
		in = c < ' ' || c == 0x7f
	case "xdigit":
		in = digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	default:
		return false, false
	}
	return in, true
}
