package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"pbuild/bench/decl"
)

// A view is where a command prints: data to out, everything for people that is not the command's product to err.
type view struct {
	out, err io.Writer
	color    bool // of out
	errColor bool
	json     bool
	quiet    bool
	verbose  bool
	live     bool // err is a terminal on which a line may be drawn again
	width    func() int
	source   func(decl.Range) (string, bool) // diagnosticsView.source; nil before anything is loaded
}

// Styles name what a colour means, so that a colour is never the only sign of it.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "36"
)

func paint(on bool, s style, text string) string {
	if !on || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func (v *view) paint(s style, text string) string    { return paint(v.color, s, text) }
func (v *view) paintErr(s style, text string) string { return paint(v.errColor, s, text) }

// A product is the stream that a command's product goes to. A reader who has had enough and closed it is no error: the command goes on to its end, and
// its code is what it would have been. The first error of another sort is kept, for most who print do not look.
type product struct {
	w      io.Writer
	err    error
	closed bool
}

func (p *product) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.closed = true
		return len(b), nil
	}
	if p.err == nil {
		p.err = err
	}
	return n, err
}

// unread says that nobody reads the product any more.
func (v *view) unread() bool {
	p, ok := v.out.(*product)
	return ok && p.closed
}

// printf writes the command's product.
func (v *view) printf(format string, args ...any) { fmt.Fprintf(v.out, format, args...) }

// raw writes what is not pbuild's own to the command's product: byte for byte, but on a terminal only what cannot draw on it.
func (v *view) raw(text []byte) error {
	if isTerminal(v.out) {
		text = []byte(printable(string(text)))
	}
	_, err := v.out.Write(text)
	return err
}

// notef tells people something beside the product; -q silences it.
func (v *view) notef(format string, args ...any) {
	if !v.quiet {
		fmt.Fprintf(v.err, format, args...)
	}
}

// summary is where an apply's last words go, and whether in colour: to stdout, unless that is a stream of events.
func (v *view) summary() (w io.Writer, color bool) {
	if v.json {
		return v.err, v.errColor
	}
	return v.out, v.color
}

// document writes one JSON document.
func (v *view) document(d any) error {
	e := json.NewEncoder(v.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// colorMode decides whether w gets colour. NO_COLOR and CLICOLOR_FORCE are the conventions of those names; --color overrides both.
func colorMode(flag string, w io.Writer, env func(string) string) bool {
	switch flag {
	case "always":
		return true
	case "never":
		return false
	}
	if env("NO_COLOR") != "" || env("CI") == "true" {
		return false
	}
	if f := env("CLICOLOR_FORCE"); f != "" && f != "0" {
		return true
	}
	return isTerminal(w) && env("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	if p, ok := w.(*product); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func terminalWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// columns writes rows with their cells aligned; cells may hold colour.
func columns(w io.Writer, indent string, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], shownWidth(c))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		b.Reset()
		b.WriteString(indent)
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-shownWidth(c)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// shownWidth counts runes outside colour sequences.
func shownWidth(s string) int { return utf8.RuneCountInString(plainText(s)) }

// plainText is s without colour sequences.
func plainText(s string) string {
	before, after, found := strings.Cut(s, "\x1b[")
	if !found {
		return s
	}
	var b strings.Builder
	for ; found; before, after, found = strings.Cut(after, "\x1b[") {
		b.WriteString(before)
		_, after, _ = strings.Cut(after, "m")
	}
	return b.String() + before
}

// plural is "1 task", "2 tasks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printable replaces control characters, so that no text from a log or a row can draw on the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}
