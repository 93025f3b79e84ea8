package whatsapp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/base/retry"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxText is the limit of a message, in UTF-16 units.
	maxText = 4096
	// numberGap is the time between two messages of the number: 80 a second pass.
	numberGap = time.Second / 80
	// typingLife is a little less than the 25 s for which the platform shows a typing indicator.
	typingLife = 24 * time.Second
)

// pairPenalties are the waits after refusals because of too many messages to one person, and numberPenalties after those because of too
// many messages of the number. The platform names no times.
var (
	pairPenalties   = retry.Schedule{Initial: 10 * time.Second, Max: time.Minute}
	numberPenalties = retry.Schedule{Initial: 5 * time.Second, Max: time.Minute}
)

// rules are those of WhatsApp, where messages can be neither changed nor deleted.
var rules = live.Rules{Platform: "whatsapp", Format: markup.WhatsApp, MaxText: maxText, TypingLife: typingLife, MaxFile: maxUpload}

// chat is the chat with a person, for one delivery. Nothing of a running turn is shown but that an answer is being written.
type chat struct {
	n  *number
	id string
	// question is the id of the message that is answered, or empty. The typing indicator is shown for it.
	question string
	// hasReplied is set when a message was sent as a reply, or can't be: only the first message of an answer is one.
	hasReplied bool
	// refusals counts refusals in a row because of a limit.
	refusals int
	upload   upload // the newest file
}

var (
	_ live.FileChat  = (*chat)(nil)
	_ live.DraftChat = (*chat)(nil)
)

// newChat returns the chat with a person. The requests of a place have no gap, because the limit is that of messages: a pacer keeps it.
func (n *number) newChat(id, question string) (live.Place, *chat) {
	return live.Place{ID: id}, &chat{n: n, id: id, question: question}
}

// outgoing is a message to a person.
type outgoing struct {
	Product string `json:"messaging_product"`
	Kind    string `json:"recipient_type"`
	// To is a phone number. Recipient is the id of a person whose number the platform doesn't give.
	To        string    `json:"to,omitempty"`
	Recipient string    `json:"recipient,omitempty"`
	Context   *replyTo  `json:"context,omitempty"`
	Type      string    `json:"type"`
	Text      *text     `json:"text,omitempty"`
	Image     *fileSent `json:"image,omitempty"`
	Video     *fileSent `json:"video,omitempty"`
	Audio     *fileSent `json:"audio,omitempty"`
	Document  *fileSent `json:"document,omitempty"`
}

// replyTo makes a message a reply.
type replyTo struct {
	Message string `json:"message_id"`
}

// text is the content of a text message.
type text struct {
	Body    string `json:"body"`
	Preview bool   `json:"preview_url"`
}

// fileSent is the content of a message with an uploaded file.
type fileSent struct {
	ID   string `json:"id"`
	Name string `json:"filename,omitempty"` // of a document
}

// Post implements [live.Chat].
func (t *chat) Post(ctx context.Context, p live.Post) (string, error) {
	if p.Kind == live.Card {
		return idHidden, nil // it would stay in the chat
	}
	return t.send(ctx, outgoing{Type: "text", Text: &text{Body: p.Text.Text}}, p.ReplyTo)
}

// idHidden is the id of a status card, which is not shown.
const idHidden = "hidden"

// Edit implements [live.Chat]. The platform can't edit messages, so only a hidden one is edited.
func (t *chat) Edit(context.Context, string, live.Post) error { return nil }

// Delete implements [live.Chat], as Edit does.
func (t *chat) Delete(context.Context, string) error { return nil }

// ShowTyping implements [live.Chat]. The webhook has shown the indicator already when the message arrived; then this prolongs it. A
// refusal doesn't end the delivery, because the answer may still be accepted.
func (t *chat) ShowTyping(ctx context.Context) error {
	if !strings.HasPrefix(t.question, messagePrefix) {
		return nil
	}
	err := t.n.sendReceipt(ctx, t.question)
	if isTerminal(err) {
		return err
	}
	return t.explain(err)
}

// DraftTimes implements [live.DraftChat]. A growing text can't be shown, but while it grows, the indicator is.
func (t *chat) DraftTimes() (gap, life time.Duration) { return typingLife, typingLife }

// ShowDraft implements [live.DraftChat].
func (t *chat) ShowDraft(ctx context.Context, _ live.Post) error { return t.ShowTyping(ctx) }

// messagePrefix is the prefix of the ids of messages.
const messagePrefix = "wamid."

// send sends a message and returns its id.
func (t *chat) send(ctx context.Context, m outgoing, question string) (string, error) {
	m.Product, m.Kind, m.To = "whatsapp", "individual", t.id
	if !numberForm.MatchString(t.id) {
		m.To, m.Recipient = "", t.id
	}
	if question != "" && !t.hasReplied {
		m.Context = &replyTo{question}
	}
	var result struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if err := t.n.pace.wait(ctx, t.id); err != nil {
		return "", err
	}
	err := t.n.client.call(ctx, http.MethodPost, path(t.n.options.Number)+"/messages", m, &result)
	t.n.pace.record(t.id)
	if err == nil || m.Context != nil && isContextRefused(err) {
		t.hasReplied = true
	}
	if m.Context != nil && isContextRefused(err) {
		return "", errors.Join(live.ErrRepeat, err)
	}
	if err != nil || len(result.Messages) == 0 {
		return "", t.explain(err)
	}
	return result.Messages[0].ID, nil
}

// explain returns an error of the client as [live.Chat] describes it.
func (t *chat) explain(err error) error {
	if !isPair(err) && !isRate(err) {
		t.refusals = 0
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, live.ErrUnknown):
		return errors.Join(live.ErrUnknown, err)
	case isPair(err):
		t.refusals++
		return &live.Penalty{Wait: pairPenalties.Wait(t.refusals), Err: err}
	case isRate(err):
		t.refusals++
		return &live.Penalty{Wait: numberPenalties.Wait(t.refusals), IsGlobal: true, Err: err}
	case isPassing(err):
		return errors.Join(live.ErrUnsent, err)
	case refusal(err).Code == codeWindow:
		return errors.Join(channel.ErrUnreachable, errWindow, err)
	case isTerminal(err):
		return errors.Join(channel.ErrUnreachable, err)
	}
	return err
}
