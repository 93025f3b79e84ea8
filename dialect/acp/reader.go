package acp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
)

const name = "acp"

// Dialect describes what an ACP agent says during one prompt.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Agent Client Protocol, the lines of one prompt",
		Framing:  dialect.Lines,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

// reader remembers which text was streamed last, for chunks without an id.
type reader struct {
	Kind  string `json:"kind,omitempty"` // of the last chunk
	Texts int    `json:"texts,omitempty"`
}

const planKey = "plan"

// Read implements [canvas.Reader].
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in frame
	if err := canvas.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	switch {
	case in.Method == "session/update":
		var p struct {
			Update update `json:"update"`
		}
		if err := json.Unmarshal(in.Params, &p); err != nil {
			return canvas.Fault("params of session/update", err)
		}
		return r.update(c, &p.Update)
	case in.Method == "session/request_permission":
		return r.permission(c, &in)
	case in.Error != nil:
		c.Fail(event.Error{Code: in.Error.Code.String(), Message: canvas.String(in.Error.Message)})
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

func stop(c *canvas.Canvas, reason string) {
	switch reason {
	case "cancelled":
		c.End(event.Body{Outcome: event.Cancelled, Reason: reason})
	case "refusal":
		c.End(event.Body{Outcome: event.Failed, Reason: reason, Error: &event.Error{Code: reason, Message: "the agent refused to answer"}})
	default:
		c.Complete(decoding.StopReason(reason))
	}
}

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
	default:
		c.Unknown(u.Kind)
	}
	return nil
}

// key is that of the text that a chunk belongs to.
func (r *reader) key(kind, id string) string {
	if kind != r.Kind {
		r.Kind = kind
		r.Texts++
	}
	if id != "" {
		return kind + " " + id
	}
	return kind + " #" + strconv.Itoa(r.Texts)
}

func partKind(kind string) event.PartKind {
	if kind == "agent_thought" {
		return event.KindReasoning
	}
	return event.KindText
}

func (r *reader) chunk(c *canvas.Canvas, kind string, u *update) error {
	list, err := blocks(u.Content)
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
		key := r.key(kind, u.MessageID)
		if b.Text == nil || string(b.Text) == `""` {
			continue
		}
		p, err := c.Prose(key, partKind(kind))
		if err != nil {
			return err
		}
		if err := c.Grow(p, event.Text, b.Text); err != nil {
			return err
		}
	}
	return nil
}

// drawBlocks applies a message of protocol version 2, whose content replaces the text. A message without content leaves it unchanged.
func (r *reader) drawBlocks(c *canvas.Canvas, kind string, u *update) error {
	if u.Content == nil {
		return nil
	}
	list, err := blocks(u.Content)
	if err != nil {
		return err
	}
	var text strings.Builder
	for i := range list {
		if list[i].Type == "text" {
			text.WriteString(canvas.String(list[i].Text))
		}
	}
	key := r.key(kind, u.MessageID)
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

func (r *reader) tool(c *canvas.Canvas, u *update) error {
	p, err := begin(c, &u.call)
	if err != nil {
		return err
	}
	if len(u.Content) > 0 && u.Content[0] == '[' {
		text, err := output(u.Content)
		if err != nil {
			return err
		}
		c.Set(p, event.Output, text)
	} else if text := canvas.Plain(u.RawOutput); text != "" && p.Output.Len() == 0 {
		c.Set(p, event.Output, text)
	}
	switch status := canvas.String(u.Status); {
	case status == "completed":
		c.Update(p, event.PartDone, "", nil)
	case status == "failed" && p.State != event.PartFailed:
		c.Update(p, event.PartFailed, "", &event.Error{Message: "the tool failed"})
	case status == "in_progress":
		c.Update(p, event.PartRunning, "", nil)
	}
	return nil
}

// begin returns a call's part, with what is known of it so far.
func begin(c *canvas.Canvas, call *call) (*canvas.Part, error) {
	kind := canvas.String(call.Kind)
	if kind == "" {
		kind = "tool"
	}
	p, err := c.Tool("tool "+call.ID, call.ID, kind, event.PartRunning)
	if err != nil {
		return nil, err
	}
	c.Update(p, "", canvas.String(call.Title), nil)
	if text := canvas.Plain(call.Input); text != "" && text != "{}" {
		c.Set(p, event.Input, text)
	}
	return p, nil
}

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
		b.WriteString(mark(e.Status) + canvas.String(e.Content) + "\n")
	}
	c.Set(p, event.Text, b.String())
	return nil
}

func mark(status string) string {
	switch status {
	case "completed":
		return "- [x] "
	case "in_progress":
		return "- [ ] → "
	}
	return "- [ ] "
}

// permission asks for one. The options are named as the agent names them.
func (r *reader) permission(c *canvas.Canvas, in *frame) error {
	var req permission
	if err := json.Unmarshal(in.Params, &req); err != nil {
		return canvas.Fault("params of session/request_permission", err)
	}
	p, err := begin(c, &req.Call)
	if err != nil {
		return err
	}
	r.Kind = "tool_call"
	q := event.Request{ID: "permission-" + canvas.Plain(in.ID), Kind: event.RequestApproval, Tool: canvas.String(req.Call.Kind), Part: p.ID, Prompt: canvas.String(req.Call.Title)}
	for _, o := range req.Options {
		name := canvas.String(o.Name)
		if name == "" || slices.Contains(q.Options, name) {
			name = o.ID
		}
		q.Options = append(q.Options, name)
	}
	return c.Ask(q)
}
