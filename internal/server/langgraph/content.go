package langgraph

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
)

// inputBlock is a block of a user's message, in the forms of LangChain's versions. Type determines which fields are used.
type inputBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Of the types image, audio, video and file.
	URL        string `json:"url"`
	Data       string `json:"data"`
	Base64     string `json:"base64"`
	MIME       string `json:"mime_type"`
	MIMECamel  string `json:"mimeType"`
	SourceType string `json:"source_type"` // base64 or url, before version 1
	Metadata   struct {
		Name     string `json:"name"`
		Filename string `json:"filename"`
	} `json:"metadata"`
	// Of the type image_url: a text, or an object with the url.
	ImageURL json.RawMessage `json:"image_url"`
}

// command returns a user's message. Its id is kept, because clients address messages by their ids.
//
// Blocks that the gateway can't pass on are refused and not dropped, so that the agent never answers a message of which something is missing.
func (m *inputMessage) command() (*gateway.CommandMessage, error) {
	result := &gateway.CommandMessage{ID: m.ID, Source: source}
	if len(m.Content) > server.MaxMessageBody {
		return nil, server.Errorf(http.StatusRequestEntityTooLarge, server.ReasonTooLarge, "the message has %d bytes, at most %d", len(m.Content), server.MaxMessageBody)
	}
	if err := json.Unmarshal(m.Content, &result.Text); err == nil {
		return result, nil
	}
	var blocks []inputBlock
	if err := server.Unmarshal(m.Content, &blocks, false); err != nil {
		return nil, server.Invalid("the content of a message must be a text or a list of blocks")
	}
	var texts []string
	for i := range blocks {
		if blocks[i].Type == "text" {
			texts = append(texts, blocks[i].Text)
			continue
		}
		media, err := blocks[i].media()
		if err != nil {
			return nil, err
		}
		result.Parts = append(result.Parts, event.Part{Kind: event.KindMedia, Media: media})
	}
	result.Text = strings.Join(texts, event.JoinBlank)
	return result, nil
}

// media returns the file of a block. Files in the message are stored by the gateway, and others only named.
func (b *inputBlock) media() (*event.Media, error) {
	url, mime := b.URL, b.MIME+b.MIMECamel
	if data := b.Data + b.Base64; data != "" {
		url = "data:" + mime + ";base64," + data
	}
	if b.Type == "image_url" {
		var o struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(b.ImageURL, &url) != nil && json.Unmarshal(b.ImageURL, &o) == nil {
			url = o.URL
		}
	}
	name := b.Metadata.Name
	if name == "" {
		name = b.Metadata.Filename
	}
	for _, scheme := range []string{"data:", "https://", "http://", "/"} {
		if strings.HasPrefix(url, scheme) {
			return &event.Media{URL: url, MIME: mime, Name: name}, nil
		}
	}
	return nil, server.Invalid("a block of type %q can't be sent here; files need data or an http URL", b.Type)
}
