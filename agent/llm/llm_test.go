package llm

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/internal/call"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyEnv is the environment variable with the key in tests.
const keyEnv = "LEAT_TEST_LLM_KEY"

var kinds = []string{"anthropic", "openai", "responses", "gemini", "ollama"}

func question(text string) agent.Input {
	return agent.Input{Conversation: "c", Turn: "turn", Key: "turn-key", Message: agent.Message{ID: "m", Role: event.User, Text: text}}
}

// made returns an agent of a kind that calls the server.
func made(t testing.TB, kind, url string, options map[string]string) agent.Agent {
	t.Helper()
	s := agent.Spec{Name: kind, Kind: kind, Target: llmtest.Model, Options: map[string]string{"base_url": url}}
	if kind != "ollama" {
		s.Options["token_env"] = keyEnv
	}
	for k, v := range options {
		s.Options[k] = v
	}
	a, err := agent.Kinds(Kinds(all.Registry())).Make(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base(a).Close)
	return a
}

func base(a agent.Agent) *modelAgent {
	if b, ok := a.(backgroundAgent); ok {
		return b.modelAgent
	}
	return a.(*modelAgent)
}

// each runs a test for every provider, with the key in the environment.
func each(t *testing.T, run func(t *testing.T, kind string)) {
	t.Setenv(keyEnv, llmtest.Key)
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { run(t, kind) })
	}
}

// Answers are complete, with usage and model, from servers that refuse the same requests as the real ones.
func TestAnswers(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		in := question("And now?")
		in.History = []agent.Message{
			{Role: event.Assistant, Text: "whose question is gone"},
			{Role: event.User, Text: "first"},
			{Role: event.User, Text: "and more"},
			{Role: event.Assistant, Text: "answer"},
			{Role: event.Assistant, Text: " "},
			{Role: event.System, Text: "a note"},
		}
		stage := agenttest.NewStage(t.Context())
		if err := stage.Run(made(t, kind, s.URL, map[string]string{"system": "Be brief.", "max_tokens": "77", "temperature": "0.5"}), in); err != nil {
			t.Fatal(err)
		}
		if got := stage.Visible(); got != s.Text() {
			t.Errorf("readers see %q, want %q", got, s.Text())
		}
		turn := stage.Turn()
		want := &event.Usage{Model: llmtest.Model, Input: 12, Output: 7}
		if diff := cmp.Diff(want, turn.Usage); diff != "" || turn.Outcome != event.Completed || turn.Model != llmtest.Model {
			t.Errorf("%+v: %s", turn, diff)
		}
		calls := s.Calls()
		if len(calls) != 1 || calls[0].Header.Get("Idempotency-Key") != "turn-key" {
			t.Fatalf("%+v", calls)
		}
		if diff := cmp.Diff(wantBodies[kind], calls[0].Body); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

type (
	object = map[string]any
	list   = []any
)

func texts(kind string, all ...string) list {
	var l list
	for _, s := range all {
		b := object{"text": s}
		if kind != "" {
			b["type"] = kind
		}
		l = append(l, b)
	}
	return l
}

// wantBodies are the request bodies of TestAnswers.
var wantBodies = map[string]object{
	"anthropic": {
		"model": "m-1", "max_tokens": 77.0, "stream": true, "system": "Be brief.", "temperature": 0.5,
		"messages": list{
			object{"role": "user", "content": texts("text", "first", "and more")},
			object{"role": "assistant", "content": texts("text", "answer")},
			object{"role": "user", "content": texts("text", "a note", "And now?")},
		},
	},
	"openai": {
		"model": "m-1", "max_tokens": 77.0, "stream": true, "temperature": 0.5, "stream_options": object{"include_usage": true},
		"messages": list{
			object{"role": "system", "content": "Be brief."},
			object{"role": "user", "content": "first\n\nand more"},
			object{"role": "assistant", "content": "answer"},
			object{"role": "user", "content": "a note\n\nAnd now?"},
		},
	},
	"responses": {
		"model": "m-1", "max_output_tokens": 77.0, "stream": true, "store": false, "instructions": "Be brief.", "temperature": 0.5,
		"input": list{
			object{"role": "user", "content": texts("input_text", "first", "and more")},
			object{"role": "assistant", "content": texts("output_text", "answer")},
			object{"role": "user", "content": texts("input_text", "a note", "And now?")},
		},
	},
	"gemini": {
		"systemInstruction": object{"parts": texts("", "Be brief.")},
		"generationConfig":  object{"maxOutputTokens": 77.0, "temperature": 0.5},
		"contents": list{
			object{"role": "user", "parts": texts("", "first", "and more")},
			object{"role": "model", "parts": texts("", "answer")},
			object{"role": "user", "parts": texts("", "a note", "And now?")},
		},
	},
	"ollama": {
		"model": "m-1", "stream": true, "options": object{"num_predict": 77.0, "temperature": 0.5},
		"messages": list{
			object{"role": "system", "content": "Be brief."},
			object{"role": "user", "content": "first\n\nand more"},
			object{"role": "assistant", "content": "answer"},
			object{"role": "user", "content": "a note\n\nAnd now?"},
		},
	},
}

// want is the expected outcome of a turn.
type want struct {
	calls   []time.Duration
	code    string // error code; empty if the turn completes
	pieces  int    // number that readers see before the failure
	retryOK bool   // the error is retryable
}

var (
	once  = []time.Duration{0}
	twice = []time.Duration{0, 500 * time.Millisecond}
	five  = []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 3500 * time.Millisecond, 7500 * time.Millisecond}
)

