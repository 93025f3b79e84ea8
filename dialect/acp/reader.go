package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "acp"

// The readers and writers of the types on the wire and of the state.
var (
	frames   = jsonscan.NewReader[frame]()
	updates  = jsonscan.NewReader[params]()
	contents = jsonscan.NewReader[block]()
	states   = jsonscan.NewWriter[reader]()
)

// Dialect describes the messages of an ACP agent during one prompt, which the agent package selects from the whole connection.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Agent Client Protocol, the lines of one prompt",
		Framing:  dialect.Lines,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader tells the texts apart whose chunks have no id. In version 1 messageId is optional, and a chunk without one continues the text
// before it unless something else came between.
type reader struct {
	Kind  string `json:"kind,omitempty"`  // of the last chunk, tool or block; a chunk of another kind begins a new text
	Texts int    `json:"texts,omitempty"` // the number of changes of Kind by chunks; it is the key of a text without an id

	// The memory of the current message.
	in     frame
	params params
	block  block
	list   [1]block
}

// planKey is the key of the one plan part: the protocol gives plans no ids.
const planKey = "plan"

// Read applies one message of JSON-RPC. A response is taken for that of the prompt if it has a stopReason: the agent package sends other
// requests on the same connection, whose responses have none.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	switch {
	case in.Method == "session/update":
		p, err := updates.Read(&r.params, in.Params)
		if err != nil {
			return decoding.Fault("params of session/update", err)
		}
		return r.update(c, &p.Update)
	case in.Method == "session/request_permission":
		return r.permission(c, in)
	case in.Error != nil:
		c.Fail(event.Error{Code: in.Error.Code.String(), Message: decoding.String(in.Error.Message)})
	case in.Method == "" && in.Result != nil:
		var res struct {
			Stop string `json:"stopReason"`
		}
		if json.Unmarshal(in.Result, &res) == nil && res.Stop != "" {
			stop(c, res.Stop)
		}
	default:
		c.Unknown(in.Method)
	}
	return nil
}

// stop ends the turn with a stopReason of the protocol: end_turn, max_tokens, max_turn_requests, refusal or cancelled.
func stop(c *canvas.Canvas, reason string) {
	switch reason {
	case "cancelled":
		// The agent confirms a session/cancel that the gateway sent.
		c.End(event.Body{Outcome: event.Cancelled, Reason: reason})
	case "refusal":
		c.End(event.Body{Outcome: event.Failed, Reason: reason, Error: &event.Error{Code: reason, Message: "the agent refused to answer"}})
	default:
		c.Complete(decoding.StopReason(reason))
	}
}

// update applies a session/update. The names of chunks and of complete messages differ only in the suffix, so both find the same text.
func (r *reader) update(c *canvas.Canvas, u *update) error {
	kind, _ := strings.CutSuffix(u.Kind, "_chunk")
	switch u.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		return r.chunk(c, kind, u)
	case "agent_message", "agent_thought":
		return r.drawBlocks(c, kind, u)
	case "tool_call", "tool_call_update":
		r.Kind = u.Kind
		return r.tool(c, u)
	case "plan":
		return r.plan(c, u.Entries)
	case "state_update":
		if u.State == "idle" {
			stop(c, u.Stop)
		}
	case "user_message_chunk", "user_message", "available_commands_update", "current_mode_update", "config_option_update",
		"session_info_update", "usage_update":
		// They don't belong to the answer.
	default:
		c.Unknown(u.Kind)
	}
	return nil
}

// key returns the key of the text that a chunk of the given kind belongs to, and records that this text is now the last one. id is the
// chunk's messageId, or empty.
func (r *reader) key(c *canvas.Canvas, kind, id string) string {
	if kind != r.Kind {
		r.Kind = kind
		r.Texts++
	}
	if id != "" {
		return c.Key(kind+" ", id)
	}
	return c.Key(kind+" #", strconv.Itoa(r.Texts))
}

// partKind returns the kind of the parts that show an agent's messages or thoughts.
func partKind(kind string) event.PartKind {
	if kind == "agent_thought" {
		return event.KindReasoning
	}
	return event.KindText
}

// chunk appends the blocks of a chunk. A block other than text becomes a separate part, and text after it without an id a new text,
// so that the parts are in the order in which the agent sent them.
func (r *reader) chunk(c *canvas.Canvas, kind string, u *update) error {
	list, err := r.blocks(u.Content)
	if err != nil {
		return err
	}
	for i := range list {
		b := &list[i]
		if b.Type != "text" {
			if err := media(c, b); err != nil {
				return err
			}
			r.Kind = b.Type
			continue
		}
		if err := c.GrowProse(r.key(c, kind, u.MessageID), partKind(kind), b.Text); err != nil {
			return err
		}
	}
	return nil
}

// drawBlocks applies a message of protocol version 2, whose content replaces the text. A message without the key content leaves the text
// unchanged; null or an empty list clears it.
func (r *reader) drawBlocks(c *canvas.Canvas, kind string, u *update) error {
	if u.Content == nil {
		return nil // absent; a content of null isn't nil
	}
	list, err := r.blocks(u.Content)
	if err != nil {
		return err
	}
	var text strings.Builder
	for i := range list {
		if list[i].Type == "text" {
			text.WriteString(decoding.String(list[i].Text))
		}
	}
	key := r.key(c, kind, u.MessageID)
	if c.Find(key) == nil && text.Len() == 0 {
		return nil
	}
	p, err := c.Prose(key, partKind(kind))
	if err != nil {
		return err
	}
	c.Set(p, event.Text, text.String())
	return nil
}

