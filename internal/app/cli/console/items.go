package console

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// itemKind says how an item is drawn, and whether an empty line is above it.
type itemKind int

const (
	noItem    itemKind = iota
	userItem           // a message of a person
	textItem           // Markdown, which is printed block by block
	rowItem            // a tool, reasoning, a status: rows that follow each other without an empty line
	noteItem           // how a turn ended
	ownItem            // lines of the program itself
	finalItem          // no line: everything of a message or turn is above
)

// item is what is drawn for a part, a message or the end of a turn. It has copies of its texts, so that it can be
// drawn after the transcript has changed.
type item struct {
	// key identifies the item over all states: MESSAGE/PART for a part, MESSAGE/ for the text of a person, MESSAGE or
	// TURN for the end of one, and TURN/end for its outcome.
	key  string
	kind itemKind
	// source is remembered when the item is printed. If a later source differs from it, or for textItem doesn't begin
	// with it, what was printed is wrong.
	source string
	// isComplete means that the item can be printed; it can only be replaced as a whole. isSettled means that it
	// can't change. An item that is complete is printed only when the space is needed, and one that can't change is
	// printed at once.
	isComplete, isSettled bool
	// draw returns the lines of the item. It is nil for textItem, whose Markdown the viewer draws, and for finalItem.
	draw func(width int) []line
}

// itemsOf returns the items of the messages and turns that are not in finished, in their order. The outcome of a turn
// comes after the last message of the turn, or after the message that it answers if it wrote none. Outcomes of turns
// without any message in the transcript come at the end.
func itemsOf(t *transcript.Transcript, finished map[string]bool) []item {
	last := map[string]string{} // turn -> its last message, or the one that it answers
	for _, turn := range t.Turns {
		if turn.Answers != "" && !finished[turn.ID] {
			last[turn.ID] = turn.Answers
		}
	}
	for _, m := range t.Messages {
		if m.Turn != "" && !finished[m.Turn] {
			last[m.Turn] = m.ID
		}
	}
	ends := map[string][]*transcript.Turn{}
	for _, turn := range t.Turns {
		if turn.Independent() && !finished[turn.ID] {
			ends[last[turn.ID]] = append(ends[last[turn.ID]], turn)
		}
	}
	var items []item
	for _, m := range t.Messages {
		if !finished[m.ID] {
			items = append(items, messageItems(t, m)...)
		}
		for _, turn := range ends[m.ID] {
			items = append(items, endItems(turn)...)
		}
	}
	for _, turn := range ends[""] {
		items = append(items, endItems(turn)...)
	}
	return items
}

// messageItems returns the items of a message. Messages of people and of the system are complete when they arrive. An
// answer can't change any more when its message and its turn have ended; until then an agent may replace an earlier
// part. The last item has no lines: when it is printed, the whole message is, and later states skip it.
func messageItems(t *transcript.Transcript, m *transcript.Message) []item {
	if m.Role == event.User || m.Role == event.System {
		text, author := Clean(m.Visible()), ""
		if m.Author != nil {
			author = oneLine(Clean(cmp.Or(m.Author.Name, m.Author.ID)))
		}
		draw := func(width int) []line {
			if author != "" {
				return append([]line{row("", author, plain, dim, width)}, paragraph(promptMark, text, bold, bold, width)...)
			}
			return paragraph(promptMark, text, bold, bold, width)
		}
		items := []item{{key: m.ID + "/", kind: userItem, source: text, isComplete: true, isSettled: true, draw: draw}}
		for _, p := range m.Parts {
			if p.Kind == event.KindMedia {
				items = append(items, partItems(m.ID, p, true)...)
			}
		}
		return append(items, item{key: m.ID, kind: finalItem, isSettled: true})
	}
	turn := t.Turn(m.Turn)
	isSettled := m.Final && (turn == nil || !turn.Unfinished())
	var items []item
	for _, p := range m.Parts {
		items = append(items, partItems(m.ID, p, isSettled)...)
	}
	return append(items, item{key: m.ID, kind: finalItem, isSettled: isSettled})
}

