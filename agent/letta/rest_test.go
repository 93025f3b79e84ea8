package letta

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/dialect"
	"github.com/leat-dev/leat/dialect/all"
	"github.com/leat-dev/leat/dialect/letta"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

const said = "One two three four."

var spoken = []string{"One ", "two ", "three ", "four."}

func TestV1Plain(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...), plainRun("Again.")}
	a := f.agent(map[string]string{"agent": "agent-{subject}"})
	s := newStage(t).run(a, "hello")
	s.want(event.Completed, "", said)
	if u := s.fold.Turn(turnID).Usage; u == nil || u.Input != 20 || u.Output != 10 {
		t.Errorf("usage %+v", u)
	}
	next := newStage(t)
	next.session, next.key = s.session, "key-of-the-next-turn"
	next.run(a, "and again").want(event.Completed, "", "Again.")
	want := []string{"create conv-1 of agent-ann", "send message to conv-1: run-1", "send message to conv-1: run-2"}
	if got := f.lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %q, want %q", got, want)
	}
	if b := f.bodies[0]; b["background"] != true || b["stream_tokens"] != true || b["streaming"] != true || b["include_pings"] != true {
		t.Errorf("the body is %v", b)
	}
}

func TestV1Faults(t *testing.T) {
	for name, c := range map[string]struct {
		faults  []fault
		options map[string]string
		script  []string
		times   func(*times)
		outcome event.Outcome
		code    string
		visible string
		log     []string // requests after the conversation was created
	}{
		"429 with a Retry-After that is too long": {faults: []fault{{status: 429, header: "3600"}}, outcome: event.Failed, code: codeStatus},
		"429 with Retry-After":                    {faults: []fault{{status: 429, header: "1"}}, outcome: event.Completed, visible: said},
		"429 without Retry-After":                 {faults: []fault{{status: 429}, {status: 429}}, outcome: event.Completed, visible: said},
		"5xx":                                     {faults: []fault{{status: 500}, {status: 503, body: `{"detail":"busy"}`}}, outcome: event.Completed, visible: said},
		"5xx at every attempt":                    {faults: repeated(fault{status: 502}, 20), outcome: event.Failed, code: codeStatus},
		"busy":                                    {faults: []fault{{status: 409, body: `{"detail":{"code":"CONVERSATION_BUSY"}}`}}, outcome: event.Completed, visible: said},
		"400":                                     {faults: []fault{{status: 400, body: `{"detail":"bad"}`}}, outcome: event.Failed, code: codeStatus},
		"closed without a response":               {faults: []fault{{drop: true}}, outcome: event.Completed, visible: said},
		"reset at once": {
			faults: []fault{{how: "reset"}}, outcome: event.Completed, visible: said,
			log: []string{"send message to conv-1: run-1", "send message to conv-1: run-1"},
		},
		"reset": {
			faults: []fault{{how: "reset", frames: 3}}, outcome: event.Completed, visible: said,
			log: []string{"send message to conv-1: run-1", "resume run-1 after 2"},
		},
		"half a frame": {faults: []fault{{how: "half", frames: 3}, {how: "half", frames: 2}}, outcome: event.Completed, visible: said},
		"stream ends too early": {
			faults: []fault{{how: "eof", frames: 2}, {how: "eof", frames: 2}, {how: "eof", frames: 2}}, outcome: event.Completed, visible: said,
		},
		"silence": {
			faults: []fault{{how: "silence", frames: 2}}, times: func(t *times) { t.stall = 100 * time.Millisecond },
			outcome: event.Completed, visible: said,
		},
		"stream ends after the stop reason": {faults: []fault{{how: "eof", frames: 6}}, outcome: event.Completed, visible: said},
		"silence after the stop reason": {
			faults: []fault{{how: "silence", frames: 6}}, outcome: event.Completed, visible: said,
		},
		"slow loris":    {faults: []fault{{how: "loris"}}, outcome: event.Completed, visible: said},
		"garbage":       {faults: []fault{{how: "garbage", frames: 3}}, outcome: event.Failed, code: "other", visible: "One two "},
		"the end twice": {script: append(words("x", spoken...), endTurn, counted, endTurn, counted, fin, fin), outcome: event.Completed, visible: said},
		"frames after the end": {
			script: append(append(words("x", spoken...), endTurn, counted), append(words("y", "More."), fin)...), outcome: event.Completed, visible: said,
		},
		"an error of the model": {
			script:  append(words("x", "One "), `{"message_type":"stop_reason","stop_reason":"llm_api_error"}`, `error|{"message_type":"error_message","error_type":"llm_timeout","message":"Too slow."}`, fin, fin),
			outcome: event.Failed, code: "llm_timeout", visible: "One ",
		},
		"the server lost the run": {
			faults: []fault{{how: "reset", frames: 3}, {status: 404, body: `{"detail":"Run not found"}`}}, outcome: event.Interrupted, code: codeLost, visible: "One two ",
		},
		"the server fails when the run is resumed": {
			faults: []fault{{how: "reset", frames: 3}, {status: 500}}, outcome: event.Completed, visible: said,
		},
		"broken repeatedly": {
			faults: append([]fault{{how: "reset", frames: 3}}, repeated(fault{how: "reset"}, 20)...), outcome: event.Interrupted, code: codeCutShort, visible: "One two ",
		},
		"reset in the foreground": {
			faults: []fault{{how: "reset", frames: 3}}, options: map[string]string{"background": "false"}, outcome: event.Failed, code: codeCutShort, visible: "One two ",
		},
		"[DONE] alone": {script: []string{fin}, outcome: event.Failed, code: codeCutShort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newV1(t)
			f.faults = c.faults
			if c.script == nil {
				c.script = plainRun(spoken...)
			}
			f.scripts = [][]string{c.script}
			a := f.agent(c.options)
			if c.times != nil {
				c.times(&a.times)
			}
			s := newStage(t).run(a, "hello")
			s.want(c.outcome, c.code, c.visible)
			if got := f.lines(); c.log != nil && !reflect.DeepEqual(got[1:], c.log) {
				t.Errorf("the server saw %q, want %q", got[1:], c.log)
			}
		})
	}
}

