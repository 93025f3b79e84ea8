// The objects of the protocol.

package a2a

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// States of tasks, as in 1.0. Version 0.3 has the same words in lower case, with hyphens.
const (
	stateSubmitted = "TASK_STATE_SUBMITTED"
	stateWorking   = "TASK_STATE_WORKING"
	stateInput     = "TASK_STATE_INPUT_REQUIRED"
	stateCompleted = "TASK_STATE_COMPLETED"
	stateFailed    = "TASK_STATE_FAILED"
	stateCanceled  = "TASK_STATE_CANCELED"
)

// Roles of messages.
const (
	roleUser  = "ROLE_USER"
	roleAgent = "ROLE_AGENT"
)

// part is a part of a message or an artifact: a text, a file by its URL or its bytes in base64, or data. Kind and File are set for 0.3 only, which
// has the kinds text, file and data.
type part struct {
	Kind      string          `json:"kind,omitempty"`
	Text      *string         `json:"text,omitempty"`
	URL       string          `json:"url,omitempty"`
	Raw       string          `json:"raw,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Filename  string          `json:"filename,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	File      *file           `json:"file,omitempty"`
}

// file is the file of a part in 0.3.
type file struct {
	URI   string `json:"uri,omitempty"`
	Bytes string `json:"bytes,omitempty"`
	Name  string `json:"name,omitempty"`
	MIME  string `json:"mimeType,omitempty"`
}

// message is a message of the user, or what the agent says about the state of a task.
type message struct {
	Kind    string `json:"kind,omitempty"`
	ID      string `json:"messageId"`
	Context string `json:"contextId,omitempty"`
	Task    string `json:"taskId,omitempty"`
	Role    string `json:"role"`
	Parts   []part `json:"parts"`
}

// status is the state of a task, since a time in RFC 3339.
type status struct {
	State   string   `json:"state"`
	Message *message `json:"message,omitempty"`
	Time    string   `json:"timestamp,omitempty"`
}

// artifact is something that the agent has made.
type artifact struct {
	ID    string `json:"artifactId"`
	Name  string `json:"name,omitempty"`
	Parts []part `json:"parts"`
}

// equals reports whether two states of a file or of data are the same. An agent may change both, for example the data of a chart.
func (a artifact) equals(b artifact) bool {
	p, q := a.Parts[0], b.Parts[0] // files and data have one part
	return a.Name == b.Name && p.URL == q.URL && p.Raw == q.Raw && p.Filename == q.Filename && p.MediaType == q.MediaType && bytes.Equal(p.Data, q.Data)
}

// task is a turn.
type task struct {
	Kind      string     `json:"kind,omitempty"`
	ID        string     `json:"id"`
	Context   string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts,omitempty"`
	History   []message  `json:"history,omitempty"`
}

// statusUpdate reports a new state. IsFinal is a field of 0.3 only: in 1.0 the end of the stream says the same.
type statusUpdate struct {
	Kind    string `json:"kind,omitempty"`
	Task    string `json:"taskId"`
	Context string `json:"contextId"`
	Status  status `json:"status"`
	IsFinal *bool  `json:"final,omitempty"`
}

// artifactUpdate adds to an artifact, or replaces it if IsAppend is false.
type artifactUpdate struct {
	Kind     string   `json:"kind,omitempty"`
	Task     string   `json:"taskId"`
	Context  string   `json:"contextId"`
	Artifact artifact `json:"artifact"`
	IsAppend bool     `json:"append"`
	IsLast   bool     `json:"lastChunk"`
}

// forVersion returns the result that is a task: a field of an object in 1.0, and the object itself in 0.3.
func (t task) forVersion(isOld bool) any {
	if !isOld {
		return map[string]any{"task": t}
	}
	return t.old()
}

// old returns the task in the shape of 0.3.
func (t task) old() task {
	t.Kind, t.Status = "task", t.Status.old()
	t.Artifacts, t.History = append([]artifact(nil), t.Artifacts...), append([]message(nil), t.History...)
	for i := range t.Artifacts {
		t.Artifacts[i].Parts = oldParts(t.Artifacts[i].Parts)
	}
	for i := range t.History {
		t.History[i] = t.History[i].old()
	}
	return t
}

func (u statusUpdate) forVersion(isOld bool) any {
	if !isOld {
		return map[string]any{"statusUpdate": u}
	}
	isFinal := u.Status.State != stateSubmitted && u.Status.State != stateWorking
	u.Kind, u.Status, u.IsFinal = "status-update", u.Status.old(), &isFinal
	return u
}

func (u artifactUpdate) forVersion(isOld bool) any {
	if !isOld {
		return map[string]any{"artifactUpdate": u}
	}
	u.Kind, u.Artifact.Parts = "artifact-update", oldParts(u.Artifact.Parts)
	return u
}

