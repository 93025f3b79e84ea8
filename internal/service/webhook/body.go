package webhook

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/transcript"
)

// Body is the JSON body of a delivery.
type Body struct {
	ID           string     `json:"id"` // id of the delivery, the same in every attempt
	Type         event.Type `json:"type"`
	At           int64      `json:"at"` // time of the event, epoch milliseconds
	Conversation string     `json:"conversation"`
	Seq          int64      `json:"seq"` // seq of the event in its conversation
	Tenant       string     `json:"tenant,omitempty"`
	Subject      string     `json:"subject,omitempty"` // the conversation's owner

	Turn   string `json:"turn,omitempty"`
	Parent string `json:"parent,omitempty"` // parent turn of a nested turn
	Agent  string `json:"agent,omitempty"`
	// Message is the added message, or the first message of a turn's answer.
	Message string     `json:"message,omitempty"`
	Role    event.Role `json:"role,omitempty"`   // only in message.add
	Source  string     `json:"source,omitempty"` // only in message.add

	Channel string `json:"channel,omitempty"` // only in delivery.failed, as Chat
	Chat    string `json:"chat,omitempty"`    // the platform's id

	Outcome event.Outcome  `json:"outcome,omitempty"` // only in turn.end, like Reason and Usage; Error is also in delivery.failed
	Reason  string         `json:"reason,omitempty"`
	Error   *event.Error   `json:"error,omitempty"`
	Usage   *event.Usage   `json:"usage,omitempty"`
	Request *event.Request `json:"request,omitempty"` // only in turn.wait; prompt, options and data require Hook.Content

	Text      string `json:"text,omitempty"` // only if Hook.Content is set
	Truncated bool   `json:"text_cut,omitempty"`
}

// maxText limits the text of a body, in bytes. Receivers such as push services show far less, and can fetch the rest.
const maxText = 256 << 10

// entry is a delivery as stored. It contains no text of the conversation, which may be deleted before the delivery is sent.
type entry struct {
	Body
	Queued   int64 `json:"queued"` // epoch milliseconds
	Attempts int   `json:"attempts,omitempty"`
	Next     int64 `json:"next,omitempty"` // earliest time of the next attempt, epoch milliseconds
}

// newEntry returns the delivery of an event. It copies only ids, states and counts. The text is added by complete when the
// delivery is sent.
func newEntry(id string, queuedAt int64, s *journal.Summary, e *event.Event) entry {
	b := e.Get()
	d := entry{Queued: queuedAt, Body: Body{
		ID: id, Type: e.Type, At: e.At, Conversation: s.ID, Seq: e.Seq, Tenant: s.Tenant, Subject: s.Owner,
		Turn: e.Turn, Message: e.Message, Role: b.Role, Source: b.Source, Outcome: b.Outcome, Usage: b.Usage,
	}}
	if b.Error != nil {
		d.Error = &event.Error{Code: b.Error.Code, Retryable: b.Error.Retryable}
	}
	if r := b.Request; r != nil {
		d.Request = &event.Request{ID: r.ID, Kind: r.Kind, Tool: r.Tool, Part: r.Part}
	}
	return d
}

// complete adds the current data of the conversation. It returns false if t doesn't contain the turn or message of the body,
// either because it is older than t or because it was deleted.
func (b *Body) complete(t *transcript.Transcript, content bool) bool {
	if b.Type == event.MessageAdd {
		m := t.Message(b.Message)
		if m != nil && content {
			b.setText(m.Visible())
		}
		return m != nil
	}
	turn := t.Turn(b.Turn)
	if b.Type == DeliveryFailed {
		if turn != nil {
			b.Agent = turn.Agent
		}
		return turn != nil || b.Turn == ""
	}
	if turn == nil || (b.Type == event.TurnEnd && turn.State != transcript.TurnEnded) {
		return false // older than t, or its end isn't published yet
	}
	b.Agent, b.Parent, b.Reason = turn.Agent, turn.Parent, turn.Reason
	if i := slices.IndexFunc(t.Messages, func(m *transcript.Message) bool { return m.Turn == b.Turn && m.Role == event.Assistant }); i >= 0 {
		b.Message = t.Messages[i].ID
	}
	if b.Error != nil && turn.Error != nil {
		err := *turn.Error
		b.Error = &err
	}
	if !content {
		return true
	}
	if b.Type == event.TurnEnd {
		b.setText(t.Visible(b.Turn))
	}
	for _, r := range turn.Requests {
		if b.Request != nil && r.ID == b.Request.ID {
			request := r.Request
			b.Request = &request
		}
	}
	return true
}

// setText sets the text and truncates it at a character boundary.
func (b *Body) setText(s string) {
	if len(s) > maxText {
		end := maxText
		for !utf8.RuneStart(s[end]) {
			end--
		}
		s, b.Truncated = s[:end], true
	}
	b.Text = strings.Clone(s)
}
