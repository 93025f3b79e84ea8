// Streams: the responses to runs.

package agui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// errPaused ends the run of a turn that waits.
var errPaused = errors.New("agui: the turn waits")

// stream streams a run until its turns have ended or one of them waits for a person.
func (s *surface) stream(w http.ResponseWriter, r *http.Request, p gateway.Principal, to target) error {
	// The client compares the whole type with that of the binary form, and takes any other one for server-sent events.
	contentType, encode, beat := server.EventStream, encoder(appendSSE), keepAlive
	if strings.Contains(r.Header.Get("Accept"), binaryType) {
		contentType, encode, beat = binaryType, appendBinary, "" // the binary form has nothing to send in a silence
	}
	w.Header().Set("Leat-Conversation", to.conversation)
	st := follow.OpenStream(s.srv, s.viewers, w, r, contentType, beat)
	defer st.Close()
	if st.Head() {
		return nil
	}
	events := newWriter(to.in, encode)
	events.isBehind, events.head = to.isBehind, to.head
	events.isOpen = func(turn, request string) (bool, error) { return s.chats.IsOpen(r.Context(), p, turn, request) }
	events.history = func() ([]message, error) { return s.history(r.Context(), p, &to) }
	events.start()
	err := st.Write(events.take())
	if err == nil {
		err = s.follow(r.Context(), p, &to, events, st)
	}
	// The order matters: when the server stops, the context has ended too, and when a client disconnects, the reading fails for that reason.
	switch cause := context.Cause(r.Context()); {
	case err == nil, errors.Is(err, errPaused):
		return nil
	case server.Restarting(err), server.Restarting(cause):
		err = server.ErrShutdown
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, &to)
	case cause != nil: // the session has ended
		err = cause
	}
	return s.fail(events, st, err)
}

// follow streams the turns one after the other.
//
// Several turns are unfinished if messages wait in the queue. They are one run, because a client accepts only one in a response.
func (s *surface) follow(ctx context.Context, p gateway.Principal, to *target, events *writer, st *follow.Stream) error {
	var last *transcript.Turn
	for _, turn := range to.turns {
		var current *answer.Answer
		err := follow.Answer{
			Op: func(a *answer.Answer, op *answer.Op) error {
				current = a
				events.apply(a, op)
				return nil
			},
			Flush: func() error {
				if current == nil {
					return nil
				}
				isPaused, err := events.flush(current)
				if err == nil {
					err = st.Write(events.take())
				}
				if err == nil && isPaused {
					err = errPaused
				}
				return err
			},
			Tick: st.Tick, Ticks: st.Ticks,
		}.Follow(ctx, s.gw, p, to.conversation, turn, -1)
		if err != nil {
			return err
		}
		if current != nil {
			last = current.Turn()
		}
	}
	if err := events.sync(); err != nil { // without turns, nothing was sent
		return err
	}
	if last == nil {
		last = to.last
	}
	events.end(last)
	return errors.Join(events.err, st.Write(events.take()))
}

// fail ends a stream with an error, also if the gateway stops: a connection that breaks would end a program that uses the client.
func (s *surface) fail(events *writer, st *follow.Stream, err error) error {
	e := server.Describe(err)
	code, text, isKnown := e.Reason, chats.Sentence(e.Message), true
	switch {
	case errors.Is(err, server.ErrExpired):
		text = textExpired
	case errors.Is(err, follow.ErrNoTurn):
		code, text = gateway.ReasonDeleted, textRemoved
	case errors.Is(err, server.ErrShutdown):
		code, text = "restarting", textRestarting
	default:
		isKnown = false
	}
	events.take() // what was not written may be incomplete
	events.fail(code, text)
	_ = st.Write(events.take()) // best effort
	if isKnown {
		return nil
	}
	return err
}

// disconnected stops the turns of a client that has disconnected, if the client asked for it.
func (s *surface) disconnected(ctx context.Context, p gateway.Principal, to *target) error {
	if !to.stopsTurn || to.conversation == "" {
		return nil
	}
	for _, turn := range to.turns {
		_, err := server.Do(ctx, s.gw, p, to.conversation, gateway.Command{Type: gateway.CommandStop, Turn: turn})
		if err != nil {
			return fmt.Errorf("stop turn %s of a disconnected client: %w", turn, err)
		}
	}
	return nil
}

// history returns the messages of a conversation without those of the turns that are streamed, and notes its last turn. The whole conversation is
// read: the protocol has no way to load earlier messages later.
func (s *surface) history(ctx context.Context, p gateway.Principal, to *target) (list []message, err error) {
	if to.conversation == "" {
		return nil, nil
	}
	err = s.gw.ViewTranscript(ctx, p, to.conversation, func(t *transcript.Transcript) bool {
		list = messagesOf(t, to.turns)
		to.last = lastEnded(t)
		return !t.Earlier
	})
	return list, err
}

// lastEnded returns a copy of the last turn of a conversation if it has ended. A turn that began since the client connected has no outcome yet.
func lastEnded(t *transcript.Transcript) *transcript.Turn {
	turn := chats.LastTurn(t)
	if turn == nil || turn.Unfinished() {
		return nil
	}
	ended := *turn
	return &ended
}
