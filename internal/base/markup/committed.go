package markup

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Committed returns how many bytes of a text that still grows may be sent to a platform that can
// only append, such as a native stream of Slack. The rest waits: it is half a word, a marker
// without its closing one, a row that may become a table, or a line whose meaning the next
// characters decide.
//
// For a longer text with the same beginning the result is never smaller. When the text is complete,
// all of it is sent.
func Committed(source string) int {
	lineStart := strings.LastIndexByte(source, '\n') + 1
	end := len(source)
	start, isCode := openBlock(source)
	switch {
	case fenceStart.MatchString(source[lineStart:]) && !isCodeAt(source, lineStart):
		// A backtick in the rest of the line would make it a paragraph.
		end = lineStart
		start, _ = openBlock(source[:end])
	// Backticks at the beginning of a line of code may be its end.
	case isCode && codeStart.MatchString(source[lineStart:]):
		return lineStart
	// Code is committed word by word, although no marker can be open in it: half a word flickers.
	case isCode:
		return wordEnd(source, lineStart)
	case holdLine.MatchString(source[lineStart:]):
		end = lineStart
		start, _ = openBlock(source[:end])
	}
	// Rows wait for the line that makes them a table: text can't become a table on these platforms.
	end = len(holdRows(source[:end], start))
	// The end of a word may be within a pair of markers, so the end moves back until nothing is
	// open.
	for {
		cut := closedEnd(source[:end], start)
		cut = wordEnd(source[:cut], min(lineStart, cut))
		if cut >= end {
			return end
		}
		end = cut
	}
}

// isCodeAt reports whether the line that begins at a position continues a code block.
func isCodeAt(source string, lineStart int) bool {
	line := source[lineStart:]
	prefix := line[:len(line)-len(strings.TrimLeft(line, " \t>"))]
	_, isCode := openBlock(source[:lineStart] + prefix + "x")
	return isCode
}

// closedEnd returns how much of a text, whose last block begins at start, has no marker that is open.
func closedEnd(source string, start int) int {
	h := healer{source: []byte(source), start: min(start, len(source))}
	h.cutEnd()
	end := len(h.source)
	// An open code span begins with the last run of backticks of its length.
	if closer := h.scan(); closer != "" {
		end = strings.LastIndex(source[:end], closer)
	}
	if len(h.hidden) > 0 { // code that may end in a later line
		end = min(end, slices.Min(h.hidden))
	}
	for _, m := range h.open {
		end = min(end, m.pos)
		if m.char == '[' && h.isImage(m.pos) {
			end = m.pos - 1
		}
	}
	return min(end, len(h.source))
}

// fenceStart matches a line that opens a code block, within lists and quotes as well.
var fenceStart = regexp.MustCompile("^(?:[-+*>]|\\d{1,9}[.)]|[ \t])*(?:```|~~~)")

// codeStart matches the beginning of a line of code that may still become the line that closes the
// code.
var codeStart = regexp.MustCompile("^[ \t>]*(?:`*|~*)[ \t]*$")

// wordEnd returns the end of the last complete word after from, or from without one. A
// character of a script without spaces ends with the next one.
func wordEnd(source string, from int) int {
	rest := source[from:]
	if i := strings.LastIndexAny(rest, " \n\t"); i >= 0 {
		return from + i + 1
	}
	at := from
	// The last character isn't complete: a variation or a joiner may follow it.
	for g := uniseg.NewGraphemes(rest); g.Next(); {
		begin, _ := g.Positions()
		if r := g.Runes()[0]; begin > 0 && r >= 0x2E80 {
			at = from + begin
		}
	}
	return at
}
