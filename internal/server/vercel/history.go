// The stored messages of a chat, as the SDK has them.

package vercel

import (
	"encoding/json"
	"net/http"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// storedMessage is a message of the SDK with its stored parts.
type storedMessage struct {
	ID    string       `json:"id"`
	Role  event.Role   `json:"role"`
	Parts []storedPart `json:"parts"`
}

// storedPart is a part of a stored message. Type determines which fields are used.
//
// The SDK's stored parts have other names than its chunks: a call is one part with a state, and not a row of chunks.
type storedPart struct {
	Type             string          `json:"type"`
	ID               string          `json:"id,omitempty"`
	Text             *string         `json:"text,omitempty"`
	State            string          `json:"state,omitempty"`
	ToolName         string          `json:"toolName,omitempty"`
	ToolCallID       string          `json:"toolCallId,omitempty"`
	ProviderExecuted bool            `json:"providerExecuted,omitempty"`
	Input            json.RawMessage `json:"input,omitempty"`
	Output           json.RawMessage `json:"output,omitempty"`
	ErrorText        string          `json:"errorText,omitempty"`
	Data             json.RawMessage `json:"data,omitempty"`
	MediaType        string          `json:"mediaType,omitempty"`
	URL              string          `json:"url,omitempty"`
	Filename         string          `json:"filename,omitempty"`
}

// messages answers GET /api/chat/{id} with the messages of a chat, which a page passes to useChat.
func (s *surface) messages(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	id, isFound, err := s.chats.Find(r.Context(), p, r.PathValue("id"))
	if err != nil {
		return err
	}
	if !isFound {
		return gateway.ErrNotFound
	}
	var list []storedMessage
	// The whole chat is listed: the SDK has no way to load earlier messages later.
	err = s.gw.ViewTranscript(r.Context(), p, id, func(t *transcript.Transcript) bool {
		list = storedMessages(t)
		return !t.Earlier
	})
	return server.Respond(w, list, err)
}

// storedMessages returns the messages of a transcript. The messages of one turn are one message, whose id is that of the turn.
func storedMessages(t *transcript.Transcript) []storedMessage {
	list, places := []storedMessage{}, map[string]int{}
	for _, m := range t.Messages {
		id := m.ID
		if m.Turn != "" && m.Role == event.Assistant {
			if turn := t.Turn(m.Turn); turn != nil && !turn.Independent() {
				continue // a turn inside another one is not part of the answer
			}
			id = m.Turn
		}
		at, isKnown := places[id]
		if !isKnown {
			at, places[id] = len(list), len(list)
			list = append(list, storedMessage{ID: id, Role: m.Role, Parts: []storedPart{}})
		}
		if m.Role == event.Assistant {
			list[at].Parts = append(list[at].Parts, storedPart{Type: "step-start"})
		}
		for _, p := range m.Parts {
			if part, ok := storedPartOf(m, p); ok {
				list[at].Parts = append(list[at].Parts, part)
			}
		}
	}
	return list
}

// storedPartOf returns a part as the client would have it at the end of a stream.
func storedPartOf(m *transcript.Message, p *transcript.Part) (part storedPart, ok bool) {
	id := partKey{m.ID, p.ID}.id()
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		text := p.Text(event.Text)
		return storedPart{Type: string(p.Kind), Text: &text, State: "done"}, text != ""
	case event.KindStatus:
		return storedPart{Type: "data-status", ID: id, Data: statusOf(p)}, true
	case event.KindData:
		return storedPart{Type: dataName(p), ID: id, Data: safeJSON(p.Data)}, len(p.Data) > 0
	case event.KindMedia:
		if p.Media == nil || p.Media.URL == "" || p.Error != nil {
			return part, false
		}
		return storedPart{Type: "file", URL: p.Media.URL, MediaType: mediaType(p.Media), Filename: p.Media.Name}, true
	case event.KindTool:
		return storedTool(id, p), true
	}
	return part, false
}

// storedTool returns a call of a tool.
//
// The state for a refused call needs an approval in the same part, which a finished turn no longer has. So a refused call is one that failed.
func storedTool(id string, p *transcript.Part) storedPart {
	part := storedPart{Type: "dynamic-tool", ToolCallID: id, ToolName: toolName(p.Name), ProviderExecuted: true, Input: inputOf(p)}
	switch {
	case p.State == event.PartDone:
		part.State, part.Output = "output-available", outputOf(p)
	case p.State == event.PartDenied:
		part.State, part.ErrorText = "output-error", textDenied
	case p.State == event.PartFailed:
		part.State, part.ErrorText = "output-error", toolError(p)
	case p.Final:
		part.State, part.ErrorText = "output-error", textUnfinished
	default:
		part.State = "input-available"
	}
	return part
}
