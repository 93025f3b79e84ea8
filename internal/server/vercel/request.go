// Requests of the SDK's default transport.

package vercel

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// What the user did. A submit with a message of the assistant is the answer to an agent's question.
const (
	triggerSubmit     = "submit-message"
	triggerRegenerate = "regenerate-message"
)

// maxBody limits a request. The SDK sends all messages of the chat with each request, with their files, so it is larger than the limit of one
// message.
const maxBody = 64 << 20

// request is the body of a POST.
type request struct {
	// ID is that of the chat. The page chooses it, or the SDK makes it.
	ID      string
	Trigger string
	// MessageID is the message that is edited, whose answer is repeated, or that is continued. It is empty for a new message.
	MessageID string
	// Agent is one of the page's own fields. If it is empty, the conversation's agent answers, or the default agent.
	Agent string
	last  uiMessage
}

// uiMessage is a message of the SDK.
type uiMessage struct {
	ID    string   `json:"id"`
	Role  string   `json:"role"`
	Parts []uiPart `json:"parts"`
}

// uiPart is a part of a message. Type determines which fields are used.
type uiPart struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	MediaType string          `json:"mediaType"`
	URL       string          `json:"url"`
	Filename  string          `json:"filename"`
	Data      json.RawMessage `json:"data"`
	// Calls, in a message of the assistant. State says which of the other fields count. A call that waits for an approval has it, and Approved is
	// nil until the user has decided.
	ToolCallID string          `json:"toolCallId"`
	State      string          `json:"state"`
	Output     json.RawMessage `json:"output"`
	ErrorText  string          `json:"errorText"`
	Approval   struct {
		ID       string `json:"id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason"`
	} `json:"approval"`
}

// parse reads a request. Of the messages it keeps only the last one, because the others are in the conversation.
func parse(r *http.Request) (*request, error) {
	dec := json.NewDecoder(r.Body)
	rq := &request{Trigger: triggerSubmit}
	if err := expect(dec, json.Delim('{')); err != nil {
		return nil, err
	}
	fields := map[string]*string{"id": &rq.ID, "trigger": &rq.Trigger, "messageId": &rq.MessageID, "agent": &rq.Agent}
	var last json.RawMessage
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, invalidBody(err)
		}
		if key == "messages" {
			if last, err = lastOf(dec); err != nil {
				return nil, err
			}
			continue
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, invalidBody(err)
		}
		if field := fields[key.(string)]; field != nil && string(value) != "null" {
			if err := server.Unmarshal(value, field, false); err != nil {
				return nil, server.Invalid("the field %q must be a string", key)
			}
		}
	}
	if err := expect(dec, json.Delim('}')); err != nil {
		return nil, err
	}
	switch {
	case rq.ID == "":
		return nil, server.Invalid("a chat needs an id")
	case last == nil:
		return nil, server.Invalid("at least one message is needed")
	case len(last) > server.MaxMessageBody:
		return nil, server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "the message has %d bytes, at most %d", len(last), server.MaxMessageBody)
	case rq.Trigger != triggerSubmit && rq.Trigger != triggerRegenerate:
		return nil, server.Invalid("unknown trigger %q; use submit-message or regenerate-message", rq.Trigger)
	}
	if err := event.CheckID("id", rq.ID); err != nil {
		return nil, err
	}
	return rq, server.Unmarshal(last, &rq.last, false)
}

// lastOf reads a list of messages and returns the last one. Only one message is in memory at a time.
func lastOf(dec *json.Decoder) (last json.RawMessage, err error) {
	if err := expect(dec, json.Delim('[')); err != nil {
		return nil, err
	}
	for dec.More() {
		last = nil
		if err := dec.Decode(&last); err != nil {
			return nil, invalidBody(err)
		}
	}
	return last, expect(dec, json.Delim(']'))
}

// expect reads a delimiter.
func expect(dec *json.Decoder, want json.Delim) error {
	got, err := dec.Token()
	if err != nil {
		return invalidBody(err)
	}
	if got != want {
		return server.Invalid("the body is not a request of the AI SDK")
	}
	return nil
}

// invalidBody returns the error for a body that can't be read.
func invalidBody(err error) error {
	if _, isTooLarge := errors.AsType[*http.MaxBytesError](err); isTooLarge {
		return err
	}
	return server.Invalid("the body is not complete JSON")
}

// parameter returns a parameter of the page's api. If that has a query, versions 5 and 6 append the path of a resume to it.
func parameter(r *http.Request, name string) string {
	value, _, _ := strings.Cut(r.URL.Query().Get(name), "/")
	return value
}

// versionOf returns the version of the SDK that a client names.
func versionOf(r *http.Request) (sdk, error) {
	switch name := parameter(r, "sdk"); name {
	case "", "5":
		return sdk5, nil
	case "6":
		return sdk6, nil
	case "7":
		return sdk7, nil
	default:
		return 0, server.Invalid("unknown version %q of the SDK; use 5, 6 or 7", name)
	}
}

// stopsTurn reports whether the client wants its turn to be stopped when it disconnects.
func stopsTurn(r *http.Request) (bool, error) {
	switch v := parameter(r, "on_disconnect"); v {
	case "", "continue":
		return false, nil
	case "stop":
		return true, nil
	default:
		return false, server.Invalid("unknown value %q of on_disconnect; use continue or stop", v)
	}
}

// messageOf converts a user's message. Its id is kept, because the SDK addresses messages by their ids.
//
// Parts that the gateway can't pass on are refused and not dropped, so that the agent never answers a message of which a part is missing. Files are
// stored by the gateway if they are in the message, and otherwise only named.
func messageOf(m *uiMessage) (gateway.CommandMessage, error) {
	result := gateway.CommandMessage{ID: m.ID, Source: source}
	var texts []string
	for _, p := range m.Parts {
		switch {
		case p.Type == "text":
			if p.Text != "" {
				texts = append(texts, p.Text)
			}
		case p.Type == "file":
			if !strings.HasPrefix(p.URL, "data:") && !strings.HasPrefix(p.URL, "https://") && !strings.HasPrefix(p.URL, "http://") && !strings.HasPrefix(p.URL, "/") {
				return result, server.Invalid("a file needs a data, http or https URL")
			}
			result.Parts = append(result.Parts, event.Part{Kind: event.KindMedia, Media: &event.Media{URL: p.URL, MIME: p.MediaType, Name: p.Filename}})
		case strings.HasPrefix(p.Type, "data-"):
			result.Parts = append(result.Parts, event.Part{Kind: event.KindData, Data: p.Data})
		case p.Type == "step-start":
		default:
			return result, server.Invalid("a part of type %q can't be sent here", p.Type)
		}
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	if result.Text == "" && len(result.Parts) == 0 {
		return result, server.Invalid("the message is empty")
	}
	return result, nil
}
