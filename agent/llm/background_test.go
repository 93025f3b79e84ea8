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

// background makes an agent whose responses go on without it.
func background(t testing.TB, s *llmtest.Server) backgroundAgent {
	t.Helper()
	return made(t, "responses", s.URL, map[string]string{"background": "true"}).(backgroundAgent)
}

// A broken connection is nothing: the response is followed from its last event, with new time for each that brought something.
func TestFollowed(t *testing.T) {
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

// A response that the provider has no more fails the turn, with what was said.
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

// One that failed before anything was seen is asked for anew.
func TestResponseAnew(t *testing.T) {
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

// log is a sink that keeps what is emitted, and with which state.
type log struct {
	answer func(event.Request) event.Answer // nil: nobody is there

	mu   sync.Mutex
	ops  [][]event.Event
	last []json.RawMessage // the state after each
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
	return event.Answer{}, errors.New("nobody is there")
}

func (*log) Alive() {}

func (l *log) all() []event.Event {
	var all []event.Event
	for _, ops := range l.ops {
		all = append(all, ops...)
	}
	return all
}

// Wherever a process ends, another goes on after what was committed: nothing is missing, and nothing is there twice.
func TestResumedAnywhere(t *testing.T) {
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
			t.Errorf("after %d commits (-want +got):\n%s", cut, diff)
		}
	}
	posts := 0
	for _, c := range s.Calls() {
		if c.Method == "POST" {
			posts++
		}
	}
	if posts != 1 {
		t.Errorf("%d responses were asked for", posts)
	}
}

// Where the response has no name yet, nothing is sent a second time.
func TestResumedWithoutAName(t *testing.T) {
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

// One that has ended is not.
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

// A response of a turn that was stopped is cancelled at the provider.
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
	for range 2 { // the second time there is nothing to cancel
		if err := a.Stop(t.Context(), question("go")); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"resp_1"}, s.Cancelled()); diff != "" {
		t.Error(diff)
	}
}
