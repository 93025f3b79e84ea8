package openclaw

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/leat-dev/leat/event"
)

// startRun starts a run that no client prompted. prompt, which may be nil, is the row that shows what started it.
func (f *fakeGateway) startRun(id string, prompt map[string]any, play func(*fakeRun)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sessions[theirs]
	if s == nil {
		s = &fakeSession{}
		f.sessions[theirs] = s
	}
	r := &fakeRun{f: f, id: id, session: theirs}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	f.runs[id], s.inFlight = r, r
	if prompt != nil {
		prompt["timestamp"] = time.Now().UnixMilli()
		s.append(prompt, map[string]any{"turnBoundary": true})
	}
	f.tasks.Go(func() { play(r) })
}

// forwardedPrompt returns the row of a prompt from a schedule or another session, as the gateway shows it: as the assistant's,
// under a key that isn't the run's.
func forwardedPrompt(kind, tool, text string) map[string]any {
	return map[string]any{
		"role": "assistant", "content": text, "idempotencyKey": "prompt-of-" + tool + ":user", "senderLabel": "Forwarded from daily",
		"provenance": map[string]any{"kind": kind, "sourceTool": tool, "sourceSessionKey": theirs},
	}
}

// A prompt of a schedule or of another session is not shown as the agent's message, and its run doesn't answer the user's
// message.
func TestFollowForwarded(t *testing.T) {
	for tool, kind := range map[string]string{"cron": "internal_system", "sessions_send": "inter_session"} {
		for name, meanwhile := range map[string]func(f *fakeGateway, again func()){
			"live":       func(*fakeGateway, func()) {},
			"over a cut": func(f *fakeGateway, _ func()) { f.dropConnections() },
			"over a restart": func(_ *fakeGateway, again func()) {
				time.Sleep(10 * time.Second)
				again()
			},
		} {
			t.Run(tool+" "+name, func(t *testing.T) {
				followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, again func()) {
					f.addPrompt("r1", "one?")
					time.Sleep(10 * time.Second)
					f.startRun("scheduled", forwardedPrompt(kind, tool, "tidy up"), runWithGap)
					time.Sleep(time.Second)
					if h := c.run("scheduled"); h == nil || h.visible() == "" {
						t.Fatal("the run is not shown while it runs")
					}
					meanwhile(f, again)
					time.Sleep(time.Minute)
					c.checkLog(t, "user (): one?", "run r1:user live", "system ("+tool+"): tidy up", "run prompt-of-"+tool+":user live from "+tool)
					h := c.run("scheduled")
					h.checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
				})
			})
		}
	}
}

// An announcement of a subagent is a run in its parent's session without a prompt in any history. It is shown at once, and not
// as the answer to the previous message.
func TestFollowAnnouncement(t *testing.T) {
	const id = "announce:v1:agent:main:subagent:s1:run-of-the-helper"
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, again func()) {
		f.addPrompt("r1", "one?")
		time.Sleep(10 * time.Second)
		f.startRun(id, nil, runWithGap)
		time.Sleep(time.Second)
		if h := c.run(id); h == nil || h.visible() == "" {
			t.Fatal("the announcement is not shown while it is made")
		}
		time.Sleep(10 * time.Second)
		again()
		time.Sleep(time.Minute)
		c.checkLog(t, "user (): one?", "run r1:user live", "run  live from subagent")
		c.run(id).checkTurn(t, event.Completed, "Let me look.\n\nThere is a file.")
	})
}

// The first content of a run may arrive before the history shows the run. The run is shown as soon as the history does.
func TestFollowUnlistedRun(t *testing.T) {
	slow := func(r *fakeRun) {
		name := func(unnamed bool) {
			r.f.mu.Lock()
			defer r.f.mu.Unlock()
			r.isUnlisted = unnamed
		}
		name(true)
		r.speak("1", "The helper")
		r.wait(2500 * time.Millisecond)
		name(false)
		r.wait(20 * time.Second)
		r.final("1", "The helper has ended.")
	}
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, again func()) {
		f.addPrompt("r1", "one?")
		time.Sleep(10 * time.Second)
		f.startRun("announce:v1:agent:main:subagent:s1:r1", nil, slow)
		time.Sleep(5 * time.Second)
		h := c.run("announce:v1:agent:main:subagent:s1:r1")
		if h == nil || h.visible() != "The helper" {
			t.Fatal("the run is not shown while it runs")
		}
		time.Sleep(time.Minute)
		h.checkTurn(t, event.Completed, "The helper has ended.")
		read := f.count("chat.history")
		time.Sleep(time.Hour)
		if more := f.count("chat.history") - read; more > 0 {
			t.Errorf("the session is read %d times while nothing happens", more)
		}
	})
}