// partItems returns the item of a part, if there is something to draw. A tool and reasoning have a constant source,
// so that they are never printed a second time when more of them arrives: rows that were printed stay as they were.
// Long URLs and data are shortened.
func partItems(message string, p *transcript.Part, isSettled bool) []item {
	i := item{key: message + "/" + p.ID, kind: rowItem, isComplete: p.Final || isSettled, isSettled: isSettled}
	text := Clean(p.Text(event.Text))
	i.source = text
	isFinal := i.isComplete
	switch p.Kind {
	case event.KindText:
		i.kind = textItem
	case event.KindStatus:
		i.isComplete = isSettled // the next status often replaces it
		i.draw = func(width int) []line { return paragraph("◦ ", strings.TrimSpace(text), yellow, yellow, width) }
	case event.KindReasoning:
		i.source = "reasoning" // what was thought may change without a trace: only a line of it is shown
		i.draw = func(width int) []line { return []line{reasoningRow(text, isFinal, width)} }
		if strings.TrimSpace(text) == "" {
			return nil
		}
	case event.KindTool:
		tool := toolOf(p)
		i.source, i.isComplete = "tool", p.Final
		i.draw = tool.lines
	case event.KindMedia:
		if p.Media == nil {
			return nil
		}
		label := Clean(strings.TrimSpace(p.Media.Name + " " + p.Media.MIME + " " + Clip(p.Media.URL, 200)))
		i.source, i.isComplete = label, true
		i.draw = func(width int) []line { return paragraph("▣ ", label, cyan, plain, width) }
	case event.KindData:
		if len(p.Data) == 0 {
			return nil
		}
		data := Clean(Clip(string(p.Data), 2000))
		i.source = data
		i.draw = func(width int) []line { return paragraph("", data, plain, dim, width) }
	default:
		return nil
	}
	return []item{i}
}

// endItems returns a line that says how a turn ended, unless it was completed.
func endItems(turn *transcript.Turn) []item {
	if turn.Unfinished() {
		return nil
	}
	final := item{key: turn.ID, kind: finalItem, isSettled: true}
	if turn.Outcome == event.Completed {
		return []item{final}
	}
	text := string(turn.Outcome)
	if turn.Error != nil {
		text = fmt.Sprintf("%s: %s", turn.Outcome, turn.Error.Message)
	}
	text = Clean(text)
	draw := func(width int) []line { return paragraph("✗ ", text, red, red, width) }
	return []item{{key: turn.ID + "/end", kind: noteItem, source: text, isComplete: true, isSettled: true, draw: draw}, final}
}

// reasoningRow folds reasoning to one line: its end while it grows, and its beginning afterwards.
func reasoningRow(text string, isFinal bool, width int) line {
	text = oneLine(text)
	if isFinal {
		return row("∴ ", text, dim, dim, width)
	}
	cells := cellsOf(text, dim)
	for widthOf(cells) > max(width-len("∴ …")/2, 2) {
		cells = cells[1:]
	}
	return row("∴ ", line(cells).text(), dim, dim, width)
}

// toolRow is what is drawn of a tool call. All texts are clean, and those but output have one line. output has the
// lines of the standard output, followed by those of the standard error. It has no reference to the part.
type toolRow struct {
	name, title, input, failure string
	output                      []string
	state                       event.PartState
	isFinal                     bool
}

func toolOf(p *transcript.Part) toolRow {
	t := toolRow{name: oneLine(Clean(p.Name)), title: oneLine(Clean(p.Title)), input: oneLine(Clean(p.Text(event.Input))), state: p.State, isFinal: p.Final}
	for _, f := range []event.Field{event.Output, event.Stderr} {
		if text := strings.TrimRight(Clean(p.Text(f)), "\n"); text != "" {
			t.output = append(t.output, strings.Split(text, "\n")...)
		}
	}
	if p.Error != nil {
		t.failure = oneLine(Clean(p.Error.Message))
	}
	return t
}

// maxToolOutput is the number of lines of a tool's output that are shown. The page shows all of them. The last lines
// are shown, since results and errors come at the end.
const maxToolOutput = 6

// lines draws the call: a row with its state, its arguments, and the end of its output.
func (t toolRow) lines(width int) []line {
	mark, s := "⚙ ", cyan
	switch {
	case !t.isFinal:
		mark, s = "⟳ ", yellow
	case t.state == event.PartDone:
		mark, s = "✓ ", green
	default:
		mark, s = "✗ ", red
	}
	details := cmp.Or(t.title, t.input)
	head := append(line(cellsOf(mark, s)), cellsOf(t.name, bold)...)
	if details != "" {
		head = append(head, cellsOf("  "+details, dim)...)
	}
	if !t.isFinal {
		head = append(head, cellsOf("  running", yellow)...)
	}
	lines := []line{fit(head, width)}
	if t.title != "" && t.input != "" {
		lines = append(lines, row("  ", t.input, dim, dim, width))
	}
	output := t.output
	if hiddenLines := len(output) - maxToolOutput; hiddenLines > 0 {
		output = output[hiddenLines:]
		lines = append(lines, row("  │ ", fmt.Sprintf("… %d earlier lines", hiddenLines), dim, dim, width))
	}
	for _, o := range output {
		lines = append(lines, append(line(cellsOf("  │ ", dim)), fit(cellsOf(o, dim), width-4)...))
	}
	if t.failure != "" {
		lines = append(lines, paragraph("  ✗ ", t.failure, red, red, width)...)
	}
	return lines
}
