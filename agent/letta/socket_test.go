package letta

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/transcript"
)

func TestAppServerPlain(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{append([]string{"think Hm. "}, spoken...), {"Again."}}
	a := f.agent(map[string]string{"agent": "agent-{subject}"})
	s := newStage(t).run(a, "hello")
	s.want(event.Completed, "", said)
	if p := s.fold.Messages[0].Parts[0]; p.Kind != event.KindReasoning || p.Text(event.Text) != "Hm. " {
		t.Errorf("the first part is %s %q", p.Kind, p.Text(event.Text))
	}
	next := newStage(t)
	next.session, next.key = s.session, "next"
	next.run(a, "more").want(event.Completed, "", "Again.")
	if got, want := f.lines(), []string{"make local-conv-1 of agent-ann", "started hello", "started more"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the server saw %q, want %q", got, want)
	}
}

func TestAppServerFaults(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  []fault
		break1  []fault
		script  []string
		times   func(*times)
		outcome event.Outcome
		code    string
		visible string
	}{
		"429 with a Retry-After that is too long": {refuse: []fault{{status: 429, header: "3600"}}, outcome: event.Failed, code: codeStatus},
		"429 without Retry-After":                 {refuse: []fault{{status: 429}}, outcome: event.Completed, visible: said},
		"5xx":                                     {refuse: []fault{{status: 500}, {status: 503}}, outcome: event.Completed, visible: said},
		"dropped":                                 {refuse: []fault{{drop: true}}, outcome: event.Completed, visible: said},
		"403":                                     {refuse: []fault{{status: 403}}, outcome: event.Failed, code: codeToken},
		"404":                                     {refuse: []fault{{status: 404}}, outcome: event.Failed, code: codeUnknown},
		"silence":                                 {refuse: []fault{{how: "silence"}}, times: func(t *times) { t.answer = 500 * time.Millisecond }, outcome: event.Completed, visible: said},
		"reset": {
			// The server cancelled the turn with its connection; the text in the history is shown.
			break1: []fault{{how: "reset", frames: 2}}, outcome: event.Interrupted, code: codeLost, visible: "One two ",
		},
		"half a frame":  {break1: []fault{{how: "half", frames: 2}}, outcome: event.Interrupted, code: codeLost, visible: "One two "},
		"reset at once": {break1: []fault{{how: "reset"}}, outcome: event.Interrupted, code: codeLost},
		"garbage":       {break1: []fault{{how: "garbage", frames: 2}}, outcome: event.Failed, code: "other", visible: "One two "},
		"a retry": {
			script: []string{"One ", "retry", "One ", "two."}, outcome: event.Completed, visible: "One two.",
		},
		"a failure of the model":             {script: []string{"One ", "stop llm_api_error"}, outcome: event.Failed, code: "llm_api_error", visible: "One "},
		"too many tokens":                    {script: []string{"One ", "stop max_tokens_exceeded"}, outcome: event.Completed, visible: "One "},
		"the end twice, and frames after it": {script: []string{"One ", "twice"}, outcome: event.Completed, visible: "One "},
		"slow loris":                         {break1: []fault{{how: "loris"}}, script: spoken, outcome: event.Completed, visible: said},
		"an empty answer":                    {script: []string{}, outcome: event.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newAppServer(t)
			f.refuse, f.break1 = c.refuse, c.break1
			if c.script == nil {
				c.script = append([]string{spoken[0], spoken[1]}, spoken[2:]...)
				if c.break1 != nil {
					c.script = []string{spoken[0], spoken[1], "lost", "gate never"}
				}
			}
			f.scripts = [][]string{c.script}
			a := f.agent(nil)
			if c.times != nil {
				c.times(&a.times)
			}
			s := newStage(t).run(a, "hello")
			turn := s.ended()
			got := ""
			if turn.Error != nil {
				got = turn.Error.Code
			}
			v := s.fold.Visible(turnID)
			right := v == c.visible
			if c.code == codeLost { // the history may contain more than was sent
				right = strings.HasPrefix(v, c.visible) && strings.HasPrefix("One two lost", v)
			}
			if turn.Outcome != c.outcome || got != c.code || !right {
				t.Errorf("the turn ended as %s %+v with %q, want %s %q with %q", turn.Outcome, turn.Error, v, c.outcome, c.code, c.visible)
			}
		})
	}
}

