//go:build e2e

package openclaw

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// row is one of a session's history.
type row struct {
	Role    string
	Content json.RawMessage
	Tool    string `json:"toolCallId"`
	Stop    string `json:"stopReason"`
	About   struct {
		Run string `json:"runId"`
	} `json:"__openclaw"`
}

type block struct {
	Type, Text, ID, Name string
	Arguments            struct{ Command string }
}

func (r *row) blocks() []block {
	var all []block
	if json.Unmarshal(r.Content, &all) == nil {
		return all
	}
	var text string
	if json.Unmarshal(r.Content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	return nil
}

// history returns what the gateway keeps of a session.
func (o *peer) history(session string) []row {
	o.t.Helper()
	var h struct{ Messages []row }
	o.call("chat.history", map[string]any{"sessionKey": session, "limit": 1000, "maxChars": 500000}, &h)
	return h.Messages
}

// kept returns a history as items. What the gateway says to itself in the user's name is left out.
func kept(rows []row) (items []harness.Item) {
	outputs := map[string]string{}
	for _, r := range rows {
		if r.Role == "toolResult" {
			for _, b := range r.blocks() {
				outputs[r.Tool] += b.Text
			}
		}
	}
	for _, r := range rows {
		for _, b := range r.blocks() {
			text := strings.TrimSpace(b.Text)
			switch {
			case b.Type == "toolCall":
				items = append(items, harness.Tool(b.Arguments.Command, outputs[b.ID]))
			case b.Type != "text" || text == "" || r.Role == "toolResult":
			case r.Role == "user":
				if !strings.HasPrefix(text, "[System]") {
					items = append(items, harness.Item{Kind: harness.ItemUser, Text: text})
				}
			case r.Role == "assistant":
				items = append(items, harness.Item{Kind: harness.ItemText, Text: text})
			}
		}
	}
	return items
}
