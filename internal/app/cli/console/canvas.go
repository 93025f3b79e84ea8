package console

import (
	"fmt"
	"strings"
)

// canvas turns frames into bytes for a terminal. It knows what the last frame has drawn and the position of the cursor.
type canvas struct {
	// area has the lines that the last frame has drawn, with their control sequences, and widths their columns.
	area   []string
	widths []int
	// width is the width of the terminal at the last frame. 0 is for the first frame, and a negative one draws
	// everything again.
	width int
	// row and column are the position of the cursor within area.
	row    int
	column int
	// canReflow means that the terminal wraps lines again when it becomes narrower. xterm, the Linux console and
	// screen don't.
	canReflow bool
}

// draw returns the bytes that show a frame on a terminal of width columns. Lines that have not changed are not written again. The
// terminal shows the frame at once if it knows synchronized output; others ignore that sequence. It returns nothing
// if the screen is right already. The caller must write the bytes completely, because the next call depends on what
// the screen shows. After a resize all of the area is drawn again, since its lines may have been wrapped.
func (c *canvas) draw(f frame, width int) string {
	start := 0
	isResized := c.width != width && c.width != 0
	if len(f.Printed) == 0 && !isResized {
		for start < len(f.Area) && start < len(c.area) && f.Area[start] == c.area[start] {
			start++
		}
		if start == len(f.Area) && start == len(c.area) && f.CursorRow == c.row && f.CursorColumn == c.column {
			return ""
		}
	}
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[?25l")
	if isResized {
		b.WriteString(cursorUp(c.rowsAbove(width)))
	} else {
		start = min(start, max(len(c.area)-1, 0)) // a line below the last one doesn't exist on the screen
		b.WriteString(moveRows(start - c.row))
	}
	b.WriteString("\r\x1b[J")
	for _, l := range f.Printed {
		b.WriteString(l + "\r\n")
	}
	if start < len(f.Area) {
		b.WriteString(strings.Join(f.Area[start:], "\r\n"))
	}
	if last := len(f.Area) - 1; last >= 0 {
		b.WriteString(moveRows(f.CursorRow - max(last, start)))
	}
	b.WriteByte('\r')
	if f.CursorColumn > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", f.CursorColumn)
	}
	b.WriteString("\x1b[?25h\x1b[?2026l")
	c.area, c.widths, c.width, c.row, c.column = f.Area, f.widths, width, f.CursorRow, f.CursorColumn
	return b.String()
}

// rowsAbove returns how many rows the terminal has between the first row of the last frame and the cursor, after it was resized. Most
// terminals divide a line that has become too wide into several rows. It counts a line without cells as one row.
func (c *canvas) rowsAbove(width int) int {
	if !c.canReflow {
		return c.row
	}
	rows := c.column / width
	for _, w := range c.widths[:min(c.row, len(c.widths))] {
		rows += max((w+width-1)/width, 1)
	}
	return rows
}

// moveRows moves the cursor by a number of rows.
func moveRows(rows int) string {
	if rows > 0 {
		return fmt.Sprintf("\x1b[%dB", rows)
	}
	return cursorUp(-rows)
}

// cursorUp moves the cursor up.
func cursorUp(rows int) string {
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", rows)
}
