package leat_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leat-dev/leat"
	"github.com/leat-dev/leat/agent"
	client "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
)

type echo struct{}

func (echo) Run(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("You said: " + in.Message.Text)
}

// A conversation in a folder can be read by the next gateway that opens the folder.
func TestReopen(t *testing.T) {
	opt := leat.Options{Agents: map[string]agent.Agent{"echo": echo{}}, Dir: t.TempDir(), Token: "sesame"}
	var id string
	for run := range 2 {
		gw, err := leat.Start(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(gw.Handler())
		c := &client.Client{URL: web.URL, Token: opt.Token}
		if run == 0 {
			conversation, err := c.Create(t.Context(), client.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			id = conversation.ID
			if _, err := c.Send(t.Context(), id, "hello"); err != nil {
				t.Fatal(err)
			}
		}
		err = c.Follow(t.Context(), id, func(u client.Update) error {
			turns := u.Transcript.Turns
			if len(turns) == 0 || turns[0].Unfinished() {
				return nil
			}
			if got := u.Transcript.Visible(turns[0].ID); turns[0].Outcome != event.Completed || got != "You said: hello" {
				t.Errorf("run %d: %s %q", run, turns[0].Outcome, got)
			}
			return client.ErrStop
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := gw.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		web.Close()
	}
}

func TestToken(t *testing.T) {
	gw, err := leat.Start(t.Context(), leat.Options{Agents: map[string]agent.Agent{"echo": echo{}}, Token: "sesame"})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close(context.WithoutCancel(t.Context()))
	web := httptest.NewServer(gw.Handler())
	defer web.Close()
	res, err := http.Get(web.URL + "/api/conversations")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", res.Status)
	}
}

// An embedded gateway has the outputs that are on by default, except for those with options that package leat doesn't have.
func TestOutputs(t *testing.T) {
	gw, err := leat.Start(t.Context(), leat.Options{Agents: map[string]agent.Agent{"echo": echo{}}, Token: "sesame"})
	if err != nil {
		t.Fatal(err)
	}
	defer gw.Close(context.WithoutCancel(t.Context()))
	for path, isServed := range map[string]bool{
		"/v1/chat/completions": true, "/a2a": true, "/agui": true, "/langgraph/threads": true, "/letta/v1/agents": true, "/v1/responses": true, "/api/chat": true,
		"/v1/stream/turns/x": false, "/openclaw": false,
	} {
		w := httptest.NewRecorder()
		gw.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodTrace, "http://127.0.0.1"+path, nil))
		// A path that has routes refuses unknown methods, and other paths don't exist.
		if want := map[bool]int{true: http.StatusMethodNotAllowed, false: http.StatusNotFound}[isServed]; w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, opt := range map[string]leat.Options{
		"no agents":     {},
		"which default": {Agents: map[string]agent.Agent{"one": echo{}, "two": echo{}}},
		"not an agent":  {Agents: map[string]agent.Agent{"one": echo{}}, DefaultAgent: "two"},
	} {
		if _, err := leat.Start(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "default agent") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
