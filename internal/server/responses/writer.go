package responses

import (
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

const (
	// stride is the distance between the sequence numbers of operations. An operation becomes several events, whose numbers are in between.
	stride = 1000
	// maxFrames is how many events an operation may become, with room for those of one more part. Only the last operation may exceed it.
	maxFrames = stride - 16
	// maxNumber is the largest number of an operation. Clients read sequence numbers as floating-point numbers.
	maxNumber = 1<<53/stride - 1
)

// writer turns the operations of an answer into the events of one response.
//
// Each operation becomes events at once, and not the difference since the last batch, so the events and their numbers depend on the log alone.
// Text that was taken back isn't corrected before its item ends, since the format has no event for that.
type writer struct {
	object *object
	from   int64 // number of the operation with which the response begins
	after  int64 // sequence number of the last event that the client has, or -1

	buf []byte
	err error // the first of an event that can't be encoded

	// The number of an operation and a count of its events make a sequence number. Events that the client has are counted too, so that those
	// after them have the same numbers as in a reading from the beginning.
	number, count int64 // of the current operation, and its events so far
	lastNumber    int64 // sequence number of the newest event
	hasBegun      bool
	hasEnded      bool
	isRunning     bool // the client knows that the turn has started
	parts         map[partKey]*partState
	order         []*partState // in the order of their output index; nil for an item that isn't a part
	// Requests aren't parts of a message, so their items are stored here. The places of parts are empty until the end, when they are filled
	// from the answer.
	output   []item // those of requests, by output index
	open     []*event.Request
	requests map[string]bool // requests that are items of this response
}

// partKey identifies a part within a conversation.
type partKey struct{ message, part string }

// partState is what the client has of a part.
type partState struct {
	key   partKey
	kind  event.PartKind
	index int // of its item
	// A text that grows across a wait is two items. The second one has only what was added, and base is what it leaves out.
	base     string // what earlier responses of the turn have
	text     string // what the client has
	isBegun  bool
	isDone   bool
	isBroken bool // some of the client's text was taken back
}

// newWriter returns the writer of a response whose client has the events up to a sequence number.
func newWriter(o *object, from, after int64) *writer {
	return &writer{object: o, from: from, after: after, lastNumber: after, parts: map[partKey]*partState{}, requests: map[string]bool{}}
}

// add appends an event, unless the client has it.
func (w *writer) add(f frame) {
	f.Number = w.number*stride + w.count
	w.count++
	if f.Number <= w.after || w.err != nil {
		return
	}
	w.lastNumber = f.Number
	w.buf, w.err = appendFrame(w.buf, f.Type, &f)
}

// take returns the events so far, which the next call overwrites.
func (w *writer) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// apply takes an operation, which was the last one that was applied to a. After the end of the response it does nothing.
func (w *writer) apply(a *answer.Answer, op *answer.Op) {
	isResume := op.Type == event.TurnResume
	if w.hasBegun && !w.hasEnded && isResume && len(w.open) > 0 {
		// A person or a client has answered. What follows is part of the next response, even if this one has not seen the wait before.
		w.pause(a)
	}
	if w.hasEnded {
		return
	}
	switch {
	case op.Type == event.TurnWait:
		w.open = append(w.open, op.Body.Request)
	case isResume:
		w.open = slices.DeleteFunc(w.open, func(r *event.Request) bool { return r.ID == op.Body.Answer.ID })
	}
	if op.Number < w.from {
		return
	}
	w.number, w.count = op.Number, 0
	w.object.describe(a)
	if !w.hasBegun {
		if w.from > 0 && (op.Number != w.from || !isResume) {
			w.err = errNoResponse // only an answer to a wait begins another response of the turn
			return
		}
		w.begin(a)
	}
	if !w.isRunning && a.Turn().State != transcript.TurnQueued {
		w.isRunning = true
		w.add(frame{Type: "response.in_progress", Response: w.object})
	}
	switch op.Type {
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.sync(a, partKey{op.Message, op.Part}, op.Type == event.PartReplace, false)
	case event.MessageAdd, event.MessageEnd:
		w.syncMessage(a, op.Message)
	case event.TurnWait:
		w.ask(a, op.Body.Request)
	case event.TurnEnd:
		w.finish(a)
		w.object.end(a.Turn())
		w.end(a)
	}
}

// begin sends the beginning of the response. What the parts have now belongs to earlier responses.
func (w *writer) begin(a *answer.Answer) {
	w.hasBegun = true
	if w.from > 0 {
		for _, m := range a.Messages() {
			for _, p := range m.Parts {
				k := partKey{m.ID, p.ID}
				w.parts[k] = &partState{key: k, kind: p.Kind, base: visible(a, m, p), isDone: p.Final || p.Kind == event.KindTool && isOver(p)}
			}
		}
	}
	w.add(frame{Type: "response.created", Response: w.object})
	if w.object.Status == statusQueued {
		w.add(frame{Type: "response.queued", Response: w.object})
	}
}

// pause ends the response because the turn waits for the client.
func (w *writer) pause(a *answer.Answer) {
	// A client that answers one of two requests gets the other one again in the next response, which is complete without the first.
	for _, r := range w.open {
		w.ask(a, r) // asked before this response began, and still open
	}
	w.close(a)
	w.object.Status = statusCompleted
	w.end(a)
}

// end sends the last event, which has the whole output: clients take it for the truth.
func (w *writer) end(a *answer.Answer) {
	w.hasEnded = true
	w.object.Output = w.outputOf(a)
	w.add(frame{Type: w.object.event(), Response: w.object})
}

// finish completes all parts, also those for which an operation had too little room.
func (w *writer) finish(a *answer.Answer) {
	for _, m := range a.Messages() {
		for _, p := range m.Parts {
			w.sync(a, partKey{m.ID, p.ID}, false, true)
		}
	}
	w.close(a)
}

// close ends all items.
func (w *writer) close(a *answer.Answer) {
	for _, s := range w.order {
		if s != nil {
			w.finishItem(a, s)
		}
	}
}

// syncMessage sends what a whole message has, as far as there is room.
func (w *writer) syncMessage(a *answer.Answer, id string) {
	for _, m := range a.Messages() {
		if m.ID != id {
			continue
		}
		for _, p := range m.Parts {
			if w.count > maxFrames {
				return
			}
			w.sync(a, partKey{m.ID, p.ID}, false, true)
		}
	}
}

// sync sends what the client lacks of a part. isReplaced says that what it has isn't what the part begins with, and isFinal that the operation ends
// the part. A part may begin after its message has ended, so the end of the message says nothing about it.
func (w *writer) sync(a *answer.Answer, k partKey, isReplaced, isFinal bool) {
	m, p := find(a, k)
	if p == nil {
		return
	}
	s := w.parts[k]
	if s == nil {
		s = &partState{key: k, kind: p.Kind}
		w.parts[k] = s
	}
	isFinal = isFinal || p.Final
	switch {
	case s.isDone:
	case p.Kind == event.KindTool:
		if isFinal || isOver(p) {
			w.tool(s, p)
		}
	case p.Kind == event.KindStatus && !isFinal:
		// The next status would replace it.
	case isText(p.Kind):
		w.grow(s, visible(a, m, p), isReplaced)
		if isFinal {
			w.finishItem(a, s)
		}
	}
}

// grow sends the end of a text.
func (w *writer) grow(s *partState, text string, isReplaced bool) {
	suffix, isSame := strings.CutPrefix(text, s.base)
	if !isSame {
		suffix = text // what the earlier responses have was taken back
	}
	if !s.isBegun && s.base != "" && suffix == "" {
		return // this response has nothing of it
	}
	w.start(s)
	delta, isLonger := strings.CutPrefix(suffix, s.text)
	if isReplaced && s.text != "" || !isLonger {
		s.isBroken = true
	}
	if s.isBroken || delta == "" {
		return
	}
	s.text = suffix
	w.add(w.delta(s, delta))
}

// find returns a part of the agent and its message, or nil.
func find(a *answer.Answer, k partKey) (*transcript.Message, *transcript.Part) {
	for _, m := range slices.Backward(a.Messages()) {
		if m.ID == k.message && m.Role == event.Assistant {
			return m, m.Part(k.part)
		}
	}
	return nil, nil
}
