// Tools that the agent runs itself.

package agui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// syncTool sends what the client lacks of a tool. Its output is sent when it is complete, because a result can't grow.
func (w *writer) syncTool(state *partState, p *transcript.Part) {
	if !state.isBegun || !state.isOpen && !state.isComplete {
		w.add(frame{Type: callStart, CallID: state.key.id(), CallName: chats.ToolName(p)})
		state.isBegun, state.isOpen = true, true
	}
	if delta := arguments(p)[len(state.content):]; delta != "" {
		w.add(frame{Type: callArgs, CallID: state.key.id(), Delta: delta})
		state.content = arguments(p)
	}
	if chats.HasAllInput(p) {
		state.isComplete = true
		w.close(state)
	}
	if chats.IsComplete(p) && !state.hasResult {
		state.hasResult, state.result = true, chats.ToolResult(p)
		w.add(frame{Type: callResult, MessageID: resultID(state.key), CallID: state.key.id(), Role: roleTool, Content: jsonString(state.result)})
	}
}

// arguments returns the arguments of a call, which are JSON. A call without any has an empty object when it is complete.
func arguments(p *transcript.Part) string {
	input := p.Text(event.Input)
	if input == "" && chats.HasAllInput(p) {
		return "{}"
	}
	return input
}

// resultID returns the id of the message with the result of a call.
func resultID(k partKey) string { return k.id() + ".result" }

// activity is the type and content of a message that isn't text.
type activity struct {
	kind    string
	content json.RawMessage // an object
}

// syncActivity sends a status, data or a file as an activity, which the client replaces as a whole.
func (w *writer) syncActivity(state *partState, p *transcript.Part) {
	a, ok := activityOf(p)
	if !ok || state.content == string(a.content) {
		return
	}
	state.isBegun, state.content = true, string(a.content)
	w.add(frame{Type: activitySnapshot, MessageID: state.key.id(), ActivityType: a.kind, Content: a.content})
}

// activityOf returns a part as an activity, or false if it has no content yet.
//
// The content of an activity must be an object, so data of another type is the value of one.
func activityOf(p *transcript.Part) (a activity, ok bool) {
	switch p.Kind {
	case event.KindStatus:
		s := struct {
			Text  string `json:"text"`
			State string `json:"state"` // running or done
		}{p.Text(event.Text), "running"}
		if p.Final {
			s.State = "done"
		}
		return activityWith("status", s)
	case event.KindMedia:
		f := struct {
			URL   string `json:"url,omitempty"`
			Type  string `json:"mimeType,omitempty"`
			Name  string `json:"name,omitempty"`
			Error string `json:"error,omitempty"` // why the URL is missing
		}{}
		if p.Media != nil {
			f.URL, f.Type, f.Name = p.Media.URL, p.Media.MIME, p.Media.Name
		}
		if p.Error != nil {
			f.URL, f.Error = "", p.Error.Message
		}
		if f.URL == "" && f.Error == "" {
			return a, false
		}
		return activityWith("file", f)
	case event.KindData:
		if !json.Valid(p.Data) {
			return a, false // none yet, or something that would end the client's run
		}
		if strings.HasPrefix(strings.TrimSpace(string(p.Data)), "{") {
			return activity{cmp.Or(p.Name, "data"), p.Data}, true
		}
		return activityWith(cmp.Or(p.Name, "data"), struct {
			Value json.RawMessage `json:"value"`
		}{p.Data})
	}
	return a, false
}

// activityWith returns an activity with an object. It returns false if the object can't be encoded, which only invalid data of an agent can cause.
func activityWith(kind string, content any) (activity, bool) {
	b, err := server.Marshal(content)
	return activity{kind, b}, err == nil
}
