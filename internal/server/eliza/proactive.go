// Messages outside of turns, as frames for the clients of the users who may read them.

package eliza

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// maxQueued is how many messages may wait for Run. More are dropped from the sockets; the conversation still has them.
const maxQueued = 1024

// autonomy is the source of a message that an agent sends unasked and without a source.
const autonomy = "autonomy"

// Proactive sends sockets the messages that agents send unasked: messages outside turns, and turns that no message started. An
// answer to a user's message is on its own stream and never here. Proactive is a watcher of the gateway; make it with
// NewProactive, and call Run in a goroutine.
type Proactive struct {
	log  *slog.Logger
	wake chan struct{} // has a value if queue has entries

	mu      sync.Mutex
	queue   []utterance
	drops   int             // since Run last took the queue
	prompts map[string]bool // running turns that answer a message or run inside another turn
}

// utterance is an entry of the queue: a message, or a turn that has ended.
//
// The message is ready if the agent sent it outside a turn. Of a turn only the id is queued: its messages
// are read by Run, because Committed must not wait for the store.
type utterance struct {
	conversation, turn string
	message            *proactive
}

var _ gateway.Watcher = (*Proactive)(nil)

// NewProactive returns a watcher that queues messages until Run is called.
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
//
// It runs in the conversation's writer, with every commit, so it only queues. A turn that answers a
// message is remembered from its first event to its end: turn.end doesn't repeat what the turn answers.
func (w *Proactive) Committed(s *journal.Summary, events []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.queue)
	for i := range events {
		e := &events[i]
		b := e.Get()
		switch e.Type {
		case event.TurnQueue, event.TurnStart:
			if b.Parent != "" || b.Answers != "" && b.Source == "" { // a turn that its upstream started for another client's message is unasked here
				w.prompts[e.Turn] = true
			}
		case event.TurnEnd:
			if w.prompts[e.Turn] {
				delete(w.prompts, e.Turn)
				continue
			}
			w.enqueue(utterance{conversation: s.ID, turn: e.Turn}) // a turn that began before this process may be an answer; Run finds out
		case event.MessageAdd:
			if e.Turn == "" && b.Role == event.Assistant {
				if m := messageOf(e); m != nil {
					w.enqueue(utterance{conversation: s.ID, message: m})
				}
			}
		}
	}
	if len(w.queue) > before {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// enqueue adds an entry. The caller must hold w.mu.
//
// A full queue drops the new entry instead of waiting: to wait here would stop the writer of the
// conversation.
func (w *Proactive) enqueue(s utterance) {
	if len(w.queue) >= maxQueued {
		w.drops++
		return
	}
	w.queue = append(w.queue, s)
}

// messageOf returns the frame's message for a message.add event, or nil if it is not to be sent.
//
// It applies the event to an empty transcript, so that the text and the attachments are computed by the
// same code as everywhere else.
func messageOf(e *event.Event) *proactive {
	var t transcript.Transcript
	if err := t.Apply(e); err != nil || len(t.Messages) == 0 {
		return nil // impossible: the gateway has applied this event
	}
	return proactiveOf(answer{messages: t.Messages})
}

// proactiveOf returns the frame's message for an answer, or nil if it has no text and no attachment, or belongs to a chat.
//
// Messages with the source client_chat are excluded: the stream of the chat that caused them delivers
// them.
func proactiveOf(a answer) *proactive {
	if len(a.messages) == 0 {
		return nil
	}
	opening := a.messages[0]
	m := &proactive{ID: opening.ID, Role: string(event.Assistant), Text: a.text(), Timestamp: opening.At, Source: opening.Source, Attachments: a.attachments()}
	m.Source = cmp.Or(m.Source, autonomy)
	if m.Source == clientChat || strings.TrimSpace(m.Text) == "" && len(m.Attachments) == 0 {
		return nil
	}
	return m
}

// Run passes frames to send until ctx ends. It calls send from one goroutine, and send must not block.
//
// One value in wake can stand for several commits, so Run takes the whole queue each time. An error of one
// message is logged and the others are still sent. Errors of a deleted conversation and of a stopping
// gateway are expected and not logged.
func (w *Proactive) Run(ctx context.Context, gw *gateway.Gateway, send func(hub.Frame)) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		w.mu.Lock()
		queue, drops := w.queue, w.drops
		w.queue, w.drops = nil, 0
		w.mu.Unlock()
		if drops > 0 {
			w.log.Warn("messages dropped for sockets: too many at once", "messages", drops)
		}
		for _, s := range queue {
			m := s.message
			if m == nil {
				var err error
				if m, err = unprompted(ctx, gw, s.conversation, s.turn); err != nil {
					if !errors.Is(err, gateway.ErrNotFound) && !errors.Is(err, gateway.ErrClosed) {
						w.log.Warn("message not sent to sockets", "conversation", s.conversation, "turn", s.turn, "error", err)
					}
					continue
				}
			}
			if m != nil {
				sendFrame(send, s.conversation, m)
			}
		}
	}
}

// unprompted returns the frame's message for a turn that has ended, or nil if the turn answered a message.
//
// The transcript decides and not the events that Committed saw, because the turn may have started before
// this process did.
func unprompted(ctx context.Context, gw *gateway.Gateway, conversation, turn string) (m *proactive, err error) {
	err = gw.ViewTranscript(ctx, gateway.Principal{Admin: true}, conversation, func(t *transcript.Transcript) bool {
		u := t.Turn(turn)
		if u == nil || t.Earlier && (len(t.Messages) == 0 || t.Messages[0].Seq > u.FirstSeq) {
			return false // a part of the turn is no longer in memory
		}
		if u.Parent == "" && (u.Answers == "" || u.Source != "") {
			a, _ := answerOf(t.Messages, t.Turns, turn)
			m = proactiveOf(a)
		}
		return true
	})
	return m, err
}

// sendFrame sends the frame proactive-message to the sockets of all users who may read the conversation.
// The hub checks that permission when it delivers the frame.
func sendFrame(send func(hub.Frame), conversation string, m *proactive) {
	b, err := server.Marshal(proactiveFrame{"proactive-message", conversation, *m})
	if err != nil {
		return // impossible: it contains only strings and numbers
	}
	send(hub.Frame{Conversation: conversation, JSON: b})
}