func repeated(f fault, n int) (all []fault) {
	for range n {
		all = append(all, f)
	}
	return all
}

// If the server has dropped chunks, the turn ends as interrupted instead of showing text with a hole.
func TestV1Gap(t *testing.T) {
	f := newV1(t)
	script := words("x", strings.Split("abcdefgh", "")...)
	for i := range script {
		seq := i + 1
		if i > 1 {
			seq += 10 // the server dropped the chunks in between
		}
		script[i] = strings.ReplaceAll(script[i], "SEQ", fmt.Sprint(seq))
	}
	f.scripts = [][]string{append(script, endTurn, counted, fin)}
	f.faults = []fault{{how: "reset", frames: 3}}
	newStage(t).run(f.agent(nil), "hello").want(event.Interrupted, codeGap, "ab")
}

func TestV1Unreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"http", "ws"} {
		a, err := newAgent(config{URL: scheme + "://" + addr, Agent: "agent-1", Background: true}, all.Registry())
		if err != nil {
			t.Fatal(err)
		}
		switch a := a.(type) {
		case *restAgent:
			a.times = quick
		case *socketAgent:
			a.times = quick
		}
		s := newStage(t).run(a, "hello")
		s.want(event.Failed, codeUnreachable, "")
		if !s.fold.Turn(turnID).Error.Retryable {
			t.Error("it is not retryable")
		}
		if err := a.(agent.Checker).Check(t.Context()); err == nil {
			t.Error("Check succeeds, want an error")
		}
	}
}

