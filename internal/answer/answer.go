package answer

import (
	"strings"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

// Op is one change of an answer. The event says what has changed. Its type is one of a turn, a message or a part, and for a text:
//
//   - PartAppend appends Text at Offset, where the text of the client ends.
//   - PartReplace replaces the whole text by Text, because some of it was taken back, or because it isn't known how much of it the client has.
//
// Notes of callbacks are not part of an answer. The end of a turn also ends its open messages, parts and requests.
type Op struct {
	Number int64
	event.Event
	// IsReceived says that the client has the operation: its number is not above that with which the client resumes. A writer sends nothing for
	// it.
	IsReceived bool

	isUnclear bool // what an earlier reading made of the text isn't known
}

// Answer is the answer of one turn up to a seq of the log.
type Answer struct {
	turn      string
	firstSeq  int64 // seq of the turn's first event
	resumeSeq int64 // seq of the last event that the client has
	upto      int64 // seq up to which events were applied
	exact     int64 // seq up to which it has the log without anything that was merged with a later event
	fold      transcript.Transcript
}

// New returns an answer without content, for a turn whose first event has the seq firstSeq. A new client has nothing: after is -1. A client that
// resumes has received the operations up to the number after.
func New(turn string, firstSeq, after int64) *Answer {
	return &Answer{turn: turn, firstSeq: firstSeq, resumeSeq: firstSeq + after, upto: firstSeq - 1, exact: firstSeq - 1}
}

// Upto returns the seq up to which the answer has the log.
func (a *Answer) Upto() int64 { return a.upto }

// ResumeSeq returns the seq of the last event that the client has. A reader that merges neighbouring appends doesn't merge across it.
func (a *Answer) ResumeSeq() int64 { return a.resumeSeq }

// Turn returns the turn, or nil if it has not begun.
func (a *Answer) Turn() *transcript.Turn { return a.fold.Turn(a.turn) }

// Messages returns the messages of the turn in their order.
func (a *Answer) Messages() []*transcript.Message { return a.fold.Messages }

// HasEnded reports whether the turn has ended. Later events don't change the answer.
func (a *Answer) HasEnded() bool {
	turn := a.Turn()
	return turn != nil && !turn.Unfinished()
}

// Apply adds the events that a log has after [Answer.Upto], up to another seq, and calls yield for each operation. The events ascend in seq, and may be of other turns too. isMerged says that an event may contain earlier ones that have other events between
// them: the log is compacted there, and is read to the end of what is compacted before anything that isn't. During a call of yield the answer
// has everything up to the operation.
//
// An error of yield ends the call, and is returned as it is. Any other error says that the events are not those of the log.
func (a *Answer) Apply(events []event.Event, upto int64, isMerged bool, yield func(*Op) error) error {
	for i := range events {
		e := &events[i]
		op, err := a.apply(e)
		if err != nil {
			return err
		}
		a.advance(e.Seq, isMerged)
		if op == nil {
			continue
		}
		if err := yield(op); err != nil {
			return err
		}
	}
	a.advance(upto, isMerged)
	return nil
}

// advance notes that the answer has everything up to a seq.
func (a *Answer) advance(seq int64, isMerged bool) {
	if !isMerged {
		a.exact = max(a.exact, seq)
	}
	a.upto = max(a.upto, seq)
}

// apply folds an event and returns what it has changed, or nil.
func (a *Answer) apply(e *event.Event) (*Op, error) {
	if e.Turn != a.turn || e.Type == event.MessageUpdate || a.HasEnded() {
		return nil, nil
	}
	before := ""
	if e.Op() {
		before = a.text(e)
	}
	requests := a.requests()
	if err := a.fold.Apply(e); err != nil {
		return nil, err
	}
	op := &Op{Number: e.Seq - a.firstSeq, Event: *e, IsReceived: e.Seq <= a.resumeSeq}
	switch e.Type {
	case event.PartAppend, event.PartReplace:
		return a.change(op, before), nil
	case event.TurnWait, event.TurnResume:
		if a.requests() == requests {
			return nil, nil // asked or answered before
		}
	}
	return op, nil
}

// change completes an operation on a text, which was before. It returns nil if the text is the same.
func (a *Answer) change(op *Op, before string) *Op {
	text := a.text(&op.Event)
	// Of an event that the client may have in part, it has what is here only if nothing was merged up to where it resumes.
	spans := a.exact < a.resumeSeq && op.FirstSeq() <= a.resumeSeq && op.Seq > a.resumeSeq
	// A text that was replaced earlier may have been sent before that.
	op.isUnclear = spans || a.exact < a.resumeSeq && op.IsReceived && op.Type == event.PartReplace && op.MergedFrom != 0
	op.MergedFrom, op.Note, op.Extend, op.History = 0, "", false, nil
	if spans || !strings.HasPrefix(text, before) {
		op.Type, op.Offset, op.Text = event.PartReplace, 0, text
		return op
	}
	if len(text) == len(before) && !op.isUnclear {
		return nil
	}
	op.Type, op.Offset, op.Text = event.PartAppend, int64(len(before)), text[len(before):]
	return op
}

// text returns the text that an operation changes.
func (a *Answer) text(e *event.Event) string {
	if m := a.fold.Message(e.Message); m != nil {
		if p := m.Part(e.Part); p != nil {
			return p.Text(e.Field)
		}
	}
	return ""
}

// requests returns the number of open requests.
func (a *Answer) requests() int {
	if turn := a.Turn(); turn != nil {
		return len(turn.Requests)
	}
	return 0
}
