package langgraph

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "langgraph"

// The readers and writers of the types on the wire and of the state.
var (
	lists  = jsonscan.NewReader[[]json.RawMessage]()
	frames = jsonscan.NewReader[message]()
	blocks = jsonscan.NewReader[piece]()
	states = jsonscan.NewWriter[reader]()
)

// Dialect describes the streams of LangGraph servers.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "runs of a LangGraph server, SSE, all stream modes",
		Framing:  dialect.SSE,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader combines the stream modes, several of which a client may request at once, so that no text is shown twice.
type reader struct {
	// HasMessages is true after an event of a messages mode. The texts in values and updates are then ignored, because they repeat those.
	HasMessages bool `json:"told,omitempty"`
	// Calls has the ids of calls by message and index, because only the first chunk of a call has the id.
	Calls    map[string]string `json:"calls,omitempty"`
	Requests []string          `json:"asked,omitempty"`   // the ids of the open questions
	UsageOf  string            `json:"counted,omitempty"` // the message whose usage was counted last
	Length   bool              `json:"length,omitempty"`  // the model's last message stopped at its limit of length

	// The memory of the current frame.
	list   []json.RawMessage // of messages
	in     message
	blocks []json.RawMessage // of a content
	block  piece
	pieces []piece
}

// Read applies one frame. Unlike in other formats, the data of a known event may be any JSON value: a graph's state has the shape that its
// author gave it. Only a frame of an unknown event must be an object, so that a body that isn't a LangGraph stream at all is an error and
// not a stream of unknown frames.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	data := bytes.TrimSpace(f.Data)
	// A list has been validated when it is read.
	list, isList := lists.Try(&r.list, data)
	if !isList && !json.Valid(data) {
		return decoding.Fault("invalid JSON", nil)
	}
	mode, space, _ := strings.Cut(f.Event, "|")
	switch mode {
	case "messages":
		r.HasMessages = true
		// The data is a message or a chunk of one, and metadata about the node that it comes from.
		if !isList {
			var err error
			if list, err = lists.Read(&r.list, data); err != nil {
				return decoding.Fault("messages: a pair of message and metadata", err)
			}
		}
		if len(*list) == 0 {
			return decoding.Fault("messages: a pair of message and metadata", nil)
		}
		return r.messages(c, (*list)[:1])
	case "messages/partial", "messages/complete":
		r.HasMessages = true
		if !isList {
			var err error
			if list, err = lists.Read(&r.list, data); err != nil {
				return decoding.Fault("a list of messages", err)
			}
		}
		return r.messages(c, *list)
	case "values", "updates":
		return r.values(c, mode, space != "", data)
	// The first event of a run.
	case "metadata":
		var m struct {
			RunID string `json:"run_id"`
		}
		if err := decoding.Unmarshal(data, &m); err != nil {
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
		if err := decoding.Unmarshal(data, &e); err != nil {
			return err
		}
		c.Fail(event.Error{Code: decoding.String(e.Error), Message: decoding.String(e.Message)})
	case "end":
		switch {
		case len(r.Requests) > 0: // the turn waits for the answers
		case r.Length:
			c.Complete(event.ReasonLength)
		default:
			c.Complete("")
		}
	case "messages/metadata", "debug", "events", "tasks", "checkpoints", "feedback":
	default:
		if data[0] != '{' {
			return decoding.Fault("a frame without a known name is an object", nil)
		}
		c.Unknown(mode)
	}
	return nil
}

// maxWord is the limit, in bytes, of a custom text that is shown as the turn's phase. A longer one isn't a short text about progress.
const maxWord = 200

// word returns data if it is a JSON string within maxWord, and "" otherwise.
func word(data json.RawMessage) string {
	if s := decoding.String(data); len(s) <= maxWord {
		return s
	}
	return ""
}

// messages applies messages in the order of the list.
func (r *reader) messages(c *canvas.Canvas, messages []json.RawMessage) error {
	for _, raw := range messages {
		m, err := frames.Read(&r.in, raw)
		if err != nil {
			return decoding.Fault("message", err)
		}
		if err := r.message(c, m); err != nil {
			return err
		}
	}
	return nil
}

// values applies an event of mode values, whose data is the graph's state, or updates, whose data has what each node changed, by the name of
// the node. Interrupts are read in both, also those of a subgraph. Messages of a subgraph are skipped, because its parent's state has them
// too. The nodes are read in the order of their names: the order of a map would make the operations differ from run to run.
func (r *reader) values(c *canvas.Canvas, mode string, sub bool, data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil // the state of a graph may be any JSON value
	}
	nodes := map[string]json.RawMessage{"": data}
	if mode == "updates" {
		clear(nodes)
		if err := json.Unmarshal(data, &nodes); err != nil {
			return decoding.Fault("updates", err)
		}
		if raw, ok := nodes["__interrupt__"]; ok {
			var interrupts []interrupt
			if err := json.Unmarshal(raw, &interrupts); err != nil {
				return decoding.Fault("interrupt", err)
			}
			if err := r.ask(c, interrupts); err != nil {
				return err
			}
			delete(nodes, "__interrupt__") // it isn't a node
		}
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		var v values
		if json.Unmarshal(nodes[node], &v) != nil {
			continue // the node's change isn't an object with messages
		}
		if err := r.ask(c, v.Interrupt); err != nil {
			return err
		}
		if r.HasMessages || sub || len(v.Messages) == 0 || v.Messages[0] != '[' {
			continue
		}
		var messages []json.RawMessage
		if err := json.Unmarshal(v.Messages, &messages); err != nil {
			return decoding.Fault("messages", err)
		}
		if err := r.messages(c, ofTurn(messages)); err != nil {
			return err
		}
	}
	return nil
}