func TestV1Token(t *testing.T) {
	f := newV1(t)
	f.token = "secret-of-the-server"
	f.scripts = [][]string{plainRun("Hi.")}
	newStage(t).run(f.agent(nil), "hello").want(event.Failed, codeToken, "")
	t.Setenv("LETTA_TEST_TOKEN", "wrong")
	a := f.agent(map[string]string{"token_env": "LETTA_TEST_TOKEN"})
	if err := a.Check(t.Context()); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("Check: %v", err)
	}
	t.Setenv("LETTA_TEST_TOKEN", f.token)
	a = f.agent(map[string]string{"token_env": "LETTA_TEST_TOKEN"})
	if err := a.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	newStage(t).run(a, "hello").want(event.Completed, "", "Hi.")
}

func TestV1Check(t *testing.T) {
	f := newV1(t)
	if err := f.agent(map[string]string{"agent": "nobody"}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("an unknown agent: %v", err)
	}
	newStage(t).run(f.agent(map[string]string{"agent": "nobody"}), "hello").want(event.Failed, codeUnknown, "")
	each := f.agent(map[string]string{"agent": "agent-{subject}"})
	if err := each.Check(t.Context()); err != nil {
		t.Errorf("an agent for each user: %v", err)
	}
	f.mu.Lock()
	f.token = "secret-of-the-server"
	f.mu.Unlock()
	if err := each.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("an agent for each user, without the token: %v", err)
	}
}

func TestV1TooLarge(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{words("x", strings.Repeat("x", 5000), strings.Repeat("y", 5000), "z")}
	f.faults = []fault{{how: "gate", frames: 3}}
	a := f.agent(nil)
	if a.maxStream != agent.MaxStream {
		t.Errorf("a turn may have %d bytes", a.maxStream)
	}
	a.maxStream = 10_000
	newStage(t).run(a, "hello").want(event.Failed, codeTooLarge, strings.Repeat("x", 5000)+strings.Repeat("y", 5000))
	if got := f.lines(); got[len(got)-1] != "cancel [run-1]" {
		t.Errorf("the server saw %q", got)
	}
}

// Leat is killed after each committed chunk in turn. The answer is complete each time, without repetitions.
func TestV1KilledAnywhere(t *testing.T) {
	for n := 1; n <= len(spoken); n++ {
		f := newV1(t)
		f.scripts = [][]string{plainRun(spoken...)}
		f.faults = []fault{{how: "gate", frames: 1 + n}}
		a := f.agent(nil)
		s := newStage(t).run(a, "hello")
		s.untilText(strings.Join(spoken[:n], ""))
		s = s.kill().resume(f.agent(nil), "hello")
		s.want(event.Completed, "", said)
		want := []string{"create conv-1 of agent-1", "send message to conv-1: run-1", fmt.Sprintf("resume run-1 after %d", n)}
		if got := f.lines(); !reflect.DeepEqual(got, want) {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	}
}

// If Leat is killed before the first chunk, the server recognizes the message by its otid.
func TestV1KilledBeforeFirstFrame(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...)}
	f.faults = []fault{{how: "gate", frames: 0}}
	s := newStage(t).run(f.agent(nil), "hello")
	eventually(t, "sent", func() bool { return strings.Contains(strings.Join(f.lines(), " "), "send") })
	s = s.kill().resume(f.agent(nil), "hello")
	s.want(event.Completed, "", said)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.runs) != 1 {
		t.Errorf("there are %d runs", len(f.runs))
	}
}

