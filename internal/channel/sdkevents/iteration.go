package sdkevents

import "slices"

// beginIteration begins an iteration and its message.
func (w *writer) beginIteration() {
	w.blocks, w.textIndex, w.text, w.open = 0, noBlock, "", nil
	w.add(frame{Type: iterStart, Iteration: new(w.iteration)})
	w.add(frame{Type: messageStart, Message: &message{Role: "assistant"}})
}

// endIteration ends the blocks, the message and the iteration.
func (w *writer) endIteration(reason string) {
	if w.textIndex != noBlock {
		w.add(frame{Type: blockStop, Index: new(w.textIndex)})
	}
	for _, c := range w.open {
		w.endBlock(c)
	}
	w.add(frame{Type: messageDelta, Delta: &delta{StopReason: reason}, Usage: &struct{}{}})
	w.add(frame{Type: messageStop})
	w.add(frame{Type: iterStop, Iteration: new(w.iteration)})
}

// stopReason returns the reason for the end of an iteration that another one follows.
func (w *writer) stopReason() string {
	if len(w.open) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// hasOpenCall reports whether a call of the iteration has no result. A change of the text waits for it, because the next iteration
// would separate the call from its result.
func (w *writer) hasOpenCall() bool {
	return !w.isEnding && slices.ContainsFunc(w.open, func(c *call) bool { return !c.isOver })
}

// hasCall reports whether one of the parts is a call of the iteration.
func (w *writer) hasCall(parts []keyedPart) bool {
	return slices.ContainsFunc(parts, func(p keyedPart) bool {
		c := w.calls[p.key]
		return c != nil && c.iteration == w.iteration
	})
}

// isBusy reports whether a text can't begin an iteration: a tool runs, or one of the parts after the text is a call without a
// result. An earlier call that has not run isn't waited for, because some agents report no results.
func (w *writer) isBusy(after []keyedPart) bool {
	return w.hasOpenCall() && slices.ContainsFunc(w.open, func(c *call) bool {
		return c.isRunning || !c.isOver && slices.ContainsFunc(after, func(p keyedPart) bool { return w.calls[p.key] == c })
	})
}

// beginBlock begins a block of the message and returns its index.
func (w *writer) beginBlock(b block) int {
	i := w.blocks
	w.blocks++
	w.add(frame{Type: blockStart, Index: new(i), Block: &b})
	return i
}
