// Requests in the form of OpenAI's Responses API.

package llm

import (
	"github.com/leat-dev/leat/dialect/openairesponses"
	"github.com/leat-dev/leat/event"
)

// responsesRequest is the body of POST /responses. Input has messages and, after approvals, items of other types. Previous references a
// stored response, so that Input only has what is new.
type responsesRequest struct {
	Model           string              `json:"model"`
	Instructions    string              `json:"instructions,omitempty"`
	Input           []any               `json:"input"`
	Previous        string              `json:"previous_response_id,omitempty"`
	Stream          bool                `json:"stream"`
	Background      bool                `json:"background,omitempty"`
	Store           bool                `json:"store"`
	Temperature     *float64            `json:"temperature,omitempty"`
	MaxOutputTokens int                 `json:"max_output_tokens,omitempty"`
	Reasoning       *responsesReasoning `json:"reasoning,omitempty"`
}

// responsesReasoning sets the effort, and with Summary requests a summary of the reasoning for readers. The reasoning itself is never sent.
type responsesReasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

// responsesMessage is an input item with a message. Items of other types, such as approvals, have a field type.
type responsesMessage struct {
	Role    event.Role       `json:"role"`
	Content []responsesBlock `json:"content"`
}

// responsesBlock is a part of a message. Type is "input_text", "output_text", "input_image" or "input_file".
type responsesBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// responsesAPI is POST /responses.
var responsesAPI = openAI("/responses", openairesponses.Dialect, responsesBody)

// responsesBody builds a Responses request. The API distinguishes the texts of the user (input_text) from those
// of the model (output_text). The system prompt is the field instructions. The provider stores a background
// response, so that it can be followed later; other responses aren't stored.
func responsesBody(a *modelAgent, turns []turn) any {
	// The provider must store a background response, so that it can be followed later. Other responses aren't stored.
	r := responsesRequest{
		Model: a.cfg.Model, Instructions: a.cfg.System, Stream: true, Background: a.cfg.Background, Store: a.cfg.Background,
		Temperature: a.cfg.Temperature, MaxOutputTokens: a.cfg.MaxTokens,
	}
	if a.cfg.Thinking != "" {
		r.Reasoning = &responsesReasoning{Effort: a.cfg.Thinking}
		if a.cfg.Thinking != "none" {
			r.Reasoning.Summary = "auto"
		}
	}
	for _, t := range turns {
		m := responsesMessage{Role: t.role}
		for _, b := range t.blocks {
			switch {
			case b.mime == "" && t.role == event.Assistant:
				m.Content = append(m.Content, responsesBlock{Type: "output_text", Text: b.text})
			case b.mime == "":
				m.Content = append(m.Content, responsesBlock{Type: "input_text", Text: b.text})
			case b.isImage():
				m.Content = append(m.Content, responsesBlock{Type: "input_image", ImageURL: dataURL(&b)})
			default:
				m.Content = append(m.Content, responsesBlock{Type: "input_file", FileName: b.name, FileData: dataURL(&b)})
			}
		}
		r.Input = append(r.Input, m)
	}
	return r
}