// media adds a block that isn't text: an image or audio in base64, a link, or an embedded resource, of which only the address is shown. A
// block with neither data nor an address is counted as unknown.
func media(c *canvas.Canvas, b *block) error {
	m := event.Media{URL: b.URI, MIME: b.MimeType, Name: b.Name}
	switch {
	case b.Data != "":
		m.URL = "data:" + b.MimeType + ";base64," + b.Data
	case b.Resource != nil:
		m.URL = b.Resource.URI
	}
	if m.URL == "" {
		c.Unknown(b.Type)
		return nil
	}
	return c.AddPart(event.Body{Kind: event.KindMedia, Media: &m})
}

// tool applies a tool_call or tool_call_update. The content list is the tool's whole output so far. rawOutput is shown only if the
// update has no content, because it is the tool's internal form of the same result. The part stays open until the turn ends,
// because a later update may change a tool that has completed.
func (r *reader) tool(c *canvas.Canvas, u *update) error {
	p, err := begin(c, &u.call)
	if err != nil {
		return err
	}
	// An update without content leaves the output unchanged.
	if len(u.Content) > 0 && u.Content[0] == '[' {
		text, err := r.output(u.Content)
		if err != nil {
			return err
		}
		c.Set(p, event.Output, text)
	} else if text := decoding.Plain(u.RawOutput); text != "" && p.Output.Len() == 0 {
		c.Set(p, event.Output, text)
	}
	switch status := decoding.String(u.Status); {
	case status == "completed":
		c.Update(p, event.PartDone, "", nil)
	// A repeated "failed" must not repeat the error.
	case status == "failed" && p.State != event.PartFailed:
		c.Update(p, event.PartFailed, "", &event.Error{Message: "the tool failed"})
	case status == "in_progress":
		c.Update(p, event.PartRunning, "", nil)
	}
	return nil
}

// begin returns the part of a call, which it starts if needed, and applies the call's title and input. The protocol has no names of tools;
// the kind, such as "edit" or "execute", takes the place of the name.
func begin(c *canvas.Canvas, call *call) (*canvas.Part, error) {
	p, err := c.Tool("tool "+call.ID, call.ID, cmp.Or(decoding.String(call.Kind), "tool"), event.PartRunning)
	if err != nil {
		return nil, err
	}
	c.Update(p, "", decoding.String(call.Title), nil)
	if text := decoding.Plain(call.Input); text != "" && text != "{}" {
		c.Set(p, event.Input, text)
	}
	return p, nil
}

// plan shows the whole plan as a list of Markdown tasks. Every update replaces the list, because each has all entries.
func (r *reader) plan(c *canvas.Canvas, entries []entry) error {
	p := c.Find(planKey)
	if p == nil {
		title := "Plan"
		var err error
		if p, err = c.Start(planKey, event.Body{Kind: event.KindReasoning, Title: &title}); err != nil {
			return err
		}
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(mark(e.Status) + decoding.String(e.Content) + "\n")
	}
	c.Set(p, event.Text, b.String())
	return nil
}

// mark returns the beginning of a plan's line. Markdown has no mark for an entry in progress, so that one gets an arrow.
func mark(status string) string {
	switch status {
	case "completed":
		return "- [x] "
	case "in_progress":
		return "- [ ] → "
	}
	return "- [ ] "
}

// permission turns a session/request_permission into a question about the tool that it is for. The options have the agent's own names,
// because a person chooses among them. An option without a name, or with that of an earlier option, is named by its id, so that every
// answer identifies one option.
func (r *reader) permission(c *canvas.Canvas, in *frame) error {
	var req permission
	if err := json.Unmarshal(in.Params, &req); err != nil {
		return decoding.Fault("params of session/request_permission", err)
	}
	p, err := begin(c, &req.Call)
	if err != nil {
		return err
	}
	r.Kind = "tool_call" // text after the question is a new part, as it is after a tool
	q := event.Request{ID: "permission-" + decoding.Plain(in.ID), Kind: event.RequestApproval, Tool: decoding.String(req.Call.Kind), Part: p.ID, Prompt: decoding.String(req.Call.Title)}
	for _, o := range req.Options {
		name := decoding.String(o.Name)
		if name == "" || slices.Contains(q.Options, name) {
			name = o.ID
		}
		q.Options = append(q.Options, name)
	}
	return c.Ask(q)
}

// progress recognizes the updates of a session that show work on the prompt, even if they give no operations, such as usage. Lists of
// commands, modes and titles don't: an agent may send them at any time.
func progress(f dialect.Frame) bool {
	var in struct {
		Method string `json:"method"`
		Params struct {
			Update struct {
				Kind string `json:"sessionUpdate"`
			} `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal(f.Data, &in) != nil || in.Method != "session/update" {
		return false
	}
	switch in.Params.Update.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "agent_message", "agent_thought", "tool_call", "tool_call_update", "plan",
		"usage_update", "state_update":
		return true
	}
	return false
}
