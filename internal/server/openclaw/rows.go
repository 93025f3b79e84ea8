// The messages of a conversation as rows of a history.

package openclaw

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// newestRows returns the newest rows of a transcript, oldest first, without those of the run in flight: a client gets that one by itself. It
// returns at least count rows if there are that many.
func newestRows(t *transcript.Transcript, inFlight string, count int) []message {
	answers := answersOf(t)
	var groups [][]message // the newest first
	n := 0
	for i := len(t.Messages) - 1; i >= 0 && n < count; i-- {
		var rows []message
		switch m := t.Messages[i]; {
		case m.Role == event.User:
			rows = []message{userRow(m)}
		case m.Role == event.Assistant && (m.Turn == "" || m.Turn != inFlight):
			rows = answers.rows(t, i)
		}
		groups = append(groups, rows)
		n += len(rows)
	}
	slices.Reverse(groups)
	return slices.Concat(groups...)
}

// answerFacts is what the rows of an answer depend on beyond a single message.
type answerFacts struct {
	last     int // index of its last message
	hasTools bool
}

// answerIndex has the facts of each answer by its turn.
type answerIndex map[string]answerFacts

// answersOf reads a transcript once, because its messages may be many.
func answersOf(t *transcript.Transcript) answerIndex {
	index := answerIndex{}
	for i, m := range t.Messages {
		if m.Role != event.Assistant {
			continue
		}
		isTool := func(p *transcript.Part) bool { return p.Kind == event.KindTool }
		index[m.Turn] = answerFacts{last: i, hasTools: index[m.Turn].hasTools || slices.ContainsFunc(m.Parts, isTool)}
	}
	return index
}

// rows returns the rows of the i-th message, which belongs to an answer.
func (index answerIndex) rows(t *transcript.Transcript, i int) []message {
	m := t.Messages[i]
	turn := t.Turn(m.Turn)
	if turn == nil {
		return answerRows(m)
	}
	if !turn.Independent() {
		return nil
	}
	answer := index[turn.ID]
	rows, isLast := answerRows(m), i == answer.last
	if answer.hasTools && !turn.Unfinished() {
		rows = withoutText(rows)
		if text := t.Visible(turn.ID); isLast && text != "" {
			rows = append(rows, message{
				Role: "assistant", Content: []block{textBlock(text)}, Timestamp: m.At, Meta: metaOf(m, rowsPerMessage-1),
			})
		}
	}
	finishRows(rows, t, turn, isLast)
	return rows
}

// withoutText removes the texts of an answer with tools, which are one row after them: the Control UI shows that answer twice unless the text of
// a row equals that of the final event.
func withoutText(rows []message) []message {
	result := rows[:0]
	for _, row := range rows {
		if row.Role == "assistant" {
			row.Content = slices.DeleteFunc(row.Content, func(b block) bool { return b.Type == "text" })
			if len(row.Content) == 0 {
				continue
			}
		}
		result = append(result, row)
	}
	return result
}

// userRow returns the row of a message of the user. Its key tells the client which of its messages it is.
func userRow(m *transcript.Message) message {
	row := message{Role: "user", Content: contentOf(m), Timestamp: m.At, Meta: metaOf(m, 0)}
	row.Meta.RunID = runOfMessage(m)
	if m.Source == source {
		row.IdempotencyKey = m.ID + ":user"
	}
	return row
}

// contentOf returns the texts and files of a message.
func contentOf(m *transcript.Message) []block {
	content := []block{}
	for _, p := range m.Parts {
		switch p.Kind {
		case event.KindText, event.KindStatus:
			if text := p.Text(event.Text); text != "" {
				content = append(content, textBlock(text))
			}
		case event.KindMedia:
			if p.Media != nil {
				content = append(content, mediaBlock(p.Media))
			}
		}
	}
	return content
}

// answerRows returns the rows of a message of the agent. The result of a tool is a separate row after the call.
func answerRows(m *transcript.Message) (rows []message) {
	current := -1
	piece := func() *message {
		if current < 0 {
			current = len(rows)
			rows = append(rows, message{Role: "assistant", Content: []block{}, Timestamp: m.At, Meta: metaOf(m, len(rows))})
		}
		return &rows[current]
	}
	for _, p := range m.Parts {
		text := p.Text(event.Text)
		switch p.Kind {
		case event.KindText, event.KindStatus:
			if text != "" {
				row := piece()
				row.Content = append(row.Content, textBlock(text))
			}
		case event.KindReasoning:
			if text != "" {
				row := piece()
				row.Content = append(row.Content, block{Type: "thinking", Thinking: &text})
			}
		case event.KindMedia:
			if p.Media != nil {
				row := piece()
				row.Content = append(row.Content, mediaBlock(p.Media))
			}
		case event.KindTool:
			row, name := piece(), cmp.Or(p.Name, "tool")
			row.Content = append(row.Content, block{Type: "toolCall", ID: callID(m, p), Name: name, Arguments: argumentsOf(p)})
			isError := p.State == event.PartFailed || p.State == event.PartDenied
			rows = append(rows, message{
				Role: "toolResult", ToolCallID: callID(m, p), ToolName: name, Content: []block{textBlock(outputOf(p))}, IsError: &isError,
				Timestamp: cmp.Or(p.EndAt, p.At), Meta: metaOf(m, len(rows)),
			})
			current = -1
		}
	}
	return rows
}

// rowsPerMessage is how many rows of a message have different numbers.
const rowsPerMessage = 1000

// metaOf returns what identifies the n-th row of a message. The first one has the id of the message. The numbers ascend over all rows and don't
// depend on which of them a client has.
func metaOf(m *transcript.Message, n int) *rowMeta {
	meta := &rowMeta{ID: m.ID, Seq: m.Seq*rowsPerMessage + int64(min(n, rowsPerMessage-1))}
	if n > 0 {
		meta.ID += "." + strconv.Itoa(n)
	}
	return meta
}

// finishRows adds to rows what their turn is known for.
func finishRows(rows []message, t *transcript.Transcript, turn *transcript.Turn, isLast bool) {
	id := runID(t, turn)
	for i := range rows {
		rows[i].Meta.RunID = id
	}
	if len(rows) == 0 || !isLast || turn.Unfinished() {
		return
	}
	last := &rows[len(rows)-1]
	if last.Role != "assistant" {
		return
	}
	last.Usage, last.Model, last.StopReason = usageOf(turn.Usage), turn.Model, "stop"
	switch turn.Outcome {
	case event.Completed:
	case event.Cancelled:
		last.StopReason, last.Abort = "aborted", &abort{true, "rpc", id}
	default:
		last.StopReason, last.ErrorMessage = "error", errorOf(turn)
	}
}

// mediaBlock returns a block for a file.
func mediaBlock(m *event.Media) block {
	kind := "attachment"
	if len(m.MIME) > 6 && m.MIME[:6] == "image/" {
		kind = "image"
	}
	return block{Type: kind, URL: m.URL, MIMEType: m.MIME, Alt: cmp.Or(m.Alt, m.Name), SizeBytes: m.Size, FileName: m.Name}
}
