package web

import (
	"context"
	"io"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/transcript"
)

const (
	// maxMessages and maxHistory are how many messages and about how many bytes of them a history has: the newest.
	// Older messages can't be loaded.
	maxMessages = 200
	maxHistory  = 1 << 20
)

// The roles of the messages in a history.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// historyMessage is a message in a history. The messages of a turn are one.
type historyMessage struct {
	// Role is roleUser or roleAssistant. Messages of the system are left out.
	Role    string `json:"role"`
	Content string `json:"content,omitempty"` // Markdown
	Name    string `json:"name,omitempty"`    // of the author, for messages of people that come from elsewhere
	Files   []file `json:"files,omitempty"`
	Message string `json:"message,omitempty"` // id, of messages that are not answers; the same as in the frame user
	Turn    string `json:"turn,omitempty"`    // of answers
}

// history is what a visitor sees of a conversation, without the turns that have not ended.
type history struct {
	// messages are in the order of the conversation.
	messages []historyMessage
	// contains has the ids of the messages and turns that the history has completely. Frames about these aren't sent
	// again.
	contains map[string]bool
	// isCut means that the conversation has older messages.
	isCut bool
}

// historyOf returns the history of a chat, and makes the files of its messages available for download. If the chat
// has no conversation yet, the history is empty. Turns that run are left out, because their frames come from the
// room.
//
// It copies the newest part of the conversation first, because ViewChat must be fast, and then builds the messages
// from the copy.
func (c *Channel) historyOf(ctx context.Context, r *room) (*history, error) {
	h := &history{contains: map[string]bool{}}
	if c.source == nil {
		return h, nil
	}
	var snapshot *transcript.Snapshot
	err := c.source.ViewChat(ctx, c.Name(), r.chat, func(log *transcript.Transcript) {
		snapshot = log.Snapshot(log.Window(transcript.Limits{Messages: maxMessages, Bytes: maxHistory}))
	})
	if err != nil || snapshot == nil {
		return h, err
	}
	open := func(ctx context.Context, m event.Media) (io.ReadCloser, error) {
		return c.source.OpenChatMedia(ctx, c.Name(), r.chat, m)
	}
	var log transcript.Transcript
	log.Reset(snapshot)
	h.isCut = log.Earlier
	for _, m := range log.Messages {
		turn := log.Turn(m.Turn)
		switch {
		case m.Role == event.User:
			h.add(m, historyMessage{Role: roleUser, Name: c.authorOf(m)}, r, open)
			for _, turn := range log.Turns {
				if turn.Answers == m.ID && !turn.Unfinished() && !hasWritten(&log, turn.ID) {
					h.addTurn(snapshot, turn.ID, r, open) // it failed before it wrote anything
				}
			}
		case m.Role != event.Assistant:
		case m.Turn == "":
			h.add(m, historyMessage{Role: roleAssistant}, r, open)
		case h.contains[m.Turn], turn != nil && turn.Unfinished():
		default:
			h.addTurn(snapshot, m.Turn, r, open)
		}
	}
	return h, nil
}

// add adds a message that is not a part of a turn.
func (h *history) add(m *transcript.Message, hm historyMessage, r *room, open openFunc) {
	hm.Content, hm.Message = m.Visible(), m.ID
	for _, p := range m.Parts {
		if p.Kind == event.KindMedia && p.Media != nil {
			hm.Files = append(hm.Files, r.media.add(*p.Media, open))
		}
	}
	h.contains[m.ID] = true
	h.messages = append(h.messages, hm)
}

// authorOf returns the name of a person who wrote a message elsewhere, or "".
func (c *Channel) authorOf(m *transcript.Message) string {
	if m.Source == c.Name() {
		return ""
	}
	return channel.AuthorName(m)
}

// hasWritten reports whether a turn has written a message.
func hasWritten(log *transcript.Transcript, turn string) bool {
	return slices.ContainsFunc(log.Messages, func(m *transcript.Message) bool { return m.Turn == turn && m.Role == event.Assistant })
}

// addTurn adds a turn that has ended as one message, with the notice about a turn that did not complete.
func (h *history) addTurn(snapshot *transcript.Snapshot, turn string, r *room, open openFunc) {
	stream := channel.NewStream(turn)
	_ = stream.Apply(channel.StreamEvent{Snapshot: snapshot}) // a snapshot always fits
	hm := historyMessage{Role: roleAssistant, Turn: turn, Content: stream.Text()}
	if t := stream.Turn(); t != nil && (hm.Content == "" && len(stream.Media()) == 0 || t.Outcome != event.Completed) {
		hm.Content = stream.Final()
	}
	for _, m := range stream.Media() {
		hm.Files = append(hm.Files, r.media.add(m, open))
	}
	h.contains[turn] = true
	if hm.Content != "" || len(hm.Files) > 0 {
		h.messages = append(h.messages, hm)
	}
}
