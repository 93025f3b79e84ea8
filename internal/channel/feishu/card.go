package feishu

import (
	"github.com/leat-dev/leat/internal/channel/live"
)

// textElement is the id of the element with the text of a card.
const textElement = "text"

// card is a card in version 2.0.
type card struct {
	Schema string     `json:"schema"`
	Config cardConfig `json:"config"`
	Body   struct {
		Elements []cardElement `json:"elements"`
	} `json:"body"`
}

// cardConfig are the settings of a card.
type cardConfig struct {
	// UpdateMulti is required for cards that change.
	UpdateMulti bool `json:"update_multi"`
	Streaming   bool `json:"streaming_mode,omitempty"`
}

// cardElement is a text or a button.
type cardElement struct {
	Tag       string     `json:"tag"`
	ID        string     `json:"element_id,omitempty"`
	Content   string     `json:"content,omitempty"` // of markdown
	Text      *plainText `json:"text,omitempty"`    // of a button
	Behaviors []behavior `json:"behaviors,omitempty"`
}

// plainText is the label of a button.
type plainText struct {
	Tag     string `json:"tag"`
	Content string `json:"content"`
}

// behavior is what pressing a button does: it sends the value to the webhook.
type behavior struct {
	Type  string      `json:"type"`
	Value buttonValue `json:"value"`
}

// buttonValue is the value of a button. Chat is the place of the card, because the event of a press doesn't name the thread.
type buttonValue struct {
	Command string `json:"command"`
	Chat    string `json:"chat"`
}

// newCard returns a card for a message.
func newCard(at place, p live.Post) *card {
	k := &card{Schema: "2.0", Config: cardConfig{UpdateMulti: true, Streaming: p.Kind == live.Text && p.IsLive}}
	k.Body.Elements = []cardElement{{Tag: "markdown", ID: textElement, Content: contentOf(p)}}
	for _, b := range p.Buttons {
		k.Body.Elements = append(k.Body.Elements, cardElement{
			Tag: "button", Text: &plainText{"plain_text", b.Text}, Behaviors: []behavior{{"callback", buttonValue{b.Command, at.id()}}},
		})
	}
	return k
}

// contentOf returns the Markdown of a message.
func contentOf(p live.Post) string {
	if p.Kind == live.Card {
		return statusText(p.Status)
	}
	return p.Text.Text
}

// cardJSON returns a card as the platform takes it: as a string of JSON.
func cardJSON(v any) (string, error) {
	raw, err := marshal(v)
	return string(raw), err
}
