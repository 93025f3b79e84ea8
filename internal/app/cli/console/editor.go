package console

import (
	"slices"
	"strings"
)

// editor is the text of the input and its cursor. Positions count cells, which are characters as people see them: an
// emoji of several code points is one, and so is a letter with its accent.
type editor struct {
	// cells is the text. Line feeds are cells of width 0.
	cells []cell
	// cursor is the position of the cell behind the cursor, from 0 to len(cells).
	cursor int
}

// newlineCell is a line feed in the input.
var newlineCell = cell{text: "\n"}

// inputCells divides a text into cells, with a cell for each line feed.
func inputCells(text string) []cell {
	var cells []cell
	for i, part := range strings.Split(Clean(text), "\n") {
		if i > 0 {
			cells = append(cells, newlineCell)
		}
		cells = append(cells, cellsOf(part, plain)...)
	}
	return cells
}

func (e *editor) text() string { return line(e.cells).text() }

func (e *editor) isEmpty() bool { return len(e.cells) == 0 }

// setText replaces the text and puts the cursor at its end.
func (e *editor) setText(text string) {
	e.cells = inputCells(text)
	e.cursor = len(e.cells)
}

// insert adds text at the cursor. The text is divided again, because it may join the character before it, as an accent does.
func (e *editor) insert(text string) {
	before := inputCells(line(e.cells[:e.cursor]).text() + text)
	e.cells = append(before, e.cells[e.cursor:]...)
	e.cursor = len(before)
}

// remove deletes the cells from one position up to another, and puts the cursor there.
func (e *editor) remove(from, to int) {
	e.cells = slices.Delete(slices.Clone(e.cells), from, to)
	e.cursor = from
}

// lineStart and lineEnd return the ends of the line of the cursor.
func (e *editor) lineStart() int {
	at := e.cursor
	for at > 0 && e.cells[at-1].text != "\n" {
		at--
	}
	return at
}

func (e *editor) lineEnd() int {
	at := e.cursor
	for at < len(e.cells) && e.cells[at].text != "\n" {
		at++
	}
	return at
}

func isSpace(c cell) bool { return c.text == " " || c.text == "\n" }

// wordStart and wordEnd return where the word before or after the cursor begins or ends.
func (e *editor) wordStart() int {
	at := e.cursor
	for at > 0 && isSpace(e.cells[at-1]) {
		at--
	}
	for at > 0 && !isSpace(e.cells[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordEnd() int {
	at := e.cursor
	for at < len(e.cells) && isSpace(e.cells[at]) {
		at++
	}
	for at < len(e.cells) && !isSpace(e.cells[at]) {
		at++
	}
	return at
}

// edit applies a key, and reports whether the key was one of the editor's. Keys that would leave the text are
// ignored.
func (e *editor) edit(k key) bool {
	switch k.Name {
	case "":
		e.insert(k.Text)
	case "newline":
		e.insert("\n")
	case "left":
		e.cursor = max(e.cursor-1, 0)
	case "right":
		e.cursor = min(e.cursor+1, len(e.cells))
	case "home":
		e.cursor = e.lineStart()
	case "end":
		e.cursor = e.lineEnd()
	case "word-left":
		e.cursor = e.wordStart()
	case "word-right":
		e.cursor = e.wordEnd()
	case "backspace":
		e.remove(max(e.cursor-1, 0), e.cursor)
	case "delete":
		e.remove(e.cursor, min(e.cursor+1, len(e.cells)))
	case "delete-word":
		e.remove(e.wordStart(), e.cursor)
	case "delete-start":
		e.remove(e.lineStart(), e.cursor)
	case "delete-end":
		e.remove(e.cursor, e.lineEnd())
	default:
		return false
	}
	return true
}

// rows wraps the input behind the prompt, and returns the position of the cursor. The first row has the prompt, and
// the others are indented by its width. The cursor at a break is shown in the row after it.
func (e *editor) rows(width int) (rows []line, cursorRow, cursorColumn int) {
	mark, indent := cellsOf(promptMark, bold), cellsOf(strings.Repeat(" ", promptWidth), plain)
	start := 0
	for start <= len(e.cells) {
		end := start
		for end < len(e.cells) && e.cells[end].text != "\n" {
			end++
		}
		at := start
		for _, part := range wrapInput(e.cells[start:end], width-promptWidth) {
			if e.cursor >= at && e.cursor <= at+len(part) {
				cursorRow, cursorColumn = len(rows), promptWidth+widthOf(part[:e.cursor-at])
			}
			rows = append(rows, append(append(line{}, mark...), part...))
			mark = indent
			at += len(part)
		}
		start = end + 1
	}
	return rows, cursorRow, cursorColumn
}

// promptMark is in front of the input and of sent messages.
const (
	promptMark  = "› "
	promptWidth = 2
)

// wrapInput wraps without dropping a cell, so that the cursor can be on each of them. The last column stays free for
// the cursor. It breaks at the same places as wrap, but keeps the space at a break.
func wrapInput(cells []cell, width int) [][]cell {
	var parts [][]cell
	width = max(width-1, 2)
	for {
		end, columns, brk := 0, 0, 0
		for end < len(cells) && columns+cells[end].width <= width {
			columns += cells[end].width
			end++
			if end < len(cells) && (cells[end-1].text == " " || cells[end-1].width > 1 || cells[end].width > 1) {
				brk = end
			}
		}
		if end == len(cells) {
			return append(parts, cells)
		}
		if brk > 0 {
			end = brk
		}
		end = max(end, 1)
		parts = append(parts, cells[:end])
		cells = cells[end:]
	}
}
