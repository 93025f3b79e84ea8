// The input of a run.

package langgraph

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// questionIn returns the message of the user in the input of a run, or nil if it has none.
//
// It is the last message. The conversation has the others, and agents have their own instructions.
func questionIn(input json.RawMessage) (*gateway.CommandMessage, error) {
	if !isPresent(input) {
		return nil, nil
	}
	var in struct {
		Messages json.RawMessage `json:"messages"`
	}
	if err := server.Unmarshal(input, &in, false); err != nil {
		return nil, server.Invalid("the input of a run must be an object with messages")
	}
	var list []inputMessage
	if err := server.Unmarshal(in.Messages, &list, false); err != nil { // one message is allowed too
		var single inputMessage
		if err := server.Unmarshal(in.Messages, &single, false); err != nil {
			return nil, server.Invalid("input.messages must be a list of messages")
		}
		list = []inputMessage{single}
	}
	if len(list) == 0 {
		return nil, nil
	}
	last := &list[len(list)-1]
	if !last.isHuman() {
		return nil, server.Invalid("the last of input.messages must be one of the user, with the type human")
	}
	return last.command()
}

// inputMessage is a message that a client sends, in one of the forms that LangChain takes: serialized, as OpenAI has it, a tuple or a text.
type inputMessage struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	ID      string          `json:"id"`
	Content json.RawMessage `json:"content"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *inputMessage) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*m = inputMessage{Type: typeHuman, Content: jsonOf(text)}
		return nil
	}
	var tuple []json.RawMessage
	if json.Unmarshal(b, &tuple) == nil && len(tuple) == 2 && json.Unmarshal(tuple[0], &m.Role) == nil {
		m.Content = tuple[1]
		return nil
	}
	type plain inputMessage
	return json.Unmarshal(b, (*plain)(m))
}

// isHuman reports whether the message is one of the user.
func (m *inputMessage) isHuman() bool {
	switch strings.ToLower(cmp.Or(m.Type, m.Role)) {
	case typeHuman, "user", "humanmessage":
		return true
	}
	return false
}
