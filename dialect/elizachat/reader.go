package elizachat

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

const name = "eliza-chat"

// Dialect describes the chat stream of Eliza servers.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "the chat of Eliza servers, SSE with tokens, full texts or delta-v2",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(func(kind string) bool { return kind == "status" }),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

type reader struct{}

// frame is any frame of the stream.
type frame struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	FullText json.RawMessage `json:"fullText"`
	Message  json.RawMessage `json:"message"`

	// done
	Thought  json.RawMessage `json:"thought"`
	Ignored  json.RawMessage `json:"noResponseReason"`
	Failure  json.RawMessage `json:"failureKind"`
	Usage    json.RawMessage `json:"usage"`
	Estimate json.RawMessage `json:"estimatedUsage"`
	History  json.RawMessage `json:"actionCallbackHistory"`

	// status
	Kind   json.RawMessage `json:"kind"`
	Label  json.RawMessage `json:"label"`
	Action json.RawMessage `json:"actionName"`
	Tool   json.RawMessage `json:"toolName"`
}

type usage struct {
	Model      string `json:"model"`
	Prompt     int64  `json:"promptTokens"`
	Completion int64  `json:"completionTokens"`
}

// The keys of the parts.
const (
	textKey    = "text"
	thoughtKey = "thought"
	trailKey   = "trail" // a status without a text, which has the history of the callbacks
)

// Read implements [canvas.Reader].
func (*reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in frame
	if err := canvas.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	switch {
	case in.Type == "token", in.Type == "" && in.Text != nil:
		return token(c, &in)
	case in.Type == "done":
		return finish(c, &in)
	case in.Type == "error":
		c.Fail(event.Error{Message: canvas.String(in.Message)})
	case in.Type == "status":
		c.SetPhase(phase(&in))
	case in.Type == "":
		return canvas.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

func hasValue(token json.RawMessage) bool { return token != nil && string(token) != "null" }

func token(c *canvas.Canvas, in *frame) error {
	full := hasValue(in.FullText)
	if c.Find(textKey) == nil && (!full || string(in.FullText) == `""`) && (in.Text == nil || string(in.Text) == `""`) {
		return nil // no text has arrived yet
	}
	p, err := c.Prose(textKey, event.KindText)
	if err != nil {
		return err
	}
	if full {
		return c.SetToken(p, event.Text, in.FullText)
	}
	return c.Grow(p, event.Text, in.Text)
}

func finish(c *canvas.Canvas, in *frame) error {
	if full := canvas.String(in.FullText); full != "" {
		p, err := c.Prose(textKey, event.KindText)
		if err != nil {
			return err
		}
		c.Set(p, event.Text, full)
	}
	if thought := canvas.String(in.Thought); thought != "" {
		p, err := c.Prose(thoughtKey, event.KindReasoning)
		if err != nil {
			return err
		}
		c.Append(p, event.Text, thought)
	}
	if err := history(c, in.History); err != nil {
		return err
	}
	for _, raw := range []json.RawMessage{in.Usage, in.Estimate} {
		var u usage
		if json.Unmarshal(raw, &u) == nil && u.Prompt+u.Completion > 0 {
			c.Usage = event.Usage{Model: u.Model, Input: u.Prompt, Output: u.Completion}
			break
		}
	}
	if kind := canvas.String(in.Failure); kind != "" {
		message, ok := failures[kind]
		if !ok {
			message = "the agent could not answer: " + kind
		}
		c.Fail(event.Error{Code: kind, Message: message, Retryable: kind == "rate_limited" || kind == "provider_issue"})
		return nil
	}
	c.Complete(canvas.String(in.Ignored))
	return nil
}

// history adds the entries of the callbacks, which the text shows in part only.
func history(c *canvas.Canvas, raw json.RawMessage) error {
	var entries []string
	if json.Unmarshal(raw, &entries) != nil {
		return nil // it has the wrong shape, which takes nothing from the answer
	}
	for i := range entries {
		entries[i] = transcript.Note(entries[i])
	}
	if entries = transcript.JoinHistories(entries); len(entries) == 0 {
		return nil
	}
	p, err := c.Start(trailKey, event.Body{Kind: event.KindStatus, Join: event.JoinBlank})
	if err != nil {
		return err
	}
	c.Draw(event.Event{Type: event.PartAppend, Message: canvas.Message, Part: p.ID, History: entries})
	return nil
}

// failures are the kinds of failure that are known.
var failures = map[string]string{
	"insufficient_credits": "the agent's model provider wants to be paid",
	"no_provider":          "the agent has no model provider",
	"provider_issue":       "the agent's model provider failed",
	"rate_limited":         "the agent's model provider takes no more for now",
	"local_inference":      "the agent's own model failed",
}

// maxPhase bounds what is shown of a status, in bytes.
const maxPhase = 200

// phase is a status in words.
func phase(in *frame) string {
	text := canvas.String(in.Label)
	if text == "" {
		text = canvas.String(in.Kind)
		for _, of := range []json.RawMessage{in.Action, in.Tool} {
			if s := canvas.String(of); s != "" {
				text += " " + s
			}
		}
	}
	if len(text) > maxPhase {
		return ""
	}
	return text
}
