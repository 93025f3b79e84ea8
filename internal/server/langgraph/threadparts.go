// What the thread stream sends of each kind of part.

package langgraph

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// syncText sends the end of a text, or the whole text if some of it was taken back.
func (w *threadWriter) syncText(a *answer.Answer, c *cell, p *transcript.Part) {
	text := p.Text(event.Text)
	if !c.isBegun && text == "" {
		return
	}
	hasChanged := c.content != text
	isFinal := p.Final && !c.isDone
	if !hasChanged && !isFinal {
		return
	}
	if hasChanged {
		w.open(a, c.draft)
	}
	suffix, isAppended := strings.CutPrefix(text, c.content)
	switch {
	case !c.isBegun:
		c.isBegun = true
		w.message(c.draft, c.draft.eventID("block", c), messageData{Event: "content-block-start", Index: &c.index, Content: c.block(p)})
		w.delta(c, p, suffix)
	case hasChanged && isAppended:
		w.delta(c, p, suffix)
	}
	c.content = text
	c.isDone = p.Final
	if c.draft.isOpen && (isFinal || !isAppended) {
		w.wholeBlock(c, p)
	}
	if p.Kind == event.KindStatus {
		w.custom(c, p)
	}
}

// delta sends what follows the client's text.
func (w *threadWriter) delta(c *cell, p *transcript.Part, text string) {
	d := &delta{Type: "text-delta", Text: text}
	if p.Kind == event.KindReasoning {
		d = &delta{Type: "reasoning-delta", Reasoning: text}
	}
	w.message(c.draft, w.changeID("delta", c), messageData{Event: "content-block-delta", Index: &c.index, Delta: d})
}

// wholeBlock sends a block as a whole.
func (w *threadWriter) wholeBlock(c *cell, p *transcript.Part) {
	w.message(c.draft, w.changeID("done", c), messageData{Event: "content-block-finish", Index: &c.index, Content: c.block(p)})
}

// changeID returns the id of an event of a block that the current operation causes.
func (w *threadWriter) changeID(kind string, c *cell) string {
	return c.draft.eventID(kind, c) + ":" + w.seqText()
}

// syncTool sends the call in its message, what the tool does, and its result as a message.
func (w *threadWriter) syncTool(a *answer.Answer, c *cell, p *transcript.Part) {
	call := callID(c.key.message, p)
	input := p.Text(event.Input)
	switch {
	case !c.isBegun:
		w.open(a, c.draft)
		c.isBegun = true
		w.message(c.draft, c.draft.eventID("block", c), messageData{Event: "content-block-start", Index: &c.index, Content: c.block(p)})
	case !c.isCalled && len(input) >= 2*len(c.content) && input != c.content:
		// The whole input is sent each time. It is sent when it has doubled, so that a long one isn't sent too often.
		w.open(a, c.draft)
		c.content = input
		fields := &block{Type: "tool_call_chunk", Args: jsonOf(input)}
		w.message(c.draft, w.changeID("delta", c), messageData{Event: "content-block-delta", Index: &c.index, Delta: &delta{Type: "block-delta", Fields: fields}})
	}
	if !c.isCalled && chats.HasAllInput(p) {
		w.open(a, c.draft)
		c.isCalled, c.content = true, input
		w.wholeBlock(c, p)
		w.emit(methodTools, "called:"+call, "", toolData{Event: "tool-started", Call: call, Name: chats.ToolName(p), Input: argsOf(p)})
	}
	if output := chats.ToolOutput(p); c.isCalled && !c.hasResult {
		if suffix, ok := strings.CutPrefix(output, c.output); ok && suffix != "" {
			w.emit(methodTools, "output:"+call+":"+w.seqText(), "", toolData{Event: "tool-output-delta", Call: call, Delta: suffix})
		}
		c.output = output
	}
	if c.hasResult || !chats.IsComplete(p) {
		return
	}
	c.hasResult = true
	result := chats.ToolResult(p)
	if p.State == event.PartDone {
		w.emit(methodTools, "finished:"+call, "", toolData{Event: "tool-finished", Call: call, Output: &result})
	} else {
		w.emit(methodTools, "finished:"+call, "", toolData{Event: "tool-error", Call: call, Message: result})
	}
	w.result(call, result)
}

// result sends the result of a call as a message, which is complete at once.
func (w *threadWriter) result(call, text string) {
	d := &draft{id: call + ".result", opens: 1, lane: toolsLane}
	c := &cell{draft: d}
	b := &block{Type: "text", Text: &text}
	w.message(d, d.eventID("start"), messageData{Event: "message-start", Role: typeTool, ID: d.id, Call: call})
	w.message(d, d.eventID("block", c), messageData{Event: "content-block-start", Index: &c.index, Content: b})
	w.message(d, d.eventID("done", c), messageData{Event: "content-block-finish", Index: &c.index, Content: b})
	w.message(d, d.eventID("finish"), messageData{Event: "message-finish"})
}

// syncWhole sends a file or data, which have no deltas.
func (w *threadWriter) syncWhole(a *answer.Answer, c *cell, p *transcript.Part) {
	b, ok := blockOf(p)
	if !ok {
		return
	}
	content := string(jsonOf(b))
	if c.isBegun && c.content == content {
		return
	}
	w.open(a, c.draft)
	if !c.isBegun {
		w.message(c.draft, c.draft.eventID("block", c), messageData{Event: "content-block-start", Index: &c.index, Content: &b})
	}
	c.isBegun, c.isDone, c.content = true, true, content
	w.wholeBlock(c, p)
	w.custom(c, p)
}
