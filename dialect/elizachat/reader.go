package elizachat

import (
	"encoding/json"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
	"github.com/leat-dev/leat/transcript"
)

// name is that of the format, in configurations and requests.
const name = "eliza-chat"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[reader]()
)

// Dialect describes the chat stream of Eliza servers.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "the chat of Eliza servers, SSE with tokens, full texts or delta-v2",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(func(kind string) bool { return kind == "status" }),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader has no state: the text part itself is the only thing that one frame has to know of the frames before.
type reader struct {
	in frame // the memory of the current frame
}

// frame is any frame of the stream. The optional fields are raw, so that a wrong type in one of them doesn't make the frame invalid: the
// servers' versions differ, and none of them has a schema.
type frame struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	FullText json.RawMessage `json:"fullText"`
	Message  json.RawMessage `json:"message"`

	// The fields of done. Ignored says why the agent chose not to answer.
	Thought  json.RawMessage `json:"thought"`
	Ignored  json.RawMessage `json:"noResponseReason"`
	Failure  json.RawMessage `json:"failureKind"`
	Usage    json.RawMessage `json:"usage"`
	Estimate json.RawMessage `json:"estimatedUsage"`
	History  json.RawMessage `json:"actionCallbackHistory"`

	// The fields of status.
	Kind   json.RawMessage `json:"kind"`
	Label  json.RawMessage `json:"label"`
	Action json.RawMessage `json:"actionName"`
	Tool   json.RawMessage `json:"toolName"`
}

// usage is the provider's count of tokens, or the server's own estimate of it.
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

// Read applies one frame.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	switch {
	case in.Type == "token", in.Type == "" && in.Text != nil:
		return token(c, in)
	case in.Type == "done":
		return finish(c, in)
	case in.Type == "error":
		c.Fail(event.Error{Message: decoding.String(in.Message)})
	case in.Type == "status":
		c.SetPhase(phase(in))
	case in.Type == "":
		return decoding.Fault("a frame is an object with a type", nil)
	default:
		c.Unknown(in.Type)
	}
	return nil
}

// hasValue reports whether a key is present with another value than null.
func hasValue(token json.RawMessage) bool { return token != nil && string(token) != "null" }

// token applies a token frame. A fullText is the whole text, and text is then ignored, because it may be the delta or the whole text again.
// Nothing is shown until the first text arrives.
func token(c *canvas.Canvas, in *frame) error {
	if !hasValue(in.FullText) {
		return c.GrowProse(textKey, event.KindText, in.Text)
	}
	if c.Find(textKey) == nil && string(in.FullText) == `""` && (in.Text == nil || string(in.Text) == `""`) {
		return nil
	}
	p, err := c.Prose(textKey, event.KindText)
	if err != nil {
		return err
	}
	return c.SetToken(p, event.Text, in.FullText)
}

// finish applies a done frame, which repeats the whole text and ends the turn. Servers send the provider's usage, their own
// estimate, or both; the provider's is preferred.
func finish(c *canvas.Canvas, in *frame) error {
	if err := c.SetProse(textKey, event.KindText, decoding.String(in.FullText)); err != nil {
		return err
	}
	if err := c.SetProse(thoughtKey, event.KindReasoning, decoding.String(in.Thought)); err != nil {
		return err
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
	if kind := decoding.String(in.Failure); kind != "" {
		message, ok := failures[kind]
		if !ok {
			message = "the agent could not answer: " + kind
		}
		c.Fail(event.Error{Code: kind, Message: message, Retryable: kind == "rate_limited" || kind == "provider_issue"})
		return nil
	}
	c.Complete(decoding.String(in.Ignored))
	return nil
}

// history adds the history of callbacks as a status part without text. The streamed text shows only some of the callbacks, because each
// replaced the one before. A history of the wrong shape is ignored, because the answer is complete without it.
func history(c *canvas.Canvas, raw json.RawMessage) error {
	var entries []string
	if json.Unmarshal(raw, &entries) != nil {
		return nil
	}
	for i := range entries {
		entries[i] = transcript.Note(entries[i])
	}
	if entries = transcript.JoinHistories(entries); len(entries) == 0 {
		return nil
	}
	p, err := c.Prose(trailKey, event.KindStatus)
	if err != nil {
		return err
	}
	c.Draw(event.Event{Type: event.PartAppend, Message: canvas.Message, Part: p.ID, History: entries})
	return nil
}

// failures has the error messages for the known values of failureKind.
var failures = map[string]string{
	"insufficient_credits": "the agent's model provider wants to be paid",
	"no_provider":          "the agent has no model provider",
	"provider_issue":       "the agent's model provider failed",
	"rate_limited":         "the agent's model provider takes no more for now",
	"local_inference":      "the agent's own model failed",
}

// maxPhase is the limit, in bytes, of a status that is shown as the turn's phase. A longer one isn't a short text about progress.
const maxPhase = 200

// phase returns a status as text: its label, or if it has none its kind with the names of the action and tool.
func phase(in *frame) string {
	text := decoding.String(in.Label)
	if text == "" {
		text = decoding.String(in.Kind)
		for _, of := range []json.RawMessage{in.Action, in.Tool} {
			if s := decoding.String(of); s != "" {
				text += " " + s
			}
		}
	}
	if len(text) > maxPhase {
		return ""
	}
	return text
}
