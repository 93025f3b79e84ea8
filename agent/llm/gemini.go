// Requests in the form of Google's Gemini API.

package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/gemini"
	"github.com/leat-dev/leat/event"
)

// geminiRequest is the body of POST models/MODEL:streamGenerateContent. The model is in the path and not in the
// body.
type geminiRequest struct {
	Contents   []geminiContent   `json:"contents"`
	System     *geminiContent    `json:"systemInstruction,omitempty"`
	Generation *geminiGeneration `json:"generationConfig,omitempty"`
	Tools      []geminiTools     `json:"tools,omitempty"`
}

// geminiTools is the list of functions that the model may call.
type geminiTools struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

// geminiFunction is a tool of the client. The API refuses the schema of an object without properties.
type geminiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// geminiContent is a message. Role is "user" or "model"; the system prompt has none. Its parts are a geminiPart, a geminiResult or a part
// of the model as it was.
type geminiContent struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"`
}

// geminiPart is a text or a file with its bytes.
type geminiPart struct {
	Text   string      `json:"text,omitempty"`
	Inline *geminiBlob `json:"inlineData,omitempty"`
}

// geminiResult is a part with the result of a call.
type geminiResult struct {
	Response geminiResponse `json:"functionResponse"`
}

// geminiResponse has the result under the key "output", or "error" if the call failed. ID is that of the call, if it has one.
type geminiResponse struct {
	ID     string                     `json:"id,omitempty"`
	Name   string                     `json:"name"`
	Result map[string]json.RawMessage `json:"response"`
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
	body: geminiBody, reply: func() reply { return &geminiReply{} }, toolName: geminiToolName,
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
func geminiBody(a *modelAgent, turns []turn, tools []agent.ClientTool) any {
	r := geminiRequest{}
	if a.cfg.System != "" {
		r.System = &geminiContent{Parts: []any{geminiPart{Text: a.cfg.System}}}
	}
	if len(tools) > 0 {
		r.Tools = []geminiTools{{geminiFunctions(tools)}}
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

// geminiFunctions returns the tools of the client.
func geminiFunctions(tools []agent.ClientTool) []geminiFunction {
	var list []geminiFunction
	for i := range tools {
		f := geminiFunction{Name: tools[i].Name, Description: tools[i].Description, Parameters: parametersOf(&tools[i])}
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Additional json.RawMessage            `json:"additionalProperties"`
		}
		if json.Unmarshal(f.Parameters, &schema) == nil && len(schema.Properties) == 0 && (len(schema.Additional) == 0 || string(schema.Additional) == "false") {
			f.Parameters = nil
		}
		list = append(list, f)
	}
	return list
}

// geminiReply is the content of the first candidate; requests ask for one. The API requires the calls back with their thoughtSignature,
// and wants the signatures of other parts too.
type geminiReply struct {
	parts    []any // a *growingText without a signature, or a part as it was
	list     []functionCall
	hasEnded bool
}

func (r *geminiReply) calls() []functionCall { return r.list }

// errPieces reports a call whose arguments arrive in pieces, which the API sends only on request.
var errPieces = errors.New("a call with partial arguments, which the request did not ask for")

// add implements [reply].
func (r *geminiReply) add(f dialect.Frame) error {
	var in struct {
		Candidates []struct {
			Index   int `json:"index"`
			Content struct {
				Parts []json.RawMessage `json:"parts"`
			} `json:"content"`
			Finish string `json:"finishReason"`
		} `json:"candidates"`
	}
	if err := json.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	for i := range in.Candidates {
		c := &in.Candidates[i]
		if c.Index != 0 || r.hasEnded {
			continue
		}
		for _, raw := range c.Content.Parts {
			if err := r.part(raw); err != nil {
				return err
			}
		}
		r.hasEnded = c.Finish != ""
	}
	return nil
}

// part adds a part. Consecutive texts without signatures are joined, since each has only a few words. Thoughts are left out, but not
// their signatures.
func (r *geminiReply) part(raw json.RawMessage) error {
	var in struct {
		Text      json.RawMessage `json:"text"`
		Thought   bool            `json:"thought"`
		Signature string          `json:"thoughtSignature"`
		Call      *struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Args     json.RawMessage `json:"args"`
			Partial  json.RawMessage `json:"partialArgs"`
			Continue bool            `json:"willContinue"`
		} `json:"functionCall"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	switch c := in.Call; {
	case c != nil && (c.Continue || len(c.Partial) > 0):
		return errPieces
	case c != nil && c.Name == "":
		return nil
	case c != nil:
		arguments := string(c.Args)
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		r.list = append(r.list, functionCall{c.ID, c.Name, arguments})
	case in.Signature == "" && in.Thought:
		return nil
	case in.Signature == "" && len(in.Text) > 0:
		if n := len(r.parts); n > 0 {
			if text, ok := r.parts[n-1].(*growingText); ok {
				return text.add(in.Text)
			}
		}
		text := &growingText{}
		r.parts = append(r.parts, text)
		return text.add(in.Text)
	}
	r.parts = append(r.parts, slices.Clone(raw))
	return nil
}

// next implements [reply].
func (r *geminiReply) next(request any, results []callResult) any {
	q := request.(geminiRequest)
	response, answer := geminiContent{Role: "model"}, geminiContent{Role: "user"}
	for _, part := range r.parts {
		if text, ok := part.(*growingText); ok {
			if len(text.text) == 0 {
				continue // the API refuses it
			}
			part = geminiPart{Text: text.String()}
		}
		response.Parts = append(response.Parts, part)
	}
	for i := range results {
		result := &results[i]
		key, value := "output", result.value()
		if result.hasError {
			key, value = "error", jsonString(result.text)
		}
		answer.Parts = append(answer.Parts, geminiResult{geminiResponse{result.ID, result.Name, map[string]json.RawMessage{key: value}}})
	}
	q.Contents = slices.Concat(q.Contents, []geminiContent{response, answer})
	return q
}