// Frames of a heartbeat only reach clients that subscribe to its session, and no history shows its prompt.
func TestFollowHeartbeat(t *testing.T) {
	beat := func(r *fakeRun) {
		r.isQuiet = true
		row := textContent("The disk is nearly full.")
		row["role"], row["stopReason"] = "assistant", "stop"
		row["__openclaw"] = map[string]any{"turnBoundary": true}
		r.addRows(row)
		r.end("final", map[string]any{"stopReason": "stop", "message": textContent("The disk is nearly full.")})
	}
	followSession(t, runWithGap, func(t *testing.T, f *fakeGateway, a *gatewayAgent, c *conversations, again func()) {
		f.addPrompt("r1", "one?")
		time.Sleep(10 * time.Second)
		f.startRun("beat-1", nil, beat)
		time.Sleep(time.Second)
		c.checkLog(t, "user (): one?", "run r1:user live", "run  whole from heartbeat")
		f.dropConnections()
		time.Sleep(10 * time.Second)
		f.startRun("beat-2", nil, beat)
		time.Sleep(time.Second)
		c.checkLog(t, "user (): one?", "run r1:user live", "run  whole from heartbeat", "run  whole from heartbeat")
		c.run("beat-2").checkTurn(t, event.Completed, "The disk is nearly full.")
	})
}

// While an announcement or a heartbeat runs, a user's message is queued. Neither is taken for the run that answers it.
func TestUnpromptedRunAnswersNoMessage(t *testing.T) {
	const announce = "announce:v1:agent:main:subagent:s1:r1"
	asked := `{"role":"user","content":"hello","idempotencyKey":"mine:user","__openclaw":{"id":"1","seq":1}}`
	said := `{"role":"assistant","content":"The helper has ended.","__openclaw":{"id":"2","seq":2,"runId":"` + announce + `"}}`
	beat := `{"role":"assistant","content":"The disk is full.","__openclaw":{"id":"3","seq":3,"runId":"beat","turnBoundary":true}}`
	answer := `{"role":"assistant","content":"Hello!","__openclaw":{"id":"4","seq":4,"runId":"theirs"}}`
	q := runQuery{run: "mine", protocol: numberedProtocol}
	for name, test := range map[string]struct{ history, want string }{
		"an announcement":             {`{"messages":[` + asked + `,` + said + `]}`, ""},
		"an announcement in progress": {`{"messages":[` + asked + `],"inFlightRun":{"runId":"` + announce + `"}}`, ""},
		"a heartbeat":                 {`{"messages":[` + asked + `,` + beat + `]}`, ""},
		"the answer after both":       {`{"messages":[` + asked + `,` + said + `,` + beat + `,` + answer + `]}`, "theirs"},
	} {
		var h sessionHistory
		if err := json.Unmarshal([]byte(test.history), &h); err != nil {
			t.Fatal(err)
		}
		if got, _ := h.answering(q, true); got != test.want {
			t.Errorf("%s: run %q answers the message, want %q", name, got, test.want)
		}
		if got, _ := h.successor(func(id string) bool { return id == "mine" }, func(string) bool { return false }); got != "" {
			t.Errorf("%s: run %q continues the turn", name, got)
		}
	}
}

// A gateway that is killed before it has written anything of a run continues it as another one. That run answers the unanswered
// message and continues its turn, whatever the id of the lost run.
func TestRecoveryAnswersTheMessage(t *testing.T) {
	const rows = `{"messages":[
		{"role":"user","content":"one?","idempotencyKey":"k4:user","__openclaw":{"id":"1","seq":1}},
		{"role":"assistant","content":"One.","stopReason":"stop","__openclaw":{"id":"2","seq":2,"runId":"k4"}},
		{"role":"user","content":"two?","idempotencyKey":"k5:user","__openclaw":{"id":"3","seq":3}},
		{"role":"user","content":"Go on.","idempotencyKey":"rec:user","provenance":{"kind":"internal_system","sourceTool":"` + recoveryTool + `"},"__openclaw":{"id":"4","seq":4}},
		{"role":"assistant","content":"Two.","stopReason":"stop","__openclaw":{"id":"5","seq":5,"runId":"rec"}}]}`
	var h sessionHistory
	if err := json.Unmarshal([]byte(rows), &h); err != nil {
		t.Fatal(err)
	}
	f := newFake(t, numberedProtocol, nil)
	defer f.stop()
	a := newAgent(t, f, nil)
	defer a.Close()
	g := &gatherer{w: &watch{a: a, conversation: "C1", unexplainedSince: map[string]time.Time{}}, h: &h, session: theirs}
	g.addRows(0, "")
	var keys []string
	for _, e := range g.entries {
		keys = append(keys, e.Key)
	}
	if want := []string{"k4:user", "k4", "k5:user", "k5"}; !slices.Equal(keys, want) {
		t.Errorf("entries %q, want %q", keys, want)
	}
	if got, _ := h.successor(func(id string) bool { return id == "k5" }, func(id string) bool { return id == "lost" }); got != "rec" {
		t.Errorf("run %q continues the turn, want rec", got)
	}
}