func (s status) old() status {
	s.State = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.State, "TASK_STATE_")), "_", "-")
	if s.Message != nil {
		m := s.Message.old()
		s.Message = &m
	}
	return s
}

func (m message) old() message {
	m.Kind, m.Role, m.Parts = "message", strings.ToLower(strings.TrimPrefix(m.Role, "ROLE_")), oldParts(m.Parts)
	return m
}

// oldParts returns parts in the shape of 0.3, in which data must be an object.
func oldParts(parts []part) []part {
	list := make([]part, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Text != nil:
			p.Kind = "text"
		case len(p.Data) > 0:
			p.Kind = "data"
			if p.Data[0] != '{' {
				p.Data = json.RawMessage(`{"value":` + string(p.Data) + `}`)
			}
		default:
			p = part{Kind: "file", File: &file{URI: p.URL, Bytes: p.Raw, Name: p.Filename, MIME: p.MediaType}}
		}
		list = append(list, p)
	}
	return list
}

// textPart returns a part with a text.
func textPart(s string) part { return part{Text: &s} }

// textArtifact is the id of the artifact with the visible text.
const textArtifact = "answer"

// visible returns the visible text of a turn, with what may still be replaced.
func visible(a *answer.Answer) string {
	var texts []string
	for _, m := range a.Messages() {
		if text := m.Visible(); text != "" && m.Role == event.Assistant {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, event.JoinBlank)
}

// fileArtifacts returns the files and the data of a turn that are complete. base is the origin of the gateway for the client.
func fileArtifacts(a *answer.Answer, base string) (list []artifact) {
	for _, m := range a.Messages() {
		for _, p := range m.Parts {
			result := artifact{ID: m.ID + "." + p.ID}
			switch {
			case p.Kind == event.KindMedia && p.Media != nil && p.Media.URL != "" && p.Error == nil:
				result.Name, result.Parts = p.Media.Name, []part{filePart(p.Media, base)}
			case p.Kind == event.KindData && json.Valid(p.Data):
				result.Name, result.Parts = p.Name, []part{{Data: p.Data}}
			default:
				continue
			}
			list = append(list, result)
		}
	}
	return list
}

// filePart returns a file as a part: with its bytes if the agent has sent them inside the message, or with its address.
func filePart(m *event.Media, base string) part {
	p := part{URL: m.URL, Filename: m.Name, MediaType: m.MIME}
	if head, data, ok := strings.Cut(m.URL, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		p.URL, p.Raw = "", data
	} else if strings.HasPrefix(m.URL, "/") {
		p.URL = base + m.URL // stored at the gateway, which requires the client's token
	}
	return p
}

// artifactsOf returns everything that a turn has made so far.
func artifactsOf(a *answer.Answer, base string) (list []artifact) {
	if text := visible(a); text != "" {
		list = append(list, artifact{ID: textArtifact, Parts: []part{textPart(text)}})
	}
	return append(list, fileArtifacts(a, base)...)
}

// statusOf returns the state of a turn.
func statusOf(turn *transcript.Turn, context string) status {
	at, s := turn.StartedAt, status{State: stateWorking}
	says := func(id string, parts ...part) {
		s.Message = &message{ID: id, Context: context, Task: turn.ID, Role: roleAgent, Parts: parts}
	}
	switch {
	case turn.State == transcript.TurnQueued:
		at, s.State = turn.QueuedAt, stateSubmitted
	case turn.Unfinished() && len(turn.Requests) > 0:
		r := turn.Requests[0]
		at, s.State = r.At, stateInput
		says(turn.ID+"."+r.ID, requestParts(&r.Request)...)
	case turn.Unfinished():
	case turn.Outcome == event.Completed:
		at, s.State = turn.EndedAt, stateCompleted
	case turn.Outcome == event.Cancelled:
		at, s.State = turn.EndedAt, stateCanceled
	default:
		text := "The agent could not answer."
		if turn.Error != nil && turn.Error.Message != "" {
			text = turn.Error.Message
		}
		at, s.State = turn.EndedAt, stateFailed
		says(turn.ID+".error", textPart(text))
	}
	if at > 0 {
		s.Time = time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return s
}

// requestParts returns a question as the parts of a message: a text for people, and data for programs.
func requestParts(r *event.Request) []part {
	prompt := r.Prompt
	if prompt == "" {
		prompt = "The agent waits for an answer."
	}
	parts := []part{textPart(prompt)}
	if data, err := json.Marshal(r); err == nil { // else the agent's data isn't JSON
		parts = append(parts, part{Data: data})
	}
	return parts
}

// isOver reports whether a stream ends with a state.
func isOver(state string) bool { return state != stateSubmitted && state != stateWorking }
