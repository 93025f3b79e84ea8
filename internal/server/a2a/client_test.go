package a2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// client is what a client has of a task: it applies the events of one stream. It is strict, and knows the events by their JSON only.
type client struct {
	isOld     bool
	id        string // of the task
	state     string // as in 1.0
	status    string // with its message
	artifacts map[string]*made
	wasOver   bool // in the first event
	hasEnded  bool // the last status was received
	events    int
}

// made is an artifact that a client has.
type made struct {
	text   string
	other  string // JSON of files and data
	name   string
	isLast bool
}

// String returns what a client has. An artifact whose text was taken back counts as none, because the protocol can't remove one.
func (c *client) String() string {
	var lines []string
	for id, a := range c.artifacts {
		if a.text+a.other != "" {
			lines = append(lines, fmt.Sprintf("%s %q %s%q", id, a.name, a.other, a.text))
		}
	}
	slices.Sort(lines)
	return c.status + "\n" + strings.Join(lines, "\n")
}

// text returns the text of the answer.
func (c *client) text() string {
	if a := c.artifacts[textArtifact]; a != nil {
		return a.text
	}
	return ""
}

// update is an event of a stream, with the fields of all kinds.
type update struct {
	Kind      string
	ID        string
	TaskID    string
	ContextID string
	Status    json.RawMessage
	Artifacts []json.RawMessage
	Artifact  json.RawMessage
	Append    *bool
	LastChunk *bool
	Final     *bool
}

// take applies one event as it was sent.
func (c *client) take(event []byte) error {
	data, ok := bytes.CutPrefix(event, []byte("data: "))
	if data = bytes.TrimSuffix(data, []byte("\n\n")); !ok || bytes.Contains(data, []byte("\n")) {
		return fmt.Errorf("no event: %q", event)
	}
	var r struct {
		Version string `json:"jsonrpc"`
		ID      int
		Result  json.RawMessage
	}
	if err := json.Unmarshal(data, &r); err != nil || r.Version != "2.0" || r.ID != 7 {
		return fmt.Errorf("no response of the request: %v", err)
	}
	u, err := c.parse(r.Result)
	if err != nil {
		return err
	}
	c.events++
	switch {
	case c.hasEnded:
		return errors.New("it follows the last status")
	case (u.Kind == "task") != (c.id == ""):
		return errors.New("the task comes first, and once")
	case u.ContextID != "context" || c.id != "" && u.TaskID != c.id:
		return errors.New("another task")
	}
	switch u.Kind {
	case "task":
		return c.whole(u)
	case "status-update":
		return c.report(u)
	}
	return c.add(u)
}

// parse returns an event with the kind that 0.3 has for it.
func (c *client) parse(result json.RawMessage) (u update, err error) {
	kind := ""
	if !c.isOld {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(result, &fields); err != nil || len(fields) != 1 {
			return u, fmt.Errorf("no event of 1.0: %v", err)
		}
		for name, value := range fields {
			result, kind = value, map[string]string{"task": "task", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}[name]
		}
	}
	if err := json.Unmarshal(result, &u); err != nil {
		return u, err
	}
	if c.isOld == (u.Kind == "") {
		return u, fmt.Errorf("the field kind is %q", u.Kind)
	}
	if !c.isOld {
		u.Kind = kind
	}
	if !slices.Contains([]string{"task", "status-update", "artifact-update"}, u.Kind) {
		return u, fmt.Errorf("the kind is %q", u.Kind)
	}
	return u, nil
}

// whole takes a task.
func (c *client) whole(u update) error {
	c.id, c.artifacts = u.ID, map[string]*made{}
	for _, a := range u.Artifacts {
		id, m, err := c.artifact(a)
		if err != nil {
			return err
		}
		if c.artifacts[id] != nil {
			return fmt.Errorf("artifact %s twice", id)
		}
		c.artifacts[id] = m
	}
	if err := c.setStatus(u.Status); err != nil {
		return err
	}
	c.wasOver = isOver(c.state)
	return nil
}

