package cli

import (
	"io"
	"os"

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
