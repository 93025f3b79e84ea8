package sdkevents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// call is a tool call that the reader has.
type call struct {
	id        string
	name      string
	index     int // of its block
	iteration int
	isStopped bool // its block has ended
	isStarted bool // tool_execution_start was sent
	isRunning bool // the tool runs, whether the reader knows it or not
	isOver    bool // tool_execution_result was sent

	// What the reader has.
	input, output, stderr string
}

// beginCall begins the block of a call. The writer makes an id if the agent gave none, or one that another call has.
func (w *writer) beginCall(p keyedPart) *call {
	id := p.Call
	for n := len(w.calls) + 1; id == "" || w.ids[id]; n++ {
		id = fmt.Sprint("call-", n)
	}
	w.ids[id] = true
	c := &call{id: id, name: p.Name, iteration: w.iteration}
	c.index = w.beginBlock(c.block())
	w.calls[p.key] = c
	w.open = append(w.open, c)
	return c
}

func (c *call) block() block { return block{Type: "tool_use", ID: c.id, Name: c.name} }

// endBlock ends the block of a call, which has its input.
func (w *writer) endBlock(c *call) {
	if !c.isStopped {
		c.isStopped = true
		w.add(frame{Type: blockStop, Index: new(c.index)})
	}
}

// updateCall brings a call up to date. isLast says that no part follows it.
func (w *writer) updateCall(c *call, p *transcript.Part, isLast bool) {
	if c.isOver {
		return
	}
	c.name = cmp.Or(p.Name, c.name)
	c.isRunning = p.State == event.PartRunning
	w.updateInput(c, p.Text(event.Input))
	if p.State == "" {
		return
	}
	hasOutput := p.Len(event.Output)+p.Len(event.Stderr) > 0
	if !c.isStarted && c.isRunning && isLast && !hasOutput && !isComplete(c.input) {
		return
	}
	w.endBlock(c)
	if !c.isStarted {
		c.isStarted = true
		f := c.frame(toolStart)
		f.Iteration = new(w.iteration)
		w.add(f)
	}
	w.updateOutput(c, p)
	if !c.isRunning {
		w.endCall(c, p)
	}
}

// isComplete reports whether the input of a call is probably complete. Text that doesn't begin like JSON has no end to wait for.
func isComplete(input string) bool {
	input = strings.TrimSpace(input)
	return input != "" && (!strings.ContainsRune("{[", rune(input[0])) || json.Valid([]byte(input)))
}

// updateInput sends what the input has grown by. If it changed, or its block has ended, the block starts again with the whole input.
// The blocks of an earlier iteration can't be changed.
func (w *writer) updateInput(c *call, input string) {
	if input == c.input || c.iteration != w.iteration {
		return
	}
	added, isGrowth := strings.CutPrefix(input, c.input)
	if !isGrowth || c.isStopped {
		w.add(frame{Type: blockStart, Index: new(c.index), Block: new(c.block())})
		added, c.isStopped = input, false
	}
	if added != "" {
		w.add(frame{Type: blockDelta, Index: new(c.index), Delta: &delta{Type: "input_json_delta", Input: added}})
	}
	c.input = input
}

// updateOutput sends what the output has grown by, or the whole output if it changed. A changed stderr follows as a whole, because only
// the output can be replaced.
func (w *writer) updateOutput(c *call, p *transcript.Part) {
	w.output(c, &c.stderr, p.Text(event.Stderr), new(true))
	output := p.Text(event.Output)
	if strings.HasPrefix(output, c.output) {
		w.output(c, &c.output, output, new(false))
	} else if output != "" {
		c.output = ""
		w.output(c, &c.output, output, nil)
	}
}

// output sends what follows *has in text, or the whole text if it doesn't continue *has.
func (w *writer) output(c *call, has *string, text string, isStderr *bool) {
	added := strings.TrimPrefix(text, *has)
	if *has = text; added == "" {
		return
	}
	f := c.frame(toolOutput)
	f.Output, f.IsStderr = added, isStderr
	w.add(f)
}

// endCall sends the result of a call.
func (w *writer) endCall(c *call, p *transcript.Part) {
	c.isOver = true
	r := result{Output: p.Text(event.Output)}
	if p.State != event.PartDone {
		r.Metadata = &metadata{Error: "the tool failed", IsError: true}
		switch {
		case p.Error != nil && p.Error.Message != "":
			r.Metadata.Error = p.Error.Message
		case p.State == event.PartDenied:
			r.Metadata.Error = "a person refused the call"
		}
	}
	f := c.frame(toolResult)
	f.Output = r
	w.add(f)
}

// frame returns an event of the execution without content.
func (c *call) frame(kind string) frame { return frame{Type: kind, ToolUseID: c.id, Name: c.name} }