// report takes a new status.
func (c *client) report(u update) error {
	before := c.state
	if err := c.setStatus(u.Status); err != nil {
		return err
	}
	c.hasEnded = isOver(c.state)
	switch {
	case (u.Final != nil) != c.isOld || c.isOld && *u.Final != c.hasEnded:
		return errors.New("the flag final is wrong")
	case before == c.state && !c.hasEnded || c.state == stateSubmitted:
		return fmt.Errorf("state %s after %s", c.state, before)
	}
	// An artifact of the first event has no chunks, unless more of it follows.
	if text := c.artifacts[textArtifact]; c.hasEnded && !c.wasOver && text != nil && text.isLast == (c.state == stateInput) {
		return fmt.Errorf("last chunk %v before %s", text.isLast, c.state)
	}
	return nil
}

// setStatus notes a status.
func (c *client) setStatus(status json.RawMessage) error {
	var s struct {
		State     string
		Timestamp string
		Message   *struct {
			Role, Kind string
			TaskID     string
			Parts      []json.RawMessage
		}
	}
	if err := json.Unmarshal(status, &s); err != nil {
		return err
	}
	if c.isOld {
		s.State = "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(s.State, "-", "_"))
	}
	if !slices.Contains(states[2:len(states)-2], s.State) {
		return fmt.Errorf("state %q", s.State)
	}
	c.state, c.status = s.State, s.State+" "+s.Timestamp
	if s.Message == nil {
		return nil
	}
	if want := map[bool]string{false: roleAgent, true: "agent"}[c.isOld]; s.Message.Role != want || s.Message.TaskID != c.id {
		return fmt.Errorf("a message of the role %q, task %q", s.Message.Role, s.Message.TaskID)
	}
	text, other, err := c.parts(s.Message.Parts)
	c.status += fmt.Sprintf(" %q %s", text, other)
	return err
}

// add takes an update of an artifact.
func (c *client) add(u update) error {
	id, m, err := c.artifact(u.Artifact)
	if err != nil {
		return err
	}
	if u.Append == nil || u.LastChunk == nil {
		return errors.New("an update without its flags")
	}
	known := c.artifacts[id]
	switch {
	case id != textArtifact && (*u.Append || !*u.LastChunk):
		return errors.New("a file or data in pieces")
	case id != textArtifact && known != nil && *known == made{m.text, m.other, m.name, true}:
		return errors.New("an update without a change")
	case id == textArtifact && known != nil && known.isLast:
		return errors.New("it follows the last chunk")
	case *u.Append && known == nil:
		return errors.New("appended to nothing")
	case *u.Append && m.text == "" && !*u.LastChunk:
		return errors.New("an empty piece")
	case !*u.Append && id == textArtifact && known != nil && strings.HasPrefix(m.text, known.text):
		return errors.New("a replace that takes nothing back")
	}
	if *u.Append {
		m.text = known.text + m.text
	}
	m.isLast = *u.LastChunk
	c.artifacts[id] = m
	return nil
}

// artifact returns an artifact and its id.
func (c *client) artifact(b json.RawMessage) (id string, m *made, err error) {
	var a struct {
		ArtifactID, Name string
		Parts            []json.RawMessage
	}
	if err := json.Unmarshal(b, &a); err != nil || a.ArtifactID == "" || len(a.Parts) == 0 {
		return "", nil, fmt.Errorf("no artifact: %v", err)
	}
	m = &made{name: a.Name}
	m.text, m.other, err = c.parts(a.Parts)
	return a.ArtifactID, m, err
}

// parts returns the text of parts, and what else they have.
func (c *client) parts(parts []json.RawMessage) (text, other string, err error) {
	for _, b := range parts {
		var p struct {
			Kind string
			Text *string
		}
		if err := json.Unmarshal(b, &p); err != nil {
			return "", "", err
		}
		if c.isOld == (p.Kind == "") || c.isOld && (p.Text != nil) != (p.Kind == "text") {
			return "", "", fmt.Errorf("a part of the kind %q: %s", p.Kind, b)
		}
		if p.Text != nil {
			text += *p.Text
		} else {
			other += string(b) + " "
		}
	}
	return text, other, nil
}
