package a2a

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/internal/canvas"
	"github.com/leat-dev/leat/dialect/internal/decoding"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/base/jsonscan"
)

// name is that of the format, in configurations and requests.
const name = "a2a"

// The readers and writers of the types on the wire and of the state.
var (
	frames    = jsonscan.NewReader[frame]()
	results   = jsonscan.NewReader[update]()
	artifacts = jsonscan.NewReader[artifactUpdate]()
	states    = jsonscan.NewWriter[reader]()
)

// Dialect describes the streams of A2A.
func Dialect() dialect.Dialect {
	return dialect.Dialect{
		Name:     name,
		Summary:  "Agent2Agent protocol 1.0 and 0.3, SSE",
		Framing:  dialect.SSE,
		Progress: progress,
		Decoder:  func() dialect.Decoder { return canvas.NewDecoder(name, &reader{}, states) },
	}
}

// reader counts the task's requests for input. A task may ask several times, and A2A gives its requests no ids, so the decoder numbers
// them.
type reader struct {
	OpenRequests int `json:"asked,omitempty"`

	// The memory of the current frame.
	in      frame
	result  update
	changed artifactUpdate // of version 0.3
}

// statusKey is the key of the one status part, which shows the newest message of a working task.
const statusKey = "status"

// Read applies one frame: a JSON-RPC error, a JSON-RPC response, or a result without the response around it.
func (r *reader) Read(c *canvas.Canvas, f dialect.Frame) error {
	in, err := decoding.Read(frames, &r.in, f.Data)
	if err != nil {
		return err
	}
	raw := json.RawMessage(f.Data)
	switch {
	case in.Error != nil:
		c.Fail(event.Error{Code: in.Error.Code.String(), Message: decoding.String(in.Error.Message)})
		return nil
	case in.Result != nil:
		raw = in.Result
	}
	u, err := results.Read(&r.result, raw)
	if err != nil {
		return decoding.Fault("result", err)
	}
	return r.update(c, u, raw)
}

// update applies a result. It first converts a result of version 0.3 to the form of 1.0: there raw is itself the object that u.Kind names.
func (r *reader) update(c *canvas.Canvas, u *update, raw json.RawMessage) error {
	var object any
	switch u.Kind {
	case "task":
		u.Task = &task{}
		object = u.Task
	case "status-update":
		u.Status = &statusUpdate{}
		object = u.Status
	case "artifact-update":
		a, err := artifacts.Read(&r.changed, raw)
		if err != nil {
			return decoding.Fault(u.Kind, err)
		}
		u.Artifact = a
	case "message":
		u.Message = raw
	}
	if object != nil {
		if err := json.Unmarshal(raw, object); err != nil {
			return decoding.Fault(u.Kind, err)
		}
	}
	switch {
	case u.Task != nil:
		c.SetRun(u.Task.ID)
		for i := range u.Task.Artifacts {
			// A task is a snapshot, for example after a new subscription: each of its artifacts is complete.
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
			return decoding.Fault("message", err)
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

// artifact appends a piece to an artifact's text if extend is true. Otherwise a is the complete artifact, and its text replaces the
// current one; a complete artifact without text retracts it. Files and data are added in both cases.
func (r *reader) artifact(c *canvas.Canvas, a *artifact, extend bool) error {
	key := c.Key("artifact ", a.ID)
	isOpen := c.Find(key) != nil
	text := ""
	if !extend || !isOpen {
		text = textOf(a.Parts)
	}
	if text != "" || isOpen {
		p, err := c.Prose(key, event.KindText)
		if err != nil {
			return err
		}
		if !extend {
			c.Set(p, event.Text, text)
			return r.media(c, a.Parts)
		}
		// Each piece is appended as a JSON token, because a character may be split between two updates.
		for _, piece := range a.Parts {
			if err := c.Grow(p, event.Text, piece.Text); err != nil {
				return err
			}
		}
	}
	return r.media(c, a.Parts)
}

// media adds a part for each file and each data value among parts. It skips texts, which the caller has handled. A file is either at a URL
// or inside the frame in base64; the latter becomes a data: URL.
func (r *reader) media(c *canvas.Canvas, parts []part) error {
	for _, p := range parts {
		if p.URL == "" && p.Raw == "" && p.File == nil && len(p.Data) == 0 {
			continue
		}
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
			err = c.AddPart(event.Body{Kind: event.KindData, Data: bytes.Clone(p.Data)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say adds parts as a separate text. It leaves the text out if an artifact has the same one: many agents repeat their answer in the
// message of the final status.
func (r *reader) say(c *canvas.Canvas, key string, parts []part) error {
	text := textOf(parts)
	for _, p := range c.Texts() {
		if p.Kind == event.KindText && p.Text.Is(text) {
			text = ""
		}
	}
	if err := c.SetProse(key, event.KindText, text); err != nil {
		return err
	}
	return r.media(c, parts)
}

// messages has the texts that readers see if the status has no message, by the state of the task.
var messages = map[string]string{
	"failed":         "the task has failed",
	"rejected":       "the agent rejected the task",
	"input-required": "The agent needs to know more.",
	"auth-required":  "The agent requires you to log in elsewhere before it can continue.",
}

// status applies the state of the task. The states completed, failed, rejected and canceled end the turn. A state that this version
// doesn't know is counted and changes nothing.
func (r *reader) status(c *canvas.Canvas, s *status) error {
	var parts []part
	if s.Message != nil {
		parts = s.Message.Parts
	}
	text, state := textOf(parts), s.state()
	switch state {
	case "working", "submitted":
		return c.SetProse(statusKey, event.KindStatus, text)
	case "completed":
		if err := r.say(c, "final", parts); err != nil {
			return err
		}
		c.Complete("")
	case "failed", "rejected":
		c.Fail(event.Error{Code: "task_" + state, Message: cmp.Or(text, messages[state])})
	case "canceled":
		c.End(event.Body{Outcome: event.Cancelled, Reason: state})
	case "input-required", "auth-required":
		r.OpenRequests++
		return c.Ask(event.Request{ID: "input-" + strconv.Itoa(r.OpenRequests), Kind: event.RequestInput, Prompt: cmp.Or(text, messages[state])})
	default:
		c.Unknown(state)
	}
	return nil
}

// progress recognizes updates of a task. An agent repeats the state "working" to report that it works, and such an update may have no
// text, so that it gives no operations. Both versions are recognized, with and without the JSON-RPC response around the update.
func progress(f dialect.Frame) bool {
	var in struct {
		Result json.RawMessage `json:"result"`
	}
	raw := json.RawMessage(f.Data)
	if json.Unmarshal(raw, &in) == nil && in.Result != nil {
		raw = in.Result
	}
	var u update
	if json.Unmarshal(raw, &u) != nil {
		return false
	}
	switch u.Kind {
	case "task", "status-update", "artifact-update":
		return true
	}
	return u.Task != nil || u.Status != nil || u.Artifact != nil
}
