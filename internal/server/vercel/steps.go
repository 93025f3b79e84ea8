// Steps: the stretches of a message that the SDK treats as one round of an agent.
//
// A step matters to the SDK in three ways. It sends answers by itself when all calls of the last step have one. It finds the input of a call in the
// current step only. And version 7 can take back the current step, but nothing before it.

package vercel

// continueMessage begins a step in a response that continues a message. Without it, the SDK would take the calls before it for those of the last
// step, and would send their outputs again.
func (w *writer) continueMessage() {
	w.message = ""
	w.beginStep("")
	w.isFresh = true
}

// begin notes that the client gets a part. Each message of the turn is a step, unless a call of the current step still gets its input: in a
// later step, the client would take that for another call.
func (w *writer) begin(state *partState) {
	if w.message != state.key.message && !w.hasStreamingInput() {
		w.beginStep(state.key.message)
	}
	w.isInterleaved = w.isInterleaved || w.order[state.key.message] < w.newest
	w.newest = max(w.newest, w.order[state.key.message])
	if state.step != w.step {
		state.fixed = state.text
	}
	state.isBegun, state.step = true, w.step
}

// beginStep ends the current step and begins another one.
func (w *writer) beginStep(message string) {
	if !w.isFresh {
		w.endStep()
		w.add(chunk{Type: "start-step"})
		w.step++
	}
	w.message, w.isFresh = message, false
}

// endStep ends the current step, if there is one. The SDK ignores this chunk, but other readers of the format don't.
func (w *writer) endStep() {
	if w.message != "" {
		w.add(chunk{Type: "finish-step"})
		w.message = ""
	}
}

// resetStep removes the current step from the client, which then gets it again.
func (w *writer) resetStep() {
	w.add(chunk{Type: "reset-step"})
	for _, p := range w.parts {
		p.isOpen = false // the client can't continue any text that it has
		if p.step == w.step && p.isBegun {
			p.reset()
			w.mark(p.key)
		}
	}
}
