package letta

import (
	"cmp"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/transcript"
)

// spread is how many frames an operation may have. It is part of the seq_ids that clients keep.
const spread = 1 << 16

// writer turns the operations of an answer into frames.
//
// Frames are numbered by their operations. The frames of the operation at which a client was cut are made again, and those that it has are left out:
// an operation that is merged with earlier ones has one frame, so its places don't depend on what was merged.
type writer struct {
	run string
	// after is the seq_id of the last frame that the client has. It is 0 for a client that has none, because numbers begin above.
	after int64

	buf []byte
	err error

	appender answer.Appender
	number   int64 // of the current operation
	place    int64 // of its next frame
	last     int64 // seq_id of the last frame
	// hasReturn are the ids of the calls whose result is in a frame, of this response or an earlier one.
	hasReturn map[string]bool
}

// newWriter returns the writer of a response that begins after a seq_id; 0 for one that begins the run.
func newWriter(run string, after int64) *writer {
	return &writer{run: run, after: after, last: after, hasReturn: map[string]bool{}}
}

// resumeNumber returns the number of the operation that a client with a seq_id has received, perhaps not with all of its frames, or -1.
func resumeNumber(after int64) int64 { return after/spread - 1 }

// add appends a frame of the current operation, unless the client has it.
func (w *writer) add(m message) {
	m.Run = w.run
	m.SeqID = (w.number+1)*spread + w.place
	w.place++
	if m.SeqID <= w.after || w.err != nil {
		return
	}
	w.last = m.SeqID
	w.buf, w.err = appendFrame(w.buf, &m)
}

// ping appends a ping, which tells the client the run and the last seq_id.
func (w *writer) ping() {
	if w.err == nil {
		w.buf, w.err = appendFrame(w.buf, &message{ID: "ping-" + w.run, Type: typePing, Run: w.run, SeqID: w.last})
	}
}

// take returns the frames so far, which the next call overwrites.
func (w *writer) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// apply takes an operation, which was the last one that was applied to a. It must get those too that the client has.
func (w *writer) apply(a *answer.Answer, op *answer.Op) error {
	w.number, w.place = op.Number, 0
	for _, p := range w.appender.Next(a, op) {
		w.piece(&p)
	}
	switch op.Type {
	case event.PartStart:
		if p := partOf(a, op.Message, op.Part); p != nil && p.Kind == event.KindTool {
			w.call(op, p, "")
		}
	case event.PartAppend:
		if p := partOf(a, op.Message, op.Part); p != nil && op.Field == event.Input {
			w.call(op, p, op.Text)
		}
	case event.TurnWait:
		w.request(a, op.Get().Request)
	case event.PartEnd, event.MessageEnd, event.TurnEnd:
		w.toolReturns(a)
	}
	return w.err
}

// partID returns the id of a part's message in Letta.
func partID(message, part string) string { return "message-" + message + "." + part }

// base returns a message about a part.
func base(kind, messageID, part string) message {
	return message{ID: partID(messageID, part), Type: kind, Otid: messageID + "." + part, Step: "step-" + messageID}
}

// piece appends a piece of text. The separator before a part is left out, because each part is a separate message.
func (w *writer) piece(p *answer.Piece) {
	text := p.Text[p.Join:]
	if text == "" {
		return
	}
	if p.IsReasoning {
		m := base(typeReasoning, p.Message, p.Part)
		m.Source, m.Reasoning = "reasoner_model", text
		w.add(m)
		return
	}
	m := base(typeAssistant, p.Message, p.Part)
	m.Content = text
	w.add(m)
}

// call appends a piece of a call's arguments.
func (w *writer) call(op *answer.Op, p *transcript.Part, arguments string) {
	m := base(typeCall, op.Message, op.Part)
	m.Call = &call{Name: cmp.Or(p.Name, "tool"), Arguments: arguments, ID: callID(op.Message, p.ID)}
	m.Calls = m.Call
	w.add(m)
}

// toolReturns appends the results of the calls whose parts have ended. A result can't grow, and some agents say that a tool is done before they have
// sent all of its output.
func (w *writer) toolReturns(a *answer.Answer) {
	for _, m := range a.Messages() {
		for _, p := range m.Parts {
			id := callID(m.ID, p.ID)
			if p.Kind != event.KindTool || !p.Final || m.Role != event.Assistant || w.hasReturn[id] {
				continue
			}
			w.hasReturn[id] = true
			w.add(returnOf(m.ID, p))
		}
	}
}

// request appends the request of a turn that waits.
//
// It is appended also if it was answered since: the numbers of later frames don't depend on it, but a client that reads a run from its beginning would
// otherwise see an answer to nothing. The client answers it as a call that needs an approval, or whose tool it runs itself.
func (w *writer) request(a *answer.Answer, r *event.Request) {
	w.add(requestOf(a.Messages(), r))
}

// pause ends the response of a turn that waits.
func (w *writer) pause(turn *transcript.Turn) { w.stop(stopApproval, turn) }

// end ends the response of a turn that has ended.
//
// An answer whose text isn't the one that the client has is an error: without it, the client would keep the wrong text as a complete answer.
func (w *writer) end(turn *transcript.Turn) {
	switch {
	case turn.Outcome == event.Cancelled:
		w.stop(stopCancelled, turn)
	case turn.Outcome != event.Completed:
		w.fail(errorType(turn), failureText(turn))
	case w.appender.IsContradicted():
		w.fail("stream_incomplete", textReplaced)
	case turn.Reason == event.ReasonLength:
		w.stop(stopLength, turn)
	default:
		w.stop(stopEnd, turn)
	}
}

// stop appends the frames that end a response. They are not numbered, as in Letta.
func (w *writer) stop(reason string, turn *transcript.Turn) {
	w.tail(&message{Type: typeStop, Stop: reason, Run: w.run})
	w.tail(&message{Type: typeUsage, Run: w.run, usage: usageOf(turn, w.run)})
	w.buf = append(w.buf, endOfStream...)
}

// fail appends the frames that end a response with an error.
func (w *writer) fail(kind, text string) {
	w.tail(&message{Type: typeStop, Stop: stopError, Run: w.run})
	w.tail(&message{Type: typeError, Run: w.run, ErrorType: kind, Message: text, Detail: text})
	w.buf = append(w.buf, endOfStream...)
}

// tail appends a frame without a number.
func (w *writer) tail(m *message) {
	if w.err == nil {
		w.buf, w.err = appendFrame(w.buf, m)
	}
}
