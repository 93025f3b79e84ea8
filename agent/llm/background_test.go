package llm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/dialecttest"
	"github.com/leat-dev/leat/event"
)

// background returns an agent with background responses.
func background(t testing.TB, s *llmtest.Server) backgroundAgent {
	t.Helper()
	return made(t, "responses", s.URL, map[string]string{"background": "true"}).(backgroundAgent)
}

// After a disconnect the response is followed from its last event. A connection that made progress resets the time for retries.
func TestFollowAfterDisconnect(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	synctest.Test(t, func(t *testing.T) {
		s, pipe := llmtest.NewPiped(t, "responses")
		s.Say(strings.SplitAfter(strings.Repeat("word ", 40), " ")[:40]...)
		for i := range 12 {
			kind := llmtest.Reset
			if i%3 == 1 {
				kind = llmtest.Half
			}
			s.Fail(llmtest.Fault{Kind: kind, After: 3})
		}
		s.Fail(llmtest.Fault{Kind: llmtest.Status, Status: 503, Says: "server_error", Message: "later"})
		a := background(t, s)
		calls := timed(a, pipe, time.Now())
		stage := agenttest.NewStage(t.Context())
		if err := stage.Run(a, question("go")); err != nil {
			t.Fatal(err)
		}
		turn := stage.Turn()
		if stage.Visible() != s.Text() || turn.Outcome != event.Completed || turn.Upstream == nil || turn.Upstream.Run != "resp_1" || len(*calls) != 14 {
			t.Errorf("%d calls, %+v, %q", len(*calls), turn, stage.Visible())
		}
		for i, c := range s.Calls() {
			if (c.Method == "POST") != (i == 0) {
				t.Errorf("call %d is %s %s", i, c.Method, c.Path)
			}
		}
	})
}

// If the provider has deleted the response, the turn fails and keeps the text that readers have seen.
func TestResponseGone(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	synctest.Test(t, func(t *testing.T) {
		s, pipe := llmtest.NewPiped(t, "responses")
		s.Say("one ", "two ", "three")
		s.Fail(llmtest.Fault{Kind: llmtest.Reset, After: 5}, llmtest.Fault{Kind: llmtest.Status, Status: 404, Says: "not_found", Message: "gone"})
		a := background(t, s)
		timed(a, pipe, time.Now())
		stage := agenttest.NewStage(t.Context())
		err := stage.Run(a, question("go"))
		var shown *agent.Error
		if !errors.As(err, &shown) || shown.Code != codeGone || !shown.Retryable || stage.Visible() != "one " {
			t.Errorf("%v, %q", err, stage.Visible())
		}
	})
}

// A background response that failed before any content is requested again.
func TestFailedResponseIsRepeated(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	synctest.Test(t, func(t *testing.T) {
		s, pipe := llmtest.NewPiped(t, "responses")
		s.Fail(llmtest.Fault{Kind: llmtest.Inside, Says: "server_error", Message: "boom"})
		a := background(t, s)
		calls := timed(a, pipe, time.Now())
		stage := agenttest.NewStage(t.Context())
		err := stage.Run(a, question("go"))
		if diff := cmp.Diff(twice, *calls); err != nil || diff != "" || stage.Visible() != s.Text() || stage.Turn().Upstream.Run != "resp_2" {
			t.Errorf("%v, %+v, %s", err, stage.Turn(), diff)
		}
	})
}

// log is a sink that records the emitted events with the state of each.
type log struct {
	answer func(event.Request) event.Answer // nil: questions stay unanswered

	mu   sync.Mutex
	ops  [][]event.Event
	last []json.RawMessage // the state after each event
}

func (l *log) Emit(_ context.Context, ops []event.Event, state json.RawMessage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.last); state == nil && n > 0 {
		state = l.last[n-1]
	}
	l.ops, l.last = append(l.ops, ops), append(l.last, state)
	return nil
}

func (*log) Flush(context.Context) error { return nil }

func (l *log) Wait(_ context.Context, r event.Request) (event.Answer, error) {
	if l.answer != nil {
		return l.answer(r), nil
	}
	return event.Answer{}, errors.New("unanswered")
}

func (*log) ReportProgress() {}

func (l *log) all() []event.Event {
	var all []event.Event
	for _, ops := range l.ops {
		all = append(all, ops...)
	}
	return all
}

// Wherever the process ends, the next one resumes after the committed events, without a gap or a repetition.
func TestResumeAnywhere(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	a := background(t, s)
	whole := &log{}
	if err := a.Run(t.Context(), question("go"), agent.NewEmitter(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	want := dialecttest.Dump(dialecttest.Fold(t, whole.all()))
	if !strings.Contains(want, "wörld") {
		t.Fatal(want)
	}
	for cut := 1; cut < len(whole.ops); cut++ {
		rest := &log{}
		if err := a.Resume(t.Context(), question("go"), whole.last[cut-1], agent.NewEmitter(t.Context(), rest)); err != nil {
			t.Fatalf("after %d commits: %v", cut, err)
		}
		first := &log{ops: whole.ops[:cut]}
		if diff := cmp.Diff(want, dialecttest.Dump(dialecttest.Fold(t, append(first.all(), rest.all()...)))); diff != "" {
			t.Errorf("restart after %d commits (-want +got):\n%s", cut, diff)
		}
	}
	posts := 0
	for _, c := range s.Calls() {
		if c.Method == "POST" {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("%d responses requested", posts)
	}
}

// If the response had no id when the process ended, the request isn't sent again.
func TestResumeWithoutID(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	l := &log{}
	if err := background(t, s).Resume(t.Context(), question("go"), nil, agent.NewEmitter(t.Context(), l)); err != nil {
		t.Fatal(err)
	}
	ops := l.all()
	if len(ops) != 1 || ops[0].Body.Outcome != event.Interrupted || len(s.Calls()) > 0 {
		t.Errorf("%+v, %d calls", ops, len(s.Calls()))
	}
}

// Stop doesn't cancel a response that has ended.
func TestStopCancelsNothing(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	s.Say("one ", "two ")
	a := background(t, s)
	if err := agenttest.NewStage(t.Context()).Run(a, question("go")); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context(), question("go")); err != nil {
		t.Error(err)
	}
	if got := s.Cancelled(); len(got) > 0 {
		t.Errorf("cancelled: %q", got)
	}
}

// Stop cancels the turn's response at the provider.
func TestStopCancels(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "responses")
	s.Say("one ", "two ")
	s.Hold(5)
	a := background(t, s)
	stage := agenttest.NewStage(t.Context())
	done := make(chan error, 1)
	go func() { done <- stage.Run(a, question("go")) }()
	wait(t, func() bool { return stage.Visible() == "one " })
	if err := stage.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
		t.Error(err)
	}
	for range 2 { // the second Stop has no response to cancel
		if err := a.Stop(t.Context(), question("go")); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"resp_1"}, s.Cancelled()); diff != "" {
		t.Error(diff)
	}
}
