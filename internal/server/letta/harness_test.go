package letta

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

const secret = "a-token"

// agentFunc is an agent that runs a function.
type agentFunc func(ctx context.Context, in agent.Input, out *agent.Emitter) error

func (f agentFunc) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	return f(ctx, in, out)
}

var echo = agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
	return out.Text("re: " + in.Message.Text)
})

// harness is a gateway with this surface behind a real listener.
type harness struct {
	t   *testing.T
	gw  *gateway.Gateway
	srv *server.Server
	url string
}

func newHarness(t *testing.T, a agent.Agent, limits quota.Limits) *harness {
	t.Helper()
	j := memory.New()
	gw, err := gateway.New(gateway.Config{
		Journal: j, Agents: gateway.Agents{"eliza": {Agent: a}}, DefaultAgent: "eliza", Settings: gateway.Settings{Drain: time.Millisecond},
		Quotas: gateway.Quotas{User: limits},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gw.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := server.New(server.Options{Token: secret, Heartbeat: 20 * time.Millisecond})
	Register(srv, gw)
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Close()
		if err := gw.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		ts.Close()
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return &harness{t: t, gw: gw, srv: srv, url: ts.URL}
}

// send makes a request for a subject; if it is empty, for the admin. The response is closed at the end of the test.
func (h *harness) send(subject, method, path, body string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if subject != "" {
		r.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// ask is send for a whole response with an expected status.
func (h *harness) ask(status int, subject, method, path, body string) string {
	h.t.Helper()
	res := h.send(subject, method, path, body)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if res.StatusCode != status {
		h.t.Fatalf("%s %s: %d %s, want %d", method, path, res.StatusCode, b, status)
	}
	return string(b)
}

// asking is an agent that asks for a permission.
var asking = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
	if err != nil {
		return err
	}
	return out.Text("the answer is " + string(a.Decision))
})

// body is the body of a message of the user.
func body(otid, text string) string {
	return `{"messages":[{"role":"user","otid":"` + otid + `","content":"` + text + `"}]}`
}

// lettaCode makes a request as Letta Code does, and returns the frames of the response.
func (h *harness) lettaCode(path, body string) (frames []frame) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("X-Letta-Source", "letta-code")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
	}
	return framesOf(h.t, string(b))
}

// frame has the fields of a frame that the tests look at.
type frame struct {
	ID      string `json:"id"`
	Type    string `json:"message_type"`
	Otid    string `json:"otid"`
	Run     string `json:"run_id"`
	SeqID   int64  `json:"seq_id"`
	Date    string `json:"date"`
	Content string `json:"content"`
	Call    *call  `json:"tool_call"`
	CallID  string `json:"tool_call_id"`
	Return  string `json:"tool_return"`
	Status  string `json:"status"`
	Stop    string `json:"stop_reason"`
}

// framesOf returns the frames of a stream, without pings.
func framesOf(t *testing.T, stream string) (list []frame) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData || strings.HasPrefix(data, "[DONE]") {
			continue
		}
		var f frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if f.Type != typePing {
			list = append(list, f)
		}
	}
	return list
}

// find returns the frames of a type.
func find(frames []frame, kind string) (list []frame) {
	for _, f := range frames {
		if f.Type == kind {
			list = append(list, f)
		}
	}
	return list
}

// textIn returns the visible text of frames.
func textIn(frames []frame) (text string) {
	for _, f := range find(frames, typeAssistant) {
		text += f.Content
	}
	return text
}

// result is the body of a tool's result, and denial that of a refusal.
func result(callID, status, text string) string {
	return `{"messages":[{"type":"approval","approvals":[{"type":"tool","tool_call_id":"` + callID + `","status":"` + status + `","tool_return":` + encode(text) + `}]}]}`
}

func denial(callID, reason string) string {
	return `{"messages":[{"type":"approval","approvals":[{"type":"approval","tool_call_id":"` + callID + `","approve":false,"reason":"` + reason + `"}]}]}`
}

// answerJSON is the response without a stream.
type answerJSON struct {
	Messages []frame `json:"messages"`
}
