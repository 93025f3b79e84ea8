package cli

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// terminal describes an output. The zero value is a file or a pipe.
type terminal struct {
	is     bool // it is a terminal
	colour bool
}

// terminal returns what w is. Colours are off if NO_COLOR is set (no-color.org) or TERM is dumb; control characters
// in text are escaped nevertheless.
func (a *app) terminal(w io.Writer) terminal {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return terminal{}
	}
	return terminal{is: true, colour: a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

// isTerminal reports whether a file is a terminal, on all systems.
func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// The styles, as parameters of the escape sequence SGR (ECMA-48).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// style returns the text in a style if the terminal supports colours. The style ends with the text, so texts with
// styles can be joined.
func (t terminal) style(style, text string) string {
	if !t.colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// escaper escapes control characters, which a terminal would execute: text of an agent could change the window's
// title, hide other output or, in some terminals, type commands. It writes them as JSON does (\u001b), so that JSON
// stays valid. Line feeds and tabs remain. A UTF-8 character may be split over two writes, so an incomplete one at
// the end waits for the next write.
type escaper struct {
	w       io.Writer
	partial []byte // an incomplete character at the end of the last write
}

// terminalSafe returns a writer to w that escapes control characters if w is a terminal. Otherwise it returns w, so
// files and pipes get the exact bytes. Every command that prints data of agents or users passes its output through
// terminalSafe or [clean].
func (a *app) terminalSafe(w io.Writer) io.Writer {
	if !a.terminal(w).is {
		return w
	}
	return &escaper{w: w}
}

// Write implements [io.Writer].
func (e *escaper) Write(p []byte) (int, error) {
	text := append(e.partial, p...)
	escaped := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r != '\n' && r != '\t' && unicode.IsControl(r), r == utf8.RuneError && size == 1:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		default:
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	e.partial = append([]byte(nil), text...)
	if _, err := e.w.Write(escaped); err != nil {
		return 0, err
	}
	return len(p), nil
}
