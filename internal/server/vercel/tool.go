// Tools that the agent runs itself.

package vercel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// syncTool sends what the client lacks of a tool. The marks dynamic and providerExecuted keep the page from running the tool too.
//
// The client gets preliminary outputs whole, so the next one is sent when the output has doubled.
func (w *writer) syncTool(state *partState, p *transcript.Part) {
	if state.isCompleted && state.outputSize == outputSize(p) {
		return
	}
	input := p.Text(event.Input)
	if !state.isBegun {
		w.beginTool(state, p)
	}
	if !state.hasInput && state.input != input {
		delta, isGrown := strings.CutPrefix(input, state.input)
		if !isGrown {
			w.beginTool(state, p) // the client forgets the input
			delta = input
		}
		w.add(chunk{Type: "tool-input-delta", ToolCallID: state.key.id(), InputTextDelta: delta})
		state.input = input
	}
	isComplete := p.Final || p.State != "" && p.State != event.PartRunning
	size := outputSize(p)
	if isComplete || size > 0 {
		w.completeInput(state, p)
	}
	switch {
	case isComplete:
		w.add(w.result(state.key.id(), p))
		state.isCompleted, state.outputSize = true, size
	case size > 0 && size >= 2*state.outputSize:
		w.add(chunk{Type: "tool-output-available", ToolCallID: state.key.id(), Output: outputOf(p), Preliminary: true, Dynamic: true, ProviderExecuted: true})
		state.outputSize = size
	}
}

// beginTool begins a call, or begins it again without its input.
func (w *writer) beginTool(state *partState, p *transcript.Part) {
	w.begin(state)
	c := chunk{Type: "tool-input-start", ToolCallID: state.key.id(), ToolName: toolName(p.Name), Dynamic: true, ProviderExecuted: true}
	if w.sdk >= sdk6 {
		c.Title = p.Title
	}
	w.add(c)
	state.input, state.isCall = "", true
}

// hasStreamingInput reports whether a call of the current step has no complete input.
func (w *writer) hasStreamingInput() bool {
	return slices.ContainsFunc(w.parts, func(state *partState) bool { return state.isCall && state.step == w.step && !state.hasInput })
}

// completeInput sends the complete input of a call. It is sent once: in a later step, the client would take it for another call.
func (w *writer) completeInput(state *partState, p *transcript.Part) {
	if state.hasInput {
		return
	}
	c := chunk{Type: "tool-input-available", ToolCallID: state.key.id(), ToolName: toolName(p.Name), Input: inputOf(p), Dynamic: true, ProviderExecuted: true}
	if w.sdk >= sdk6 {
		c.Title = p.Title
	}
	w.add(c)
	state.hasInput, state.input = true, p.Text(event.Input)
}

// completeInputs completes the inputs of all calls that the client has, because a response can't continue those of an earlier one.
func (w *writer) completeInputs(a *answer.Answer) {
	for _, state := range w.parts {
		if _, p := find(a, state.key); p != nil && p.Kind == event.KindTool && state.isBegun {
			w.completeInput(state, p)
		}
	}
}

// result returns the chunk that ends a call.
func (w *writer) result(call string, p *transcript.Part) chunk {
	c := chunk{Type: "tool-output-available", ToolCallID: call, Dynamic: true, ProviderExecuted: true}
	switch p.State {
	case event.PartDenied:
		return w.denied(call)
	case event.PartFailed:
		c.Type, c.ErrorText = "tool-output-error", toolError(p)
	case event.PartDone:
		c.Output = outputOf(p)
	default: // the turn has ended
		c.Type, c.ErrorText = "tool-output-error", textUnfinished
	}
	return c
}

// denied returns the chunk for a call that a person refused.
func (w *writer) denied(call string) chunk {
	if w.sdk >= sdk6 {
		return chunk{Type: "tool-output-denied", ToolCallID: call}
	}
	return chunk{Type: "tool-output-error", ToolCallID: call, ErrorText: textDenied, Dynamic: true, ProviderExecuted: true}
}

// toolError says why a tool failed.
func toolError(p *transcript.Part) string {
	message := ""
	if p.Error != nil {
		message = p.Error.Message
	}
	return cmp.Or(message, strings.TrimSpace(p.Text(event.Stderr)), strings.TrimSpace(p.Text(event.Output)), "The tool failed.")
}

// outputSize returns the length of everything that a tool has written.
func outputSize(p *transcript.Part) int { return p.Len(event.Output) + p.Len(event.Stderr) }

// toolName returns the name of a tool, which is part of a type in the SDK.
func toolName(name string) string { return cmp.Or(name, "tool") }

// inputOf returns the input of a tool. A tool without one has an empty object, as in the SDK.
func inputOf(p *transcript.Part) json.RawMessage {
	if p.Len(event.Input) == 0 {
		return json.RawMessage("{}")
	}
	return jsonOf(p.Text(event.Input))
}

// outputOf returns the output of a tool: its text or value, or an object of both texts if it has written to stderr.
func outputOf(p *transcript.Part) json.RawMessage {
	if p.Len(event.Stderr) == 0 {
		return jsonOf(p.Text(event.Output))
	}
	data, _ := json.Marshal(struct {
		Output string `json:"output"`
		Stderr string `json:"stderr"`
	}{p.Text(event.Output), p.Text(event.Stderr)}) // two texts
	return data
}