func TestV1Approval(t *testing.T) {
	second := append([]string{
		`{"id":"message-r","step_id":"step-1","message_type":"tool_return_message","tool_call_id":"c1","status":"success","tool_return":"done","run_id":"RUN","seq_id":SEQ}`,
	}, plainRun("Well.")...)
	for name, c := range map[string]struct {
		decision event.Decision
		text     string
		state    event.PartState
		kill     string
	}{
		"approved":                         {event.Approve, "", event.PartDone, ""},
		"denied":                           {event.Deny, "not now", event.PartDenied, ""},
		"killed while the request is open": {event.Approve, "", event.PartDone, "waiting"},
		"killed after the answer":          {event.Approve, "", event.PartDone, "answered"},
		"killed after the answer was sent": {event.Approve, "", event.PartDone, "sent"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newV1(t)
			f.scripts = [][]string{append(words("w", "Shall I? "), callOf, waitFor, counted, fin, fin), second}
			if c.decision == event.Deny {
				f.scripts[1] = plainRun("Well.") // the real server streams nothing for a denied call
			}
			f.faults = []fault{{}, {how: "gate", frames: 0}}
			if c.kill == "" {
				f.faults = nil
			}
			a := f.agent(nil)
			s := newStage(t).run(a, "hello")
			id := s.untilAsked()
			if r := s.fold.Turn(turnID).Requests[0]; r.Part == "" || r.Tool != "Bash" {
				t.Errorf("the request is %+v", r)
			}
			switch c.kill {
			case "waiting":
				s = s.kill().resume(f.agent(nil), "hello")
				s.answer(id, c.decision, c.text)
			case "answered":
				s = s.kill()
				s.answers[id] = event.Answer{ID: id, Decision: c.decision}
				s.add(event.Event{Type: event.TurnResume, Turn: turnID, Body: &event.Body{Answer: &event.Answer{ID: id, Decision: c.decision}}})
				s.resume(f.agent(nil), "hello")
			case "sent":
				s.answer(id, c.decision, c.text)
				s.until("sent", func(*transcript.Transcript) bool { return strings.Contains(string(s.state), `"answer"`) })
				s = s.kill().resume(f.agent(nil), "hello")
			default:
				s.answer(id, c.decision, c.text)
			}
			if c.kill != "" {
				close(f.gate("gate"))
			}
			s.want(event.Completed, "", "Shall I? \n\nWell.")
			f.mu.Lock() // the killed process's requests may still arrive
			defer f.mu.Unlock()
			if len(f.runs) != 2 {
				t.Errorf("there are %d runs", len(f.runs))
			}
			for _, m := range s.fold.Messages {
				for _, p := range m.Parts {
					if p.Kind == event.KindTool && p.State != c.state {
						t.Errorf("the tool is %s, want %s", p.State, c.state)
					}
				}
			}
			var sent map[string]any
			for _, b := range f.bodies {
				if m := b["messages"]; m != nil {
					sent = m.([]any)[0].(map[string]any)
				}
			}
			ap := sent["approvals"].([]any)[0].(map[string]any)
			if ap["tool_call_id"] != "c1" || ap["approve"] != (c.decision == event.Approve) || c.text != "" && ap["reason"] != c.text {
				t.Errorf("what was sent is %v", sent)
			}
		})
	}
}

// A conversation with an open request for approval accepts a message together with a denial.
func TestV1PendingApproval(t *testing.T) {
	f := newV1(t)
	f.pending = "message-9"
	f.scripts = [][]string{plainRun("Hi.")}
	newStage(t).run(f.agent(nil), "hello").want(event.Completed, "", "Hi.")
	if got := f.lines()[1]; got != "send approval+message to conv-1: run-1" {
		t.Error(got)
	}
}

// The real server reports the open request in the stream of a failed run.
func TestV1PendingApprovalInStream(t *testing.T) {
	const conflict = "CONFLICT: Cannot send a new message: The agent is waiting for approval on a tool call. Please approve or deny the pending request before continuing."
	failed := []string{
		`{"message_type":"stop_reason","stop_reason":"error"}`,
		`{"message_type":"error_message","run_id":"RUN","error_type":"internal_error","message":"` + conflict + `","detail":"` + conflict + `","seq_id":null}`, fin,
	}
	for _, background := range []string{"true", "false"} {
		f := newV1(t)
		f.made(t, "conv-9")
		f.begin("run-before", "conv-9", "background")
		f.store("run-before", rowUser, "please ask", rowRequest, "call-1")
		f.scripts = [][]string{failed, plainRun("Hi.")}
		newStage(t).run(f.agent(map[string]string{"conversation": "conv-9", "background": background}), "hello").want(event.Completed, "", "Hi.")
		if got := f.lines(); !slices.Equal(got, []string{"send message to conv-9: run-1", "send approval+message to conv-9: run-2"}) {
			t.Errorf("background %s: the server saw %q", background, got)
		}
		answers, _ := json.Marshal(f.bodies[1]["messages"].([]any)[0].(map[string]any)["approvals"])
		if want := `[{"approve":false,"reason":"the user did not answer","tool_call_id":"call-1","type":"approval"}]`; string(answers) != want {
			t.Errorf("background %s: the refusal is %s", background, answers)
		}
	}
}

