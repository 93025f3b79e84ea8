// What a thread contains, as of now and as of the beginning of a turn.

package langgraph

import (
	"cmp"
	"context"
	"slices"

	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/transcript"
)

// Words for what a thread does.
const (
	statusIdle        = "idle"
	statusBusy        = "busy"
	statusInterrupted = "interrupted"
	statusError       = "error"
)

// node is the name of the only node that a graph has here.
const node = "agent"

// view is what a thread contains.
type view struct {
	messages   []message
	interrupts []interrupt
	status     string
	// seq is that of the checkpoint, and at its time in epoch milliseconds. What the messages lack has happened later.
	seq, at int64
	// parent is the seq of the checkpoint before, or 0.
	parent int64
}

// viewOf returns what a thread contains as of now. A message that may still grow is left out while its turn runs: clients take messages of a state
// for complete, and would ignore what is streamed.
func viewOf(t *transcript.Transcript) *view {
	v := &view{status: statusIdle, seq: t.Seq}
	current := currentTurn(t)
	for _, m := range t.Messages {
		turn := turnOf(t, m)
		if isNested(m, turn) || turn != nil && current != nil && turn.FirstSeq > current.FirstSeq {
			continue // what is queued comes later
		}
		isGrown := current == nil || turn != current || current.State == transcript.TurnWaiting
		v.messages = appendMessages(v.messages, m, isGrown)
		v.at = max(v.at, m.At, m.EndAt)
	}
	if current == nil {
		if last := chats.LastTurn(t); last != nil {
			v.parent, v.at = last.FirstSeq, max(v.at, last.EndedAt)
			if last.Outcome != event.Completed && last.Outcome != event.Cancelled {
				v.status = statusError
			}
		}
		return v
	}
	v.status, v.at, v.parent = statusBusy, cmp.Or(current.StartedAt, current.QueuedAt), endBefore(t, current)
	for _, r := range current.Requests {
		v.status = statusInterrupted
		v.interrupts = append(v.interrupts, interruptOf(current.ID, messagesOf(t, current.ID), &r.Request))
	}
	return v
}

// isNested reports whether a message is of a turn inside another one.
func isNested(m *transcript.Message, turn *transcript.Turn) bool {
	return m.Turn != "" && turn != nil && !turn.Independent()
}

// turnOf returns the turn that wrote a message, or that answers it, or nil.
func turnOf(t *transcript.Transcript, m *transcript.Message) *transcript.Turn {
	return t.Turn(cmp.Or(m.Turn, m.StateTurn))
}

// currentTurn returns the first unfinished turn, or nil. Others wait behind it.
func currentTurn(t *transcript.Transcript) *transcript.Turn {
	for _, turn := range t.Turns {
		if turn.Unfinished() && turn.Independent() {
			return turn
		}
	}
	return nil
}

// endBefore returns the seq of the end of the turn before another one, or 0.
func endBefore(t *transcript.Transcript, turn *transcript.Turn) (seq int64) {
	for _, other := range t.Turns {
		if other.Independent() && other.FirstSeq < turn.FirstSeq {
			seq = max(seq, other.EndSeq)
		}
	}
	return seq
}

// messagesOf returns the messages that a turn has written.
func messagesOf(t *transcript.Transcript, turn string) (list []*transcript.Message) {
	for _, m := range t.Messages {
		if m.Turn == turn {
			list = append(list, m)
		}
	}
	return list
}

// prelude is what a thread contained when a turn began.
type prelude struct {
	messages []message
	parent   int64 // seq of the checkpoint before the turn, or 0
	// steered are messages of the user that the running turn has taken, with their times.
	steered []steeredMessage
	agent   string
}

type steeredMessage struct {
	message
	at int64 // epoch milliseconds
}

// preludeOf returns what a thread contained before the answer of a turn: everything before, and the message that it answers.
func preludeOf(t *transcript.Transcript, id string) *prelude {
	pre := &prelude{}
	turn := t.Turn(id)
	if turn == nil {
		return pre
	}
	pre.parent, pre.agent = endBefore(t, turn), turn.Agent
	hasBegun := false
	for _, m := range t.Messages {
		other := turnOf(t, m)
		switch {
		case m.Turn == id:
			hasBegun = true
		case isNested(m, other), other != nil && other.FirstSeq > turn.FirstSeq, hasBegun && other == nil:
		case hasBegun && other == turn:
			pre.steered = append(pre.steered, steeredMessage{appendMessages(nil, m, true)[0], m.At})
		default:
			pre.messages = appendMessages(pre.messages, m, true)
		}
	}
	return pre
}

// with returns the messages of the thread with those of the turn. If its answer still grows, it may be that a message is left out: see viewOf.
func (pre *prelude) with(answer []*transcript.Message, withGrowing bool) []message {
	list := slices.Clip(pre.messages)
	steered := pre.steered
	for _, m := range answer {
		for len(steered) > 0 && steered[0].at < m.At {
			list, steered = append(list, steered[0].message), steered[1:]
		}
		list = appendMessages(list, m, withGrowing)
	}
	for _, m := range steered {
		list = append(list, m.message)
	}
	return newest(list)
}

// maxState limits the texts of a state, in bytes. A state is sent with each run, so a client with a slow connection must be able to load it.
const maxState = 6 << 20

// newest returns the last messages of a list, as many as a state may contain.
func newest(list []message) []message {
	size := 0
	for i, m := range slices.Backward(list) {
		if size += m.size(); size > maxState {
			return list[i+1:]
		}
	}
	return list
}

// view reads what a thread contains. The whole conversation is read: the protocol has no way to load earlier messages later.
func (s *surface) view(ctx context.Context, p gateway.Principal, conversation string) (v *view, err error) {
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		v = viewOf(t)
		return !t.Earlier
	})
	if err == nil {
		v.messages = newest(v.messages)
	}
	return v, err
}

// prelude reads what a thread contained when a turn began.
func (s *surface) prelude(ctx context.Context, p gateway.Principal, conversation, turn string) (pre *prelude, err error) {
	err = s.gw.ViewTranscript(ctx, p, conversation, func(t *transcript.Transcript) bool {
		pre = preludeOf(t, turn)
		return !t.Earlier
	})
	return pre, err
}
