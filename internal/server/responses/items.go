// The items of an output: texts, reasoning, the agent's own tools, and requests to the client.
//
// An item for a text begins with its part, and grows. A tool has all its events at once, when it has run: a wait may come between its call and
// its result, and ends the response, but the clients refuse an output with an item that has not ended.

package responses

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// isText reports whether parts of a kind are texts.
func isText(k event.PartKind) bool {
	return k == event.KindText || k == event.KindStatus || k == event.KindReasoning
}

// visible returns the text of a part as the items have it: with the separator before it, since clients join the texts of all items without one.
func visible(a *answer.Answer, m *transcript.Message, p *transcript.Part) string {
	text := p.Text(event.Text)
	if text == "" || p.Kind != event.KindText && p.Kind != event.KindStatus {
		return text
	}
	hasText := func(p *transcript.Part) bool {
		return (p.Kind == event.KindText || p.Kind == event.KindStatus) && p.Text(event.Text) != ""
	}
	if i := slices.Index(m.Parts, p); slices.ContainsFunc(m.Parts[:i], hasText) {
		return p.Join + text
	}
	for _, earlier := range a.Messages() {
		if earlier == m {
			break
		}
		if earlier.Role == event.Assistant && slices.ContainsFunc(earlier.Parts, hasText) {
			return event.JoinBlank + text
		}
	}
	return text
}

// start begins the item of a text.
func (w *writer) start(s *partState) {
	if s.isBegun {
		return
	}
	w.register(s)
	// The content begins empty and gets its part by a separate event. The clients append the part to what the item has, and an item that
	// had one already would have two.
	initial := s.item("", statusInProgress)
	if s.kind == event.KindReasoning {
		initial.Summary = &[]content{}
		w.add(frame{Type: "response.output_item.added", Index: &s.index, Item: initial})
		part := summaryText("")
		w.add(frame{Type: "response.reasoning_summary_part.added", Index: &s.index, ItemID: initial.ID, Summary: new(int), Part: &part})
		return
	}
	initial.Content = &[]content{}
	w.add(frame{Type: "response.output_item.added", Index: &s.index, Item: initial})
	part := outputText("")
	w.add(frame{Type: "response.content_part.added", Index: &s.index, ItemID: initial.ID, Content: new(int), Part: &part})
}

// register gives the item of a part its index.
func (w *writer) register(s *partState) {
	s.isBegun, s.index = true, len(w.order)
	w.order, w.output = append(w.order, s), append(w.output, item{})
}

// delta returns the event for the end of a text.
func (w *writer) delta(s *partState, text string) frame {
	if s.kind == event.KindReasoning {
		return frame{Type: "response.reasoning_summary_text.delta", Index: &s.index, ItemID: s.id(), Summary: new(int), Delta: text}
	}
	return frame{Type: "response.output_text.delta", Index: &s.index, ItemID: s.id(), Content: new(int), Delta: text, Logprobs: &[]any{}}
}

// finishItem ends an item. Its events have the whole text, which corrects the client's if some of it was taken back.
func (w *writer) finishItem(a *answer.Answer, s *partState) {
	if !s.isBegun || s.isDone {
		return
	}
	s.isDone = true
	text := w.textOf(a, s)
	result := s.item(text, statusCompleted)
	if s.kind == event.KindReasoning {
		part := summaryText(text)
		w.add(frame{Type: "response.reasoning_summary_text.done", Index: &s.index, ItemID: result.ID, Summary: new(int), Text: &text})
		w.add(frame{Type: "response.reasoning_summary_part.done", Index: &s.index, ItemID: result.ID, Summary: new(int), Part: &part})
	} else {
		part := outputText(text)
		w.add(frame{Type: "response.output_text.done", Index: &s.index, ItemID: result.ID, Content: new(int), Text: &text, Logprobs: &[]any{}})
		w.add(frame{Type: "response.content_part.done", Index: &s.index, ItemID: result.ID, Content: new(int), Part: &part})
	}
	w.add(frame{Type: "response.output_item.done", Index: &s.index, Item: result})
}

// textOf returns the text of an item, without what earlier responses have.
func (w *writer) textOf(a *answer.Answer, s *partState) string {
	m, p := find(a, s.key)
	if p == nil {
		return ""
	}
	return strings.TrimPrefix(visible(a, m, p), s.base)
}

// id returns the id of the item.
func (s *partState) id() string {
	switch s.kind {
	case event.KindReasoning:
		return itemID(prefixReasoning, s.key)
	case event.KindTool:
		return itemID(prefixTool, s.key)
	}
	return itemID(prefixMessage, s.key)
}

// item returns the item of a text.
func (s *partState) item(text, status string) *item {
	if s.kind == event.KindReasoning {
		return &item{ID: s.id(), Type: "reasoning", Status: status, Summary: &[]content{summaryText(text)}}
	}
	return &item{ID: s.id(), Type: "message", Status: status, Role: string(event.Assistant), Content: &[]content{outputText(text)}}
}

// outputOf returns the whole output. Texts are in the order of the conversation, which differs from that of the events only if an agent has
// begun a message before it ended an earlier one, or has written a status.
func (w *writer) outputOf(a *answer.Answer) []item {
	list := append([]item{}, w.output...) // not nil: clients need a list
	// Items of requests and tools keep their places, so that a client finds them by the index of their events.
	var places []int // of texts
	for i, s := range w.order {
		if s != nil && s.kind != event.KindTool {
			places = append(places, i)
		}
	}
	for _, m := range a.Messages() {
		for _, p := range m.Parts {
			s := w.parts[partKey{m.ID, p.ID}]
			if s == nil || !s.isBegun {
				continue
			}
			if s.kind == event.KindTool {
				list[s.index] = *toolItem(s.id(), p)
				continue
			}
			status := statusCompleted
			if !s.isDone {
				status = statusInProgress
			}
			list[places[0]] = *s.item(w.textOf(a, s), status)
			places = places[1:]
		}
	}
	return list
}

