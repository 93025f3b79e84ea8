package protocol_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/protocol"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/a2a"
	"github.com/leat-dev/leat/dialect/agui"
	"github.com/leat-dev/leat/dialect/aisdk"
	"github.com/leat-dev/leat/dialect/langgraph"
	"github.com/leat-dev/leat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var dialects = dialect.NewRegistry(a2a.Dialect(), agui.Dialect(), aisdk.Dialect(), langgraph.Dialect())

var input = agent.Input{
	Conversation: "01930000-0000-7000-8000-000000000001", Turn: "turn", Key: "key",
	Message: agent.Message{ID: "m2", Role: event.User, Text: "hello"},
	History: []agent.Message{{ID: "m1", Role: event.Assistant, Text: "hi"}},
}

func newAgent(t *testing.T, spec string) agent.Agent {
	t.Helper()
	s, err := agent.ParseSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	a, err := protocol.Kinds(dialects).Make(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.(interface{ Close() }).Close)
	return a
}

// upstream is a fake server that records requests and answers with a script.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	calls []request
}

type request struct {
	Line string // method and path
	Last string // Last-Event-ID
	Body string
}

// serve answers request n, from 0, with answer n.
func serve(t *testing.T, answers ...http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		n := len(u.calls)
		u.calls = append(u.calls, request{r.Method + " " + r.URL.RequestURI(), r.Header.Get("Last-Event-ID"), string(body)})
		u.mu.Unlock()
		if n >= len(answers) {
			t.Errorf("call %d: %s %s", n+1, r.Method, r.URL)
			http.Error(w, "no more", http.StatusTeapot)
			return
		}
		answers[n](w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

// stream answers with frames of data. A string that starts with "event:" or "id:" is sent unchanged.
func stream(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, lines(frames...))
	}
}

