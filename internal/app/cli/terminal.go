package cli

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// terminal says what can be done with an output.
type terminal struct {
	is     bool // a person looks at it
	colour bool
}

func (a *app) terminal(w io.Writer) terminal {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return terminal{}
	}
	return terminal{is: true, colour: a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"}
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) }

// The styles of the terminal, as the parameters of its "select graphic rendition".
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// style returns the text in a style, where there are colours.
func (t terminal) style(style, text string) string {
	if !t.colour || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
