package a2a

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/decoding"
)

// frame is a JSON-RPC response. If it has neither a result nor an error, the frame is itself the result.
type frame struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    json.Number     `json:"code"`
		Message json.RawMessage `json:"message"`
	} `json:"error"`
}

// update is a result. In version 1.0 exactly one of the pointers and Message is set. In 0.3 only Kind is, and reader.update sets the
// field that it names.
type update struct {
	Task     *task           `json:"task"`
	Message  json.RawMessage `json:"message"` // raw, so that a message of 0.3, which is the whole result, can be stored here too
	Status   *statusUpdate   `json:"statusUpdate"`
	Artifact *artifactUpdate `json:"artifactUpdate"`
	Kind     string          `json:"kind"`
}

// task is the whole state of a task at one time.
type task struct {
	ID        string     `json:"id"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts"`
}

// status is the state of a task, with the message that goes with it.
type status struct {
	State   string   `json:"state"`
	Message *message `json:"message"`
}

// statusUpdate is an event about the state of a task.
type statusUpdate struct {
	TaskID string `json:"taskId"`
	Status status `json:"status"`
}

// artifactUpdate is an event about a result of a task. Append says whether its parts continue the ones before.
type artifactUpdate struct {
	TaskID   string   `json:"taskId"`
	Artifact artifact `json:"artifact"`
	Append   bool     `json:"append"`
}

// artifact is a result of a task.
type artifact struct {
	ID    string `json:"artifactId"`
	Parts []part `json:"parts"`
}

// message is what the agent or the user says.
type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

// part is a text, a file or data. In version 1.0 the fields of a file are in the part itself; in 0.3 they are in File.
type part struct {
	Text      json.RawMessage `json:"text"`
	Data      json.RawMessage `json:"data"`
	URL       string          `json:"url"`
	Raw       string          `json:"raw"` // base64
	Filename  string          `json:"filename"`
	MediaType string          `json:"mediaType"`
	File      *struct {
		Name     string `json:"name"`
		MimeType string `json:"mimeType"`
		URI      string `json:"uri"`
		Bytes    string `json:"bytes"` // base64
	} `json:"file"`
}

// textOf returns the texts of parts, joined without a separator: A2A divides one text into parts at any character.
func textOf(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(decoding.String(p.Text))
	}
	return b.String()
}

// state returns the name of the state in the form of version 0.3, such as "input-required". Version 1.0 writes it as
// TASK_STATE_INPUT_REQUIRED.
func (s *status) state() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.State, "TASK_STATE_")), "_", "-")
}