// broken is like stream, but then resets the connection.
func broken(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(frames...)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func lines(frames ...string) string {
	var b strings.Builder
	for _, f := range frames {
		if !strings.HasPrefix(f, "event:") && !strings.HasPrefix(f, "id:") {
			f = "data: " + f
		}
		b.WriteString(f + "\n\n")
	}
	return b.String()
}

func reply(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func (u *upstream) want(t *testing.T, want ...request) {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if diff := cmp.Diff(want, u.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func wantTurn(t *testing.T, s *agenttest.Stage, err error, o event.Outcome, visible string) {
	t.Helper()
	turn := s.Turn()
	if (err != nil) != (o == event.Failed && turn.Error != nil) && o == event.Completed || turn.Outcome != o {
		t.Errorf("the turn is %s, want %s: %v, %v", turn.Outcome, o, err, turn.Error)
	}
	if got := s.Visible(); got != visible {
		t.Errorf("readers see %q, want %q", got, visible)
	}
}

const (
	aguiAsk = `{"threadId":"01930000-0000-7000-8000-000000000001","runId":"turn","protocolVersion":"1.0","state":{},` +
		`"messages":[{"id":"m1","role":"assistant","content":"hi"},{"id":"m2","role":"user","content":"hello"}],"tools":[],"context":[],"forwardedProps":{}}`
	aisdkAsk = `{"id":"01930000-0000-7000-8000-000000000001","trigger":"submit-message","messages":[` +
		`{"id":"m1","role":"assistant","parts":[{"type":"text","text":"hi"}]},{"id":"m2","role":"user","parts":[{"type":"text","text":"hello"}]}]}`
	a2aAsk       = `{"jsonrpc":"2.0","id":"key","method":"SendStreamingMessage","params":{"message":{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`
	langgraphAsk = `{"assistant_id":"graph","input":{"messages":[{"content":"hello","id":"m2","role":"user"}]},` +
		`"stream_mode":["messages-tuple","updates","custom"],"stream_resumable":true,"on_disconnect":"continue","if_not_exists":"create"}`
	threadPath = "/threads/01930000-0000-7000-8000-000000000001/runs"
)

// subscribe answers the resumption of a task that ends now.
func subscribe(t *testing.T, w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if r.Body = io.NopCloser(bytes.NewReader(body)); !strings.Contains(string(body), "SubscribeToTask") {
		return false
	}
	stream(`{"jsonrpc":"2.0","id":"key","result":{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"text":"Hé"}]}]}}}`,
		`{"jsonrpc":"2.0","id":"key","result":{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"}}}}`)(w, r)
	return true
}

// join answers the resumption of a run that has ended, without a frame for its end.
func join(_ *testing.T, w http.ResponseWriter, r *http.Request) bool {
	switch r.Method + " " + r.URL.Path {
	case "GET " + threadPath + "/R":
		reply(`{"status":"success"}`)(w, r)
	case "GET " + threadPath + "/R/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		if r.Header.Get("Last-Event-ID") == "1" {
			_, _ = io.WriteString(w, lines("id: 2\nevent: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"Hé\"},{}]"))
		}
	default:
		return false
	}
	return true
}

// TestFaults runs the suite of faults with a strict fake of each server.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		options, path, ask string
		frames             []string
		rejoin             func(t *testing.T, w http.ResponseWriter, r *http.Request) bool
	}{
		"agui": {"", "/", aguiAsk, []string{
			`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}`,
			`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":"Hé"}`, `{"type":"TEXT_MESSAGE_END","messageId":"a"}`, `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`,
		}, nil},
		"aisdk": {"", "/", aisdkAsk, []string{
			`{"type":"start","messageId":"a"}`, `{"type":"text-start","id":"0"}`, `{"type":"text-delta","id":"0","delta":"Hé"}`, `{"type":"text-end","id":"0"}`, `{"type":"finish"}`,
		}, nil},
		"a2a": {"", "/", a2aAsk, []string{
			`{"jsonrpc":"2.0","id":"key","result":{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"}}}}`,
			`{"jsonrpc":"2.0","id":"key","result":{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"a","parts":[{"text":"Hé"}]}}}}`,
			`{"jsonrpc":"2.0","id":"key","result":{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"}}}}`,
		}, subscribe},
		"langgraph": {"?assistant=graph", threadPath + "/stream", langgraphAsk, []string{
			"id: 1\nevent: metadata\ndata: {\"run_id\":\"R\"}", "id: 2\nevent: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"Hé\"},{}]", "id: 3\nevent: end\ndata: null",
		}, join},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := agenttest.Upstream{
				New:     func(t *testing.T, url string) agent.Agent { return newAgent(t, name+":"+url+tt.options) },
				Visible: "Hé", Rejoin: tt.rejoin, KeepAlive: keepAlive[name],
				Accept: func(t *testing.T, w http.ResponseWriter, r *http.Request) bool {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					if r.Method != http.MethodPost || r.URL.Path != tt.path || string(body) != tt.ask || r.Header.Get("Accept") != "text/event-stream" {
						t.Errorf("%s %s %v\n%s\nwant\n%s", r.Method, r.URL, r.Header, body, tt.ask)
						http.Error(w, `{"error":"not the protocol"}`, http.StatusUnprocessableEntity)
						return false
					}
					return true
				},
			}
			for _, f := range tt.frames {
				u.Frames = append(u.Frames, lines(f))
			}
			agenttest.Faults(t, u, input)
		})
	}
}

func approve(event.Request) event.Answer {
	return event.Answer{Decision: event.Approve, Text: "go on"}
}

