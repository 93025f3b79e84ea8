package markup

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Committed returns how many bytes of a text that still grows may be sent to a platform that can only append, such as a native stream of
// Slack. The rest waits: it is half a word, a marker without its closing one, a row that may become a table, or a line whose meaning the
// next characters decide.
//
// For a longer text with the same beginning the result is never smaller. When the text is complete, all of it is sent.
func Committed(source string) int {
	lineStart := strings.LastIndexByte(source, '\n') + 1
	start, isCode := openBlock(source)
	if isCode {
		if fenceLine.MatchString(source[lineStart:]) {
			return lineStart
		}
		return wordEnd(source, lineStart)
	}
	end := len(source)
	if holdLine.MatchString(source[lineStart:]) {
		end = lineStart
		start, _ = openBlock(source[:end])
	}
	end = len(holdRows(source[:end], start))
	h := healer{source: []byte(source[:end]), start: min(start, end)}
	h.cutEnd()
	end = len(h.source)
	if closer := h.scan(); closer != "" {
		end = strings.LastIndex(source[:end], closer)
	}
	for _, m := range h.open {
		end = min(end, m.pos)
		if m.char == '[' && h.isImage(m.pos) {
			end = m.pos - 1
		}
	}
	return wordEnd(source[:min(end, len(h.source))], min(lineStart, end))
}

// wordEnd returns the end of the last complete word after from, or from if there is none. A character of a script without spaces ends with
// the next one.
func wordEnd(source string, from int) int {
	rest := source[from:]
	if i := strings.LastIndexAny(rest, " \n\t"); i >= 0 {
		return from + i + 1
	}
	at := from
	for g := uniseg.NewGraphemes(rest); g.Next(); {
		begin, _ := g.Positions()
		if r := g.Runes()[0]; begin > 0 && r >= 0x2E80 {
			at = from + begin
		}
	}
	return at
}
