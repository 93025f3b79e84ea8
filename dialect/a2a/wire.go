package a2a

import (
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/dialect/internal/canvas"
)

// frame is a response of JSON-RPC, or its result.
type frame struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    json.Number     `json:"code"`
		Message json.RawMessage `json:"message"`
	} `json:"error"`
}

// update is one of what a stream brings: 1.0 names it by the key that holds it, 0.3 by its kind.
type update struct {
	Task     *task           `json:"task"`
	Message  json.RawMessage `json:"message"` // a message, or in 0.3 nothing
	Status   *statusUpdate   `json:"statusUpdate"`
	Artifact *artifactUpdate `json:"artifactUpdate"`
	Kind     string          `json:"kind"`
}

type task struct {
	ID        string     `json:"id"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts"`
}

type status struct {
	State   string   `json:"state"`
	Message *message `json:"message"`
}

type statusUpdate struct {
	TaskID string `json:"taskId"`
	Status status `json:"status"`
}

type artifactUpdate struct {
	TaskID   string   `json:"taskId"`
	Artifact artifact `json:"artifact"`
	Append   bool     `json:"append"`
}

type artifact struct {
	ID    string `json:"artifactId"`
	Parts []part `json:"parts"`
}

type message struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

// part is a text, a file or data, in the shape of either version.
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

// textOf is the text of parts.
func textOf(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(canvas.String(p.Text))
	}
	return b.String()
}

// state is the name of a state, the same of both versions.
func (s *status) state() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.State, "TASK_STATE_")), "_", "-")
}