// status returns n faults with an error status.
func status(n, code int, says, message string, h http.Header) []llmtest.Fault {
	all := make([]llmtest.Fault, n)
	for i := range all {
		all[i] = llmtest.Fault{Kind: llmtest.Status, Status: code, Says: says, Message: message, Header: h}
	}
	return all
}

func one(kind llmtest.FaultKind, after int) []llmtest.Fault {
	return []llmtest.Fault{{Kind: kind, After: after, Says: "overloaded_error", Message: "Overloaded"}}
}

// A call that fails before any content is repeated. Any other failure fails the turn with a specific error.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		faults  []llmtest.Fault
		refused int
		want    want
	}{
		"no answer at first":       {refused: 2, want: want{calls: []time.Duration{1500 * time.Millisecond}}},
		"never an answer":          {refused: 99, want: want{code: codeUnreachable, retryOK: true}},
		"key refused":              {faults: status(1, 401, "authentication_error", "bad key", nil), want: want{calls: once, code: codeKeyRefused}},
		"model unknown":            {faults: status(1, 404, "not_found_error", "model: m-1", nil), want: want{calls: once, code: codeModel}},
		"refused":                  {faults: status(1, 400, "invalid_request_error", "temperature: no", nil), want: want{calls: once, code: codeRefused}},
		"too long":                 {faults: status(1, 400, "context_length_exceeded", "maximum context length is 8", nil), want: want{calls: once, code: codeTooLong}},
		"quota":                    {faults: status(1, 429, "insufficient_quota", "You exceeded your current quota", nil), want: want{calls: once, code: codeQuota}},
		"limit with a hint":        {faults: status(1, 429, "rate_limit_error", "slow down", http.Header{"Retry-After": {"7"}}), want: want{calls: []time.Duration{0, 7 * time.Second}}},
		"limit with a finer hint":  {faults: status(1, 429, "rate_limit_error", "slow down", http.Header{"Retry-After-Ms": {"20"}, "Retry-After": {"9"}}), want: want{calls: []time.Duration{0, 20 * time.Millisecond}}},
		"limit without a hint":     {faults: status(1, 429, "rate_limit_error", "slow down", nil), want: want{calls: twice}},
		"a hint beyond the limit":  {faults: status(1, 429, "rate_limit_error", "slow down", http.Header{"Retry-After": {"61"}}), want: want{calls: once, code: codeLimited, retryOK: true}},
		"told not to come again":   {faults: status(1, 500, "api_error", "boom", http.Header{"X-Should-Retry": {"false"}}), want: want{calls: once, code: codeProvider}},
		"broken for a while":       {faults: status(1, 500, "api_error", "boom", nil), want: want{calls: twice}},
		"overloaded for good":      {faults: status(9, 503, "api_error", "busy", nil), want: want{calls: five, code: codeOverloaded, retryOK: true}},
		"overloaded inside":        {faults: one(llmtest.Inside, 0), want: want{calls: twice}},
		"overloaded after a piece": {faults: one(llmtest.Inside, 1), want: want{calls: once, code: codeOverloaded, pieces: 1, retryOK: true}},
		"cut at once":              {faults: one(llmtest.Close, 0), want: want{calls: twice}},
		"cut after a piece":        {faults: one(llmtest.Close, 1), want: want{calls: once, code: codeCutShort, pieces: 1, retryOK: true}},
		"cut before its end":       {faults: one(llmtest.Close, 3), want: want{calls: once, code: codeCutShort, pieces: 3, retryOK: true}},
		"half a frame at once":     {faults: one(llmtest.Half, 0), want: want{calls: twice}},
		"half a frame":             {faults: one(llmtest.Half, 2), want: want{calls: once, code: codeCutShort, pieces: 2, retryOK: true}},
		"reset at once":            {faults: one(llmtest.Reset, 0), want: want{calls: twice}},
		"reset":                    {faults: one(llmtest.Reset, 1), want: want{calls: once, code: codeCutShort, pieces: 1, retryOK: true}},
		"garbage":                  {faults: one(llmtest.Garbage, 1), want: want{calls: once, code: codeAnswer, pieces: 1}},
		"garbage at once":          {faults: one(llmtest.Garbage, 0), want: want{calls: once, code: codeAnswer}},
		"the end twice":            {faults: one(llmtest.Twice, 0), want: want{calls: once}},
		"more after the end":       {faults: one(llmtest.AfterEnd, 0), want: want{calls: once}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, kind string) {
				synctest.Test(t, func(t *testing.T) {
					s, pipe := llmtest.NewPiped(t, kind)
					s.Say("one ", "two ", "three")
					s.Fail(tt.faults...)
					pipe.Refuse(tt.refused)
					a := made(t, kind, s.URL, nil)
					begin := time.Now()
					calls := timed(a, pipe, begin)
					stage := agenttest.NewStage(t.Context())
					err := stage.Run(a, question("go"))
					checkTurn(t, tt.want, stage, err)
					phases := 0
					for _, e := range stage.Events() {
						if e.Type == event.TurnUpdate && e.Get().Phase == "retrying" {
							phases++
						}
					}
					if phases != len(*calls)-1 {
						t.Errorf("readers saw %d retries of %d calls", phases, len(*calls))
					}
					got := *calls
					if tt.refused > 0 {
						got = got[min(tt.refused, len(got)):]
					}
					if len(got)+len(tt.want.calls) > 0 && !cmp.Equal(got, tt.want.calls) {
						t.Errorf("calls at %v, want %v", got, tt.want.calls)
					}
				})
			})
		})
	}
}

