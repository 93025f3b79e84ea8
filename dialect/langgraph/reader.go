package langgraph

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const name = "langgraph"

// Dialect describes the streams of LangGraph servers.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "runs of a LangGraph server, SSE, all stream modes",
		Framing:  dialect.SSE,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

type reader struct {
	// Told says that the messages modes tell the texts.
	HasMessages bool `json:"told,omitempty"`
	// Calls are the ids of calls by message and index: only a call's first chunk has it.
	Calls    map[string]string `json:"calls,omitempty"`
	Requests []string          `json:"asked,omitempty"`
	UsageOf  string            `json:"counted,omitempty"` // the message whose usage was counted last
	// Length says that the model's last message stopped at its limit of length.
	Length bool `json:"length,omitempty"`
}

// Read implements [canvas.Reader].
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	data := bytes.TrimSpace(f.Data)
	if !json.Valid(data) {
		return canvas.Fault("invalid JSON", nil)
	}
	mode, space, _ := strings.Cut(f.Event, "|")
	switch mode {
	case "messages":
		r.HasMessages = true
		var tuple []json.RawMessage
		if err := json.Unmarshal(data, &tuple); err != nil || len(tuple) == 0 {
			return canvas.Fault("messages: a pair of message and metadata", err)
		}
		return r.messages(c, tuple[:1])
	case "messages/partial", "messages/complete":
		r.HasMessages = true
		return r.list(c, data)
	case "values", "updates":
		return r.values(c, mode, space != "", data)
	case "metadata":
		var m struct {
			RunID string `json:"run_id"`
		}
		if err := canvas.Unmarshal(data, &m); err != nil {
			return err
		}
		c.SetRun(m.RunID)
	case "custom":
		c.SetPhase(word(data))
	case "error":
		var e struct {
			Error   json.RawMessage `json:"error"`
			Message json.RawMessage `json:"message"`
		}
		if err := canvas.Unmarshal(data, &e); err != nil {
			return err
		}
		c.Fail(event.Error{Code: canvas.String(e.Error), Message: canvas.String(e.Message)})
	case "end":
		if len(r.Requests) == 0 {
			reason := ""
			if r.Length {
				reason = event.ReasonLength
			}
			c.Complete(reason)
		}
	case "messages/metadata", "debug", "events", "tasks", "checkpoints", "feedback":
	default:
		if data[0] != '{' {
			return canvas.Fault("a frame without a known name is an object", nil)
		}
		c.Unknown(mode)
	}
	return nil
}

// maxWord bounds a text that is shown as a phase, in bytes.
const maxWord = 200

func word(data json.RawMessage) string {
	if s := canvas.String(data); len(s) <= maxWord {
		return s
	}
	return ""
}

func (r *reader) list(c *canvas.Canvas, data []byte) error {
	var messages []json.RawMessage
	if err := json.Unmarshal(data, &messages); err != nil {
		return canvas.Fault("a list of messages", err)
	}
	return r.messages(c, messages)
}

func (r *reader) messages(c *canvas.Canvas, messages []json.RawMessage) error {
	for _, raw := range messages {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return canvas.Fault("message", err)
		}
		if err := r.message(c, &m); err != nil {
			return err
		}
	}
	return nil
}

// values takes values or updates. What a subgraph holds is in its parent's too.
func (r *reader) values(c *canvas.Canvas, mode string, sub bool, data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil // a graph's values may be anything
	}
	nodes := map[string]json.RawMessage{"": data}
	if mode == "updates" {
		clear(nodes)
		if err := json.Unmarshal(data, &nodes); err != nil {
			return canvas.Fault("updates", err)
		}
		if raw, ok := nodes["__interrupt__"]; ok {
			var interrupts []interrupt
			if err := json.Unmarshal(raw, &interrupts); err != nil {
				return canvas.Fault("interrupt", err)
			}
			if err := r.ask(c, interrupts); err != nil {
				return err
			}
			delete(nodes, "__interrupt__")
		}
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		var v values
		if json.Unmarshal(nodes[node], &v) != nil {
			continue // a node that changes no messages
		}
		if err := r.ask(c, v.Interrupt); err != nil {
			return err
		}
		if r.HasMessages || sub || len(v.Messages) == 0 || v.Messages[0] != '[' {
			continue
		}
		var messages []json.RawMessage
		if err := json.Unmarshal(v.Messages, &messages); err != nil {
			return canvas.Fault("messages", err)
		}
		if err := r.messages(c, ofTurn(messages)); err != nil {
			return err
		}
	}
	return nil
}

// ofTurn are the messages behind the user's last.
func ofTurn(messages []json.RawMessage) []json.RawMessage {
	for i := len(messages) - 1; i >= 0; i-- {
		var m struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(messages[i], &m) == nil && m.Type == "human" {
			return messages[i+1:]
		}
	}
	return messages
}

