package eliza

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// maxSaid bounds what waits to be told; more is dropped, and is there when the conversation is read.
const maxSaid = 1024

// autonomy is the source of what an agent says of its own accord and names no other for.
const autonomy = "autonomy"

// Proactive tells sockets of what agents say of their own accord: messages that are added outside turns, and turns that no
// message started. What answers somebody is told by its own stream, and never here too. It is a watcher of the gateway; make
// one with NewProactive, and call Run beside it.
type Proactive struct {
	log  *slog.Logger
	wake chan struct{} // has a value when something waits

	mu      sync.Mutex
	said    []utterance
	lost    int             // that were dropped since Run looked
	prompts map[string]bool // turns that run and answer somebody, or run inside others
}

// utterance is what Run is to tell of: a message, or a turn that has ended.
type utterance struct {
	conversation, turn string
	message            *proactive
}

var _ gateway.Watcher = (*Proactive)(nil)

// NewProactive returns a watcher that tells nobody until Run is called.
func NewProactive(log *slog.Logger) *Proactive {
	return &Proactive{log: log, wake: make(chan struct{}, 1), prompts: map[string]bool{}}
}

type proactiveFrame struct {
	Type           string    `json:"type"`
	ConversationID string    `json:"conversationId"`
	Message        proactive `json:"message"`
}

type proactive struct {
	ID          string       `json:"id"`
	Role        string       `json:"role"`
	Text        string       `json:"text"`
	Timestamp   int64        `json:"timestamp"`
	Source      string       `json:"source"`
	Attachments []attachment `json:"attachments,omitempty"`
}

// Committed implements [gateway.Watcher].
func (w *Proactive) Committed(s *journal.Summary, events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.said)
	for i := range events {
		e := &events[i]
		b := e.Get()
		switch e.Type {
		case event.TurnQueue, event.TurnStart:
			if b.Parent != "" || b.Answers != "" && b.Source == "" { // what its upstream began answers somebody elsewhere
				w.prompts[e.Turn] = true
			}
		case event.TurnEnd:
			if w.prompts[e.Turn] {
				delete(w.prompts, e.Turn)
				continue
			}
			w.put(utterance{conversation: s.ID, turn: e.Turn}) // or it began before this process, and Run looks
		case event.MessageAdd:
			if e.Turn == "" && b.Role == event.Assistant {
				if m := added(e); m != nil {
					w.put(utterance{conversation: s.ID, message: m})
				}
			}
		}
	}
	if len(w.said) > before {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// put is called with w.mu held.
func (w *Proactive) put(s utterance) {
	if len(w.said) >= maxSaid {
		w.lost++
		return
	}
	w.said = append(w.said, s)
}

// added is what is told of a message that came as a whole; nil where nothing is.
func added(e *event.Event) *proactive {
	var t transcript.Transcript
	if err := t.Apply(e); err != nil || len(t.Messages) == 0 {
		return nil // it was applied by the gateway, so that can't be
	}
	return spoken(answer{messages: t.Messages})
}

// spoken is what is told of an answer that nobody asked for; nil where it says nothing, or is a chat's.
func spoken(a answer) *proactive {
	if len(a.messages) == 0 {
		return nil
	}
	first := a.messages[0]
	m := &proactive{ID: first.ID, Role: string(event.Assistant), Text: a.text(), Timestamp: first.At, Source: first.Source, Attachments: a.attachments()}
	if m.Source == "" {
		m.Source = autonomy
	}
	if m.Source == clientChat || strings.TrimSpace(m.Text) == "" && len(m.Attachments) == 0 {
		return nil
	}
	return m
}

// Run hands frames to send until the context ends. send must not block.
func (w *Proactive) Run(ctx context.Context, gw *gateway.Gateway, send func(hub.Frame)) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		all, lost := w.said, w.lost
		w.said, w.lost = nil, 0
		w.mu.Unlock()
		if lost > 0 {
			w.log.Warn("messages are not told to sockets: too many at once", "messages", lost)
		}
		for _, s := range all {
			m := s.message
			if m == nil {
				var err error
				if m, err = unprompted(ctx, gw, s.conversation, s.turn); err != nil {
					if !errors.Is(err, gateway.ErrNotFound) && !errors.Is(err, gateway.ErrClosed) {
						w.log.Warn("a message is not told to sockets", "conversation", s.conversation, "turn", s.turn, "error", err)
					}
					continue
				}
			}
			if m != nil {
				tell(send, s.conversation, m)
			}
		}
	}
}

// unprompted is what is told of a turn that has ended; nil where it answered somebody.
func unprompted(ctx context.Context, gw *gateway.Gateway, conversation, turn string) (m *proactive, err error) {
	err = gw.ViewTranscript(ctx, gateway.Principal{Admin: true}, conversation, func(t *transcript.Transcript) bool {
		u := t.Turn(turn)
		if u == nil || t.Earlier && (len(t.Messages) == 0 || t.Messages[0].Seq > u.FirstSeq) {
			return false // a part of it is not in memory any more
		}
		if u.Parent == "" && (u.Answers == "" || u.Source != "") {
			a, _ := answerOf(t.Messages, t.Turns, turn)
			m = spoken(a)
		}
		return true
	})
	return m, err
}

func tell(send func(hub.Frame), conversation string, m *proactive) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(proactiveFrame{"proactive-message", conversation, *m}); err != nil {
		return // it holds strings and numbers only
	}
	send(hub.Frame{Conversation: conversation, JSON: bytes.TrimSuffix(b.Bytes(), []byte("\n"))})
}
