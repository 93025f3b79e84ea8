package vercel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/internal/chats"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/feed"
	"github.com/leat-dev/leat/transcript"
)

// errorText returns the text of the error chunk that ends a stream.
func errorText(t *testing.T, stream string) string {
	t.Helper()
	if !strings.HasSuffix(stream, endOfStream) {
		t.Errorf("the stream ends with %s", stream)
	}
	return between(t, stream, `{"type":"error","errorText":"`, `"}`)
}

// A stream that breaks ends with a sentence that users can read. Each sentence is pinned. The error itself is for the log, unless the end is
// an ordinary one.
func TestBrokenStream(t *testing.T) {
	srv := server.New(server.Options{})
	defer srv.Close()
	for want, test := range map[string]struct {
		err      error
		isLogged bool
	}{
		"Your session has expired. Sign in again.":              {err: server.ErrExpired},
		"This answer was removed from the chat.":                {err: fmt.Errorf("read: %w", follow.ErrNoTurn)},
		"The conversation was deleted.":                         {err: feed.ErrDeleted, isLogged: true},
		"Not found.":                                            {err: gateway.ErrNotFound, isLogged: true},
		"Forbidden.":                                            {err: gateway.ErrForbidden, isLogged: true},
		"The gateway can't do this now; try again in a moment.": {err: gateway.ErrUnavailable, isLogged: true},
		"Internal error.":                                       {err: errors.New("a secret path"), isLogged: true},
		"This conversation is damaged in the gateway's store and can't be read; the gateway's log says what to do.": {err: gateway.ErrDamaged, isLogged: true},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/api/chat", nil)
		st := follow.OpenStream(srv, srv.Metrics().Viewers("vercel"), w, r, server.EventStream, keepAlive)
		err := (&surface{}).finish(r, gateway.Principal{}, target{}, newWriter(sdk5, "turn", nil, nil), st, test.err)
		st.Close()
		if isLogged := err != nil; isLogged != test.isLogged {
			t.Errorf("%v: the handler returns %v", test.err, err)
		}
		if got := errorText(t, w.Body.String()); got != want {
			t.Errorf("%v: %q, want %q", test.err, got, want)
		}
	}
}

// The sentence of a turn that ends without an answer is the agent's, if it has one.
func TestFailureText(t *testing.T) {
	for want, turn := range map[string]*transcript.Turn{
		"The model is busy.":                                  {Outcome: event.Failed, Error: &event.Error{Message: "The model is busy."}},
		"The agent could not answer.":                         {Outcome: event.Failed},
		"The answer was interrupted by a restart. Try again.": {Outcome: event.Interrupted},
	} {
		if got := chats.FailureText(turn, textInterrupted); got != want {
			t.Errorf("%s: %q, want %q", turn.Outcome, got, want)
		}
	}
}

// A client that can't take text back gets a sentence at the end, instead of a finish that makes a wrong answer look complete.
func TestReplacedText(t *testing.T) {
	gate := make(chan struct{})
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		op := func(kind event.Type, text string) error {
			return errors.Join(out.Emit([]event.Event{{Type: kind, Message: "m", Part: "t", Text: text}}, nil), out.Flush())
		}
		err := errors.Join(out.Emit([]event.Event{
			{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
			{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
		}, nil), op(event.PartAppend, "It is nine."))
		if err != nil {
			return err
		}
		select {
		case <-gate:
			return op(event.PartReplace, "It is ten.")
		case <-ctx.Done():
			return ctx.Err()
		}
	}), quota.Limits{})
	res := h.Send("alice", http.MethodPost, "/api/chat", question("c", "m1", "the time?"))
	r := bufio.NewReader(res.Body)
	readUntil(t, r, "nine")
	close(gate)
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := errorText(t, string(rest)), "The agent changed text that was already sent. Reload the chat to see the final answer."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
