package letta

import (
	"cmp"
	"strconv"
	"time"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// spread is how many frames an operation may have. It is part of the seq_ids that clients keep.
const spread = 1 << 16

// writer turns the operations of an answer into frames.
//
// Frames are numbered by their operations. The frames of the operation at which a client was cut are made again, and those that it has are left out:
// an operation that is merged with earlier ones has one frame, so its places don't depend on what was merged.
type writer struct {
	turn string
	run  string
	// isAsker is whether the client gets requests as questions, see [askOf].
	isAsker bool
	// after is the seq_id of the last frame that the client has. It is 0 for a client that has none, because numbers begin above.
	after int64

	buf []byte
	err error

	appender answer.Appender
	number   int64 // of the current operation
	date     string
	place    int64 // of its next frame
	last     int64 // seq_id of the last frame
	// hasReturn are the ids of the calls whose result is in a frame, of this response or an earlier one.
	hasReturn map[string]bool
	// requests are the calls of the requests so far, by the ids of the requests.
	requests map[string]*call
	// breaks counts the beginnings of parts and the requests so far, and begin is its value when a part began, by the otid of the part. See [writer.piece].
	breaks int
	begin  map[string]int
}

// newWriter returns the writer of a response that begins after a seq_id; 0 for one that begins the run.
func newWriter(turn string, after int64, isAsker bool) *writer {
	return &writer{
		turn: turn, run: runPrefix + turn, isAsker: isAsker, after: after, last: after,
		hasReturn: map[string]bool{}, requests: map[string]*call{}, begin: map[string]int{},
	}
}

// resumeNumber returns the number of the operation that a client with a seq_id has received, perhaps not with all of its frames, or -1.
func resumeNumber(after int64) int64 { return after/spread - 1 }

// add appends a frame of the current operation, unless the client has it.
func (w *writer) add(m message) {
	m.Run, m.Date = w.run, w.date
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
		w.buf, w.err = appendFrame(w.buf, &message{ID: "ping-" + w.run, Type: typePing, Date: dateOf(time.Now().UnixMilli()), Run: w.run, SeqID: w.last})
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
	w.number, w.place, w.date = op.Number, 0, dateOf(op.At)
	for _, p := range w.appender.Next(a, op) {
		w.piece(a, &p)
	}
	switch op.Type {
	case event.PartStart:
		w.breaks++
		w.begin[op.Message+"."+op.Part] = w.breaks
		if p := partOf(a, op.Message, op.Part); p != nil && p.Kind == event.KindTool {
			w.call(op, p, "")
		}
	case event.PartAppend:
		if p := partOf(a, op.Message, op.Part); p != nil && op.Field == event.Input {
			w.call(op, p, op.Text)
		}
	case event.TurnWait:
		w.breaks++
		w.request(a, op.Get().Request)
	case event.TurnResume:
		w.requestReturn(op.Get().Answer)
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
//
// Text that continues after another part began, or after a request, is a new message: Letta Code doesn't change a message any more after the next one
// began or a response has ended, and the text would not be visible. Its id has the number of beginnings in between, which a replay has too, whatever was merged.
func (w *writer) piece(a *answer.Answer, p *answer.Piece) {
	text := p.Text[p.Join:]
	if text == "" {
		return
	}
	m := base(typeAssistant, p.Message, p.Part)
	if n := w.breaks - w.begin[m.Otid]; n > 0 && partOf(a, p.Message, p.Part).Kind != event.KindStatus { // a status comes as a whole
		m.ID, m.Otid = m.ID+"."+strconv.Itoa(n), m.Otid+"."+strconv.Itoa(n)
	}
	if p.IsReasoning {
		m.Type, m.Source, m.Reasoning = typeReasoning, "reasoner_model", text
	} else {
		m.Content = text
	}
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

// request appends the request of a turn that waits. The client answers it as a call that needs an approval, or whose tool it runs itself.
//
// It is appended also if it was answered since, with the answer when that comes: a client that was cut may have shown it already.
func (w *writer) request(a *answer.Answer, r *event.Request) {
	m := requestOf(a.Messages(), w.turn, r, w.isAsker)
	w.requests[r.ID] = m.Call
	w.add(m)
}

// requestReturn appends the answer to a request as the result of its call, because clients show a call without one as open. The call of a tool that the
// agent runs itself gets the result of the tool instead.
func (w *writer) requestReturn(answer *event.Answer) {
	c := w.requests[answer.ID]
	if c == nil || c.ID != requestCallID(w.turn, answer.ID) {
		return
	}
	delete(w.requests, answer.ID)
	w.add(requestReturnOf(w.turn, c, answer))
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
		w.fail(errorType(turn), chats.FailureText(turn, textInterrupted))
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
