// A run as one client has it, and the events for what the client doesn't have.

package openclaw

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// run is what a client has of a turn.
type run struct {
	s        *session
	id, turn string
	firstSeq int64
	// Of its last event.
	seq     int64
	isBegun bool
	isEnded bool

	// The visible text.
	text     string
	thinking string
	parts    map[string]*sentPart
	// The open ones.
	requests map[string]event.RequestKind

	// Only during update.
	t     *transcript.Transcript
	queue []queued
}

// sentPart is what a client has of a part.
type sentPart struct {
	text string
	// Of a tool.
	isBegun, isEnded bool
}

func newRun(s *session, t *transcript.Transcript, turn *transcript.Turn) *run {
	return &run{
		s: s, id: runID(t, turn), turn: turn.ID, firstSeq: turn.FirstSeq, parts: map[string]*sentPart{}, requests: map[string]event.RequestKind{},
	}
}

// seqsPerEvent is by how much the numbers of a run's events may grow with one event of the log.
const seqsPerEvent = 8

// next returns the number of the next event. Clients drop events whose number isn't above the last one, also after they have reconnected, so
// it grows with the log.
func (r *run) next() int64 {
	r.seq = max(r.seq+1, (r.t.Seq-r.firstSeq)*seqsPerEvent)
	return r.seq
}

// chat queues a chat event.
func (r *run) chat(e chatEvent, size int) {
	e.RunID, e.SessionKey, e.AgentID, e.Seq = r.id, r.s.key.full, r.s.key.agent, r.next()
	r.queue = append(r.queue, queued{"chat", e, size})
}

// agent queues an agent event.
func (r *run) agent(stream string, at int64, data any, size int) {
	r.queue = append(r.queue, queued{"agent", agentEvent{
		RunID: r.id, SessionKey: r.s.key.full, AgentID: r.s.key.agent, SessionID: r.s.conversation, Stream: stream, Data: data, Seq: r.next(), TS: at,
	}, size})
}

// update returns the events for what has changed in a turn.
func (r *run) update(t *transcript.Transcript, turn *transcript.Turn) []queued {
	r.t = t
	if !r.isBegun && turn.StartedAt != 0 {
		r.isBegun = true
		r.agent("lifecycle", turn.StartedAt, lifecycle{Phase: "start", StartedAt: turn.StartedAt}, 0)
	}
	r.closeRequests(turn)
	text := r.visible(t, turn)
	r.syncParts(t, turn, text)
	r.sendText(text, turn)
	r.openRequests(turn)
	if !turn.Unfinished() {
		r.end(turn)
	}
	queue := r.queue
	r.t, r.queue = nil, nil
	return queue
}

