// The parameters of the methods that send and change messages.

package telegram

import (
	"fmt"
	"html"
	"strings"

	"github.com/leat-dev/leat/internal/base/markup"
	"github.com/leat-dev/leat/internal/channel/live"
)

// outgoing are the parameters of sendMessage, editMessageText and sendMessageDraft.
type outgoing struct {
	// ChatID is the only parameter that all three methods need.
	ChatID int64 `json:"chat_id"`
	Thread int64 `json:"message_thread_id,omitempty"`
	// Message is the one to edit.
	Message int64 `json:"message_id,omitempty"`
	// Draft is the id of a draft. Updates with one id are animated as growth of one text.
	Draft   int64 `json:"draft_id,omitempty"`
	CanStop bool  `json:"can_stop,omitempty"`
	// Text is always sent. An empty one would be refused.
	Text string `json:"text"`
	// Entities are the formatting. Mode is set instead for a text with HTML tags.
	Entities []markup.Entity `json:"entities,omitempty"`
	Mode     string          `json:"parse_mode,omitempty"`
	Silent   bool            `json:"disable_notification,omitempty"`
	Reply    *reply          `json:"reply_parameters,omitempty"`
	// Buttons are removed by an edit without them.
	Buttons *keyboard `json:"reply_markup,omitempty"`
	Preview *preview  `json:"link_preview_options,omitempty"`
}

// richDraft are the parameters of sendRichMessageDraft.
type richDraft struct {
	ChatID  int64       `json:"chat_id"`
	Thread  int64       `json:"message_thread_id,omitempty"`
	Draft   int64       `json:"draft_id"`
	CanStop bool        `json:"can_stop,omitempty"`
	Message richMessage `json:"rich_message"`
}

// richMessage is a text with headings, lists and tables.
type richMessage struct {
	HTML string `json:"html"`
	// IsExact keeps the server from making links of mentions and hashtags that the answer only quotes.
	IsExact bool `json:"skip_entity_detection"`
}

// reply makes a message a reply. A reply to a message that was deleted is sent as a normal message.
type reply struct {
	// Message is the number of the message in the chat of the request.
	Message int64 `json:"message_id"`
	Lenient bool  `json:"allow_sending_without_reply"`
}

// preview switches link previews off.
type preview struct {
	Disabled bool `json:"is_disabled"`
}

// target are the parameters of a request that names a message only.
type target struct {
	ChatID  int64 `json:"chat_id"`
	Message int64 `json:"message_id"`
}

// chatAction are the parameters of sendChatAction.
type chatAction struct {
	ChatID int64  `json:"chat_id"`
	Thread int64  `json:"message_thread_id,omitempty"`
	Action string `json:"action"`
}

// reaction are the parameters of setMessageReaction.
type reaction struct {
	ChatID  int64 `json:"chat_id"`
	Message int64 `json:"message_id"`
	// Reactions replace those of the bot. An empty list has to be sent to remove them.
	Reactions []reactionType `json:"reaction"`
}

// reactionType is one reaction. The bot uses the type emoji only.
type reactionType struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

// keyboard are the buttons below a message.
type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

// button is a choice of a question. Its data comes back when a person presses it, and has at most 64 bytes.
type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"`
}

// keyboardOf returns buttons, each in a row.
func keyboardOf(buttons []live.Button) *keyboard {
	if len(buttons) == 0 {
		return nil
	}
	k := &keyboard{}
	for _, b := range buttons {
		k.Rows = append(k.Rows, []button{{b.Text, b.Command}})
	}
	return k
}

// topic returns the topic for a request. The general topic must be omitted.
func (p place) topic() int64 {
	if p.thread == 1 {
		return 0
	}
	return p.thread
}

// maxCard is the limit of the card's visible text, in UTF-16 units; a message may have 4096.
const maxCard = 4000

// card returns a status card as HTML.
func card(s *live.Status) string {
	return s.Fit(maxCard, cardHTML) + "\n\n" + s.Time()
}

// cardHTML returns a card without the elapsed time. HTML is safe here, because it is generated as a whole and every text in it is
// escaped.
func cardHTML(s *live.Status) string {
	var b strings.Builder
	b.WriteString("🤖 <b>Working…</b>\n")
	if s.Iteration > 0 {
		fmt.Fprintf(&b, "\n🔄 Iteration %d\n", s.Iteration)
	}
	if s.Earlier > 0 {
		fmt.Fprintf(&b, "\n… %d earlier calls\n", s.Earlier)
	}
	for _, t := range s.Tools {
		fmt.Fprintf(&b, "\n%s <code>%s</code>", t.Icon, html.EscapeString(t.Name))
		if t.Summary != "" {
			b.WriteString("(" + html.EscapeString(t.Summary) + ")")
		}
		if t.Output != "" {
			b.WriteString("\n<pre>" + html.EscapeString(t.Output) + "</pre>")
		}
	}
	return b.String()
}
