// Tools that the agent runs itself.

package agui

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/transcript"
)

// syncTool sends what the client lacks of a tool. Its output is sent when it is complete, because a result can't grow.
func (w *writer) syncTool(state *partState, p *transcript.Part) {
	if !state.isBegun || !state.isOpen && !state.isComplete {
		w.add(frame{Type: callStart, CallID: state.key.id(), CallName: callName(p)})
		state.isBegun, state.isOpen = true, true
	}
	if delta := arguments(p)[len(state.content):]; delta != "" {
		w.add(frame{Type: callArgs, CallID: state.key.id(), Delta: delta})
		state.content += delta
	}
	if hasAllInput(p) {
		state.isComplete = true
		w.close(state)
	}
	if isComplete(p) && !state.hasResult {
		state.hasResult, state.result = true, resultOf(p)
		w.add(frame{Type: callResult, MessageID: resultID(state.key), CallID: state.key.id(), Role: roleTool, Content: jsonString(state.result)})
	}
}

// isComplete reports whether a tool has its result.
func isComplete(p *transcript.Part) bool {
	return p.Final || p.State != "" && p.State != event.PartRunning
}

// hasAllInput reports whether a tool has been called: its input doesn't grow any more.
func hasAllInput(p *transcript.Part) bool {
	return isComplete(p) || p.Len(event.Output) > 0 || p.Len(event.Stderr) > 0
}

// arguments returns the arguments of a call, which are JSON. A call without any has an empty object when it is complete.
func arguments(p *transcript.Part) string {
	input := p.Text(event.Input)
	if input == "" && hasAllInput(p) {
		return "{}"
	}
	return input
}

// callName returns the name of a tool.
func callName(p *transcript.Part) string { return cmp.Or(p.Name, "tool") }

// resultID returns the id of the message with the result of a call.
func resultID(k partKey) string { return k.id() + ".result" }

// Results of calls without an output.
const (
	textDenied     = "The tool was not allowed to run."
	textUnfinished = "The answer ended before the tool did."
)

// resultOf returns the result of a call for people and models.
//
// The protocol's event for a result has no field for a failure, so its text says that it is one.
func resultOf(p *transcript.Part) string {
	// Both streams of a command are one text, because a result can't have two.
	output := p.Text(event.Output)
	if text := p.Text(event.Stderr); text != "" {
		output = strings.TrimSuffix(output, "\n") + "\n" + text
	}
	switch p.State {
	case event.PartDone:
		return strings.TrimPrefix(output, "\n")
	case event.PartDenied:
		return textDenied
	case event.PartFailed:
		message := ""
		if p.Error != nil {
			message = p.Error.Message
		}
		return "Error: " + cmp.Or(message, strings.TrimSpace(output), "the tool failed")
	}
	return textUnfinished
}

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
		if len(p.Data) == 0 {
			return a, false
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
