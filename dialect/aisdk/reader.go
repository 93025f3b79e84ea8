package aisdk

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "aisdk"

// The readers and writers of the types on the wire and of the state.
var (
	frames = jsonscan.NewReader[frame]()
	states = jsonscan.NewWriter[reader]()
)

// Dialect describes the UI message stream of the AI SDK.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "UI message stream of the AI SDK (Vercel), SSE",
		Framing:  dialect.SSE,
		Progress: dialect.ProgressTypes(progress),
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader counts the tool approvals that have been requested and not yet answered. While there are any, the end of the stream
// doesn't end the turn: the answer arrives in another stream.
type reader struct {
	OpenRequests int `json:"asked,omitempty"`

	in frame // the memory of the current frame
}

// frame is any chunk. Texts are raw, because a character may be split between two of them.
type frame struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Delta      json.RawMessage `json:"delta"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Title      string          `json:"title"`
	InputDelta json.RawMessage `json:"inputTextDelta"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	ErrorText  json.RawMessage `json:"errorText"`
	Tentative  bool            `json:"preliminary"` // the output will be replaced by a later one
	ApprovalID string          `json:"approvalId"`
	URL        string          `json:"url"`
	MediaType  string          `json:"mediaType"`
	Data       json.RawMessage `json:"data"`
	Transient  bool            `json:"transient"`
	Finish     string          `json:"finishReason"`
	Reason     string          `json:"reason"`
}

// Read applies one frame. [DONE] is the only frame that isn't JSON.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	if string(f.Data) == "[DONE]" {
		if r.OpenRequests == 0 {
			c.Complete("")
		}
		return nil
	}
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	switch in.Type {
	case "text-delta", "reasoning-delta":
		return r.prose(c, in)
	case "text-start", "reasoning-start", "text-end", "reasoning-end":
		// A start ends an earlier text with the same id too: the official client shows a new part then.
		c.EndPart(c.Find(proseKey(c, in)))
	case "tool-input-start", "tool-input-delta", "tool-input-available", "tool-input-error",
		"tool-output-available", "tool-output-error", "tool-output-denied", "tool-approval-request":
		return r.tool(c, in)
	case "file", "reasoning-file":
		return c.AddPart(event.Body{Kind: event.KindMedia, Media: &event.Media{URL: in.URL, MIME: in.MediaType}})
	case "error":
		c.Fail(event.Error{Message: decoding.String(in.ErrorText)})
	case "abort":
		c.End(event.Body{Outcome: event.Cancelled, Reason: in.Reason})
	case "finish":
		if r.OpenRequests == 0 {
			c.Complete(decoding.StopReason(in.Finish))
		}
	case "start", "start-step":
		r.OpenRequests = 0 // the requests have been answered
	case "finish-step", "reset-step", "message-metadata", "source-url", "source-document", "tool-approval-response", "custom":
	case "":
		return decoding.Fault("a chunk is an object with a type", nil)
	default:
		if kind, ok := strings.CutPrefix(in.Type, "data-"); ok {
			return data(c, kind, in)
		}
		c.Unknown(in.Type)
	}
	return nil
}

// proseKey returns the key of the text or reasoning that a chunk belongs to. A text and a reasoning may have the same id.
func proseKey(c *canvas.Canvas, in *frame) string {
	prefix := "text "
	if strings.HasPrefix(in.Type, "reasoning") {
		prefix = "reasoning "
	}
	return c.Key(prefix, in.ID)
}

// prose handles the chunks of texts and thoughts.
func (r *reader) prose(c *canvas.Canvas, in *frame) error {
	kind := event.KindText
	if strings.HasPrefix(in.Type, "reasoning") {
		kind = event.KindReasoning
	}
	return c.GrowProse(proseKey(c, in), kind, in.Delta)
}

// tool applies a chunk of a tool call. tool-input-available has the whole input and replaces the deltas. An output ends the part, unless it
// is preliminary.
func (r *reader) tool(c *canvas.Canvas, in *frame) error {
	p, err := c.Tool("tool "+in.ToolCallID, in.ToolCallID, in.ToolName, event.PartRunning)
	if err != nil {
		return err
	}
	c.Update(p, "", in.Title, nil)
	if in.Input != nil {
		c.Set(p, event.Input, decoding.Plain(in.Input))
	}
	switch in.Type {
	case "tool-input-delta":
		return c.Grow(p, event.Input, in.InputDelta)
	case "tool-output-available":
		c.Set(p, event.Output, decoding.Plain(in.Output))
		if !in.Tentative {
			c.Update(p, event.PartDone, "", nil)
			c.EndPart(p)
		}
	case "tool-input-error", "tool-output-error":
		c.Update(p, event.PartFailed, "", &event.Error{Message: cmp.Or(decoding.String(in.ErrorText), "the tool failed")})
		c.EndPart(p)
	case "tool-output-denied":
		c.Update(p, event.PartDenied, "", nil)
		c.EndPart(p)
	case "tool-approval-request":
		r.OpenRequests++
		return c.Ask(event.Request{ID: in.ApprovalID, Kind: event.RequestApproval, Tool: in.ToolName, Part: p.ID})
	}
	return nil
}

// data applies a data-* chunk, whose content only the application understands. An id means that later chunks
// replace the data; such data is shown only if it is a status, because applications use the rest to update their own views.
func data(c *canvas.Canvas, kind string, in *frame) error {
	switch {
	case kind == "status" && in.ID != "" && !in.Transient:
		return status(c, in)
	case in.Transient, in.ID != "", len(in.Data) == 0:
		c.Unknown(in.Type)
		return nil
	}
	b, err := json.Marshal(map[string]any{"type": in.Type, "data": in.Data})
	if err != nil {
		return decoding.Fault("data", err)
	}
	return c.AddPart(event.Body{Kind: event.KindData, Data: b})
}

// status applies a data-status chunk, whose data is a string or an object with a text. Chunks with the same id replace each other, so this is
// how an application shows a status that changes in place.
func status(c *canvas.Canvas, in *frame) error {
	text := decoding.String(in.Data)
	var object struct {
		Text json.RawMessage `json:"text"`
	}
	if text == "" && json.Unmarshal(in.Data, &object) == nil {
		text = decoding.String(object.Text)
	}
	p, err := c.Prose("status "+in.ID, event.KindStatus)
	if err == nil {
		c.Set(p, event.Text, text)
	}
	return err
}

// families are the prefixes of the types of chunks with content. Applications report progress with transient data, so data is among them.
var families = []string{"text-", "reasoning-", "tool-", "data-"}

// progress recognizes the chunks of an answer, also those that give no operations.
func progress(kind string) bool {
	switch kind {
	case "start-step", "finish-step", "reset-step", "source-url", "source-document":
		return true
	}
	return slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}
