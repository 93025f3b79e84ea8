// How turn explain prints the steps that led to a text: as tables that fit into the terminal.

package cli

import (
	"bufio"
	"fmt"
	"strings"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/app/cli/console"
)

// explained prints a turn as a table: the frames of the agent, the events that they were decoded to, and the text
// that readers saw.
//
// Each step of the gateway's explanation is a row. Times are relative to the first step. A row shows a frame that was
// received, a request that the gateway sent (→), or a gap in the capture with its size. A decoder's error is marked
// with a cross below the events that were decoded before it. If the bytes of the turn were not captured, the rows are the
// events of the log.
//
// The last lines say how the turn ended. If the frames decode to another text than the stored one, for example after
// an upgrade of the dialect, both are shown.
func (a *app) explained(x *leat.Explanation) error {
	output := bufio.NewWriter(a.stdout)
	dialect := "in an unknown dialect: events are from the log, by their times"
	if x.Dialect != "" {
		dialect = "in " + x.Dialect
	}
	fmt.Fprintf(output, "turn %s of %s (%s), %s\n\n", console.Clean(x.Turn), console.Clean(x.Agent), console.Clean(x.Kind), console.Clean(dialect))
	t := table{writer: output, widths: widths(a.columns())}
	t.row("time", "frame", "events", "visible text")
	t.rule()
	begin := int64(0)
	for i, s := range x.Steps {
		if i == 0 {
			begin = s.At
		}
		frame := s.Frame
		switch {
		case s.Request != "":
			frame = "→ " + console.Clip(s.Request, maxSent)
		case s.LostBytes > 0:
			frame = fmt.Sprintf("(%d bytes are missing)", s.LostBytes)
		case s.Event != "":
			frame = s.Event + ": " + frame
		}
		var lines []string
		for i := range s.Events {
			lines = append(lines, eventLine(&s.Events[i]))
		}
		if s.Error != "" {
			lines = append(lines, "✗ "+s.Error)
		}
		// Most steps append text. A step that replaced the text shows the whole text as it was afterwards.
		visible := s.AppendedText
		if s.Visible != nil {
			visible = "(replaced by) " + *s.Visible
		}
		t.row(fmt.Sprintf("%+.3fs", float64(s.At-begin)/1000), frame, strings.Join(lines, "\n"), visible)
	}
	switch {
	case x.Outcome == "":
		fmt.Fprintln(output, "\nThe turn has not ended.")
	case x.Error != nil:
		fmt.Fprintf(output, "\nThe turn %s: %s\n", outcomeVerb(event.Outcome(x.Outcome)), console.Clean(x.Error.Message))
	default:
		fmt.Fprintf(output, "\nThe turn %s.\n", outcomeVerb(event.Outcome(x.Outcome)))
	}
	if x.Dialect != "" && !x.Reproducible {
		fmt.Fprintf(output, "This version decodes the frames to a different text than the stored one, which is:\n\n%s\n", console.Clean(x.StoredText))
	}
	return output.Flush()
}

// maxSent is how much of a request is shown, in characters. Most requests begin with the whole history.
const maxSent = 1000

// eventLine returns an event as one line: its type, its part, the fields that it sets, and its text in quotation
// marks. Fields that are empty are left out.
func eventLine(e *event.Event) string {
	b := e.Get()
	var words []string
	add := func(w ...string) {
		for _, text := range w {
			if text != "" {
				words = append(words, text)
			}
		}
	}
	add(string(e.Type), e.Part)
	if e.Field != event.Text {
		add(string(e.Field))
	}
	add(string(b.Kind), b.RecordKind, b.Name, string(b.State), string(b.MessageState), b.Phase, b.Model, string(b.Outcome), b.Reason)
	if e.Type == event.PartAppend {
		add(fmt.Sprintf("@%d", e.Offset))
	}
	if e.Text != "" {
		add(fmt.Sprintf("%q", e.Text))
	}
	if b.Error != nil {
		add(b.Error.Code, fmt.Sprintf("%q", b.Error.Message))
	}
	if b.Request != nil {
		add(string(b.Request.Kind), b.Request.ID)
	}
	if b.Answer != nil {
		add(b.Answer.ID, string(b.Answer.Decision))
	}
	return strings.Join(words, " ")
}

// table prints rows whose cells may have several lines. Cells are wrapped to the width of their column, and the next
// row begins below the longest of them. Errors of the writer are reported by its Flush.
type table struct {
	writer *bufio.Writer
	widths []int
}

// timeWidth fits the times of a turn of several hours.
const timeWidth = 10

// widths divides a line among the columns: four tenths for the frames, three for the events and three for the text.
// Below 45 characters the cells would be unreadable, so narrower terminals wrap the rows themselves.
func widths(columns int) []int {
	available := max(columns-timeWidth-3*len(" │ "), 45)
	return []int{timeWidth, available * 4 / 10, available * 3 / 10, available * 3 / 10}
}

// rule prints a horizontal line below the head of the table.
func (t *table) rule() {
	var cells []string
	for _, width := range t.widths {
		cells = append(cells, strings.Repeat("─", width))
	}
	t.row(cells...)
}

// row prints a row. All cells but the last are padded to their width. Control characters are removed first, so that
// the text of an agent can't break the table.
func (t *table) row(cells ...string) {
	lines := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		lines[i] = wrapped(console.Clean(c), t.widths[i])
		height = max(height, len(lines[i]))
	}
	for n := range height {
		for i := range cells {
			text := ""
			if n < len(lines[i]) {
				text = lines[i][n]
			}
			if i < len(cells)-1 {
				fmt.Fprintf(t.writer, "%-*s │ ", t.widths[i], text)
			} else {
				fmt.Fprintln(t.writer, text)
			}
		}
	}
}

// wrapped breaks a text into lines of at most width characters, at any character: frames are mostly JSON without
// spaces.
func wrapped(text string, width int) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(text, "\t", " "), "\n"), "\n") {
		runes := []rune(line)
		for len(runes) > width {
			lines = append(lines, string(runes[:width]))
			runes = runes[width:]
		}
		lines = append(lines, string(runes))
	}
	return lines
}
