package slack

import (
	"context"
	"fmt"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxCard limits a card as a message, in bytes. Characters that need several bytes make the card shorter than the limit of a
	// message, never longer.
	maxCard = 8000
	// maxOutput limits the output of a task, in characters: its end.
	maxOutput = 300
)

// cardText returns a status card as a message. It is for chats without streams, and for a stream that has ended before its turn.
func cardText(s *live.Status) string {
	text := s.Fit(maxCard, (*live.Status).Markdown) + "\n" + s.Time()
	m, _ := markup.Parse(text).Next(0, markup.SlackMarkdown, maxText)
	return m.Text
}

// cardChunks returns a status card as the tasks of a stream. The output of a task is shown when it has ended. A task is identified by
// the number of its call, so an update replaces the one before.
func cardChunks(s *live.Status) []chunk {
	title := "🤖 Working…"
	if s.Iteration > 0 {
		title += fmt.Sprintf(" 🔄 Iteration %d", s.Iteration)
	}
	list := []chunk{{Type: "plan_update", Title: title}}
	for i, tool := range s.Tools {
		c := chunk{Type: "task_update", ID: fmt.Sprint("task-", s.Earlier+i), Title: tool.Name, Status: "in_progress"}
		if tool.Summary != "" {
			c.Title += ": " + tool.Summary
		}
		switch tool.Icon {
		case "✅":
			c.Status = "complete"
		case "❌", "🚫":
			c.Status = "error"
		}
		if c.Status != "in_progress" {
			c.Output = tail(tool.Output)
		}
		list = append(list, c)
	}
	return list
}

// tail returns the end of a text. Results and errors are at the end of most outputs.
func tail(text string) string {
	if r := []rune(text); len(r) > maxOutput {
		return "… " + string(r[len(r)-maxOutput+2:])
	}
	return text
}

// changed returns the chunks of a card that the stream doesn't show. A stream takes an update of one task, so unchanged ones are not
// sent again.
func (s *stream) changed(status *live.Status) []chunk {
	var list []chunk
	for _, c := range cardChunks(status) {
		if s.tasks[c.ID] != c {
			list = append(list, c)
		}
	}
	return list
}

// record records the chunks of a card that were sent. Text can't be sent again, so it is not recorded here.
func (s *stream) record(chunks []chunk) {
	if s.tasks == nil {
		s.tasks = map[string]chunk{}
	}
	for _, c := range chunks {
		if c.Type != "markdown_text" {
			s.tasks[c.ID] = c
		}
	}
}

// extendCard appends the tasks that have changed. It makes no difference if one is sent twice. An elapsed time isn't shown on a
// stream, because Slack animates running tasks.
func (t *chat) extendCard(ctx context.Context, ts string, s *stream, p live.Post) error {
	chunks := s.changed(p.Status)
	if len(chunks) == 0 {
		return nil
	}
	err := t.call(ctx, methodAppend, ts, chunks, nil)
	switch {
	case err == nil:
		s.record(chunks)
		return nil
	case is(err, reasonNotStream, reasonStopped):
		delete(t.streams, ts)
		t.editCard(ts)
		if is(err, reasonStopped) {
			t.stopRun(ctx, ts)
		}
		return fmt.Errorf("%w: %w", live.ErrRepeat, err) // as an edit
	}
	return explain(err)
}
