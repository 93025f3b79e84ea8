package vercel

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// writer turns the operations of an answer into chunks.
//
// It marks what operations change and, at the end of a batch, sends the difference between the answer and what the client has. So a client
// that resumes gets one chunk for each text, and text that was replaced within a batch is never sent.
type writer struct {
	sdk  sdk
	turn string
	// isOpen reports whether a request still waits for its answer. A replay contains requests that were answered since.
	isOpen func(request string) (bool, error)

	buf []byte // chunks that were not written yet
	err error  // the first of a chunk that can't be encoded

	parts []*partState // in the order of their start
	byKey map[partKey]*partState
	dirty []*partState

	message string // of the current step; empty if the next part begins a step
	step    int    // counts steps, from 1
	isFresh bool   // the current step is empty, and the next part defines its message
	isMuted bool   // the client has what follows
	// The messages in the order in which they got their first part, and the last of them that is in a step. isInterleaved is true if a part was
	// added to an earlier one: what is in which step then depends on the batches.
	order         map[string]int
	newest        int
	isInterleaved bool

	requests []*requestState
	calls    map[string]bool // ids of the calls that the client has from earlier responses
}

// newWriter returns the writer of one response. calls are those of the client's message, if the response continues it.
func newWriter(version sdk, turn string, calls map[string]bool, isOpen func(request string) (bool, error)) *writer {
	return &writer{sdk: version, turn: turn, calls: calls, isOpen: isOpen, byKey: map[partKey]*partState{}, order: map[string]int{}}
}

// add appends a chunk, unless the client has it.
func (w *writer) add(c chunk) {
	if w.isMuted || w.err != nil {
		return
	}
	w.buf, w.err = appendChunk(w.buf, c)
}

// start begins the response.
func (w *writer) start() { w.add(chunk{Type: "start", MessageID: w.turn}) }

// apply takes an operation, which was the last one that was applied to a.
func (w *writer) apply(a *answer.Answer, op *answer.Op) error {
	if w.isMuted && !op.IsReceived {
		w.isMuted = false
		w.continueMessage()
	}
	w.isMuted = op.IsReceived
	switch op.Type {
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.mark(partKey{op.Message, op.Part})
	case event.MessageAdd, event.MessageEnd:
		w.markMessage(a, op.Message)
	case event.TurnWait:
		w.sync(a)
		if err := w.ask(a, op.Get().Request); err != nil {
			return err
		}
	case event.TurnResume:
		w.sync(a)
		w.closeRequest(op.Get().Answer)
	case event.TurnEnd:
		for _, p := range w.parts {
			w.mark(p.key) // the end of a turn ends its parts
		}
		w.sync(a)
		w.end(a.Turn())
	}
	if w.isMuted {
		w.sync(a) // the earlier response may have sent each state
	}
	return w.err
}

// flush completes the chunks of a batch. It reports whether they end the response, because the turn waits.
func (w *writer) flush(a *answer.Answer) (isPaused bool, err error) {
	w.sync(a)
	if isPaused, err = w.hasOpen(a.Turn()); err == nil && isPaused {
		err = w.pause()
	}
	return isPaused, errors.Join(err, w.err)
}

// take returns the chunks so far, which the next call overwrites. A request in them can't be the last chunk any more, and was answered.
func (w *writer) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	for _, r := range w.requests {
		r.isPending = false
	}
	return b
}

// mark notes that a part has changed.
func (w *writer) mark(k partKey) {
	p := w.byKey[k]
	if p == nil {
		p = &partState{key: k, index: len(w.parts)}
		w.byKey[k] = p
		if _, ok := w.order[k.message]; !ok {
			w.order[k.message] = len(w.order)
		}
		w.parts = append(w.parts, p)
	}
	if !p.isDirty {
		p.isDirty = true
		w.dirty = append(w.dirty, p)
	}
}

// markMessage marks all parts of a message, whose end is also theirs.
func (w *writer) markMessage(a *answer.Answer, id string) {
	for _, m := range a.Messages() {
		if m.ID == id {
			for _, p := range m.Parts {
				w.mark(partKey{id, p.ID})
			}
		}
	}
}

// sync sends what the client lacks.
func (w *writer) sync(a *answer.Answer) {
	for len(w.dirty) > 0 {
		list := w.dirty
		w.dirty = nil
		slices.SortFunc(list, func(x, y *partState) int { return cmp.Compare(x.index, y.index) })
		for i, p := range list {
			p.isDirty = false
			if w.syncPart(a, p) {
				continue
			}
			for _, next := range list[i+1:] {
				next.isDirty = false
			}
			w.resetStep()
			for _, next := range list[i+1:] {
				w.mark(next.key)
			}
			break
		}
	}
}

// syncPart sends what the client lacks of one part. It returns false if the step has to be reset first.
func (w *writer) syncPart(a *answer.Answer, state *partState) bool {
	m, p := find(a, state.key)
	if p == nil || m.Role != event.Assistant {
		return true
	}
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		return w.syncText(state, p)
	case event.KindTool:
		w.syncTool(state, p)
	case event.KindStatus:
		w.syncData(state, "data-status", statusOf(p))
	case event.KindData:
		w.syncData(state, dataName(p), safeJSON(p.Data))
	case event.KindMedia:
		w.syncMedia(state, p)
	}
	return true
}

// syncText sends the end of a text. Text that was taken back can be replaced only in version 7, and only in the current step. In all other
// cases the client keeps its text, and the response will end with an error unless the final text begins with it.
func (w *writer) syncText(state *partState, p *transcript.Part) bool {
	text := p.Text(event.Text)
	delta, isGrown := strings.CutPrefix(text, state.text)
	switch {
	case state.isUnclear:
		return true
	case !isGrown && w.isMuted && w.isInterleaved && p.Kind == event.KindText:
		state.isContradicted, state.isUnclear = true, true
	case !isGrown && w.sdk >= sdk7 && state.step == w.step && state.text != state.fixed && w.message != "":
		return false
	case !isGrown:
		state.isContradicted = p.Kind == event.KindText
		state.isUnclear = w.isMuted
	case delta != "":
		state.isContradicted = false
		if !state.isOpen {
			w.begin(state)
			w.add(chunk{Type: textChunk(p, "start"), ID: state.key.id()})
			state.isOpen = true
		}
		w.add(chunk{Type: textChunk(p, "delta"), ID: state.key.id(), Delta: delta})
		state.text = text
	default:
		state.isContradicted = false
	}
	if p.Final && state.isOpen {
		w.closeText(state, p)
	}
	return true
}

// closeText ends the client's text. If more text follows, it is in another part of the client's message.
func (w *writer) closeText(state *partState, p *transcript.Part) {
	w.add(chunk{Type: textChunk(p, "end"), ID: state.key.id()})
	state.isOpen = false
}

// closeTexts ends all texts of the client, because a response can't continue those of an earlier one.
func (w *writer) closeTexts(a *answer.Answer) {
	for _, state := range w.parts {
		if _, p := find(a, state.key); state.isOpen && p != nil {
			w.closeText(state, p)
		}
	}
}

// find returns a part of an answer, or nil.
func find(a *answer.Answer, k partKey) (*transcript.Message, *transcript.Part) {
	for _, m := range slices.Backward(a.Messages()) {
		if m.ID == k.message {
			return m, m.Part(k.part)
		}
	}
	return nil, nil
}
