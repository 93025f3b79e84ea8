package console

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Clean removes control characters, with which the text of an agent could control the terminal. Line feeds and tabs
// stay, carriage returns are dropped, and others become a middle dot, as does invalid UTF-8. It is for text that
// people read.
func Clean(text string) string {
	// Most texts are clean. Searching first avoids a copy of each of them.
	bad := func(r rune) bool { return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == utf8.RuneError) }
	if strings.IndexFunc(text, bad) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			if r == '\r' {
				return -1
			}
			return '·'
		}
		return r
	}, text)
}

// Clip shortens a text to at most n characters, the last of which is an ellipsis if something was left out. n must be
// at least 1.
func Clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// cell is a character as people see it, a grapheme cluster (UAX 29), with its width in columns.
type cell struct {
	text  string
	width int
	style style
}

// tabWidth is the number of columns of a tab.
const tabWidth = 4

// cellsOf divides text into cells. Control characters become visible, because a character reference in Markdown can stand for one.
func cellsOf(text string, s style) []cell {
	var cells []cell
	text = strings.ReplaceAll(text, "\t", strings.Repeat(" ", tabWidth))
	for g := uniseg.NewGraphemes(strings.ReplaceAll(Clean(text), "\n", " ")); g.Next(); {
		cells = append(cells, cell{g.Str(), g.Width(), s})
	}
	return cells
}

// widthOf returns the number of columns of cells.
func widthOf(cells []cell) int {
	width := 0
	for _, c := range cells {
		width += c.width
	}
	return width
}

// wrap divides cells into lines of at most width columns. It breaks after spaces and next to wide characters, which are Chinese or
// Japanese and have no spaces; a longer word is broken anywhere. The space at a break is dropped, except in verbatim
// text. There is always at least one line. It shares the memory of cells.
func wrap(cells []cell, width int, isVerbatim bool) [][]cell {
	var lines [][]cell
	width = max(width, 2)
	for start := 0; ; {
		end, columns, brk := start, 0, -1
		for end < len(cells) && columns+cells[end].width <= width {
			if end > start && !isVerbatim && (cells[end-1].text == " " || cells[end-1].width > 1 || cells[end].width > 1) {
				brk = end
			}
			columns += cells[end].width
			end++
		}
		if end == len(cells) {
			return append(lines, cells[start:])
		}
		next := end
		switch {
		case isVerbatim:
		case cells[end].text == " ":
			next = end + 1
		case cells[end].width > 1 || end > start && (cells[end-1].text == " " || cells[end-1].width > 1):
		case brk > start:
			end, next = brk, brk
		}
		if next == start {
			next, end = start+1, start+1 // a character wider than the terminal
		}
		for !isVerbatim && end > start && cells[end-1].text == " " {
			end--
		}
		lines = append(lines, cells[start:end])
		start = next
	}
}

// fit shortens cells to width columns, with an ellipsis if something was left out. A wide character that would exceed
// the width is left out as well.
func fit(cells []cell, width int) []cell {
	if widthOf(cells) <= width {
		return cells
	}
	columns := 0
	for i, c := range cells {
		if columns+c.width > width-1 {
			return append(cells[:i:i], cell{"…", 1, c.style})
		}
		columns += c.width
	}
	return cells
}

// oneLine returns a text with single spaces instead of white space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
