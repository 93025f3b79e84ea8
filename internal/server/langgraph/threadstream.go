// The thread stream: all turns of a thread, one after the other.

package langgraph

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// threadStream answers POST /threads/{thread}/stream/events with the events of a thread. It has no end.
func (s *surface) threadStream(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	sub := &subscription{}
	if err := server.Decode(r, sub); err != nil {
		return err
	}
	if err := sub.check(); err != nil {
		return err
	}
	id, err := s.open(r, p)
	if err != nil {
		return err
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, keepAlive)
	defer st.Close()
	session := &session{s: s, p: p, sub: sub, conversation: id, stream: st}
	err = session.follow(r.Context())
	// The order matters: when the server stops, the context has ended too.
	switch cause := context.Cause(r.Context()); {
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler) // the client reconnects
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return nil // the client has disconnected
	case errors.Is(err, gateway.ErrNotFound), errors.Is(cause, server.ErrExpired):
		return nil // the client reconnects, and gets the error as the status of its request
	case cause != nil:
		return cause
	}
	return err
}

// session is a client of the thread stream.
type session struct {
	s            *surface
	p            gateway.Principal
	sub          *subscription
	conversation string
	stream       *follow.Stream

	after int64 // seq of the first event of the turn before the next one
	// hasBegun is true if after is set. Outside is what the client has of what happened outside turns.
	hasBegun bool
	outside  outside
}

// outside says what happened outside turns: which message is the last one that no turn has written or answers, and the seq of the last truncate.
type outside struct {
	message   string
	truncated int64
}

// nextTurn is what the client gets next: a turn, or a state because something has changed between turns.
type nextTurn struct {
	turn     string
	firstSeq int64
	isState  bool
	outside  outside
}

// follow streams turns until the client disconnects.
func (f *session) follow(ctx context.Context) error {
	for {
		next, err := f.next(ctx)
		if err != nil {
			return err
		}
		if next.isState {
			if err := f.state(ctx); err != nil {
				return err
			}
			f.outside = next.outside
			continue
		}
		err = f.followTurn(ctx, next.turn)
		if err != nil && !errors.Is(err, follow.ErrNoTurn) { // it was truncated away
			return err
		}
		f.after = next.firstSeq
	}
}

// next waits until there is something to send.
func (f *session) next(ctx context.Context) (next nextTurn, err error) {
	err = follow.Follower[nextTurn]{
		Read: func(_ context.Context, r *gateway.Reader) (n nextTurn, seq int64, err error) {
			r.View(func(t *transcript.Transcript) { n, seq = f.find(t), t.Seq })
			return n, seq, nil
		},
		State: func(n nextTurn) (bool, error) {
			next = n
			return n.turn != "" || n.isState, nil
		},
		Tick: f.stream.Tick, Ticks: f.stream.Ticks,
	}.Follow(ctx, f.s.gw, f.p, f.conversation)
	return next, err
}

// replayTime is how long a turn is streamed to new clients after its end. A client subscribes after it has begun a run, which may have ended by then,
// and another one may have begun.
const replayTime = 5 * time.Second

// find returns what the client lacks first.
func (f *session) find(t *transcript.Transcript) (n nextTurn) {
	n.outside.truncated = t.Truncated
	for _, m := range t.Messages {
		if turnOf(t, m) == nil {
			n.outside.message = m.ID
		}
	}
	if !f.hasBegun {
		f.hasBegun, f.after, f.outside = true, f.beginning(t), n.outside
		if f.after == t.Seq { // no turn to stream
			n.isState = f.sub.Since == nil && len(t.Messages) > 0
			return n
		}
	}
	for _, turn := range t.Turns {
		if turn.Independent() && turn.FirstSeq > f.after && (n.turn == "" || turn.FirstSeq < n.firstSeq) {
			n.turn, n.firstSeq = turn.ID, turn.FirstSeq
		}
	}
	n.isState = n.turn == "" && n.outside != f.outside
	return n
}

// beginning returns the seq after which the client's first turn begins: the seq of the log if there is none.
//
// A new client gets the unfinished turns, those that have just ended, or else the last one: its own run may have ended before it could subscribe.
func (f *session) beginning(t *transcript.Transcript) int64 {
	recent := time.Now().Add(-replayTime).UnixMilli()
	after := t.Seq
	for _, turn := range t.Turns {
		if !turn.Independent() {
			continue
		}
		isMissing := turn == chats.LastTurn(t) || turn.EndedAt > recent
		if f.sub.Since != nil {
			isMissing = turn.EndSeq >= *f.sub.Since>>seqShift // the client may lack the last events of an operation
		}
		if turn.Unfinished() || isMissing {
			after = min(after, turn.FirstSeq-1)
		}
	}
	return after
}

// followTurn streams a turn to its end.
func (f *session) followTurn(ctx context.Context, turn string) error {
	w := newThreadWriter(f.sub, turn, func() (*prelude, error) { return f.s.prelude(ctx, f.p, f.conversation, turn) })
	return follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			if err := w.apply(a, op); err != nil || len(w.buf) < maxBuffer {
				return err
			}
			return f.stream.Write(w.take())
		},
		Flush: func() error { return f.stream.Write(w.take()) },
		Tick:  f.stream.Tick, Ticks: f.stream.Ticks,
		IsExact: true,
	}.Follow(ctx, f.s.gw, f.p, f.conversation, turn, -1)
}

// maxBuffer is how many bytes of events are collected before they are written.
const maxBuffer = 64 << 10

// state sends the state of a thread in which no turn runs.
func (f *session) state(ctx context.Context) error {
	v, err := f.s.view(ctx, f.p, f.conversation)
	if err != nil {
		return err
	}
	w := newThreadWriter(f.sub, "", nil)
	w.seq, w.at = v.seq, v.at
	c := checkpointData{ID: checkpointID(v.seq), Step: v.seq, Source: "update"}
	if v.parent > 0 {
		c.Parent = checkpointID(v.parent)
	}
	w.emit(methodCheckpoints, "checkpoint:"+w.seqText(), "", c)
	w.emit(methodValues, "values:"+w.seqText(), "", values{Messages: emptyList(v.messages)})
	return errors.Join(w.err, f.stream.Write(w.take()))
}
