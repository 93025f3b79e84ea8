// The input of a run.

package agui

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// maxBody limits a request. A client sends all messages of the thread with each one. They are kept while the run is streamed, because a snapshot
// contains those that only the client has.
const maxBody = 16 << 20

// input is RunAgentInput of the protocol. Its context, state and forwardedProps are not read, because agents have their own.
type input struct {
	Thread   string    `json:"threadId"`
	Run      string    `json:"runId"`
	Protocol string    `json:"protocolVersion"` // missing in 0.x
	Messages []message `json:"messages"`
	// Tools are those of the page. They have the form of [agent.ClientTool].
	Tools  []agent.ClientTool `json:"tools"`
	Resume []resumeEntry      `json:"resume"`
}

// resumeEntry answers an interrupt.
type resumeEntry struct {
	Interrupt string          `json:"interruptId"`
	Status    string          `json:"status"` // resolved or cancelled
	Payload   json.RawMessage `json:"payload"`
}

// hasCancelled reports whether the client knows runs that were cancelled.
func (in *input) hasCancelled() bool {
	return in.Protocol != "" && !strings.HasPrefix(in.Protocol, "0.")
}

// last returns the newest message, or nil.
func (in *input) last() *message {
	if len(in.Messages) == 0 {
		return nil
	}
	return &in.Messages[len(in.Messages)-1]
}

// hasCall reports whether the client's messages contain a call.
func (in *input) hasCall(id string) bool {
	for i := range in.Messages {
		for _, c := range in.Messages[i].ToolCalls {
			if c.ID == id {
				return true
			}
		}
	}
	return false
}

// parse reads the input of a run.
func parse(body []byte) (*input, error) {
	in := &input{}
	if len(body) == 0 {
		return nil, server.Invalid("the body must be the input of a run")
	}
	if err := server.Unmarshal(body, in, false); err != nil {
		return nil, err
	}
	if in.Thread == "" {
		return nil, server.Invalid("the run needs a threadId")
	}
	if err := event.CheckID("threadId", in.Thread); err != nil {
		return nil, err
	}
	return in, nil
}

// contentPart is a part of a message's content. Type determines which fields are used.
//
// A source of the type file names a file of a provider of models, which the gateway can't read. It is refused like unknown parts.
type contentPart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source struct {
		Type     string `json:"type"` // data, url or file
		Value    string `json:"value"`
		MIMEType string `json:"mimeType"`
	} `json:"source"`
	// Of the type binary, in 0.x.
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
	URL      string `json:"url"`
	Filename string `json:"filename"`
}

// commandMessage converts a user's message. Its id is kept, because clients address messages by their ids.
//
// Parts that the gateway can't pass on are refused and not dropped, so that the agent never answers a message of which a part is missing.
func commandMessage(m *message) (gateway.CommandMessage, error) {
	result := gateway.CommandMessage{ID: m.ID, Source: source}
	if len(m.raw) > server.MaxMessageBody {
		return result, server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "the message has %d bytes, at most %d", len(m.raw), server.MaxMessageBody)
	}
	if err := json.Unmarshal(m.Content, &result.Text); err == nil {
		return result, nil
	}
	var parts []contentPart
	if err := server.Unmarshal(m.Content, &parts, false); err != nil {
		return result, server.Invalid("the content of a message must be a text or a list of parts")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
			continue
		}
		media, err := mediaOf(&p)
		if err != nil {
			return result, err
		}
		result.Parts = append(result.Parts, event.Part{Kind: event.KindMedia, Media: media})
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	return result, nil
}

// mediaOf returns the file of a part. Files in the message are stored by the gateway, and others only named.
func mediaOf(p *contentPart) (*event.Media, error) {
	url, mime := "", p.MIMEType
	switch p.Type {
	case "image", "audio", "video", "document":
		mime = p.Source.MIMEType
		switch p.Source.Type {
		case "data":
			url = "data:" + mime + ";base64," + p.Source.Value
		case "url":
			url = p.Source.Value
		}
	case "binary":
		url = p.URL
		if p.Data != "" {
			url = "data:" + mime + ";base64," + p.Data
		}
	}
	for _, scheme := range []string{"data:", "https://", "http://", "/"} {
		if strings.HasPrefix(url, scheme) {
			return &event.Media{URL: url, MIME: mime, Name: p.Filename}, nil
		}
	}
	return nil, server.Invalid("a part of type %q can't be sent here; files need data or an http URL", p.Type)
}
