package agui

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// textOf returns the text of a message.
func textOf(m *transcript.Message) string {
	var texts []string
	for _, p := range m.Parts {
		if p.Kind == event.KindText {
			texts = append(texts, p.Text(event.Text))
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// sentPart is a part of a user's message as clients have it.
type sentPart struct {
	Type   string      `json:"type"`
	Text   string      `json:"text,omitempty"`
	Source *sentSource `json:"source,omitempty"`
}

// sentSource names a file.
type sentSource struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MIMEType string `json:"mimeType,omitempty"`
}

// contentOf returns the content of a user's message: its text, or a list of parts if it has files.
//
// The name of a file has no place in the protocol, except in the parts of 0.x that 1.0 has replaced.
func contentOf(m *transcript.Message) json.RawMessage {
	var parts []sentPart
	if text := textOf(m); text != "" {
		parts = append(parts, sentPart{Type: "text", Text: text})
	}
	for _, p := range m.Parts {
		if p.Kind == event.KindMedia && p.Media != nil && p.Media.URL != "" {
			parts = append(parts, sentPart{Type: mediaKind(p.Media.MIME), Source: &sentSource{"url", p.Media.URL, p.Media.MIME}})
		}
	}
	if len(parts) == 0 || len(parts) == 1 && parts[0].Source == nil {
		return jsonString(textOf(m))
	}
	b, err := server.Marshal(parts)
	if err != nil {
		return jsonString(textOf(m)) // texts can always be marshalled
	}
	return b
}

// mediaKind returns the type of the part for a file.
//
// Clients show images, audio and video in their own ways, and everything else as a document.
func mediaKind(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image", "audio", "video":
		return kind
	}
	return "document"
}
