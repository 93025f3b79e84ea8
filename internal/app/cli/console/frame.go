package console

import (
	"fmt"
	"strings"

	"github.com/leat-dev/leat/event"
)

// frame is what the terminal gets: lines that are printed once, and lines that are drawn below them until the next
// frame. No line is wider than the terminal, and Area is never higher than it, because the canvas couldn't reach
// lines that have scrolled away.
type frame struct {
	Printed, Area []string
	// CursorRow and CursorColumn are where the cursor stands in Area, both from 0.
	CursorRow, CursorColumn int
	// widths are the columns of the lines in Area. The canvas needs them when the terminal wraps these lines again.
	widths []int
}

// nextFrame returns the next frame. What it prints counts as printed, so each frame must be drawn.
//
// The rows are shared out from below: the input gets up to half of the screen, then come the status and the question,
// and the answer gets the rest. If the footer doesn't fit, its first lines are left out, since the status is the last
// one.
func (m *model) nextFrame() frame {
	width := m.width
	input, cursorRow, cursorColumn := m.editor.rows(width)
	// A long input scrolls within half of the screen.
	if limit := max(m.height/2, 1); len(input) > limit {
		top := min(max(cursorRow-limit/2, 0), len(input)-limit)
		input, cursorRow = input[top:top+limit], cursorRow-top
	}
	var footer []line
	for _, s := range m.outbox {
		footer = append(footer, paragraph(promptMark, Clean(s.text), dim, dim, width)...)
	}
	if !m.isLeaving {
		footer = append(append(footer, m.questionLines(width)...), m.statusLine(width))
	}
	if limit := max(m.height-len(input)-1, 1); len(footer) > limit {
		footer = footer[len(footer)-limit:]
	}
	if m.isLeaving {
		input, cursorRow, cursorColumn = nil, 0, 0
	}
	printed, area := m.viewer.advance(width, m.height-len(input)-len(footer)-2)
	if len(footer) > 0 && (len(area) > 0 || m.viewer.last != noItem) && m.height > len(input)+len(footer)+1 {
		area = append(area, line{})
	}
	cursorRow += len(area) + len(footer)
	area = append(append(area, footer...), input...)
	if m.isLeaving {
		// What isn't complete stays on the screen as it is now.
		printed, area, cursorRow = append(printed, area...), nil, 0
	}
	f := frame{CursorRow: cursorRow, CursorColumn: cursorColumn}
	for _, l := range printed {
		f.Printed = append(f.Printed, l.String())
	}
	for _, l := range area {
		f.Area = append(f.Area, l.String())
		f.widths = append(f.widths, widthOf(l))
	}
	return f
}

// questionLines draws the open question and how to answer it.
func (m *model) questionLines(width int) []line {
	r := m.turns.request
	if r == nil {
		return nil
	}
	lines := paragraph("? ", Question(r), bold.and(yellow), bold, width)
	options := r.Options
	if isYesNo(r) {
		options = nil
	}
	for i, o := range options {
		lines = append(lines, row("  ", fmt.Sprintf("%d %s", i+1, Clean(o)), plain, plain, width))
	}
	hint := "Type your answer, then Enter."
	switch {
	case len(options) > 0:
		hint = "Type a number or your answer, then Enter."
	case r.Kind == event.RequestApproval:
		hint = "y approves, n denies; other text denies with that reason. Then Enter."
	}
	return append(lines, paragraph("  ", hint, plain, dim, width)...)
}

// isYesNo reports whether the only options of a request are the decisions, for which y and n are shorter than a number.
func isYesNo(r *event.Request) bool {
	return len(r.Options) == 2 && r.Options[0] == string(event.Approve) && r.Options[1] == string(event.Deny)
}

// statusLine shows the agent, what it does, the tokens so far, and a lost connection. The cases are ordered by
// urgency: a lost connection hides what the turn does. The hint after Ctrl+C during a turn comes before all of them,
// because it says how to leave.
func (m *model) statusLine(width int) line {
	t := m.turns
	agent := t.agent
	if t.id == "" {
		agent = m.agent
	}
	if agent == "" {
		agent = "agent"
	}
	state, s := "ready", dim
	switch {
	case m.isLost:
		state, s = "connection lost, reconnecting…", red
	case !m.isReady:
		state, s = "connecting…", yellow
	case t.request != nil:
		state, s = "waiting for your answer", yellow
	case t.isQueued:
		state, s = "queued · Esc stops", yellow
	case t.id != "" && t.tool != "":
		state, s = "running "+t.tool+" · Esc stops", yellow
	case t.id != "":
		state, s = strings.TrimPrefix(t.phase+" · Esc stops", " · "), yellow
		if t.phase == "" {
			state = "answering · Esc stops"
		}
	case m.isInterrupted:
		state = "ready · Ctrl+C again leaves"
	}
	if m.isInterrupted && t.id != "" {
		state = "stopping · Ctrl+C again leaves"
	}
	l := append(line(cellsOf(agent, bold)), cellsOf(" · ", dim)...)
	l = append(l, cellsOf(state, s)...)
	if t.tokens > 0 {
		l = append(l, cellsOf(fmt.Sprintf(" · %d tokens", t.tokens), dim)...)
	}
	if t.cost > 0 {
		l = append(l, cellsOf(fmt.Sprintf(" · cost %.4f", t.cost), dim)...)
	}
	if t.id == "" && m.isReady && !m.isLost && !m.isInterrupted && t.tokens == 0 {
		l = append(l, cellsOf(" · /help", dim)...)
	}
	return fit(l, width)
}