func TestAppServerToken(t *testing.T) {
	f := newAppServer(t)
	f.token = "secret-of-the-server"
	f.scripts = [][]string{{"Hi."}}
	newStage(t).run(f.agent(nil), "hello").want(event.Failed, codeToken, "")
	if err := f.agent(nil).Check(t.Context()); err == nil {
		t.Error("Check succeeds, want an error")
	}
	t.Setenv("LETTA_TEST_TOKEN", f.token)
	a := f.agent(map[string]string{"token_env": "LETTA_TEST_TOKEN"})
	if err := a.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	newStage(t).run(a, "hello").want(event.Completed, "", "Hi.")
}

// A pause that the server asks for is kept.
func TestAppServerRetryAfter(t *testing.T) {
	t.Parallel()
	f := newAppServer(t)
	f.refuse = []fault{{status: 429, header: "1"}}
	f.scripts = [][]string{spoken}
	begin := time.Now()
	newStage(t).run(f.agent(nil), "hello").want(event.Completed, "", said)
	if d := time.Since(begin); d < time.Second {
		t.Errorf("the retry came after only %s", d)
	}
}

// If the connection silently drops all frames during a turn, pings detect it, and the turn is resumed.
func TestAppServerSilentConnection(t *testing.T) {
	t.Parallel()
	f := newAppServer(t)
	f.break1 = []fault{{how: "silence", frames: 2}}
	f.scripts = [][]string{{"One ", "two ", "three ", "gate back", "four."}}
	a := f.agent(nil)
	a.times.stall, a.times.dial = 300*time.Millisecond, 2*time.Second
	s := newStage(t).run(a, "hello")
	s.untilText("three ")
	close(f.gate("back"))
	s.want(event.Completed, "", "One two three four.")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns < 2 {
		t.Errorf("there were %d connections", f.conns)
	}
}

func TestAppServerTooLarge(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{strings.Repeat("x", 5000), strings.Repeat("y", 5000), "gate never"}}
	a := f.agent(nil)
	if a.maxStream != agent.MaxStream {
		t.Errorf("a turn may have %d bytes", a.maxStream)
	}
	a.maxStream = 10_000
	newStage(t).run(a, "hello").want(event.Failed, codeTooLarge, strings.Repeat("x", 5000)+strings.Repeat("y", 5000))
	if got := f.lines(); got[len(got)-1] != "abort" {
		t.Errorf("the server saw %q", got)
	}
}

func TestAppServerCheck(t *testing.T) {
	f := newAppServer(t)
	if err := f.agent(nil).Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := f.agent(map[string]string{"agent": "nobody"}).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the agent nobody") {
		t.Errorf("an unknown agent: %v", err)
	}
	if err := f.agent(map[string]string{"agent": "{subject}"}).Check(t.Context()); err != nil {
		t.Errorf("an agent for each user: %v", err)
	}
	if got := f.lines(); len(got) > 0 {
		t.Errorf("Check sent %q", got)
	}
	f.mu.Lock()
	f.version = 2
	f.mu.Unlock()
	if err := f.agent(nil).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "protocol 2") {
		t.Errorf("another protocol: %v", err)
	}
}

func TestAppServerUnknownAgent(t *testing.T) {
	f := newAppServer(t)
	newStage(t).run(f.agent(map[string]string{"agent": "nobody"}), "hello").want(event.Failed, codeUnknown, "")
}

func TestAppServerConversationDeleted(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Hi."}}
	s := newStage(t)
	s.session = []byte(`{"agent":"agent-1","conversation":"local-conv-of-before"}`)
	s.run(f.agent(nil), "hello").want(event.Completed, "", "Hi.")
	if string(s.session) != `{"agent":"agent-1","conversation":"local-conv-1"}` {
		t.Errorf("kept: %s", s.session)
	}
}

func TestAppServerApproval(t *testing.T) {
	for name, c := range map[string]struct {
		decision   event.Decision
		text, told string
		state      event.PartState
	}{
		"approved": {event.Approve, "", "answer perm-c1 map[behavior:allow]", event.PartDone},
		"denied":   {event.Deny, "not now", "answer perm-c1 map[behavior:deny message:not now]", event.PartDenied},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAppServer(t)
			f.scripts = [][]string{{"May I? ", "ask c1", "step", "Well."}}
			s := newStage(t).run(f.agent(nil), "hello")
			id := s.untilAsked()
			s.answer(id, c.decision, c.text)
			s.want(event.Completed, "", "May I? \n\nWell.")
			if got := f.lines(); got[len(got)-1] != c.told {
				t.Errorf("the server saw %q", got)
			}
			if p := s.fold.Messages[0].Parts[1]; p.State != c.state {
				t.Errorf("the tool is %s", p.State)
			}
		})
	}
}