// A request that a user may still answer in another turn is not denied.
func TestV1PendingApprovalOfRunningTurn(t *testing.T) {
	f := newV1(t)
	f.made(t, "conv-9")
	f.begin("run-before", "conv-9", "background")
	f.store("run-before", rowRequest, "call-1")
	f.scripts = [][]string{{`{"message_type":"error_message","run_id":"RUN","error_type":"internal_error","message":"CONFLICT: waiting for approval","seq_id":null}`, fin}}
	a := f.agent(map[string]string{"conversation": "conv-9"})
	s := newStage(t)
	theirs := newTurn(s.input("please ask"), s.out, letta.Dialect())
	for _, b := range []string{
		`{"message_type":"approval_request_message","id":"message-1","run_id":"run-before","seq_id":1,"tool_call":{"name":"Bash","arguments":"{}","tool_call_id":"call-1"}}`,
		`{"message_type":"stop_reason","stop_reason":"requires_approval"}`,
	} {
		if _, err := theirs.lettaDecoder.Decode(dialect.Frame{Data: []byte(b)}); err != nil {
			t.Fatal(err)
		}
	}
	a.activeTurns["theirs"] = theirs
	s.run(a, "hello").want(event.Failed, codeBusy, "")
	if got := f.lines(); !slices.Equal(got, []string{"send message to conv-9: run-1"}) {
		t.Errorf("the server saw %q", got)
	}
}

// If the server rejects the denial too, the turn fails.
func TestV1PendingApprovalDenialRejected(t *testing.T) {
	f := newV1(t)
	f.made(t, "conv-9")
	f.begin("run-before", "conv-9", "background")
	f.store("run-before", rowRequest, "call-1")
	failed := []string{`{"message_type":"error_message","run_id":"RUN","error_type":"internal_error","message":"CONFLICT: waiting for approval","seq_id":null}`, fin}
	f.scripts = [][]string{failed, failed}
	newStage(t).run(f.agent(map[string]string{"conversation": "conv-9"}), "hello").want(event.Failed, "internal_error", "")
}

func TestV1ConversationDeleted(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun("Hi.")}
	s := newStage(t)
	s.session = []byte(`{"agent":"agent-1","conversation":"conv-of-before"}`)
	s.run(f.agent(nil), "hello").want(event.Completed, "", "Hi.")
	if string(s.session) != `{"agent":"agent-1","conversation":"conv-1"}` {
		t.Errorf("kept: %s", s.session)
	}
}

func TestV1DefaultConversation(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun("Hi.")}
	newStage(t).run(f.agent(map[string]string{"conversation": "default", "stream": "steps"}), "hello").want(event.Completed, "", "Hi.")
	if b := f.bodies[0]; b["agent_id"] != "agent-1" || b["stream_tokens"] != false {
		t.Errorf("the body is %v", b)
	}
}

func TestV1StopCancelsRun(t *testing.T) {
	for _, stop := range []bool{true, false} {
		f := newV1(t)
		f.scripts = [][]string{plainRun(spoken...)}
		f.faults = []fault{{how: "gate", frames: 3}}
		s := newStage(t).run(f.agent(nil), "hello")
		s.untilText("two ")
		if stop {
			s.stop()
			s.want(event.Cancelled, "", "One two ")
		} else {
			s.end(errors.New("detached"))
		}
		<-s.done
		if told := strings.Contains(strings.Join(f.lines(), "\n"), "cancel [run-1]"); told != stop {
			t.Errorf("stopped %v; the server saw %q", stop, f.lines())
		}
	}
}

