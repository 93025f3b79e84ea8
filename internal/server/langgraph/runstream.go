// Run streams: of runs that begin, and for clients that join a run.

package langgraph

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/transcript"
)

// supportedModes are the modes of a run stream. Others have the inner events of a graph, which agents don't have.
var supportedModes = map[string]bool{"values": true, "updates": true, "messages": true, "messages-tuple": true, "custom": true, "tools": true}

// joinModes are those of a client that joins a run without naming any: all but messages, which repeats each message as it grows.
var joinModes = map[string]bool{"values": true, "updates": true, "messages-tuple": true, "custom": true}

// modesOf returns the modes that a client asks for. If it names none, it gets values, as in LangGraph.
func modesOf(names []string) (map[string]bool, error) {
	modes := map[string]bool{}
	for _, name := range names {
		if !supportedModes[name] {
			return nil, unsupported("unsupported stream mode %q; use values, updates, messages, messages-tuple or custom", name)
		}
		modes[name] = true
	}
	if len(modes) == 0 {
		modes["values"] = true
	}
	return modes, nil
}

// modesIn returns the modes in the query of a request that joins a run.
//
// A client repeats the parameter, or sends a list as JSON. When it joins again, version 2.0.0 of the SDK adds its list to those that are in the path
// of the stream (see [nameRun]), so a mode may be there twice.
func modesIn(query url.Values) (names []string, err error) {
	for _, value := range query["stream_mode"] {
		list := []string{value}
		if strings.HasPrefix(value, "[") {
			if err := server.Unmarshal([]byte(value), &list, false); err != nil {
				return nil, server.Invalid("stream_mode must be a mode or a list of modes")
			}
		}
		for _, name := range list {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// streamRun answers POST /threads/{id}/runs/stream and /runs/stream.
func (s *surface) streamRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	in := &runRequest{}
	if err := server.Decode(r, in); err != nil {
		return err
	}
	modes, err := modesOf(in.StreamMode)
	if err != nil {
		return err
	}
	stopsTurn, err := in.stopsTurn()
	if err != nil {
		return err
	}
	// AddViewer comes first: if the viewer limit refuses the request, no message is added.
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	ref, thread, err := s.begin(w, r, p, in)
	if err != nil {
		return err
	}
	return s.follow(w, r, p, newRunWriter(modes, ref, thread, -1, s.loader(r.Context(), p, ref)), stopsTurn)
}

// loader returns a function that reads what a thread contained when the turn of a run began.
func (s *surface) loader(ctx context.Context, p gateway.Principal, ref runRef) func() (*prelude, error) {
	return func() (*prelude, error) { return s.prelude(ctx, p, ref.conversation, ref.turn) }
}

// joinStream answers GET /threads/{id}/runs/{turn}/stream and /runs/{turn}/stream with what a client lacks of a run: all of it, or what is after
// Last-Event-ID.
func (s *surface) joinStream(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	ref, _, err := s.findRun(r, p)
	if err != nil {
		return err
	}
	last := int64(-1)
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if last, err = strconv.ParseInt(id, 10, 64); err != nil {
			return server.Invalid("invalid Last-Event-ID %q; use the id of an event of this run, or -1", id)
		}
	}
	stopsTurn, err := stopsJoined(r)
	if err != nil {
		return err
	}
	names, err := modesIn(r.URL.Query())
	if err != nil {
		return err
	}
	modes, err := modesOf(names)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		modes = joinModes
	}
	leave, err := s.gw.AddViewer(p)
	if err != nil {
		return err
	}
	defer leave()
	nameRun(w, r.PathValue("id"), ref, names)
	return s.follow(w, r, p, newRunWriter(modes, ref, r.PathValue("id"), last, s.loader(r.Context(), p, ref)), stopsTurn)
}

// follow streams a run to its end.
func (s *surface) follow(w http.ResponseWriter, r *http.Request, p gateway.Principal, events *runWriter, stopsTurn bool) error {
	st := follow.OpenStream(s.srv, s.viewers, w, r, server.EventStream, keepAlive)
	defer st.Close()
	if st.Head() {
		return nil
	}
	events.start()
	err := st.Write(events.take())
	if err == nil {
		err = s.followRun(r.Context(), p, events, st, st.Write)
	}
	switch cause := context.Cause(r.Context()); {
	case err == nil:
		return nil
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler) // a clean end would be a success for some clients
	case st.Err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, events.ref, stopsTurn)
	case cause != nil: // the session has ended
		err = cause
	}
	f, isExpected := failureIn(err)
	events.take() // what was not written may be incomplete
	events.fail(f)
	_ = st.Write(events.take()) // best effort: the response ends with an error anyway
	if isExpected {
		return nil
	}
	return err
}

// failureIn describes an error that ends a response that has begun. It is expected if the client or another one has caused it, and not logged then.
func failureIn(err error) (f failure, isExpected bool) {
	e := server.Describe(err)
	switch {
	case errors.Is(err, server.ErrExpired):
		return failure{e.Reason, textExpired}, true
	case errors.Is(err, follow.ErrNoTurn), e.Status == http.StatusNotFound:
		return failure{gateway.ReasonDeleted, textRemoved}, true
	}
	return failure{e.Reason, chats.Sentence(e.Message)}, false
}

// followRun passes the events of a run to write. It returns nil after the end of the run.
func (s *surface) followRun(ctx context.Context, p gateway.Principal, events *runWriter, st *follow.Stream, write func([]byte) error) error {
	var current *answer.Answer
	after := events.ref.number - 1
	if events.last >= 0 {
		after = max(after, events.last>>seqShift)
	}
	err := follow.Answer{
		Op: func(a *answer.Answer, op *answer.Op) error {
			current = a
			return events.apply(a, op)
		},
		Flush: func() error {
			return errors.Join(write(events.take()), events.flush())
		},
		Tick: st.Tick, Ticks: st.Ticks,
	}.Follow(ctx, s.gw, p, events.ref.conversation, events.ref.turn, after)
	if !errors.Is(err, errPaused) {
		return errors.Join(err, write(events.take()))
	}
	open, err := s.openInterrupts(ctx, p, events.ref)
	if err != nil {
		return err
	}
	return errors.Join(events.pause(current, open), write(events.take()))
}

// openInterrupts returns the questions of a run's turn that wait for an answer.
func (s *surface) openInterrupts(ctx context.Context, p gateway.Principal, ref runRef) (list []interrupt, err error) {
	err = s.gw.ViewTranscript(ctx, p, ref.conversation, func(t *transcript.Transcript) bool {
		list = nil
		if turn := t.Turn(ref.turn); turn != nil {
			for _, r := range turn.Requests {
				list = append(list, interruptOf(turn.ID, messagesOf(t, turn.ID), &r.Request))
			}
		}
		return true
	})
	return list, err
}