func TestAppServerQuestion(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"question c1", "step", "Well."}}
	s := newStage(t).run(f.agent(nil), "hello")
	id := s.untilAsked()
	if r := s.fold.Turn(turnID).Requests[0]; r.Kind != event.RequestInput || r.Prompt != "Which?" || !reflect.DeepEqual(r.Options, []string{"red", "blue"}) {
		t.Errorf("the request is %+v", r)
	}
	s.answer(id, "blue", "")
	s.want(event.Completed, "", "Well.")
	if got := strings.Join(f.lines(), "\n"); !strings.Contains(got, "answers:map[Which?:blue]") {
		t.Errorf("the server saw %s", got)
	}
}

// If another client answers a request, it is closed in Leat too, and a later answer changes nothing.
func TestAppServerApprovedByOtherClient(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"ask c1", "step", "Well."}}
	s := newStage(t).run(f.agent(nil), "hello")
	s.untilAsked()
	other := f.watch("local-conv-1")
	const yes = `{"type":"input","runtime":{"agent_id":"agent-1","conversation_id":"local-conv-1"},"payload":{"kind":"approval_response","request_id":"perm-c1","decision":{"behavior":"allow"}}}`
	if err := other.Write(t.Context(), websocket.MessageText, []byte(yes)); err != nil {
		t.Fatal(err)
	}
	s.want(event.Completed, "", "Well.")
}

func TestAppServerStopAbortsTurn(t *testing.T) {
	for _, stop := range []bool{true, false} {
		f := newAppServer(t)
		f.scripts = [][]string{{"One ", "gate never"}}
		s := newStage(t).run(f.agent(nil), "hello")
		s.untilText("One ")
		if stop {
			s.stop()
			s.want(event.Cancelled, "", "One ")
		} else {
			s.end(errors.New("detached"))
		}
		<-s.done
		if told := strings.Contains(strings.Join(f.lines(), "\n"), "abort"); told != stop {
			t.Errorf("stopped %v; the server saw %q", stop, f.lines())
		}
	}
}

// Leat is killed during a turn, with and without another viewer that keeps the turn running. No text is lost or repeated.
func TestAppServerKilled(t *testing.T) {
	for name, c := range map[string]struct {
		watched bool
		outcome event.Outcome
		code    string
		visible string
	}{
		"with another viewer":    {true, event.Completed, "", "One two three four.\n\nFive."},
		"without another viewer": {false, event.Interrupted, codeLost, "One two "},
	} {
		t.Run(name, func(t *testing.T) {
			f := newAppServer(t)
			f.scripts = [][]string{{"One ", "two ", "gate killed", "three ", "gate back", "four.", "step", "Five."}}
			s := newStage(t).run(f.agent(nil), "hello")
			s.untilText("two ")
			if c.watched {
				f.watch("local-conv-1")
			}
			next := s.kill()
			if c.watched {
				close(f.gate("killed"))
			}
			f.until("the run waits at the gate or has ended", func() bool {
				c1 := f.convs["local-conv-1"]
				if !c.watched {
					return c1.cancel == nil
				}
				p, ok := c1.past[len(c1.past)-1]["content"].([]any)
				return ok && p[0].(map[string]any)["text"] == "One two three "
			})
			next.resume(f.agent(nil), "hello")
			if c.watched {
				next.untilText("three ")
			}
			close(f.gate("back"))
			next.want(c.outcome, c.code, c.visible)
		})
	}
}

// Leat is killed while a request is open. The request is shown once, and can be answered after the restart.
func TestAppServerKilledWhileRequestIsOpen(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"May I? ", "ask c1", "step", "Well."}}
	s := newStage(t).run(f.agent(nil), "hello")
	id := s.untilAsked()
	f.watch("local-conv-1")
	s = s.kill()
	s.resume(f.agent(nil), "hello")
	s.answer(id, event.Approve, "")
	s.want(event.Completed, "", "May I? \n\nWell.")
	waits := 0
	for _, e := range s.events {
		if e.Type == event.TurnWait {
			waits++
		}
	}
	if waits != 1 {
		t.Errorf("the request was opened %d times, want once", waits)
	}
}

