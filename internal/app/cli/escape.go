package cli

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// escaper makes control characters visible on their way to a terminal, which would obey them. It writes them as JSON does,
// so that JSON stays what it is.
type escaper struct {
	w    io.Writer
	rest []byte // the beginning of a character whose end has not come yet
}

// terminalSafe returns a writer to w that escapes control characters if w is a terminal, else w itself: files and pipes get
// each byte as it is.
func (a *app) terminalSafe(w io.Writer) io.Writer {
	if !a.terminal(w).is {
		return w
	}
	return &escaper{w: w}
}

// Write implements [io.Writer].
func (e *escaper) Write(p []byte) (int, error) {
	text := append(e.rest, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r != '\n' && r != '\t' && unicode.IsControl(r), r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	e.rest = append([]byte(nil), text...)
	if _, err := e.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
