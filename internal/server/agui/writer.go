package agui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// writer turns the operations of answers into events.
//
// It marks what operations change and, at the end of a batch, sends the difference between the answers and what the client has. So text that
// was replaced within a batch is never sent.
type writer struct {
	in     *input
	encode encoder
	// isOpen reports whether a request of a turn still waits for its answer. A replay contains requests that were answered since.
	isOpen func(turn, request string) (bool, error)
	// history returns the messages of the conversation without those of the turns that are streamed.
	history func() ([]message, error)
	// isBehind is true if the client doesn't have what happened up to the seq head, so that the next thing it gets is a snapshot of that.
	isBehind bool
	head     int64

	buf []byte // events that were not written yet
	err error  // the first of an event that can't be encoded

	answers []*answer.Answer // of the turns so far
	parts   []*partState     // in the order of their start
	byKey   map[partKey]*partState
	dirty   []*partState
}

// partKey identifies a part within a conversation.
type partKey struct{ message, part string }

// id returns the id of a part's message in the protocol.
func (k partKey) id() string { return k.message + "." + k.part }

// partState is what the client has of a part.
type partState struct {
	key    partKey
	answer *answer.Answer
	index  int // its place among the parts
	// isDirty is true if the part has changed since it was sent.
	isDirty bool
	// isBegun is true if the client has the part, and isOpen if the part can grow by a delta.
	isBegun, isOpen bool
	content         string // the client's text, arguments, or the content of an activity
	isComplete      bool   // the client has all arguments of a call
	hasResult       bool   // the client has the result of a call
	result          string // that the client has
}

// newWriter returns the writer of one run.
func newWriter(in *input, encode encoder) *writer {
	return &writer{in: in, encode: encode, byKey: map[partKey]*partState{}}
}

// add appends an event.
func (w *writer) add(f frame) {
	if w.err == nil {
		w.buf, w.err = w.encode(w.buf, &f)
	}
}

// start begins the run.
func (w *writer) start() { w.add(frame{Type: runStarted, Thread: w.in.Thread, Run: w.in.Run}) }

// take returns the events so far, which the next call overwrites.
func (w *writer) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// apply takes an operation, which was the last one that was applied to a.
func (w *writer) apply(a *answer.Answer, op *answer.Op) {
	if !slices.Contains(w.answers, a) {
		w.answers = append(w.answers, a)
	}
	switch op.Type {
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.mark(a, partKey{op.Message, op.Part})
	case event.MessageAdd, event.MessageEnd:
		w.markMessages(a, func(m *transcript.Message) bool { return m.ID == op.Message })
	case event.TurnEnd:
		w.markMessages(a, func(*transcript.Message) bool { return true }) // the end of a turn ends its parts
	}
}

// flush completes the events of a batch. It reports whether they end the run, because the turn waits.
//
// A client that comes back has texts of which an answer that is still being read has a part only. So it gets nothing before the answer has
// everything that the client may have.
func (w *writer) flush(a *answer.Answer) (isPaused bool, err error) {
	if w.isBehind && a.Upto() < w.head {
		return false, nil
	}
	if err := w.sync(); err != nil {
		return false, err
	}
	requests, err := w.openRequests(a.Turn())
	if err != nil || len(requests) == 0 {
		return false, cmp.Or(err, w.err)
	}
	w.pause(a, requests)
	return true, w.err
}

// mark notes that a part has changed.
func (w *writer) mark(a *answer.Answer, k partKey) {
	p := w.byKey[k]
	if p == nil {
		p = &partState{key: k, answer: a, index: len(w.parts)}
		w.byKey[k] = p
		w.parts = append(w.parts, p)
	}
	if !p.isDirty {
		p.isDirty = true
		w.dirty = append(w.dirty, p)
	}
}

// markMessages marks all parts of some messages.
func (w *writer) markMessages(a *answer.Answer, isMeant func(*transcript.Message) bool) {
	for _, m := range a.Messages() {
		if !isMeant(m) {
			continue
		}
		for _, p := range m.Parts {
			w.mark(a, partKey{m.ID, p.ID})
		}
	}
}