// An interrupt becomes a request to the user, and the next run has the answer.
func TestAGUIInterrupt(t *testing.T) {
	u := serve(t, stream(
		`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"a","role":"assistant","delta":"May I?"}`,
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"rm","delta":"{}"}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"tool_approval","toolCallId":"c"}]}}`,
	), stream(
		`{"type":"RUN_STARTED","threadId":"t","runId":"r2"}`, `{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":"gone"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"b","role":"assistant","delta":"Done."}`, `{"type":"RUN_FINISHED"}`,
	))
	s := agenttest.NewStage(t.Context())
	var asked event.Request
	s.Answer = func(r event.Request) event.Answer { asked = r; return approve(r) }
	wantTurn(t, s, s.Run(newAgent(t, "agui:"+u.URL), input), event.Completed, "May I?\n\nDone.")
	if asked.ID != "i1" || asked.Kind != event.RequestApproval || asked.Prompt != "tool_approval" {
		t.Errorf("asked %+v", asked)
	}
	again := strings.Replace(strings.TrimSuffix(aguiAsk, "}"), `"runId":"turn"`, `"runId":"turn-2"`, 1) +
		`,"resume":[{"interruptId":"i1","status":"resolved","payload":{"approved":true,"text":"go on"}}]}`
	u.want(t, request{"POST /", "", aguiAsk}, request{"POST /", "", again})
}

// The approval of a tool is sent back in the message of that tool.
func TestAISDKApproval(t *testing.T) {
	u := serve(t, stream(
		`{"type":"start","messageId":"a"}`, `{"type":"text-delta","id":"0","delta":"May "}`, `{"type":"text-delta","id":"0","delta":"I?"}`,
		`{"type":"tool-input-available","toolCallId":"b","toolName":"ls","input":{}}`, `{"type":"tool-output-available","toolCallId":"b","output":"x"}`,
		`{"type":"tool-input-available","toolCallId":"c","toolName":"rm","input":{"p":1},"dynamic":true}`,
		`{"type":"tool-approval-request","approvalId":"i1","toolCallId":"c"}`, `{"type":"finish"}`, `[DONE]`,
	), stream(
		`{"type":"start","messageId":"a"}`, `{"type":"tool-output-denied","toolCallId":"c"}`, `{"type":"text-delta","id":"1","delta":"Done."}`, `{"type":"finish"}`, `[DONE]`,
	))
	s := agenttest.NewStage(t.Context())
	s.Answer = func(event.Request) event.Answer { return event.Answer{Decision: event.Deny, Text: "no"} }
	wantTurn(t, s, s.Run(newAgent(t, "aisdk:"+u.URL), input), event.Completed, "May I?\n\nDone.")
	u.want(t, request{"POST /", "", aisdkAsk}, request{"POST /", "", strings.TrimSuffix(aisdkAsk, "]}") +
		`,{"id":"a","role":"assistant","parts":[{"type":"text","text":"May I?"},{"type":"tool-ls","toolCallId":"b","state":"output-available","input":{},"output":"x"},` +
		`{"type":"dynamic-tool","toolCallId":"c","toolName":"rm","state":"approval-responded","input":{"p":1},"approval":{"id":"i1","approved":false,"reason":"no"}}]}]}`})
}

// A task that requires input gets the user's answer. The context is stored for the next turn.
func TestA2AInput(t *testing.T) {
	const working = `{"result":{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"}}}}`
	u := serve(t,
		stream(working, `{"result":{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"parts":[{"text":"Where?"}]}}}}}`),
		stream(working, `{"result":{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"a","parts":[{"text":"Rain."}]}}}}`, `{"result":{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"}}}}`),
		stream(`{"result":{"message":{"contextId":"C","parts":[{"text":"Bye."}]}}}`),
	)
	a := newAgent(t, "a2a:"+u.URL)
	s := agenttest.NewStage(t.Context())
	s.Answer = func(r event.Request) event.Answer {
		if r.Prompt != "Where?" || r.Kind != event.RequestInput {
			t.Errorf("asked %+v", r)
		}
		return event.Answer{Text: "Here."}
	}
	wantTurn(t, s, s.Run(a, input), event.Completed, "Rain.")
	next := agenttest.NewStage(t.Context())
	next.Session = s.Session
	wantTurn(t, next, next.Run(a, input), event.Completed, "Bye.")
	ask := func(message string) request {
		return request{"POST /", "", `{"jsonrpc":"2.0","id":"key","method":"SendStreamingMessage","params":{"message":` + message + `}}`}
	}
	u.want(t, request{"POST /", "", a2aAsk},
		ask(`{"messageId":"m2-1","role":"ROLE_USER","parts":[{"text":"Here."}],"contextId":"C","taskId":"T"}`),
		ask(`{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"hello"}],"contextId":"C"}`))
}

