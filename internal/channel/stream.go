package channel

import (
	"fmt"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/transcript"
)

// StreamEvent is a step of the stream that SendStream gets: either a snapshot or changes. The changes of one step are merged, so
// a text that grew many times is one append.
type StreamEvent struct {
	// Snapshot replaces everything before. It is set if the changes can't be resumed, for example after a message was regenerated.
	Snapshot *transcript.Snapshot
	// Events ascend in seq. Those of other turns are included.
	Events []event.Event
}

// Stream folds the events of SendStream into one turn.
type Stream struct {
	id      string
	t       transcript.Transcript
	isReset bool // a snapshot has arrived, so an unknown turn is not one that is still to come
}

// NewStream returns an empty stream of a turn.
func NewStream(turn string) *Stream { return &Stream{id: turn} }

// Apply folds one step. An error means that the stream has lost an event; the delivery then has to be repeated.
func (s *Stream) Apply(e StreamEvent) error {
	if e.Snapshot != nil {
		s.t.Reset(e.Snapshot)
		s.isReset = true
	}
	for i := range e.Events {
		if err := s.t.Apply(&e.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Turn returns the turn as it is, or nil if none of its events has arrived.
func (s *Stream) Turn() *transcript.Turn { return s.t.Turn(s.id) }

// IsRemoved reports whether the turn was removed from its conversation, for example by a regeneration. Then the chat should show
// none of it.
func (s *Stream) IsRemoved() bool { return s.isReset && s.Turn() == nil }

// Messages returns the messages that the turn has written, in order.
func (s *Stream) Messages() []*transcript.Message {
	var list []*transcript.Message
	for _, m := range s.t.Messages {
		if m.Turn == s.id && m.Role == event.Assistant {
			list = append(list, m)
		}
	}
	return list
}

// Text returns the visible text of the turn as Markdown.
func (s *Stream) Text() string { return s.t.Visible(s.id) }

// Iteration returns the visible text that was written after the last tool call, as Markdown: the text of the current
// iteration.
func (s *Stream) Iteration() string {
	var text strings.Builder
	for _, m := range s.Messages() {
		for _, p := range m.Parts {
			switch {
			case p.Kind == event.KindTool:
				text.Reset()
			case p.Kind != event.KindText && p.Kind != event.KindStatus, p.Len(event.Text) == 0:
			default:
				if text.Len() > 0 {
					text.WriteString(p.Join)
				}
				text.WriteString(p.Text(event.Text))
			}
		}
	}
	return text.String()
}

// Tools returns the tool calls of the turn in order.
func (s *Stream) Tools() []*transcript.Part {
	var list []*transcript.Part
	for _, m := range s.Messages() {
		for _, p := range m.Parts {
			if p.Kind == event.KindTool {
				list = append(list, p)
			}
		}
	}
	return list
}

// Final returns the text of the answer after the end of the turn, as Markdown. If the turn did not complete, a last paragraph
// explains why: a part of an answer is never presented as the whole. Final is empty only for a turn that a person stopped before
// it wrote anything.
func (s *Stream) Final() string {
	text, notice := s.Text(), s.Notice()
	switch {
	case text == "" && notice == "" && s.Turn() != nil && s.Turn().Outcome == event.Completed:
		return textEmpty
	case text == "" || notice == "":
		return text + notice
	}
	return markup.Close(text) + "\n\n" + notice
}

// Notice returns the last paragraph of Final about a turn that did not complete, or "".
func (s *Stream) Notice() string {
	turn := s.Turn()
	switch {
	case turn == nil || turn.Outcome == event.Completed:
		return ""
	case turn.Outcome == event.Cancelled:
		if s.Text() == "" {
			return ""
		}
		return textIncomplete
	case turn.Error != nil && turn.Error.Message != "":
		return "⚠️ " + turn.Error.Message
	}
	return fmt.Sprintf(textOutcome, turn.Outcome)
}