// visible returns the text that the client is to have. For a client that can't replace text, it ends before a status that may still change.
func (r *run) visible(t *transcript.Transcript, turn *transcript.Turn) string {
	if !r.s.c.isAppending || !turn.Unfinished() {
		return t.Visible(turn.ID)
	}
	var texts []string
	for _, m := range t.Messages {
		if m.Turn != turn.ID || m.Role != event.Assistant {
			continue
		}
		text := ""
		for _, p := range m.Parts {
			part := p.Text(event.Text)
			if p.Kind == event.KindStatus && !p.Final {
				return joinTexts(texts, text)
			}
			if part == "" || p.Kind != event.KindText && p.Kind != event.KindStatus {
				continue
			}
			if text != "" {
				text += p.Join
			}
			text += part
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return joinTexts(texts, "")
}

// syncParts queues events for the parts of the turn's messages, in their order. A tool comes after the text before it.
func (r *run) syncParts(t *transcript.Transcript, turn *transcript.Turn, visibleText string) {
	var before, thoughts []string
	for _, m := range t.Messages {
		if m.Turn != turn.ID || m.Role != event.Assistant {
			continue
		}
		visible := ""
		for i, p := range m.Parts {
			switch p.Kind {
			case event.KindText, event.KindStatus:
				text := p.Text(event.Text)
				r.sendThoughts(thoughts, p.At)
				r.syncText(m, p, text)
				if visible != "" && text != "" {
					visible += p.Join
				}
				visible += text
			case event.KindReasoning:
				if text := p.Text(event.Text); text != "" {
					thoughts = append(thoughts, text)
				}
			case event.KindTool:
				if r.hasToolEvent(m, p, i < len(m.Parts)-1) {
					r.sendThoughts(thoughts, p.At)
					if text := joinTexts(before, visible); strings.HasPrefix(text, r.text) && strings.HasPrefix(visibleText, text) {
						r.sendText(text, turn)
					}
					r.syncTool(m, p)
				}
			}
		}
		if visible != "" {
			before = append(before, visible)
		}
	}
	r.sendThoughts(thoughts, turn.StartedAt)
}

// joinTexts returns the visible text of several messages and of the beginning of another one.
func joinTexts(before []string, visible string) string {
	if visible != "" {
		before = append(before[:len(before):len(before)], visible)
	}
	return strings.Join(before, event.JoinBlank)
}

// part returns what the client has of a part.
func (r *run) part(m *transcript.Message, p *transcript.Part) *sentPart {
	key := m.ID + "/" + p.ID
	if r.parts[key] == nil {
		r.parts[key] = &sentPart{}
	}
	return r.parts[key]
}

// syncText queues an agent event for a text. Each text is an item, whose text is sent as a whole.
func (r *run) syncText(m *transcript.Message, p *transcript.Part, text string) {
	state := r.part(m, p)
	if state.text == text {
		return
	}
	data := textData{Text: text, Delta: text, ItemID: m.ID + ":" + p.ID}
	if delta, ok := strings.CutPrefix(text, state.text); ok {
		data.Delta = delta
	} else {
		data.Replace = true
	}
	state.text = text
	r.agent("assistant", p.At, data, len(text))
}

// sendThoughts queues an agent event for the reasoning of the run.
func (r *run) sendThoughts(thoughts []string, at int64) {
	text := strings.Join(thoughts, event.JoinBlank)
	if text == r.thinking {
		return
	}
	delta, ok := strings.CutPrefix(text, r.thinking)
	if !ok {
		delta = text
	}
	r.thinking = text
	r.agent("thinking", at, textData{Text: text, Delta: delta, Replace: !ok}, len(text))
}

// sendText queues a chat event for the visible text of the run.
func (r *run) sendText(text string, turn *transcript.Turn) {
	if text == r.text {
		return
	}
	e := chatEvent{State: "delta", Message: r.answer(text, turn)}
	delta, ok := strings.CutPrefix(text, r.text)
	if !ok {
		delta, e.Replace = text, true
	}
	e.DeltaText = &delta
	r.text = text
	r.chat(e, len(text))
}

// answer returns a message with the current text of the answer.
func (r *run) answer(text string, turn *transcript.Turn) *message {
	return &message{Role: "assistant", Content: []block{textBlock(text)}, Timestamp: cmp.Or(turn.EndedAt, turn.StartedAt)}
}

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

// end queues the events at the end of a turn.
func (r *run) end(turn *transcript.Turn) {
	for id, kind := range r.requests {
		r.resolved(id, kind)
	}
	r.isEnded = true
	life := lifecycle{Phase: "end", StartedAt: turn.StartedAt, EndedAt: turn.EndedAt}
	e := chatEvent{State: "final", StopReason: "stop", Usage: usageOf(turn.Usage)}
	if r.text != "" {
		e.Message = r.answer(r.text, turn)
	}
	switch turn.Outcome {
	case event.Completed:
		if turn.Reason == "length" || turn.Reason == "max_tokens" {
			e.StopReason = "length"
		}
	case event.Cancelled:
		life.Status, life.Aborted = "cancelled", true
		e.State, e.StopReason = "aborted", "rpc"
	default:
		text := errorOf(turn)
		life.Phase, life.Error = "error", text
		e.State, e.StopReason, e.ErrorMessage, e.ErrorKind = "error", "error", text, errorKind(turn)
	}
	r.agent("lifecycle", turn.EndedAt, life, 0)
	r.chat(e, len(r.text))
}

// removalEvents returns the events for a turn that is no longer in the conversation.
func (r *run) removalEvents() []queued {
	r.t = &transcript.Transcript{}
	for id, kind := range r.requests {
		r.resolved(id, kind)
	}
	r.chat(chatEvent{State: "aborted", StopReason: "rpc"}, 0)
	return r.queue
}

// errorOf returns why a turn failed.
func errorOf(turn *transcript.Turn) string {
	switch {
	case turn.Error != nil && turn.Error.Message != "":
		return turn.Error.Message
	case turn.Outcome == event.Interrupted:
		return "The answer was interrupted. Send the message again."
	}
	return "The agent could not answer."
}

// errorKind returns the protocol's kind of a failure.
func errorKind(turn *transcript.Turn) string {
	code := ""
	if turn.Error != nil {
		code = strings.ToLower(turn.Error.Code)
	}
	switch {
	case strings.Contains(code, "rate_limit"), strings.HasPrefix(code, "429"):
		return "rate_limit"
	case strings.Contains(code, "timeout"):
		return "timeout"
	case strings.Contains(code, "context_length"):
		return "context_length"
	}
	return "unknown"
}