// A turn that is stopped before the server has named its run waits for the name: without it the run can't be cancelled,
// and would continue.
func TestV1StopBeforeRunIsKnown(t *testing.T) {
	f := newV1(t)
	f.scripts = [][]string{plainRun(spoken...)}
	f.faults = []fault{{how: "gate", frames: 0}}
	s := newStage(t).run(f.agent(nil), "hello")
	eventually(t, "sent", func() bool { return strings.Contains(strings.Join(f.lines(), " "), "send") })
	s.stop()
	close(f.gate("gate"))
	s.want(event.Cancelled, "", "")
	<-s.done
	want := []string{"create conv-1 of agent-1", "send message to conv-1: run-1", "cancel [run-1]"}
	if got := f.lines(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %q, want %q", got, want)
	}
}

// A turn whose message was rejected because another run is active cancels nothing.
func TestV1StopWhileBusy(t *testing.T) {
	f := newV1(t)
	f.faults = repeated(fault{status: 409, header: "20", body: `{"detail":{"code":"CONVERSATION_BUSY"}}`}, 3)
	s := newStage(t).run(f.agent(nil), "hello")
	s.until("a retry", func(tr *transcript.Transcript) bool { return tr.Turn(turnID).Phase == "retrying" })
	s.stop()
	s.want(event.Cancelled, "", "")
	<-s.done
	if got := f.lines(); strings.Contains(strings.Join(got, "\n"), "cancel") {
		t.Errorf("the server saw %q", got)
	}
}

func TestKindRejects(t *testing.T) {
	for spec, want := range map[string]string{
		"letta:http://127.0.0.1:8283":                                      "agent is missing",
		"letta:ftp://127.0.0.1?agent=a":                                    "scheme",
		"letta:nonsense?agent=a":                                           "not the URL",
		"letta:http://me:secret@127.0.0.1?agent=a":                         "name or password",
		"letta:http://127.0.0.1?agent={whom}":                              "{whom}",
		"letta:http://127.0.0.1?agent=a&stream=words":                      "tokens or steps",
		"letta:http://127.0.0.1?agent=a&background=perhaps":                "true or false",
		"letta:http://127.0.0.1?agent=a&mode=standard":                     "App Server",
		"letta:ws://127.0.0.1?agent=a&background=false":                    "V1",
		"letta:ws://127.0.0.1?agent=a&token_env=NO_SUCH_VARIABLE_ANYWHERE": "NO_SUCH_VARIABLE_ANYWHERE",
	} {
		s, err := agent.ParseSpec(spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (agent.Kinds{Kind(all.Registry())}).Make(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", spec, err, want)
		}
	}
}

// TestV1PathsAreEscaped checks that an id that an upstream or an operator chooses can't lead a request, which has the server's token, to
// another resource.
func TestV1PathsAreEscaped(t *testing.T) {
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path = r.URL.EscapedPath() }))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	r := newREST(base{url: u, dialect: letta.Dialect(), times: quick})
	t.Cleanup(r.Close)
	for want, elements := range map[string][]string{
		"/base/v1/runs/":                                    {"runs/"},
		"/base/v1/runs/run-1/messages":                      {"runs", "run-1", "messages"},
		"/base/v1/runs/..%2F..%2Fagents%2Fagent-1/cancel":   {"runs", "../../agents/agent-1", "cancel"},
		"/base/v1/conversations/%2E%2E":                     {"conversations", ".."},
		"/base/v1/conversations/a%3Fagent_id=b%23/messages": {"conversations", "a?agent_id=b#", "messages"},
	} {
		res, err := r.call(t.Context(), http.MethodGet, nil, nil, elements...)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close() // the path is what counts
		if path != want {
			t.Errorf("%q: got path %s, want %s", elements, path, want)
		}
	}
}