// timed connects an agent through a pipe and records the times of its calls.
func timed(a agent.Agent, pipe *llmtest.Pipe, begin time.Time) *[]time.Duration {
	var calls []time.Duration
	transport := base(a).client.Transport.(call.Decoding)
	transport.DialContext = pipe.Dial
	base(a).client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		calls = append(calls, time.Since(begin))
		return transport.RoundTrip(r)
	})
	return &calls
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f roundTripper) CloseIdleConnections() {}

func checkTurn(t *testing.T, w want, stage *agenttest.Stage, err error) {
	t.Helper()
	visible := strings.Join([]string{"one ", "two ", "three"}[:w.pieces], "")
	turn := stage.Turn()
	if w.code == "" {
		if visible = "one two three"; err != nil || turn.Outcome != event.Completed {
			t.Errorf("%v, %+v", err, turn)
		}
	} else {
		got := &event.Error{}
		var shown *agent.Error
		switch {
		case errors.As(err, &shown):
			got = shown.ViewerError()
		case turn.Error != nil:
			got = turn.Error
		}
		if got.Code != w.code || got.Retryable != w.retryOK || turn.Outcome != event.Failed {
			t.Errorf("%v: %+v, want %s, retryable %v", err, got, w.code, w.retryOK)
		}
		if got.Message == "" || strings.Contains(got.Message, llmtest.Key) {
			t.Errorf("message %q", got.Message)
		}
	}
	if got := stage.Visible(); got != visible {
		t.Errorf("readers see %q, want %q", got, visible)
	}
	starts := 0
	for _, e := range stage.Events() {
		if e.Type == event.MessageStart {
			starts++
		}
	}
	if starts > 1 {
		t.Errorf("%d messages were started", starts)
	}
}

// A stopped turn ends at once, even if the provider is silent or never completes a frame.
func TestStopSilentProvider(t *testing.T) {
	for name, fault := range map[string]llmtest.FaultKind{"silence": llmtest.Silence, "loris": llmtest.Loris} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, kind string) {
				s := llmtest.New(t, kind)
				s.Say("one ", "two ", "three")
				s.Fail(llmtest.Fault{Kind: fault, After: 1})
				stage := agenttest.NewStage(t.Context())
				done := make(chan error, 1)
				go func() { done <- stage.Run(made(t, kind, s.URL, nil), question("go")) }()
				wait(t, func() bool { return stage.Visible() == "one " })
				if err := stage.Stop(); err != nil {
					t.Fatal(err)
				}
				if err := <-done; !errors.Is(err, agent.ErrTurnOver) {
					t.Error(err)
				}
				if turn := stage.Turn(); turn.Outcome != event.Cancelled || stage.Visible() != "one " {
					t.Errorf("%+v, %q", turn, stage.Visible())
				}
			})
		})
	}
}

