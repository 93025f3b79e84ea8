package cli

import (
	"bufio"
	"fmt"
	"strings"
	"unicode/utf8"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

// explained prints a turn in three columns: what came, the events that it was decoded to, the text that readers saw.
func (a *app) explained(x *leat.Explanation) error {
	out := bufio.NewWriter(a.out)
	dialect := "of no dialect that is known: events are those of the log, by their times"
	if x.Dialect != "" {
		dialect = "in " + x.Dialect
	}
	fmt.Fprintf(out, "turn %s of %s (%s), %s\n\n", clean(x.Turn), clean(x.Agent), clean(x.Kind), clean(dialect))
	t := table{out: out, widths: widths(a.columns())}
	t.row("time", "frame", "events", "visible text")
	t.row(rule(t.widths)...)
	begin := int64(0)
	for i, s := range x.Steps {
		if i == 0 {
			begin = s.At
		}
		frame := s.Frame
		switch {
		case s.Sent != "":
			frame = "→ " + clip(s.Sent, maxSent)
		case s.Lost > 0:
			frame = fmt.Sprintf("(%d bytes are not there)", s.Lost)
		case s.Event != "":
			frame = s.Event + ": " + frame
		}
		var said []string
		for i := range s.Said {
			said = append(said, told(&s.Said[i]))
		}
		if s.Error != "" {
			said = append(said, "✗ "+s.Error)
		}
		shown := s.Shown
		if s.Visible != nil {
			shown = "(instead) " + *s.Visible
		}
		t.row(fmt.Sprintf("%+.3fs", float64(s.At-begin)/1000), frame, strings.Join(said, "\n"), shown)
	}
	switch {
	case x.Outcome == "":
		fmt.Fprintln(out, "\nThe turn has not ended.")
	case x.Error != nil:
		fmt.Fprintf(out, "\nThe turn is %s: %s\n", x.Outcome, clean(x.Error.Message))
	default:
		fmt.Fprintf(out, "\nThe turn is %s.\n", x.Outcome)
	}
	if x.Dialect != "" && !x.Same {
		fmt.Fprintf(out, "Decoded now, the frames do not come to the text that is stored, which is:\n\n%s\n", clean(x.Stored))
	}
	return out.Flush()
}

// maxSent bounds what is shown of what was sent, in characters: it mostly begins with the whole history.
const maxSent = 1000

// told is an event in one line.
func told(e *event.Event) string {
	b := e.Get()
	var words []string
	add := func(w ...string) {
		for _, one := range w {
			if one != "" {
				words = append(words, one)
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

// table prints rows whose cells are as many lines as they need.
type table struct {
	out    *bufio.Writer
	widths []int
}

// timeWidth fits a turn of some hours.
const timeWidth = 10

// widths shares a line out: most of it to the frames.
func widths(columns int) []int {
	rest := max(columns-timeWidth-3*len(" │ "), 45)
	return []int{timeWidth, rest * 4 / 10, rest * 3 / 10, rest * 3 / 10}
}

func rule(widths []int) []string {
	var all []string
	for _, w := range widths {
		all = append(all, strings.Repeat("─", w))
	}
	return all
}

func (t *table) row(cells ...string) {
	lines := make([][]string, len(cells))
	most := 1
	for i, c := range cells {
		lines[i] = wrapped(clean(c), t.widths[i])
		most = max(most, len(lines[i]))
	}
	for n := range most {
		for i := range cells {
			text := ""
			if n < len(lines[i]) {
				text = lines[i][n]
			}
			if i > 0 {
				_, _ = t.out.WriteString(" │ ") // Flush tells
			}
			_, _ = t.out.WriteString(text)
			if i < len(cells)-1 {
				_, _ = t.out.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(text)))
			}
		}
		_ = t.out.WriteByte('\n')
	}
}

// wrapped cuts a text into lines of so many characters.
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
