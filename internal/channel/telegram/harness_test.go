package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
)

// ann and group are a person in the private chat and in a group.
var (
	ann   = fake.Private(7, "Ann")
	group = fake.Group(-100, 7, "Ann")
)

// newBot returns a streaming bot whose requests a fake answers without sockets.
func newBot(o fake.Options) (*streamer, *fake.Server) {
	o.Token = "1:test"
	server := fake.New(o)
	c := New(Options{Name: "tg", Token: o.Token, Streaming: true, URL: "http://telegram.test", Log: slog.New(slog.DiscardHandler)}).(*streamer)
	c.client.http = &http.Client{Transport: server}
	c.client.files = c.client.http
	return c, server
}

// story makes the events of a turn.
type story struct {
	seq   int64
	text  int64 // length of the open text part
	parts int
	turn  string // id
	ch    chan channel.StreamEvent
}

const (
	turnID    = "turn"
	messageID = "answer"
)

func newStory() *story {
	return &story{turn: turnID, ch: make(chan channel.StreamEvent)}
}

// send passes events to the delivery, as one step. It blocks until the delivery takes them.
func (s *story) send(t *testing.T, events ...event.Event) {
	for i := range events {
		s.seq++
		events[i].Seq, events[i].Turn = s.seq, s.turn
	}
	select {
	case s.ch <- channel.StreamEvent{Events: events}:
	case <-t.Context().Done():
	}
}

func (s *story) begin(t *testing.T) {
	s.send(t, event.Event{Type: event.TurnStart, Body: &event.Body{Agent: "a"}}, event.Event{Type: event.MessageStart, Message: messageID, Body: &event.Body{Role: event.Assistant}})
}

// part returns the id of the part that was started last.
func (s *story) part() string { return fmt.Sprint("p", s.parts) }

// begins a text part.
func (s *story) openText(t *testing.T) {
	s.parts++
	s.text = 0
	s.send(t, event.Event{Type: event.PartStart, Message: messageID, Part: s.part(), Body: &event.Body{Kind: event.KindText, Join: event.JoinBlank}})
}

func (s *story) write(t *testing.T, text string) {
	s.send(t, event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Text, Offset: s.text, Text: text})
	s.text += int64(len(text))
}

// tool runs a tool that prints output.
func (s *story) tool(t *testing.T, name, input string) {
	s.parts++
	s.send(t,
		event.Event{Type: event.PartStart, Message: messageID, Part: s.part(), Body: &event.Body{Kind: event.KindTool, Name: name, State: event.PartRunning}},
		event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Input, Text: input})
}

func (s *story) toolEnd(t *testing.T, output string, state event.PartState) {
	s.send(t,
		event.Event{Type: event.PartAppend, Message: messageID, Part: s.part(), Field: event.Output, Text: output},
		event.Event{Type: event.PartUpdate, Message: messageID, Part: s.part(), Body: &event.Body{State: state}})
}

// end ends the turn.
func (s *story) end(t *testing.T, outcome event.Outcome) {
	s.send(t, event.Event{Type: event.TurnEnd, Body: &event.Body{Outcome: outcome}})
	close(s.ch)
}

// store keeps what a delivery saves. It can refuse.
type store struct {
	state json.RawMessage
	saves int
}

func (s *store) metadata(ref string) channel.StreamMetadata {
	return channel.StreamMetadata{Conversation: "c", Turn: turnID, ReplyTo: ref, State: s.state, Save: func(ctx context.Context, v any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := json.Marshal(v)
		s.state = raw
		s.saves++
		return err
	}}
}

// deliver runs SendStream in a goroutine and returns a channel with its result.
func deliver(ctx context.Context, c *streamer, at place, s *store, events <-chan channel.StreamEvent) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.SendStream(ctx, at.id(), s.metadata(messageRef(at.chat, 1)), events) }()
	return done
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}
