package channeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

// Story makes the events of a turn. Its methods block until the delivery has taken them, or has ended.
type Story struct {
	// Turn is the id of the turn. Keys of messages contain it, so two stories of one test must have different ones.
	Turn string
	// Files are the stored files, by URL. A file that isn't there can't be opened, as one that was deleted meanwhile.
	Files map[string][]byte
	// Speak is that of the delivery's metadata, or nil.
	Speak func(ctx context.Context, answer string) ([]byte, error)

	t      testing.TB
	events chan channel.StreamEvent
	seq    int64
	length int64 // of the open text part
	parts  int
}

// messageID is the message of the agent that all parts belong to. A turn of a story has only one.
const messageID = "answer"

// NewStory returns a turn without events.
func NewStory(t testing.TB, turn string) *Story {
	return &Story{Turn: turn, t: t, events: make(chan channel.StreamEvent)}
}

// Send passes events on, as one step. It sets the sequence numbers and the turn, so events need only what is special about them.
func (s *Story) Send(events ...event.Event) {
	for i := range events {
		s.seq++
		events[i].Seq, events[i].Turn = s.seq, s.Turn
	}
	s.pass(channel.StreamEvent{Events: events})
}

// Reset passes a snapshot without the turn on, as a regeneration does, and ends.
func (s *Story) Reset() {
	s.pass(channel.StreamEvent{Snapshot: &transcript.Snapshot{}})
	close(s.events)
}

// pass blocks until the delivery takes a step, which is what makes a slow platform slow down the story.
func (s *Story) pass(e channel.StreamEvent) {
	select {
	case s.events <- e:
	case <-s.t.Context().Done():
	}
}

// Begin starts the turn and its message.
func (s *Story) Begin() {
	s.Send(event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "a"}},
		event.Event{Type: event.MessageStart, Message: messageID, Body: &event.Body{Role: event.Assistant}})
}

// part returns the id of the newest part, which the methods that continue it use.
func (s *Story) part() string { return fmt.Sprint("p", s.parts) }

// OpenText begins a part with text. A blank line separates it from the text before.
func (s *Story) OpenText() {
	s.parts++
	s.length = 0
	s.Send(event.Event{Type: event.PartStart, Message: messageID, Part: s.part(), Body: &event.Body{Kind: event.KindText, Join: event.JoinBlank}})
}

// Write adds to the open text. The offset lets the reducer notice a piece that is missing or doubled.
func (s *Story) Write(text string) {
	s.Send(event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Text, Offset: s.length, Text: text})
	s.length += int64(len(text))
}

// Tool begins a tool call.
func (s *Story) Tool(name, input string) {
	s.parts++
	s.Send(
		event.Event{Type: event.PartStart, Message: messageID, Part: s.part(), Body: &event.Body{Kind: event.KindTool, Name: name, State: event.PartRunning}},
		event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Input, Text: input})
}

// ToolEnd ends the tool call.
func (s *Story) ToolEnd(output string, state event.PartState) {
	s.Send(
		event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Output, Text: output},
		event.Event{Type: event.PartUpdate, Message: messageID, Part: s.part(), Body: &event.Body{State: state}})
}

// Show shows a file. Its URL is a key of Files, or an address elsewhere.
func (s *Story) Show(m event.Media) {
	s.parts++
	s.Send(event.Event{Type: event.PartStart, Message: messageID, Part: s.part(), Body: &event.Body{Kind: event.KindMedia, Media: &m}})
}

// Ask asks for an approval.
func (s *Story) Ask(id, prompt string) {
	s.Send(event.Event{Type: event.TurnWait, Body: &event.Body{Request: &event.Request{ID: id, Kind: event.RequestApproval, Tool: "bash", Prompt: prompt}}})
}

// Answer answers a request.
func (s *Story) Answer(id string, d event.Decision) {
	s.Send(event.Event{Type: event.TurnResume, Body: &event.Body{Answer: &event.Answer{ID: id, Decision: d}}})
}

// End ends the turn. No event may follow: the channel of events is closed, as the pipeline does after a turn.
func (s *Story) End(outcome event.Outcome) {
	s.Send(event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: outcome}})
	close(s.events)
}

// Fail ends the turn with an error.
func (s *Story) Fail(message string) {
	s.Send(event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: event.Failed, Error: &event.Error{Message: message}}})
	close(s.events)
}

// Deliver runs SendStream and returns a channel with its result. State is what a delivery that was interrupted has stored. The result
// is sent once, when SendStream has returned. The goroutine ends when the story does, so each story has to be ended.
func (s *Story) Deliver(ctx context.Context, ch channel.StreamChannel, chat, replyTo string, state *State) <-chan error {
	result := make(chan error, 1)
	metadata := channel.StreamMetadata{
		Conversation: "c", Turn: s.Turn, ReplyTo: replyTo, State: state.value(), Save: state.save, Speak: s.Speak,
		OpenMedia: func(_ context.Context, m event.Media) (io.ReadCloser, error) {
			if content, ok := s.Files[m.URL]; ok {
				return io.NopCloser(bytes.NewReader(content)), nil
			}
			return nil, &fs.PathError{Op: "open", Path: m.Name, Err: fs.ErrNotExist}
		},
	}
	go func() {
		err := ch.SendStream(ctx, chat, metadata, s.events)
		result <- err
		for range s.events {
			// A delivery that ended early leaves events, which the story must be able to pass on.
		}
	}()
	return result
}

// State is what deliveries store. It takes the place of the gateway's store: a test passes the same one to the delivery that
// continues.
type State struct {
	mu  sync.Mutex
	raw json.RawMessage
}

// value returns what was stored last, or nil for a delivery that is the first.
func (s *State) value() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw
}

// save stores a state, unless the process of the delivery has ended. That case distinguishes a test of crashes from one of errors.
func (s *State) save(ctx context.Context, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = raw
	return err
}
