package slack

import (
	"encoding/json"
	"unicode/utf8"
)

// The limits of blocks (docs.slack.dev, "Block Kit").
const (
	maxBlocks   = 50
	maxElements = 25
	maxSection  = 3000 // characters
	maxLabel    = 75   // characters
	maxValue    = 2000 // characters
	maxID       = 255  // characters
)

// block is a block of a message, with the fields that are checked.
type block struct {
	// Type decides which fields are needed.
	Type string `json:"type"`
	// ID may be empty. Action ids have to be unique together with it.
	ID       string    `json:"block_id"`
	Text     textual   `json:"text"`
	Fields   []textual `json:"fields"`
	Elements []element `json:"elements"`
}

// textual is a text within a block: an object, or in a markdown block a string.
type textual struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textual) UnmarshalJSON(raw []byte) error {
	type object textual
	if len(raw) > 0 && raw[0] == '"' {
		t.Type = "markdown"
		return json.Unmarshal(raw, &t.Text)
	}
	return json.Unmarshal(raw, (*object)(t))
}

// element is a button. Slack has more elements; bots under test need no others.
type element struct {
	Type  string  `json:"type"`
	Text  textual `json:"text"`
	Value string  `json:"value"`
	// Action comes back with the value when a person presses the button.
	Action string `json:"action_id"`
}

// blocks checks the blocks of a request and returns their buttons.
func (c *call) blocks() (buttons []Button, has bool, refusal *answer) {
	var list []block
	if err := c.object("blocks", &list); err != nil {
		return nil, false, refuse("invalid_blocks_format")
	}
	if len(list) > maxBlocks {
		return nil, false, refuse("invalid_blocks")
	}
	actions := map[string]bool{}
	for _, b := range list {
		switch b.Type {
		case "section":
			if !b.Text.isValid(maxSection) && len(b.Fields) == 0 {
				return nil, false, refuse("invalid_blocks")
			}
		case "actions":
			if len(b.Elements) == 0 || len(b.Elements) > maxElements {
				return nil, false, refuse("invalid_blocks")
			}
			for _, e := range b.Elements {
				n := utf8.RuneCountInString
				if e.Type != "button" || e.Text.Type != "plain_text" || !e.Text.isValid(maxLabel) || n(e.Value) > maxValue || n(e.Action) > maxID ||
					actions[b.ID+e.Action] {
					return nil, false, refuse("invalid_blocks")
				}
				actions[b.ID+e.Action] = e.Action != ""
				buttons = append(buttons, Button{e.Text.Text, e.Value, e.Action, b.ID})
			}
		case "markdown":
			if n := utf8.RuneCountInString(b.Text.Text); b.Text.Type != "markdown" || n == 0 || n > maxMarkdown {
				return nil, false, refuse("invalid_blocks")
			}
		case "context", "divider":
		default:
			return nil, false, refuse("invalid_blocks")
		}
	}
	return buttons, len(list) > 0, nil
}

// isValid reports whether a text object has one of the two types and a text within the limit.
func (t *textual) isValid(limit int) bool {
	n := utf8.RuneCountInString(t.Text)
	return (t.Type == "mrkdwn" || t.Type == "plain_text") && n > 0 && n <= limit
}