// Keep-alives don't reset the limit on a provider's silence, even if they are valid frames.
func TestKeepAlivesAreSilence(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		s.Say("one ", "two ", "three")
		s.Fail(llmtest.Fault{Kind: llmtest.Beat, After: 1})
		stage := agenttest.NewStage(t.Context())
		stage.Silence = 300 * time.Millisecond
		err := stage.Run(made(t, kind, s.URL, nil), question("go"))
		if turn := stage.Turn(); err == nil || turn.Error == nil || turn.Error.Code != agenttest.CodeSilence || stage.Visible() != "one " {
			t.Errorf("%v; the turn is %s, %v; readers see %q", err, turn.Outcome, turn.Error, stage.Visible())
		}
	})
}

// wait polls until ok reports true. The limit of the test run is the only timeout.
func wait(t *testing.T, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-t.Context().Done():
			t.Fatal("timed out")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Check reports a wrong key, an unknown model and an unreachable address in one line, without a turn.
func TestCheck(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		check := func(a agent.Agent) error { return a.(agent.Checker).Check(t.Context()) }
		if err := check(made(t, kind, s.URL, nil)); err != nil {
			t.Error(err)
		}
		t.Setenv("LEAT_TEST_LLM_WRONG", "wrong")
		err := check(made(t, kind, s.URL, map[string]string{"token_env": "LEAT_TEST_LLM_WRONG"}))
		const refused = "refused the key: the key in LEAT_TEST_LLM_WRONG"
		if kind != "ollama" && (err == nil || !strings.Contains(err.Error(), refused) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("wrong key: %v, want %q", err, refused)
		}
		spec := agent.Spec{Name: "x", Kind: kind, Target: "nothing", Options: map[string]string{"base_url": s.URL, "token_env": keyEnv}}
		a, err := agent.Kinds(Kinds(all.Registry())).Make(spec)
		if err != nil {
			t.Fatal(err)
		}
		defer base(a).Close()
		if err := check(a); kind == "ollama" {
			if err != nil {
				t.Error(err) // the fake one knows no other model by this route
			}
		} else if err == nil || !strings.Contains(err.Error(), "nothing") {
			t.Errorf("unknown model: %v", err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if err := check(made(t, kind, "http://"+l.Addr().String(), nil)); err == nil || !strings.Contains(err.Error(), "can't be reached") {
			t.Errorf("unreachable address: %v", err)
		}
	})
}

// If the key is missing, the error names its environment variable, and no request is sent.
func TestKeyMissing(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	a, err := agent.Kinds(Kinds(all.Registry())).Make(agent.Spec{Name: "x", Kind: "openai", Target: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer base(a).Close()
	err = agenttest.NewStage(t.Context()).Run(a, question("go"))
	var shown *agent.Error
	if !errors.As(err, &shown) || shown.Code != codeKeyMissing || shown.Message != "the key for OpenAI is missing" || shown.Detail != "set OPENAI_API_KEY" {
		t.Error(err)
	}
}

// The key from the provider's environment variable is sent only to the provider's own address.
func TestKeyOnlyToProvider(t *testing.T) {
	for _, env := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY"} {
		t.Setenv(env, llmtest.Key)
	}
	each(t, func(t *testing.T, kind string) {
		s := llmtest.New(t, kind)
		a, err := agent.Kinds(Kinds(all.Registry())).Make(agent.Spec{Name: "x", Kind: kind, Target: llmtest.Model, Options: map[string]string{"base_url": s.URL}})
		if err != nil {
			t.Fatal(err)
		}
		defer base(a).Close()
		if err := agenttest.NewStage(t.Context()).Run(a, question("go")); (err == nil) != (kind == "ollama") {
			t.Error(err)
		}
		for _, c := range s.Calls() {
			for name, values := range c.Header {
				if strings.Contains(strings.Join(values, ""), llmtest.Key) {
					t.Errorf("%s carries the key", name)
				}
			}
		}
	})
}

func TestRedirect(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	s := llmtest.New(t, "openai")
	s.Fail(status(1, 307, "", "", http.Header{"Location": {"http://127.0.0.1:1/"}})...)
	err := agenttest.NewStage(t.Context()).Run(made(t, "openai", s.URL, nil), question("go"))
	if err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Error(err)
	}
}