// Version 0.3 has other names.
func TestA2AOld(t *testing.T) {
	u := serve(t,
		broken(`{"result":{"kind":"task","id":"T","contextId":"C","status":{"state":"working"}}}`, `{"result":{"kind":"artifact-update","taskId":"T","contextId":"C","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"Ra"}]}}}`),
		stream(`{"result":{"kind":"task","id":"T","contextId":"C","status":{"state":"working"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"Rain"}]}]}}`,
			`{"result":{"kind":"artifact-update","taskId":"T","contextId":"C","append":true,"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"!"}]}}}`,
			`{"result":{"kind":"status-update","taskId":"T","contextId":"C","status":{"state":"completed"},"final":true}}`),
	)
	in := input
	in.Message.Parts = []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/png;base64,aGk=", MIME: "image/png", Name: "a.png"}}}
	s := agenttest.NewStage(t.Context())
	wantTurn(t, s, s.Run(newAgent(t, "a2a:"+u.URL+"?version=0.3"), in), event.Completed, "Rain!")
	u.want(t,
		request{"POST /", "", `{"jsonrpc":"2.0","id":"key","method":"message/stream","params":{"message":{"kind":"message","messageId":"m2","role":"user","parts":[{"kind":"text","text":"hello"},{"kind":"file","file":{"name":"a.png","mimeType":"image/png","bytes":"aGk="}}]}}}`},
		request{"POST /", "", `{"jsonrpc":"2.0","id":"key","method":"tasks/resubscribe","params":{"id":"T"}}`})
}

// The task of a stopped turn is canceled, since it would continue without a client.
func TestStops(t *testing.T) {
	for name, tt := range map[string]struct{ spec, first, call, body string }{
		"a2a":       {"", `{"result":{"task":{"id":"T","status":{"state":"TASK_STATE_WORKING"}}}}`, "POST /", `{"jsonrpc":"2.0","id":"key","method":"CancelTask","params":{"id":"T"}}`},
		"langgraph": {"", "event: metadata\ndata: {\"run_id\":\"R\"}", "POST " + threadPath + "/R/cancel?wait=true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				stream(tt.first)(w, r)
				w.(http.Flusher).Flush()
				close(begun)
				<-r.Context().Done()
			}, reply(`{}`))
			a := newAgent(t, name+":"+u.URL+tt.spec)
			s := agenttest.NewStage(t.Context())
			done := make(chan error, 1)
			go func() { done <- s.Run(a, input) }()
			<-begun
			// The frame has arrived when viewers see the run.
			for s.Turn().Upstream == nil {
				select {
				case err := <-done:
					t.Fatal(err)
				default:
					runtime.Gosched()
				}
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			<-done
			if err := a.(agent.Stopper).Stop(t.Context(), input); err != nil {
				t.Fatal(err)
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			if n := len(u.calls); n != 2 || u.calls[1].Line != tt.call || u.calls[1].Body != tt.body {
				t.Errorf("calls %+v", u.calls)
			}
		})
	}
}