// sync sends what the client lacks: a snapshot if it must catch up or if text was taken back, and otherwise the changes.
func (w *writer) sync() error {
	list := w.dirty
	w.dirty = nil
	slices.SortFunc(list, func(x, y *partState) int { return cmp.Compare(x.index, y.index) })
	// One snapshot is enough for everything that was taken back in the batch.
	for _, state := range list {
		state.isDirty = false
		w.isBehind = w.isBehind || w.isTakenBack(state)
	}
	if w.isBehind {
		w.isBehind = false
		if err := w.snapshot(); err != nil {
			return err
		}
	}
	for _, state := range list {
		w.syncPart(state)
	}
	return w.err
}

// isTakenBack reports whether the client has text of a part that the part no longer begins with, or that can't grow any more.
func (w *writer) isTakenBack(state *partState) bool {
	p := state.part()
	if p == nil || !state.isBegun {
		return false
	}
	switch p.Kind {
	case event.KindText, event.KindReasoning:
		return !strings.HasPrefix(p.Text(event.Text), state.content)
	case event.KindTool:
		isOther := !strings.HasPrefix(arguments(p), state.content) || state.isComplete && arguments(p) != state.content
		return isOther || state.hasResult && chats.ToolResult(p) != state.result
	}
	return false
}

// syncPart sends what the client lacks of one part. After a snapshot only the end of what can grow is left.
func (w *writer) syncPart(state *partState) {
	p := state.part()
	if p == nil {
		return
	}
	switch p.Kind {
	case event.KindText:
		w.syncText(state, p)
	case event.KindReasoning:
		w.syncReasoning(state, p)
	case event.KindTool:
		w.syncTool(state, p)
	default:
		w.syncActivity(state, p)
	}
}

// syncText sends the end of a text.
func (w *writer) syncText(state *partState, p *transcript.Part) {
	id := state.key.id()
	if delta := p.Text(event.Text)[len(state.content):]; delta != "" {
		if !state.isOpen {
			w.add(frame{Type: textStart, MessageID: id, Role: roleAssistant})
			state.isBegun, state.isOpen = true, true
		}
		w.add(frame{Type: textContent, MessageID: id, Delta: delta})
		state.content = p.Text(event.Text)
	}
	if p.Final {
		w.close(state)
	}
}

// syncReasoning sends the end of a reasoning text.
func (w *writer) syncReasoning(state *partState, p *transcript.Part) {
	id := state.key.id()
	if delta := p.Text(event.Text)[len(state.content):]; delta != "" {
		if !state.isOpen {
			w.add(frame{Type: reasoningStart, MessageID: id})
			w.add(frame{Type: reasoningBegin, MessageID: id, Role: roleReasoning})
			state.isBegun, state.isOpen = true, true
		}
		w.add(frame{Type: reasoningContent, MessageID: id, Delta: delta})
		state.content = p.Text(event.Text)
	}
	if p.Final {
		w.close(state)
	}
}

// close ends a message or call that can grow. If more follows, it is begun again, which continues it.
func (w *writer) close(state *partState) {
	if !state.isOpen {
		return
	}
	state.isOpen = false
	id := state.key.id()
	switch state.part().Kind {
	case event.KindText:
		w.add(frame{Type: textEnd, MessageID: id})
	case event.KindReasoning:
		w.add(frame{Type: reasoningFinish, MessageID: id})
		w.add(frame{Type: reasoningEnd, MessageID: id})
	case event.KindTool:
		w.add(frame{Type: callEnd, CallID: id})
	}
}

// closeAll ends everything that can grow. A run can't end before that.
func (w *writer) closeAll() {
	for _, state := range w.parts {
		w.close(state)
	}
}

// part returns the part, or nil if the answer doesn't have it, or if it isn't the agent's.
func (s *partState) part() *transcript.Part {
	for _, m := range slices.Backward(s.answer.Messages()) {
		if m.ID == s.key.message && m.Role == event.Assistant {
			return m.Part(s.key.part)
		}
	}
	return nil
}
