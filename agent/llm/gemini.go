// Requests in the form of Google's Gemini API.

package llm

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect/gemini"
	"github.com/leat-dev/leat/event"
)

// geminiRequest is the body of POST models/MODEL:streamGenerateContent. The model is in the path and not in the
// body.
type geminiRequest struct {
	Contents   []geminiContent   `json:"contents"`
	System     *geminiContent    `json:"systemInstruction,omitempty"`
	Generation *geminiGeneration `json:"generationConfig,omitempty"`
}

// geminiContent is a message. Role is "user" or "model"; the system prompt has none.
type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart is a text or a file with its bytes.
type geminiPart struct {
	Text   string      `json:"text,omitempty"`
	Inline *geminiBlob `json:"inlineData,omitempty"`
}

// geminiBlob is the content of a file, which encoding/json encodes as base64.
type geminiBlob struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"`
}

// geminiGeneration has the options of the model. The request leaves it out if all are unset.
type geminiGeneration struct {
	Temperature *float64        `json:"temperature,omitempty"`
	MaxTokens   int             `json:"maxOutputTokens,omitempty"`
	Thinking    *geminiThinking `json:"thinkingConfig,omitempty"`
}

// geminiThinking limits the thinking in tokens; 0 turns it off, nil leaves it to the model.
type geminiThinking struct {
	Budget  *int `json:"thinkingBudget,omitempty"`
	Include bool `json:"includeThoughts,omitempty"`
}

// geminiAPI is POST /models/NAME:streamGenerateContent.
var geminiAPI = api{
	title: "Gemini", base: "https://generativelanguage.googleapis.com", env: "GEMINI_API_KEY", needKey: true,
	dialect: gemini.Dialect,
	path: func(c *config) string {
		return "/v1beta/models/" + url.PathEscape(c.Model) + ":streamGenerateContent?alt=sse"
	},
	auth: func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) },
	body: geminiBody,
	model: func(c *config) (string, string, any) {
		return http.MethodGet, "/v1beta/models/" + url.PathEscape(c.Model), nil
	},
	list: "/v1beta/models?pageSize=200",
	reads: func(kind string) bool {
		return pdf(kind) || strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/")
	},
	check: func(c *config) error {
		c.Model = strings.TrimPrefix(c.Model, "models/")
		_, err := geminiBudget(c)
		return err
	},
}

// geminiBudget returns the number of tokens that the model may think, or nil if the model decides.
func geminiBudget(c *config) (*int, error) {
	n := 0
	switch c.Thinking {
	case "", "adaptive":
		return nil, nil
	case "off":
		return &n, nil
	}
	n, err := strconv.Atoi(c.Thinking)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("invalid thinking %q: use a number of tokens, adaptive or off", c.Thinking)
	}
	return &n, nil
}

// geminiBody builds a generateContent request. Thoughts are requested with any thinking option except "off", so
// that readers see them. The role of the model is "model", and the system prompt is a field outside of the
// messages. encoding/json encodes the bytes of files as base64.
func geminiBody(a *modelAgent, turns []turn) any {
	r := geminiRequest{}
	if a.cfg.System != "" {
		r.System = &geminiContent{Parts: []geminiPart{{Text: a.cfg.System}}}
	}
	g := geminiGeneration{Temperature: a.cfg.Temperature, MaxTokens: a.cfg.MaxTokens}
	if a.cfg.Thinking != "" {
		budget, _ := geminiBudget(&a.cfg) // check has accepted it
		g.Thinking = &geminiThinking{Budget: budget, Include: a.cfg.Thinking != "off"}
	}
	if g != (geminiGeneration{}) {
		r.Generation = &g
	}
	for _, t := range turns {
		c := geminiContent{Role: "user"}
		if t.role == event.Assistant {
			c.Role = "model"
		}
		for _, b := range t.blocks {
			if b.mime == "" {
				c.Parts = append(c.Parts, geminiPart{Text: b.text})
			} else {
				c.Parts = append(c.Parts, geminiPart{Inline: &geminiBlob{b.mime, b.data}})
			}
		}
		r.Contents = append(r.Contents, c)
	}
	return r
}