// ofTurn returns the messages after the last one of the user. The state of a graph has the whole conversation, and the earlier messages
// belong to earlier turns.
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

// ask turns interrupts into questions. An interrupt without an id is identified by its namespace, as older servers do, or by its number.
// values and updates both contain it, so one with a known id is skipped. A value that isn't a string is passed on as data.
func (r *reader) ask(c *canvas.Canvas, interrupts []interrupt) error {
	for _, in := range interrupts {
		id := cmp.Or(in.ID, strings.Join(in.NS, "|"), fmt.Sprintf("interrupt-%d", len(r.Requests)+1))
		if slices.Contains(r.Requests, id) {
			continue
		}
		r.Requests = append(r.Requests, id)
		q := event.Request{ID: id, Kind: event.RequestInput, Prompt: decoding.String(in.Value)}
		if q.Prompt == "" {
			q.Prompt, q.Data = "The graph waits for an answer.", in.Value
		}
		if err := c.Ask(q); err != nil {
			return err
		}
	}
	return nil
}

// message applies a message of LangChain by its type. Messages of the user and the system are ignored, because Leat has them already.
func (r *reader) message(c *canvas.Canvas, m *message) error {
	switch m.Type {
	case "AIMessageChunk":
		r.Requests = nil // the model runs again, so the questions have been answered
		return r.ai(c, m, true)
	case "ai":
		return r.ai(c, m, false)
	// The type depends on how the server serializes the message.
	case "tool", "ToolMessageChunk", "ToolMessage":
		return r.result(c, m)
	case "human", "system", "HumanMessageChunk", "SystemMessageChunk", "remove", "function", "chat":
	default:
		c.Unknown(m.Type)
	}
	return nil
}

// ai applies a message of the model, or a chunk of one if delta is true. Each chunk has the usage since the last one, whereas a complete
// message is repeated by several events with the same usage, which must be counted once.
func (r *reader) ai(c *canvas.Canvas, m *message, delta bool) error {
	pieces, err := r.piecesOf(m)
	if err != nil {
		return err
	}
	c.SetModel(decoding.String(m.Response.Model))
	// Chunks before the last have no reason, and the reason of an earlier message doesn't matter.
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
	// A complete message has complete calls, which replace the pieces.
	for _, call := range m.Calls {
		p, err := c.Tool("tool "+call.ID, call.ID, call.Name, event.PartRunning)
		if err != nil {
			return err
		}
		c.Set(p, event.Input, decoding.Plain(call.Args))
	}
	return nil
}

// grow appends the pieces of a chunk to the text and the reasoning of the message with the given id.
func grow(c *canvas.Canvas, id string, pieces []piece) error {
	for _, piece := range pieces {
		prefix, kind, token := "text ", event.KindText, piece.Text
		if t := piece.thought(); t != nil {
			prefix, kind, token = "thought ", event.KindReasoning, t
		}
		if string(token) == "null" {
			continue
		}
		if err := c.GrowProse(c.Key(prefix, id), kind, token); err != nil {
			return err
		}
	}
	return nil
}

// setPieces replaces the text and the reasoning of the message with the given id by those of a complete message. The reasoning is first,
// because models think before they answer.
func setPieces(c *canvas.Canvas, id string, pieces []piece) error {
	var text, thought string
	for _, piece := range pieces {
		thought += decoding.String(piece.thought())
		if piece.thought() == nil {
			text += decoding.String(piece.Text)
		}
	}
	if err := c.SetProse("thought "+id, event.KindReasoning, thought); err != nil {
		return err
	}
	return c.SetProse("text "+id, event.KindText, text)
}

// maxCalls is the limit of reader.Calls, which is stored with every commit. Above it all ids are forgotten, and a piece of an earlier call
// is then an error.
const maxCalls = 1024

// chunks appends pieces of tool calls to the inputs of their tools. A call is identified by its message and index; its first piece also has
// the id and the name.
func (r *reader) chunks(c *canvas.Canvas, m *message) error {
	for _, ch := range m.Chunks {
		key := m.ID + "/" + string(ch.Index)
		if ch.ID != "" {
			if r.Calls == nil || len(r.Calls) >= maxCalls {
				r.Calls = map[string]string{}
			}
			r.Calls[key] = ch.ID // for the pieces that follow
		}
		// The call may have begun in an earlier chunk.
		id := r.Calls[key]
		if id == "" {
			return decoding.Fault("a piece of a call that has not begun", nil)
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

// result applies the result of a tool, a message of type tool. The part stays open, because values repeat the message. A repeated failure
// must not repeat the error.
func (r *reader) result(c *canvas.Canvas, m *message) error {
	pieces, err := r.piecesOf(m)
	if err != nil {
		return err
	}
	p, err := c.Tool("tool "+m.ToolCallID, m.ToolCallID, m.Name, event.PartRunning)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, piece := range pieces {
		text.WriteString(decoding.String(piece.Text))
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

// progress recognizes the events that show work of the graph's nodes, also those that give no operations, such as debug. The server's
// heartbeats are SSE comments, which aren't frames at all.
func progress(f dialect.Frame) bool {
	mode, _, _ := strings.Cut(f.Event, "|")
	switch mode {
	case "messages", "messages/partial", "messages/complete", "messages/metadata", "values", "updates", "custom", "debug", "events",
		"tasks", "checkpoints":
		return true
	}
	return false
}
