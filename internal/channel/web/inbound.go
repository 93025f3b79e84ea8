package web

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leat-dev/leat/internal/channel"
)

// maxKey is the length of the longest key of a message in bytes. A UUID has 36 bytes.
const maxKey = 64

// The types of frames of clients. The first is the seed's.
const (
	typeStop   = "stop"
	typeAnswer = "answer"
	typePing   = "ping"
)

// The reasons in error frames.
const (
	reasonInvalid = "invalid" // it would be refused again
	reasonRate    = "rate"    // there were too many messages
	reasonFailed  = "failed"  // the gateway couldn't store the message
)

// clientFrame is a frame of a client. Frames of unknown types are ignored.
type clientFrame struct {
	Type    string `json:"type"`
	Content string `json:"content"` // message
	// Key is the client's own id of a message. A message that is sent again with the same key is handled once. If it is a UUIDv7, the
	// repetition also gets the same id in the conversation after a restart.
	Key   string   `json:"key"`
	Files []string `json:"files"` // message: references of uploads

	Question string `json:"question"` // answer
	Choice   *int   `json:"choice"`   // answer: the number of the choice, from 0
	Text     string `json:"text"`     // answer to a question without choices
}

// receive handles a frame of the client. An error means that the connection is broken.
//
// A mistake of the client is answered with an error frame, and the connection stays. The key in it identifies the
// message that was refused. The rate is checked last, so that a message that is refused for another reason doesn't
// count. Answers and stops become the commands of the pipeline, so they follow the same rules as on platforms whose
// visitors type them.
func (s *socket) receive(ctx context.Context, b []byte) error {
	var f clientFrame
	if json.Unmarshal(b, &f) != nil {
		return s.write(ctx, frame{Type: typeError, Reason: reasonInvalid, Text: "the frame is not valid JSON"})
	}
	m := channel.InboundMessage{
		Channel: s.c.Name(), ChatID: s.room.chat, SenderName: "Visitor", Timestamp: timeOf(f.Key, time.Now()),
	}
	switch f.Type {
	case typePing:
		return s.write(ctx, frame{Type: typePong})
	case typeMessage:
		m.Content = strings.TrimSpace(f.Content)
	case typeStop:
		m.Content = "/stop"
	case typeAnswer:
		if m.Content = strings.TrimSpace(f.Text); f.Choice != nil {
			m.Content = channel.AnswerCommand(f.Question, *f.Choice)
		}
	default:
		return nil
	}
	var ok bool
	if m.Media, ok = s.c.uploads.take(s.room.chat, f.Files); !ok {
		return s.write(ctx, frame{Type: typeError, Reason: reasonInvalid, Key: f.Key, Text: "A file is missing. Please attach it again."})
	}
	if m.Content == "" && len(m.Media) == 0 || len(f.Key) > maxKey {
		return s.write(ctx, frame{Type: typeError, Reason: reasonInvalid, Key: f.Key, Text: "The message is empty or its key is too long."})
	}
	if wait, ok := s.c.rooms.mayWrite(s.room); !ok {
		refusal := frame{Type: typeError, Reason: reasonRate, Key: f.Key, Retry: wait.Seconds(), Text: "Too many messages. Please wait a moment."}
		return s.write(ctx, refusal)
	}
	key := f.Key
	if key == "" {
		key = newID()
	}
	m.ID = m.ChatID + "/" + key
	m.Hints.Command, m.Hints.Args = s.command(m.Content)
	m.Hints.ForceSync = m.Hints.Command != ""
	m.SenderID = s.sender(&m)
	if err := s.store(ctx, &m, key); err != nil {
		s.c.log.Error("message of a visitor can't be stored", "error", err)
		refusal := frame{Type: typeError, Reason: reasonFailed, Key: f.Key, Retry: 5, Text: "Your message could not be stored. Please send it again."}
		return s.write(ctx, refusal)
	}
	return nil
}

// maxAge is how far the time of a key may be from that of the gateway. It is less than the time for which the
// pipeline recognizes repetitions. A clock that is wrong by more than that is not trusted.
const maxAge = 24 * time.Hour

// timeOf returns the time of a message: that of its key, if the key has one and it is plausible. The id of the message in the
// conversation depends on it.
func timeOf(key string, at time.Time) time.Time {
	id, err := uuid.Parse(key)
	if err != nil || id.Version() != 7 {
		return at
	}
	sentAt := time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16))
	if at.Sub(sentAt).Abs() > maxAge {
		return at
	}
	return sentAt
}

// command returns the command of a text. A visitor from elsewhere can't choose another agent: the operator has published one of
// them, and others may have more rights. A visitor who was not admitted gets no code for /link, because its user is admitted on
// the other platform.
func (s *socket) command(text string) (name, args string) {
	name, args = channel.ParseCommand(text)
	if !s.isLocal && (name == "agent" || name == "link" && args == "" && s.isAdmitted) {
		return "", ""
	}
	return name, args
}

// sender returns the sender of a message. The visitors who need no code share one. A code for /link makes its sender the person who
// got it, so there the visitor counts as an individual: otherwise all visitors would become that person.
func (s *socket) sender(m *channel.InboundMessage) string {
	if !s.isAdmitted || m.Hints.Command == "link" && m.Hints.Args != "" {
		return m.ChatID
	}
	return Visitor
}

// store passes a message to the inbox and confirms it with a frame, which the visitor's other connections get too. Answers and stops
// are shown by what they cause. The frame precedes those of the answer, because the room's order is held. The error
// is that of the inbox. The client gets no confirmation then, and must send the message again with the same key.
func (s *socket) store(ctx context.Context, m *channel.InboundMessage, key string) error {
	s.room.order.Lock()
	defer s.room.order.Unlock()
	// The message is stored even if the client disconnects now.
	if err := s.run.inbox.Receive(context.WithoutCancel(ctx), *m); err != nil {
		return err
	}
	if m.Hints.Command == "stop" || m.Hints.Command == "answer" {
		return nil
	}
	f := frame{Type: typeUser, Content: m.Content, Key: key}
	if s.c.source != nil && m.Hints.Command == "" {
		f.Message = s.c.source.MessageID(*m)
	}
	for _, o := range m.Media {
		f.Files = append(f.Files, file{Name: o.Name, MIME: o.Type, Size: o.Size})
	}
	s.room.confirm(f)
	return nil
}
