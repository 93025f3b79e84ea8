package langgraph

import (
	"strconv"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// runWriter turns the operations of one run into the events of a run stream.
//
// The id of an event is the number of its operation, shifted like the seqs of the thread stream, and so a function of the log. Operations before
// the run only tell the writer what the client has, and so do those up to the last event that the client has received.
type runWriter struct {
	modes  map[string]bool
	ref    runRef
	thread string
	last   int64 // id of the last event that the client has, or -1
	load   func() (*prelude, error)
	pre    *prelude // nil before it is needed

	number int64 // of the current operation
	n      int64 // events of the current operation
	// isAsked is true after a question of this run. The run ends before the next operation that isn't another one.
	isAsked bool

	outcome *runOutcome // what the run has led to, if the client waits only for that

	texts map[partKey]*sentPart
	order []string // ids of the messages that the client has, in the order in which it got them
	buf   []byte
	err   error
}

// sentPart is what the client has of a part.
type sentPart struct {
	text      string
	skipped   int // bytes of the text that are in a message of an earlier run
	isBegun   bool
	isEnded   bool // of a status, which is replaced until then
	hasResult bool // of a call
	// isStale is true if the client has text that was taken back, and can't get it right before the state at the end of the run.
	isStale bool
}

func newRunWriter(modes map[string]bool, ref runRef, thread string, last int64, load func() (*prelude, error)) *runWriter {
	return &runWriter{modes: modes, ref: ref, thread: thread, last: last, load: load, texts: map[partKey]*sentPart{}}
}

// take returns the events so far, which the next call overwrites.
func (w *runWriter) take() []byte {
	b := w.buf
	w.buf = w.buf[:0]
	return b
}

// emit appends an event of a mode, if the client wants it and doesn't have it. Events without a mode are for all.
func (w *runWriter) emit(mode, name string, data any) {
	id := w.number<<seqShift | min(w.n, 1<<seqShift-1)
	w.n++
	if w.err != nil || id <= w.last || mode != "" && !w.modes[mode] {
		return
	}
	w.buf, w.err = appendFrame(w.buf, strconv.FormatInt(id, 10), name, data)
}

// finish appends the last event of the stream. A client that claims to have more than the log gets it too: without it, the end of the stream would
// be a success for the client, whatever the run has led to.
func (w *runWriter) finish(name string, data any) {
	if w.last >= (w.number+1)<<seqShift {
		w.last = -1
	}
	w.emit("", name, data)
}

// fail ends the stream with an error that the log doesn't contain. It has no id, because it must reach clients that are ahead of the writer too, and
// clients that join again must not resume after it.
func (w *runWriter) fail(f failure) {
	w.buf = append(append(append(w.buf, "event: error\ndata: "...), jsonOf(f)...), "\n\n"...)
}

// metadataData begins a run stream.
type metadataData struct {
	Run     string `json:"run_id"`
	Thread  string `json:"thread_id"`
	Attempt int    `json:"attempt"`
}

// start begins the stream.
func (w *runWriter) start() {
	w.number, w.n = w.ref.number, 0
	w.emit("", "metadata", metadataData{w.ref.id(), w.thread, 1})
}

// apply takes an operation, which was the last one that was applied to a. It returns errPaused when the run has ended with a question.
func (w *runWriter) apply(a *answer.Answer, op *answer.Op) error {
	if op.Number < w.ref.number {
		w.skip(a, op)
		return nil
	}
	if w.isAsked && op.Type != event.TurnWait {
		return errPaused // what follows is of another run
	}
	if w.isAsked {
		return nil
	}
	w.number, w.n = op.Number, 1 // the first number of a run is that of its metadata
	switch op.Type {
	case event.TurnStart, event.TurnResume:
		w.values(a, nil)
		w.isAsked = len(a.Turn().Requests) > 0 // others than the one that was answered
	case event.TurnWait:
		w.isAsked = true
	case event.PartStart, event.PartAppend, event.PartReplace, event.PartUpdate, event.PartEnd:
		w.sync(a, partKey{op.Message, op.Part})
	case event.MessageAdd, event.MessageEnd, event.TurnEnd:
		for _, m := range a.Messages() {
			for _, p := range m.Parts {
				if op.Type == event.TurnEnd || m.ID == op.Message {
					w.sync(a, partKey{m.ID, p.ID})
				}
			}
		}
	}
	if op.Type == event.TurnEnd {
		w.end(a)
	}
	return w.err
}

// flush is called after the operations that were there at once. It returns errPaused when the run has ended with a question.
func (w *runWriter) flush() error {
	if w.isAsked {
		return errPaused
	}
	return w.err
}

// interrupted are the questions in updates.
type interrupted struct {
	Interrupts []interrupt `json:"__interrupt__"`
}

// pause ends the stream of a run with questions. Open are those that wait for an answer now: a client can answer no other.
func (w *runWriter) pause(a *answer.Answer, open []interrupt) error {
	w.n = 2 // other numbers than those of the operation's own events
	w.updates(a)
	w.emit("updates", "updates", interrupted{emptyList(open)})
	w.values(a, open)
	w.finish("end", nil)
	return w.err
}

// end ends the stream of a run whose turn has ended.
func (w *runWriter) end(a *answer.Answer) {
	w.updates(a)
	w.values(a, nil)
	turn := a.Turn()
	if turn.Outcome != event.Completed && turn.Outcome != event.Cancelled {
		f := failureOf(turn)
		if w.outcome != nil {
			w.outcome.Error = &f
		}
		w.finish("error", f)
		return
	}
	w.finish("end", nil)
}

// failure is why a run has failed.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// failureOf returns why a turn ended without an answer.
func failureOf(turn *transcript.Turn) failure {
	f := failure{string(turn.Outcome), chats.FailureText(turn, textInterrupted)}
	if turn.Error != nil && turn.Error.Code != "" {
		f.Error = turn.Error.Code
	}
	return f
}

// updates sends the messages of the turn, as the update of the only node.
func (w *runWriter) updates(a *answer.Answer) {
	if list := answerMessages(a, true); len(list) > 0 {
		w.emit("updates", "updates", map[string]values{node: {Messages: list}})
	}
}

// values sends the state of the thread.
func (w *runWriter) values(a *answer.Answer, open []interrupt) {
	if w.err != nil || !w.modes["values"] && w.outcome == nil {
		w.n++
		return
	}
	if w.pre == nil {
		if w.pre, w.err = w.load(); w.err != nil {
			return
		}
	}
	state := values{Messages: emptyList(w.pre.with(a.Messages(), true)), Interrupts: open}
	if w.outcome != nil {
		w.outcome.values = state
	}
	w.emit("values", "values", state)
}