// label is the name of the server that runs the agent's own tools.
const label = "leat"

// tool sends a tool that the agent has run itself, when it is complete. It is a call of a remote server, which clients only show: a function
// call would be run by them.
func (w *writer) tool(s *partState, p *transcript.Part) {
	s.isDone = true
	w.register(s)
	call := toolItem(s.id(), p)
	initial := *call
	initial.Status, initial.Output, initial.Error, initial.Arguments = statusInProgress, nil, nil, new(string)
	w.add(frame{Type: "response.output_item.added", Index: &s.index, Item: &initial})
	w.add(frame{Type: "response.mcp_call_arguments.done", Index: &s.index, ItemID: call.ID, Arguments: call.Arguments})
	if call.Error == nil {
		w.add(frame{Type: "response.mcp_call.completed", Index: &s.index, ItemID: call.ID})
	} else {
		w.add(frame{Type: "response.mcp_call.failed", Index: &s.index, ItemID: call.ID})
	}
	w.add(frame{Type: "response.output_item.done", Index: &s.index, Item: call})
}

// isOver reports whether a tool has its result.
func isOver(p *transcript.Part) bool {
	return p.Final || p.State != "" && p.State != event.PartRunning
}

// toolItem returns a tool that has run as an item.
func toolItem(id string, p *transcript.Part) *item {
	arguments, output := cmp.Or(p.Text(event.Input), "{}"), p.Text(event.Output)
	if text := p.Text(event.Stderr); text != "" {
		output = strings.TrimSuffix(output, "\n") + "\n" + text
	}
	output = strings.TrimPrefix(output, "\n")
	i := &item{ID: id, Type: "mcp_call", Status: statusCompleted, Label: label, Name: cmp.Or(p.Name, "tool"), Arguments: &arguments, Output: &output}
	if p.State == event.PartDone {
		return i
	}
	text := "the answer ended before the tool did"
	switch p.State {
	case event.PartDenied:
		text = "the tool was not allowed to run"
	case event.PartFailed:
		text = "the tool failed"
		if p.Error != nil {
			text = cmp.Or(p.Error.Message, text)
		}
	}
	i.Status, i.Error = statusFailed, &text
	return i
}

// ask sends a request of the turn: an approval, a call of a tool that the client runs, or a question as a text.
func (w *writer) ask(a *answer.Answer, r *event.Request) {
	if w.requests[r.ID] {
		return
	}
	w.requests[r.ID] = true
	call := requestItem(a, r)
	index := len(w.order)
	w.order, w.output = append(w.order, nil), append(w.output, *call)
	if call.Type == "function_call" {
		initial := *call
		initial.Status, initial.Arguments = statusInProgress, new(string)
		w.add(frame{Type: "response.output_item.added", Index: &index, Item: &initial})
		w.add(frame{Type: "response.function_call_arguments.delta", Index: &index, ItemID: call.ID, Delta: *call.Arguments})
		w.add(frame{Type: "response.function_call_arguments.done", Index: &index, ItemID: call.ID, Name: call.Name, Arguments: call.Arguments})
	} else {
		w.add(frame{Type: "response.output_item.added", Index: &index, Item: call})
	}
	w.add(frame{Type: "response.output_item.done", Index: &index, Item: call})
}

// requestItem returns the item for a request of a turn.
func requestItem(a *answer.Answer, r *event.Request) *item {
	turn := a.Turn().ID
	arguments := argumentsOf(a, r)
	switch {
	case r.Kind == event.RequestApproval:
		return &item{ID: requestID(prefixApproval, turn, r.ID), Type: "mcp_approval_request", Label: label, Name: cmp.Or(r.Tool, "tool"), Arguments: &arguments}
	case r.Tool != "":
		return &item{
			ID: requestID(prefixFunction, turn, r.ID), Type: "function_call", Status: statusCompleted, CallID: requestID(prefixCall, turn, r.ID),
			Name: r.Tool, Arguments: &arguments,
		}
	}
	text := cmp.Or(r.Prompt, "The agent waits for an answer.")
	if len(r.Options) > 0 {
		text += "\n\n- " + strings.Join(r.Options, "\n- ")
	}
	return &item{ID: requestID(prefixMessage, turn, r.ID), Type: "message", Status: statusCompleted, Role: string(event.Assistant), Content: &[]content{outputText(text)}}
}

// argumentsOf returns the arguments of a request's tool, as JSON: those of the tool part that it is about, or its data, or else its prompt.
func argumentsOf(a *answer.Answer, r *event.Request) string {
	for _, m := range slices.Backward(a.Messages()) {
		if p := m.Part(r.Part); r.Part != "" && p != nil && p.Text(event.Input) != "" {
			return p.Text(event.Input)
		}
	}
	if len(r.Data) > 0 {
		return string(r.Data)
	}
	if r.Prompt == "" {
		return "{}"
	}
	b, err := json.Marshal(map[string]string{"prompt": r.Prompt})
	if err != nil {
		return "{}" // texts can always be encoded
	}
	return string(b)
}