// A task that has ended isn't canceled.
func TestStopsNothing(t *testing.T) {
	for name, answers := range map[string][]http.HandlerFunc{
		"a2a": {stream(`{"result":{"task":{"id":"T","status":{"state":"TASK_STATE_WORKING"}}}}`, `{"result":{"statusUpdate":{"taskId":"T","status":{"state":"TASK_STATE_COMPLETED"}}}}`)},
		"langgraph": {
			stream("event: metadata\ndata: {\"run_id\":\"R\"}", "event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"b\",\"content\":\"Hi.\"},{}]", "event: end\ndata: null"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, answers...)
			a := newAgent(t, name+":"+u.URL)
			s := agenttest.NewStage(t.Context())
			if err := s.Run(a, input); err != nil {
				t.Fatal(err)
			}
			if err := a.(agent.Stopper).Stop(t.Context(), input); err != nil { // serve would reject the request
				t.Error(err)
			}
		})
	}
}

// A broken stream is resumed, an interrupt is asked, and after a stream without an end the status of the run is requested.
func TestLangGraph(t *testing.T) {
	u := serve(t,
		broken("id: 1\nevent: metadata\ndata: {\"run_id\":\"R\"}", "id: 2\nevent: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"One \"},{}]"),
		stream("id: 3\nevent: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"a\",\"content\":\"two.\"},{}]", "id: 4\nevent: updates\ndata: {\"__interrupt__\":[{\"id\":\"i\",\"value\":\"More?\"}]}"),
		stream("event: metadata\ndata: {\"run_id\":\"R2\"}", "event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"b\",\"content\":\"Three.\"},{}]"),
		reply(`{"status":"success"}`),
	)
	s := agenttest.NewStage(t.Context())
	s.Answer = func(event.Request) event.Answer { return event.Answer{Text: `{"yes":1}`} }
	wantTurn(t, s, s.Run(newAgent(t, "langgraph:"+u.URL+"?assistant=graph"), input), event.Completed, "One two.\n\nThree.")
	u.want(t,
		request{"POST " + threadPath + "/stream", "", langgraphAsk},
		request{"GET " + threadPath + "/R/stream", "2", ""},
		request{"POST " + threadPath + "/stream", "", `{"assistant_id":"graph","command":{"resume":{"yes":1}},"stream_mode":["messages-tuple","updates","custom"],"stream_resumable":true,"on_disconnect":"continue","if_not_exists":"create"}`},
		request{"GET " + threadPath + "/R2", "", ""})
}