// While another client's turn runs, its text doesn't appear in Leat's turn.
func TestAppServerQueuesBehindOthers(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs.", "gate theirs", "Theirs too."}, {"Ours."}}
	other := newStage(t)
	other.key = "theirs"
	other.run(f.agent(nil), "their message")
	other.untilText("Theirs.")
	s := newStage(t)
	s.session = other.session
	s.run(f.agent(nil), "our message")
	f.until("queued", func() bool { return strings.Contains(strings.Join(f.log, "\n"), "queued our message") })
	close(f.gate("theirs"))
	s.want(event.Completed, "", "Ours.")
	other.want(event.Completed, "", "Theirs.Theirs too.")
}

// Stopping a turn pauses the server's queue; the next turn resumes it.
func TestAppServerTurnAfterStop(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Theirs.", "gate never"}, {"Ours."}, {"And more."}}
	other := newStage(t)
	other.key = "theirs"
	other.run(f.agent(nil), "their message")
	other.untilText("Theirs.")
	s := newStage(t)
	s.session = other.session
	s.run(f.agent(nil), "our message")
	f.until("queued", func() bool { return strings.Contains(strings.Join(f.log, "\n"), "queued our message") })
	other.stop()
	s.want(event.Completed, "", "Ours.")
	next := newStage(t)
	next.session, next.key = s.session, "next"
	next.run(f.agent(nil), "another").want(event.Completed, "", "And more.")
}

func TestAppServerSteer(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"Let me. ", "gate talk", "run c1", "gate tool", "return c1", "take", "step", "Both."}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.untilText("Let me. ")
	m := agent.Message{ID: "second", Role: event.User, Text: "and this"}
	if err := a.Steer(t.Context(), s.input("hello"), m); !errors.Is(err, agent.ErrNotSteered) {
		t.Errorf("Steer during the text: %v", err)
	}
	close(f.gate("talk"))
	s.until("the tool runs", func(tr *transcript.Transcript) bool { return len(tr.Messages) > 0 && len(tr.Messages[0].Parts) > 1 })
	if err := a.Steer(t.Context(), s.input("hello"), m); err != nil {
		t.Errorf("Steer during a tool: %v", err)
	}
	close(f.gate("tool"))
	s.want(event.Completed, "", "Let me. \n\nBoth.")
	if err := a.Steer(t.Context(), s.input("hello"), m); !errors.Is(err, agent.ErrNotSteered) {
		t.Errorf("Steer after the end: %v", err)
	}
}

// A message that is too late to join the server's turn is answered in another one, which belongs to the same turn of Leat.
func TestAppServerSteerTooLate(t *testing.T) {
	f := newAppServer(t)
	f.scripts = [][]string{{"run c1", "gate tool", "return c1", "step", "First."}, {"Second."}}
	a := f.agent(nil)
	s := newStage(t).run(a, "hello")
	s.until("the tool runs", func(tr *transcript.Transcript) bool { return len(tr.Messages) > 0 && len(tr.Messages[0].Parts) > 0 })
	if err := a.Steer(t.Context(), s.input("hello"), agent.Message{ID: "second", Role: event.User, Text: "and this"}); err != nil {
		t.Fatal(err)
	}
	close(f.gate("tool"))
	s.want(event.Completed, "", "First.\n\nSecond.")
}

// If each connection breaks for the same reason, such as an oversized list, Leat gives up after a few attempts.
func TestAppServerBreaksRepeatedly(t *testing.T) {
	f := newAppServer(t)
	f.noLists = true
	f.break1 = []fault{{how: "reset", frames: 2}}
	f.scripts = [][]string{{"One ", "gate watched", "two ", "three ", "gate never"}}
	s := newStage(t).run(f.agent(nil), "hello")
	s.untilText("One ")
	f.watch("local-conv-1")
	close(f.gate("watched"))
	s.want(event.Interrupted, codeLost, "One two ")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns != 3+maxCalls {
		t.Errorf("there were %d connections", f.conns)
	}
}

// A busy server may list the messages before it reports that the turn is running.
func TestAppServerListBeforeStatus(t *testing.T) {
	f := newAppServer(t)
	f.late = true
	f.break1 = []fault{{how: "reset", frames: 2}}
	f.scripts = [][]string{{"One ", "gate watched", "two ", "three ", "gate back", "four."}}
	s := newStage(t).run(f.agent(nil), "hello")
	s.untilText("One ")
	f.watch("local-conv-1")
	close(f.gate("watched"))
	s.untilText("three ")
	close(f.gate("back"))
	s.want(event.Completed, "", "One two three four.")
}