func (r *reader) ask(c *canvas.Canvas, interrupts []interrupt) error {
	for _, in := range interrupts {
		id := in.ID
		if id == "" {
			id = strings.Join(in.NS, "|")
		}
		if id == "" {
			id = fmt.Sprintf("interrupt-%d", len(r.Requests)+1)
		}
		if slices.Contains(r.Requests, id) {
			continue // values and updates both tell it
		}
		r.Requests = append(r.Requests, id)
		q := event.Request{ID: id, Kind: event.RequestInput, Prompt: canvas.String(in.Value)}
		if q.Prompt == "" {
			q.Prompt, q.Data = "The graph waits for an answer.", in.Value
		}
		if err := c.Ask(q); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) message(c *canvas.Canvas, m *message) error {
	switch m.Type {
	case "AIMessageChunk":
		r.Requests = nil // the graph has gone on
		return r.ai(c, m, true)
	case "ai":
		return r.ai(c, m, false)
	case "tool", "ToolMessageChunk", "ToolMessage":
		return r.result(c, m)
	case "human", "system", "HumanMessageChunk", "SystemMessageChunk", "remove", "function", "chat":
	default:
		c.Unknown(m.Type)
	}
	return nil
}

func (r *reader) ai(c *canvas.Canvas, m *message, delta bool) error {
	pieces, err := m.pieces()
	if err != nil {
		return err
	}
	c.SetModel(canvas.String(m.Response.Model))
	if stop := m.stopReason(); stop != "" {
		r.Length = decoding.StopReason(stop) == event.ReasonLength
	}
	if delta {
		err = grow(c, m.ID, pieces)
	} else {
		err = setPieces(c, m.ID, pieces)
	}
	if err != nil {
		return err
	}
	if m.Usage != nil && (delta || r.UsageOf != m.ID) {
		r.UsageOf = m.ID
		c.Usage.Input += m.Usage.Input
		c.Usage.Output += m.Usage.Output
	}
	if delta {
		return r.chunks(c, m)
	}
	for _, call := range m.Calls {
		p, err := c.Tool("tool "+call.ID, call.ID, call.Name, event.PartRunning)
		if err != nil {
			return err
		}
		c.Set(p, event.Input, canvas.Plain(call.Args))
	}
	return nil
}

func empty(token json.RawMessage) bool {
	return token == nil || string(token) == `""` || string(token) == "null"
}

func grow(c *canvas.Canvas, id string, pieces []piece) error {
	for _, piece := range pieces {
		key, kind, token := "text "+id, event.KindText, piece.Text
		if t := piece.thought(); t != nil {
			key, kind, token = "thought "+id, event.KindReasoning, t
		}
		if empty(token) {
			continue
		}
		p, err := c.Prose(key, kind)
		if err != nil {
			return err
		}
		if err := c.Grow(p, event.Text, token); err != nil {
			return err
		}
	}
	return nil
}

func setPieces(c *canvas.Canvas, id string, pieces []piece) error {
	var text, thought string
	for _, piece := range pieces {
		thought += canvas.String(piece.thought())
		if piece.thought() == nil {
			text += canvas.String(piece.Text)
		}
	}
	for _, s := range []struct {
		key  string
		kind event.PartKind
		text string
	}{{"thought " + id, event.KindReasoning, thought}, {"text " + id, event.KindText, text}} {
		if s.text == "" {
			continue
		}
		p, err := c.Prose(s.key, s.kind)
		if err != nil {
			return err
		}
		c.Set(p, event.Text, s.text)
	}
	return nil
}

// maxCalls bounds the calls whose chunks are distinguished.
const maxCalls = 1024

func (r *reader) chunks(c *canvas.Canvas, m *message) error {
	for _, ch := range m.Chunks {
		key := m.ID + "/" + string(ch.Index)
		if ch.ID != "" {
			if r.Calls == nil || len(r.Calls) >= maxCalls {
				r.Calls = map[string]string{}
			}
			r.Calls[key] = ch.ID
		}
		id := r.Calls[key]
		if id == "" {
			return canvas.Fault("a piece of a call that has not begun", nil)
		}
		p, err := c.Tool("tool "+id, id, ch.Name, event.PartRunning)
		if err != nil {
			return err
		}
		if err := c.Grow(p, event.Input, ch.Args); err != nil {
			return err
		}
	}
	return nil
}

// result takes what a tool gave.
func (r *reader) result(c *canvas.Canvas, m *message) error {
	pieces, err := m.pieces()
	if err != nil {
		return err
	}
	p, err := c.Tool("tool "+m.ToolCallID, m.ToolCallID, m.Name, event.PartRunning)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, piece := range pieces {
		text.WriteString(canvas.String(piece.Text))
	}
	c.Set(p, event.Output, text.String())
	if m.Status == "error" {
		if p.State != event.PartFailed {
			c.Update(p, event.PartFailed, "", &event.Error{Message: "the tool failed"})
		}
		return nil
	}
	c.Update(p, event.PartDone, "", nil)
	return nil
}
