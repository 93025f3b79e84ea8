package langgraph

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
	"github.com/leat-dev/leat/internal/store/journal"
)

const secret = outputtest.Secret

type agentFunc = outputtest.AgentFunc

var echo = outputtest.Echo

// asking is an agent that asks for a permission.
var asking = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("I need to look. "); err != nil {
		return err
	}
	a, err := out.Ask(ctx, event.Request{ID: "ask", Kind: event.RequestApproval, Tool: "shell", Prompt: "May I?"})
	if err != nil {
		return err
	}
	return out.Text("The answer is " + string(a.Decision) + ".")
})

// waiting is an agent that writes something and then nothing more.
var waiting = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	if err := out.Text("so far"); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
})

// harness is a gateway with this surface behind a real listener.
type harness struct{ *outputtest.Harness }

func newHarness(t *testing.T, a agent.Agent) *harness {
	t.Helper()
	return &harness{outputtest.Start(t, a, quota.Limits{}, register)}
}

// startHarness starts a gateway on a journal. It is stopped at the end of the test, or by Stop.
func startHarness(t *testing.T, j journal.Journal, a agent.Agent) *harness {
	t.Helper()
	return &harness{outputtest.StartWith(t, j, a, quota.Limits{}, register)}
}

func register(h *outputtest.Harness) { Register(h.Server, h.Gateway) }

// send makes a request for a subject; if it is empty, for the admin. The response is closed at the end of the test.
func (h *harness) send(subject, method, path, body string) *http.Response {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), time.Minute) // a stream that doesn't have what is waited for
	h.T.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, h.URL+prefix+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	r.Header.Set("X-Api-Key", secret)
	if subject != "" {
		r.Header.Set(server.HeaderSubject, subject)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// ask is send for a whole response with an expected status.
func (h *harness) ask(status int, subject, method, path, body string) string {
	h.T.Helper()
	res := h.send(subject, method, path, body)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	if res.StatusCode != status {
		h.T.Fatalf("%s %s: %d %s, want %d", method, path, res.StatusCode, b, status)
	}
	return string(b)
}

// decode decodes a response.
func decode[T any](t *testing.T, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// start begins a run with a message, and returns the response. Options are further parameters, each with a comma before it.
func (h *harness) start(subject, thread, id, text, options string) commandResponse {
	h.T.Helper()
	body := `{"id":1,"method":"run.start","params":{"assistant_id":"eliza","input":{"messages":[{"type":"human","id":"` + id + `","content":"` + text + `"}]}` + options + `}}`
	return decode[commandResponse](h.T, h.ask(http.StatusOK, subject, http.MethodPost, "/threads/"+thread+"/commands", body))
}

// run begins a run and waits for its end or its question.
func (h *harness) run(thread, id, text string) {
	h.T.Helper()
	if r := h.start("", thread, id, text, ""); r.Type != "success" {
		h.T.Fatalf("%+v", r)
	}
	h.settle(thread)
}

// settle waits until nothing runs in a thread.
func (h *harness) settle(thread string) threadState {
	h.T.Helper()
	for {
		st := h.state(thread)
		if len(st.Next) == 0 || len(st.Interrupts) > 0 {
			return st
		}
		// The stream says when to look again: after the next end.
		h.events(thread, `{"channels":["lifecycle"],"since":`+jsonText(st.Metadata.Step<<seqShift)+`}`, func(e received) bool { return e.Method == methodLifecycle && !strings.HasSuffix(e.ID, ":running") })
	}
}

func jsonText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func (h *harness) state(thread string) threadState {
	h.T.Helper()
	return decode[threadState](h.T, h.ask(http.StatusOK, "", http.MethodGet, "/threads/"+thread+"/state", ""))
}

// texts are the types and contents of a state's messages.
func (st *threadState) texts() (list []string) {
	for _, m := range st.Values.Messages {
		list = append(list, m.Type+" "+string(m.Content))
	}
	return list
}

// received is an event as a client gets it.
type received struct {
	ID     string `json:"event_id"`
	Seq    int64  `json:"seq"`
	Method string `json:"method"`
	Params struct {
		Node string          `json:"node"`
		Data json.RawMessage `json:"data"`
	} `json:"params"`
}

// events reads events of the thread stream up to one that is the last.
func (h *harness) events(thread, subscription string, isLast func(received) bool) (list []received) {
	h.T.Helper()
	res := h.send("", http.MethodPost, "/threads/"+thread+"/stream/events", subscription)
	if res.StatusCode != http.StatusOK {
		h.T.Fatalf("thread stream: %d", res.StatusCode)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			e := decode[received](h.T, data)
			if list = append(list, e); isLast(e) {
				return list
			}
		}
	}
	h.T.Fatalf("the stream has ended: %v, after %v", lines.Err(), list)
	return nil
}
