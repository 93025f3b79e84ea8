package cli

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

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
