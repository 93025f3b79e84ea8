package a2a

import (
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/event"
)

const name = "a2a"

// Dialect describes the streams of A2A.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Agent2Agent protocol 1.0 and 0.3, SSE",
		Framing:  dialect.SSE,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}) },
	}
}

// reader counts what is asked: a task may want more than one input.
type reader struct {
	OpenRequests int `json:"asked,omitempty"`
}

const statusKey = "status"

// Read implements [canvas.Reader].
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	var in frame
	if err := canvas.Unmarshal(f.Data, &in); err != nil {
		return err
	}
	raw := json.RawMessage(f.Data)
	switch {
	case in.Error != nil:
		c.Fail(event.Error{Code: in.Error.Code.String(), Message: canvas.String(in.Error.Message)})
		return nil
	case in.Result != nil:
		raw = in.Result
	}
	var u update
	if err := json.Unmarshal(raw, &u); err != nil {
		return canvas.Fault("result", err)
	}
	return r.update(c, &u, raw)
}

func (r *reader) update(c *canvas.Canvas, u *update, raw json.RawMessage) error {
	unmarshal := func(v any) error {
		if err := json.Unmarshal(raw, v); err != nil {
			return canvas.Fault(u.Kind, err)
		}
		return nil
	}
	switch u.Kind {
	case "task":
		u.Task = &task{}
		if err := unmarshal(u.Task); err != nil {
			return err
		}
	case "status-update":
		u.Status = &statusUpdate{}
		if err := unmarshal(u.Status); err != nil {
			return err
		}
	case "artifact-update":
		u.Artifact = &artifactUpdate{}
		if err := unmarshal(u.Artifact); err != nil {
			return err
		}
	case "message":
		u.Message = raw
	}
	switch {
	case u.Task != nil:
		c.SetRun(u.Task.ID)
		for i := range u.Task.Artifacts {
			if err := r.artifact(c, &u.Task.Artifacts[i], false); err != nil {
				return err
			}
		}
		return r.status(c, &u.Task.Status)
	case u.Status != nil:
		c.SetRun(u.Status.TaskID)
		return r.status(c, &u.Status.Status)
	case u.Artifact != nil:
		c.SetRun(u.Artifact.TaskID)
		return r.artifact(c, &u.Artifact.Artifact, u.Artifact.Append)
	case len(u.Message) > 0 && u.Message[0] == '{':
		var m message
		if err := json.Unmarshal(u.Message, &m); err != nil {
			return canvas.Fault("message", err)
		}
		if err := r.say(c, "message", m.Parts); err != nil {
			return err
		}
		c.Complete("")
	default:
		c.Unknown(u.Kind)
	}
	return nil
}

// artifact takes a piece of an artifact, or all of it.
func (r *reader) artifact(c *canvas.Canvas, a *artifact, extend bool) error {
	key := "artifact " + a.ID
	if text := textOf(a.Parts); text != "" || c.Find(key) != nil {
		p, err := c.Prose(key, event.KindText)
		if err != nil {
			return err
		}
		if !extend {
			c.Set(p, event.Text, text)
		} else {
			for _, piece := range a.Parts {
				if err := c.Grow(p, event.Text, piece.Text); err != nil {
					return err
				}
			}
		}
	}
	return r.media(c, a.Parts)
}

// media adds a part for each file and data value; text is handled by the caller.
func (r *reader) media(c *canvas.Canvas, parts []part) error {
	for _, p := range parts {
		m := event.Media{URL: p.URL, MIME: p.MediaType, Name: p.Filename}
		raw := p.Raw
		if p.File != nil {
			m, raw = event.Media{URL: p.File.URI, MIME: p.File.MimeType, Name: p.File.Name}, p.File.Bytes
		}
		if raw != "" {
			m.URL = "data:" + m.MIME + ";base64," + raw
		}
		var err error
		switch {
		case m.URL != "":
			err = c.AddPart(event.Body{Kind: event.KindMedia, Media: &m})
		case len(p.Data) > 0 && string(p.Data) != "null":
			err = c.AddPart(event.Body{Kind: event.KindData, Data: p.Data})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say adds parts as a separate text, unless the task already shows the same text.
func (r *reader) say(c *canvas.Canvas, key string, parts []part) error {
	text := textOf(parts)
	for _, p := range c.Texts() {
		if p.Kind == event.KindText && p.Text.Is(text) {
			text = ""
		}
	}
	if text != "" {
		p, err := c.Prose(key, event.KindText)
		if err != nil {
			return err
		}
		c.Set(p, event.Text, text)
	}
	return r.media(c, parts)
}

func (r *reader) status(c *canvas.Canvas, s *status) error {
	var parts []part
	if s.Message != nil {
		parts = s.Message.Parts
	}
	state := s.state()
	switch state {
	case "working", "submitted":
		return showStatus(c, textOf(parts))
	case "completed":
		if err := r.say(c, "final", parts); err != nil {
			return err
		}
		c.Complete("")
	case "failed", "rejected":
		message := textOf(parts)
		if message == "" {
			message = "the task has " + state
			if state == "rejected" {
				message = "the agent rejected the task"
			}
		}
		c.Fail(event.Error{Code: "task_" + state, Message: message})
	case "canceled":
		c.End(event.Body{Outcome: event.Cancelled, Reason: state})
	case "input-required", "auth-required":
		r.OpenRequests++
		return c.Ask(event.Request{ID: "input-" + strconv.Itoa(r.OpenRequests), Kind: event.RequestInput, Prompt: question(state, textOf(parts))})
	default:
		c.Unknown(state)
	}
	return nil
}

func question(state, text string) string {
	switch {
	case text != "":
		return text
	case state == "auth-required":
		return "The agent requires you to log in elsewhere before it can continue."
	}
	return "The agent needs to know more."
}

func showStatus(c *canvas.Canvas, text string) error {
	p := c.Find(statusKey)
	if p == nil {
		if text == "" {
			return nil
		}
		var err error
		if p, err = c.Start(statusKey, event.Body{Kind: event.KindStatus, Join: event.JoinBlank}); err != nil {
			return err
		}
	}
	if text != "" {
		c.Set(p, event.Text, text)
	}
	return nil
}
