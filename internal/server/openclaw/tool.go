// The tools of a run.

package openclaw

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// hasToolEvent reports whether the client doesn't have all of a tool that can be state.
func (r *run) hasToolEvent(m *transcript.Message, p *transcript.Part, isFollowed bool) bool {
	state := r.part(m, p)
	if !state.isBegun { // the input is sent as a whole
		return isFollowed || p.Final || p.Len(event.Output) > 0 || isOver(p) || json.Valid([]byte(p.Text(event.Input)))
	}
	return !state.isEnded && (isOver(p) || outputOf(p) != state.text)
}

// isOver reports whether a tool has its result, or will never have one.
func isOver(p *transcript.Part) bool {
	return p.Final || p.State == event.PartDone || p.State == event.PartFailed || p.State == event.PartDenied
}

// syncTool queues the events of a tool: its start with its input, its output so far, and its result.
func (r *run) syncTool(m *transcript.Message, p *transcript.Part) {
	state := r.part(m, p)
	data := toolData{Name: cmp.Or(p.Name, "tool"), ToolCallID: callID(m, p)}
	if !state.isBegun {
		state.isBegun = true
		data.Phase, data.Args = "start", argumentsOf(p)
		r.agent("tool", p.At, data, len(data.Args))
		data.Args = nil
	}
	output := outputOf(p)
	switch {
	case state.isEnded:
	case isOver(p):
		state.isEnded = true
		isError := p.State == event.PartFailed || p.State == event.PartDenied
		data.Phase, data.Result, data.IsError = "result", &toolResult{[]block{textBlock(output)}}, &isError
		r.agent("tool", cmp.Or(p.EndAt, p.At), data, len(output))
	case output != state.text:
		data.Phase, data.Partial = "update", &toolResult{[]block{textBlock(output)}}
		r.agent("tool", p.At, data, len(output))
	}
	state.text = output
}

// callID returns the id of a tool's call.
func callID(m *transcript.Message, p *transcript.Part) string { return cmp.Or(p.Call, m.ID+":"+p.ID) }

// argumentsOf returns the input of a tool as an object.
func argumentsOf(p *transcript.Part) json.RawMessage {
	input := p.Text(event.Input)
	if strings.HasPrefix(strings.TrimSpace(input), "{") && json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	if input == "" {
		return json.RawMessage("{}")
	}
	b, err := json.Marshal(map[string]string{"input": input})
	if err != nil {
		return json.RawMessage("{}") // impossible: it is a text
	}
	return b
}

// outputOf returns the output of a tool, or why it has none.
func outputOf(p *transcript.Part) string {
	output := p.Text(event.Output)
	if stderr := p.Text(event.Stderr); stderr != "" {
		output = strings.TrimSuffix(output, "\n")
		if output != "" {
			output += "\n"
		}
		output += stderr
	}
	if output == "" && p.Error != nil {
		output = p.Error.Message
	}
	if output == "" && p.State == event.PartDenied {
		output = "denied"
	}
	return output
}
