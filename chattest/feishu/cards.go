package feishu

import (
	"encoding/json"
	"strings"
	"time"
)

// card is a card: an entity of CardKit, or that of a message.
type card struct {
	id        string
	elements  []*element
	streaming bool
	sequence  int
	times     []time.Time // of the operations in the last second
	message   *Message    // that shows it, or nil
	uuids     map[string]bool
}

// element is a part of a card: Markdown or a button.
type element struct {
	Tag     string `json:"tag"`
	ID      string `json:"element_id"`
	Content string `json:"content"`
	Text    struct {
		Content string `json:"content"`
	} `json:"text"`
	Behaviors []struct {
		Type  string         `json:"type"`
		Value map[string]any `json:"value"`
	} `json:"behaviors"`
}

// parseCard reads the JSON of a card in version 2.0.
func parseCard(raw []byte) (*card, *failure) {
	var v struct {
		Schema string `json:"schema"`
		Config struct {
			Streaming   bool  `json:"streaming_mode"`
			UpdateMulti *bool `json:"update_multi"`
		} `json:"config"`
		Body struct {
			Elements []*element `json:"elements"`
		} `json:"body"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, refuse(codeBadCard, "Failed to create card content, ext=%v", err)
	}
	switch {
	case v.Schema != "2.0":
		return nil, refuse(codeBadCard, "Failed to create card content, ext=the fake knows schema 2.0 only")
	case v.Config.UpdateMulti != nil && !*v.Config.UpdateMulti:
		return nil, refuse(codeBadCard, "Failed to create card content, ext=update_multi must be true")
	case len(v.Body.Elements) == 0:
		return nil, refuse(codeBadCard, "Failed to create card content, ext=body.elements is empty")
	}
	ids := map[string]bool{}
	for _, e := range v.Body.Elements {
		if e.ID != "" && ids[e.ID] || len(e.ID) > 20 {
			return nil, refuse(codeBadCard, "Failed to create card content, ext=element_id %q", e.ID)
		}
		if ids[e.ID] = true; e.Tag != "markdown" && e.Tag != "button" {
			return nil, refuse(codeBadCard, "Failed to create card content, ext=the fake knows the tags markdown and button only, not %q", e.Tag)
		}
	}
	return &card{elements: v.Body.Elements, streaming: v.Config.Streaming, uuids: map[string]bool{}}, nil
}

// fillCard gives a message the card of its content: an entity, or one of JSON.
func (c *call) fillCard(m *Message, content map[string]any) *failure {
	if content["type"] == "card" {
		data, _ := content["data"].(map[string]any)
		id, _ := data["card_id"].(string)
		k := c.s.cards[id]
		switch {
		case k == nil:
			return refuse(codeBadCard, "Failed to create card content, ext=card_id is invalid")
		case k.message != nil:
			return refuse(codeBadCard, "Failed to create card content, ext=a card can be sent once")
		}
		m.card = k
	} else {
		raw, err := json.Marshal(content)
		if err != nil {
			return refuse(codeBadCard, "Failed to create card content")
		}
		k, failed := parseCard(raw)
		if failed != nil {
			return failed
		}
		if k.id = c.s.id("card_"); m.card != nil { // an update
			k.id, k.times = m.card.id, m.card.times
		}
		c.s.cards[k.id], m.card, k.message = k, k, m
	}
	m.show()
	return nil
}

// show makes a message show its card.
func (m *Message) show() {
	var text []string
	m.Buttons = nil
	for _, e := range m.card.elements {
		if e.Tag == "markdown" && e.Content != "" {
			text = append(text, e.Content)
		}
		if e.Tag == "button" && len(e.Behaviors) > 0 {
			m.Buttons = append(m.Buttons, Button{e.Text.Content, e.Behaviors[0].Value})
		}
	}
	m.Text, m.IsStreaming = strings.Join(text, "\n"), m.card.streaming
}

// pace counts an operation on the card.
func (k *card) pace(rate int) bool { return admit(&k.times, rate) }

// createCard creates an entity.
func (c *call) createCard() (any, *failure) {
	switch {
	case c.text("type") != "card_json":
		return nil, refuse(300301, "card type must be card_json")
	case len(c.text("data")) > maxCard:
		return nil, refuse(300302, "card is larger than 30 KB")
	}
	k, failed := parseCard([]byte(c.text("data")))
	if failed != nil {
		return nil, failed
	}
	k.id = c.s.id("card_")
	c.s.cards[k.id] = k
	return map[string]any{"card_id": k.id}, nil
}

// operate begins an operation on a card. isRepeated is set if an operation with the same uuid was carried out.
func (c *call) operate() (k *card, isRepeated bool, failed *failure) {
	k = c.s.cards[c.path[4]]
	if k == nil {
		return nil, false, refuse(codeNoCard, "card doesn't exist")
	}
	if uuid := c.text("uuid"); uuid != "" {
		if k.uuids[uuid] {
			return k, true, nil
		}
		defer func() { k.uuids[uuid] = failed == nil }()
	}
	if !k.pace(cardRate) {
		return nil, false, &failure{status: 429, code: codeRate, message: "request trigger frequency limit", reset: "1"}
	}
	sequence, _ := c.body["sequence"].(float64)
	if n := int(sequence); n <= k.sequence || n > 1<<31-1 {
		return nil, false, refuse(codeSequence, "sequence number compare failed: %d after %d", n, k.sequence)
	}
	if k.message != nil && k.message.Deleted {
		return nil, false, refuse(codeNoCard, "card doesn't exist")
	}
	k.sequence = int(sequence)
	return k, false, nil
}

// content replaces the text of an element.
func (c *call) content() (any, *failure) {
	k, isRepeated, failed := c.operate()
	if failed != nil || isRepeated {
		return map[string]any{}, failed
	}
	text := c.text("content")
	if !k.streaming {
		return nil, refuse(codeClosed, "card streaming mode is closed")
	}
	if text == "" || len(text) > maxCard {
		return nil, refuse(300302, "content is empty or larger than the card may be")
	}
	for _, e := range k.elements {
		if e.ID == c.path[6] && e.Tag == "markdown" {
			e.Content = text
			if k.message != nil {
				k.message.show()
			}
			return map[string]any{}, nil
		}
	}
	return nil, refuse(300313, "element_id doesn't exist")
}

// settings changes whether a card streams.
func (c *call) settings() (any, *failure) {
	k, isRepeated, failed := c.operate()
	if failed != nil || isRepeated {
		return map[string]any{}, failed
	}
	var v struct {
		Config struct {
			Streaming *bool `json:"streaming_mode"`
		} `json:"config"`
	}
	if err := json.Unmarshal([]byte(c.text("settings")), &v); err != nil {
		return nil, refuse(300301, "settings is not a string in json format")
	}
	if v.Config.Streaming != nil {
		k.streaming = *v.Config.Streaming
	}
	if k.message != nil {
		k.message.show()
	}
	return map[string]any{}, nil
}

// convert answers with the card of a message.
func (c *call) convert() (any, *failure) {
	m := c.s.messages[c.text("message_id")]
	if m == nil || m.card == nil {
		return nil, refuse(300301, "message_id is invalid")
	}
	return map[string]any{"card_id": m.card.id}, nil
}

// CloseStream ends the streaming of a message as the platform does after some minutes.
func (s *Server) CloseStream(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.messages[message]; m != nil && m.card != nil {
		m.card.streaming = false
		m.show()
	}
}