// While a stopped run still occupies the thread, the request is retried.
func TestLangGraphBusy(t *testing.T) {
	busy := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"detail":"Thread is already running a task. Wait for it to finish or choose a different multitask strategy."}`)
		}
	}
	u := serve(t, busy(http.StatusConflict), busy(http.StatusUnprocessableEntity),
		stream("event: metadata\ndata: {\"run_id\":\"R\"}", "event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"b\",\"content\":\"Hi.\"},{}]", "event: end\ndata: null"))
	s := agenttest.NewStage(t.Context())
	wantTurn(t, s, s.Run(newAgent(t, "langgraph:"+u.URL), input), event.Completed, "Hi.")
}

// A failed run, and one whose status can't be read, fail the turn.
func TestLangGraphClosed(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"error":     reply(`{"status":"error"}`),
		"not there": func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, stream("event: metadata\ndata: {\"run_id\":\"R\"}"), answer)
			s := agenttest.NewStage(t.Context())
			if err := s.Run(newAgent(t, "langgraph:"+u.URL+"?assistant=graph"), input); err == nil || s.Turn().Outcome != event.Failed {
				t.Errorf("%v, the turn is %s", err, s.Turn().Outcome)
			}
		})
	}
}

// The turn gets the outcome of a run whose stream had to be resumed.
func TestLangGraphFailed(t *testing.T) {
	u := serve(t,
		broken("id: 1\nevent: metadata\ndata: {\"run_id\":\"R\"}"), stream(),
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, stream(), reply(`{"status":"error"}`),
	)
	s := agenttest.NewStage(t.Context())
	err := s.Run(newAgent(t, "langgraph:"+u.URL+"?assistant=graph"), input)
	if shown := (*agent.Error)(nil); !errors.As(err, &shown) || shown.Code != "run_error" {
		t.Errorf("got %v", err)
	}
}

// Files that the server can't read are named in the text: large ones, and those of earlier messages.
func TestFilesOutOfReach(t *testing.T) {
	in := input
	large := []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: "/api/conversations/c/files/f", MIME: "image/png", Name: "large.png"}}}
	in.History = []agent.Message{{ID: "m1", Role: event.User, Text: "before", Parts: large}}
	in.Message.Parts = large
	for name, times := range map[string]int{"agui": 2, "aisdk": 2, "a2a": 1, "langgraph": 1} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "enough", http.StatusBadRequest) })
			if err := agenttest.NewStage(t.Context()).Run(newAgent(t, name+":"+u.URL), in); err == nil {
				t.Error("no error")
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			body := u.calls[0].Body
			if n := strings.Count(body, "[Attached: large.png. It can't be shown to you.]"); n != times || strings.Contains(body, "/api/") {
				t.Errorf("%s\nnames the file %d times", body, n)
			}
		})
	}
}

// Files and tokens are in the fields and headers of each protocol.
func TestFiles(t *testing.T) {
	t.Setenv("PROTOCOL_TOKEN", "tok")
	in := input
	in.History = nil
	in.Message.Parts = []event.Part{{Kind: event.KindMedia, Media: &event.Media{URL: "data:image/png;base64,aGk=", MIME: "image/png", Name: "a.png"}}}
	for name, want := range map[string]string{
		"agui":      `{"type":"image","source":{"type":"data","value":"aGk=","mimeType":"image/png"}}`,
		"aisdk":     `{"type":"file","url":"data:image/png;base64,aGk=","mediaType":"image/png","filename":"a.png"}`,
		"a2a":       `{"raw":"aGk=","filename":"a.png","mediaType":"image/png"}`,
		"langgraph": `{"image_url":{"url":"data:image/png;base64,aGk="},"type":"image_url"}`,
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer tok" {
					t.Errorf("headers %v", r.Header)
				}
				http.Error(w, "enough", http.StatusBadRequest)
			})
			if err := agenttest.NewStage(t.Context()).Run(newAgent(t, name+":"+u.URL+"?token_env=PROTOCOL_TOKEN"), in); err == nil || strings.Contains(err.Error(), "tok") {
				t.Errorf("got %v", err)
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			if body := u.calls[0].Body; !strings.Contains(body, want) || !json.Valid([]byte(body)) {
				t.Errorf("%s\nhas no %s", body, want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, ok := range map[int]bool{200: true, 405: true, 401: false, 403: false} {
		for _, kind := range []string{"agui", "aisdk", "a2a"} {
			u := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(name) })
			if err := newAgent(t, kind+":"+u.URL).(agent.Checker).Check(t.Context()); (err == nil) != ok {
				t.Errorf("%s, %d: %v", kind, name, err)
			}
		}
	}
	u := serve(t)
	u.Close()
	for _, kind := range []string{"agui", "langgraph"} {
		if err := newAgent(t, kind+":"+u.URL).(agent.Checker).Check(t.Context()); err == nil || strings.Contains(err.Error(), "?") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// keepAlive has the frames of each protocol that don't count as progress.
var keepAlive = map[string][]string{
	"agui":      {"data: {\"type\":\"CUSTOM\",\"name\":\"heartbeat\"}\n\n", "data: {\"type\":\"RAW\",\"event\":{}}\n\n"},
	"aisdk":     {"data: {\"type\":\"x-beat\"}\n\n"},
	"a2a":       {"data: {\"jsonrpc\":\"2.0\",\"id\":\"key\",\"result\":{}}\n\n"},
	"langgraph": {"id: 4\nevent: metadata\ndata: {\"run_id\":\"R\"}\n\n", "id: 5\nevent: heartbeat\ndata: {}\n\n"},
}
