package slack

import (
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/channel/live"
)

const (
	// maxLabel is the limit of the text of a button, in characters. The limits of this file are those of the documentation for
	// blocks.
	maxLabel = 75
	// maxButtons is how many buttons a block may have.
	maxButtons = 25
)

// block is a block of a message. Its fields depend on its type.
type block struct {
	Type     string   `json:"type"`
	Text     string   `json:"text,omitempty"` // of a markdown block
	Elements []button `json:"elements,omitempty"`
}

// button is a choice. Its value comes back when a person presses it; the action only has to be unique in the message.
type button struct {
	Type   string `json:"type"`
	Text   label  `json:"text"`
	Action string `json:"action_id"`
	Value  string `json:"value"`
}

// label is the text of a button, without markup.
type label struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// questionBlocks returns a question with its buttons. The buttons follow the text in as many blocks as they need.
func questionBlocks(text string, buttons []live.Button) []block {
	blocks := []block{{Type: "markdown", Text: text}}
	for i, b := range buttons {
		if i%maxButtons == 0 {
			blocks = append(blocks, block{Type: "actions"})
		}
		last := &blocks[len(blocks)-1]
		last.Elements = append(last.Elements, button{
			Type: "button", Text: label{"plain_text", labelOf(b.Text)}, Action: "answer-" + strconv.Itoa(i), Value: b.Command,
		})
	}
	return blocks
}

// labelOf returns the text of a button. A longer label would make Slack refuse the whole question.
func labelOf(text string) string {
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > maxLabel {
		return string(r[:maxLabel-1]) + "…"
	}
	return text
}
