// Parts that the client gets as a whole: statuses, data and files.

package vercel

import (
	"cmp"
	"encoding/json"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// syncData sends a part that the client replaces as a whole.
func (w *writer) syncData(state *partState, name string, data json.RawMessage) {
	if len(data) == 0 || state.isBegun && state.text == string(data) {
		return
	}
	if !state.isBegun {
		w.begin(state)
	}
	state.text = string(data)
	w.add(chunk{Type: name, ID: state.key.id(), Data: data})
}

// syncMedia sends a file once. A file that could not be stored is sent as data, because the SDK has no chunk for it.
func (w *writer) syncMedia(state *partState, p *transcript.Part) {
	if p.Error != nil {
		data, _ := json.Marshal(fileError{Name: mediaName(p.Media), Error: p.Error.Message}) // two texts
		w.syncData(state, "data-file-error", data)
		return
	}
	if state.isBegun || p.Media == nil || p.Media.URL == "" {
		return
	}
	w.begin(state)
	w.add(chunk{Type: "file", URL: p.Media.URL, MediaType: mediaType(p.Media)})
}

// fileError is the content of a data part for a file that is missing.
type fileError struct {
	Name  string `json:"name,omitempty"`
	Error string `json:"error"`
}

// status is the content of a data part for a status.
type status struct {
	Text  string `json:"text"`
	State string `json:"state"` // running or done
}

// statusOf returns the content of a status. It is in the answer's visible text, so pages show it like text.
func statusOf(p *transcript.Part) json.RawMessage {
	s := status{Text: p.Text(event.Text), State: "running"}
	if p.Final {
		s.State = "done"
	}
	data, _ := json.Marshal(s) // two texts
	return data
}

// mediaName returns the name of a file, or "" if it has none.
func mediaName(m *event.Media) string {
	if m == nil {
		return ""
	}
	return m.Name
}

// mediaType returns the media type of a file. The SDK ends a chat whose file has none.
func mediaType(m *event.Media) string { return cmp.Or(m.MIME, "application/octet-stream") }
