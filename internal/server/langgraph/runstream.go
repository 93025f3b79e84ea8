// Run streams: runs that begin, and clients that come back to them.

package langgraph

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
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

// modesOf returns the modes that a client asks for. Without any it gets values, as in LangGraph.
func modesOf(names []string) (map[string]bool, error) {
	modes := map[string]bool{}
	for _, name := range names {
		if !supportedModes[name] {
			return nil, unsupported("there is no stream mode %q here; use values, updates, messages, messages-tuple or custom", name)
		}
		modes[name] = true
	}
	if len(modes) == 0 {
		modes["values"] = true
	}
	return modes, nil
}

// begin begins the run of a request, in the thread of its path, or in a new one if the path has none. The headers of the response name the run.
func (s *surface) begin(w http.ResponseWriter, r *http.Request, p gateway.Principal, in *runRequest) (ref runRef, thread string, err error) {
	if err := in.check(); err != nil {
		return ref, "", err
	}
	agent, err := s.agentOf(p, in.Assistant)
	if err != nil {
		return ref, "", err
	}
	conversation := ""
	switch thread = r.PathValue("id"); {
	case thread == "":
		if conversation, _, err = s.createConversation(r.Context(), p, "", agent, nil); err == nil {
			thread = conversation
		}
	case in.IfNotExists == "create":
		conversation, _, err = s.createConversation(r.Context(), p, thread, agent, nil)
	default:
		conversation, err = s.open(r, p)
	}
	if err != nil {
		return ref, "", err
	}
	if ref, err = s.start(r.Context(), p, conversation, agent, in); err != nil {
		return ref, "", err
	}
	nameRun(w, thread, ref, in.StreamMode)
	return ref, thread, nil
}

// nameRun sets the headers that name a run and the path of its stream. Without the latter, clients don't join it again after a lost connection.
//
// Both are relative to the url that the client was given, which has the prefix. A client that comes back doesn't repeat its modes, and clients take
// everything after the id of the run for a part of it.
func nameRun(w http.ResponseWriter, thread string, ref runRef, modes []string) {
	location := "/threads/" + url.PathEscape(thread) + "/runs/" + ref.id()
	w.Header().Set("Content-Location", location)
	w.Header().Set("Location", location+"/stream?"+url.Values{"stream_mode": modes}.Encode())
}

// createRun answers POST /threads/{id}/runs and /runs: it begins a run and doesn't wait for it.
func (s *surface) createRun(w http.ResponseWriter, r *http.Request, p gateway.Principal) error {
	in := &runRequest{}
	if err := server.Decode(r, in); err != nil {
		return err
	}
	ref, thread, err := s.begin(w, r, p, in)
	if err != nil {
		return err
	}
	_, turn, err := s.gw.Turn(r.Context(), p, gateway.ActionRead, ref.turn)
	return server.Respond(w, runOf(ref.id(), thread, &turn), err)
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

// joinStream answers GET /threads/{id}/runs/{turn}/stream with what a client lacks of a run: all of it, or what is after Last-Event-ID.
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
	names := r.URL.Query()["stream_mode"]
	if len(names) == 1 && strings.HasPrefix(names[0], "[") { // clients of version 2 send a list as JSON
		if err := server.Unmarshal([]byte(names[0]), &names, false); err != nil {
			return err
		}
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
	return s.follow(w, r, p, newRunWriter(modes, ref, r.PathValue("id"), last, s.loader(r.Context(), p, ref)), r.URL.Query().Get("cancel_on_disconnect") == "1")
}

// follow streams a run to its end.
func (s *surface) follow(w http.ResponseWriter, r *http.Request, p gateway.Principal, events *runWriter, stopsTurn bool) error {
	st := s.openStream(w, r)
	defer st.close()
	if st.response.Head() {
		return nil
	}
	events.start()
	err := st.write(events.take())
	if err == nil {
		err = s.followRun(r.Context(), p, events, st, st.write)
	}
	switch cause := context.Cause(r.Context()); {
	case err == nil:
		return nil
	case server.Restarting(err), server.Restarting(cause):
		panic(http.ErrAbortHandler) // a clean end would be a success for some clients
	case st.err != nil, errors.Is(cause, context.Canceled):
		return s.disconnected(r.Context(), p, events.ref, stopsTurn)
	case cause != nil: // the session has ended
		err = cause
	}
	e := server.Describe(err)
	f, isKnown := failure{e.Reason, chats.Sentence(e.Message)}, true
	switch {
	case errors.Is(err, server.ErrExpired):
		f.Message = textExpired
	case errors.Is(err, follow.ErrNoTurn):
		f = failure{gateway.ReasonDeleted, textRemoved}
	default:
		isKnown = false
	}
	events.take() // what was not written may be incomplete
	events.emit("", "error", f)
	_ = st.write(events.take()) // best effort
	if isKnown {
		return nil
	}
	return err
}

// disconnected stops the turn of a client that has disconnected, if the client asked for it.
func (s *surface) disconnected(ctx context.Context, p gateway.Principal, ref runRef, stopsTurn bool) error {
	if !stopsTurn {
		return nil
	}
	_, err := server.Do(ctx, s.gw, p, ref.conversation, gateway.Command{Type: gateway.CommandStop, Turn: ref.turn})
	if err != nil {
		return fmt.Errorf("stop turn %s of a disconnected client: %w", ref.turn, err)
	}
	return nil
}

// followRun passes the events of a run to write. It returns nil after the end of the run.
func (s *surface) followRun(ctx context.Context, p gateway.Principal, events *runWriter, st *stream, write func([]byte) error) error {
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
		Tick: st.tick, Ticks: st.ticks,
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
