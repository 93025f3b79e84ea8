package elizaws

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/status"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

var alice = gateway.Principal{Tenant: "t1", Subject: "alice", Scopes: []string{gateway.ScopeAgent}}

// as returns the headers with which the admin acts for a user of the tenant t1.
func as(subject string) []string { return []string{"Leat-Subject", subject, "Leat-Tenant", "t1"} }

// After 2,000 signals, a new client gets the last 120 in order. A client with a cursor gets all stored ones after it.
func TestReplay(t *testing.T) {
	j := memory.New()
	defer func() { _ = j.Close() }()
	h := openHarness(t, j, nil)
	h.publish(2000, "")
	check := func(c *client, from, to int) {
		t.Helper()
		for i := from; i <= to; i++ {
			if f := c.want("training_event"); f.EventID != fmt.Sprint("evt-", i) || string(f.Payload) != fmt.Sprintf(`{"value":%d}`, i) {
				t.Fatalf("got %s, want number %d", f.raw, i)
			}
		}
		c.send(`{"type":"ping"}`).want("pong") // and nothing else
	}
	check(h.greeted(""), 1881, 2000)
	check(h.greeted("?lastEventId=nonsense"), 1881, 2000)
	check(h.greeted("?lastEventId=evt-1700"), 1701, 2000)
	check(h.greeted("?since=1998"), 1999, 2000)
	check(h.greeted("?lastEventId=evt-2000"), 1, 0)
	c := h.greeted("?lastEventId=evt-3")
	if f := c.want("replay-gap"); f.raw != `{"type":"replay-gap","after":"evt-3","first":"evt-501"}` {
		t.Errorf("gap %s", f.raw)
	}
	check(c, 501, 2000)
	for cursor, want := range map[string]struct {
		gap  string
		from int
	}{
		"evt-0":    {`{"type":"replay-gap","after":"evt-0","first":"evt-501"}`, 501},
		"evt-9999": {`{"type":"replay-gap","after":"evt-9999","first":"evt-1881"}`, 1881},
	} {
		c := h.greeted("?lastEventId=" + cursor)
		if f := c.want("replay-gap"); f.raw != want.gap {
			t.Errorf("%s: gap %s", cursor, f.raw)
		}
		check(c, want.from, 2000)
	}
	// The limit counts the signals that the user may see, and a user may see none of these.
	if f := h.greeted("?lastEventId=evt-9999", as("alice")...).want("replay-gap"); f.raw != `{"type":"replay-gap","after":"evt-9999"}` {
		t.Errorf("gap %s", f.raw)
	}

	// After a restart the numbers continue, and no stored signal is missing.
	h.close()
	h = openHarness(t, j, nil)
	if _, err := h.log.Publish(t.Context()); err != nil || h.log.Head() != 2000 {
		t.Fatalf("head %d, %v", h.log.Head(), err)
	}
	h.wantCall(200, `{"ok":true,"eventId":"evt-2001"}`, "POST", "/api/agent/event", `{"stream":"system","data":{"a":1}}`)
	c = h.greeted("?lastEventId=evt-1990")
	for i := 1991; i <= 2000; i++ {
		if f := c.want("training_event"); f.EventID != fmt.Sprint("evt-", i) {
			t.Fatalf("got %s, want number %d", f.raw, i)
		}
	}
	if f := c.want("agent_event"); f.EventID != "evt-2001" {
		t.Errorf("got %s", f.raw)
	}
}

// The signals of an HTTP client have the frames that docs/eliza.md specifies.
func TestPublish(t *testing.T) {
	h := newHarness(t, nil)
	conv := h.create(admin)
	c := h.greeted("")
	c.send(`{"type":"ping"}`).want("pong")
	h.wantCall(200, `{"ok":true,"eventId":"evt-1"}`, "POST", "/api/agent/event",
		`{"stream":"autonomy","data":{"a":"<b>"},"roomId":"`+conv+`","runId":"run-xyz","seq":42,"sessionKey":"session-key","agentId":"agent-uuid"}`)
	wantFrame(t, c.want("agent_event"), `{"type":"agent_event","version":1,"eventId":"evt-1","ts":TS,"runId":"run-xyz","seq":42,"stream":"autonomy","sessionKey":"session-key","agentId":"agent-uuid","roomId":"`+conv+`","payload":{"a":"<b>"}}`)
	h.wantCall(200, `{"ok":true,"accepted":3,"lastEventId":"evt-4"}`, "POST", "/api/signals",
		`{"type":"training_event","payload":{"phase":"training","progress":0.45,"message":"Training epoch 5/10"}}`+"\n\n"+`{"type":"training_event","payload":[1]}`+"\r\n"+`{"type":"heartbeat_event"}`)
	wantFrame(t, c.want("training_event"), `{"type":"training_event","version":1,"eventId":"evt-2","ts":TS,"payload":{"phase":"training","progress":0.45,"message":"Training epoch 5/10"}}`)
	wantFrame(t, c.want("training_event"), `{"type":"training_event","version":1,"eventId":"evt-3","ts":TS,"payload":{"value":[1]}}`)
	wantFrame(t, c.want("heartbeat_event"), `{"type":"heartbeat_event","version":1,"eventId":"evt-4","ts":TS,"payload":{}}`)

	for body, want := range map[string]string{
		`{"type":"training_event"}` + "\n" + `{"type":"dance"}`:                     "line 2: invalid signal",
		`{"type":"training_event"}` + "\n{":                                         "line 2: ",
		`{"type":"training_event","payload":"` + strings.Repeat("x", 40_000) + `"}`: "payload has 40002 bytes",
		`{"type":"training_event","seq":-1}`:                                        "seq -1",
	} {
		h.wantCall(400, want, "POST", "/api/signals", body)
	}
	h.wantCall(400, "stream is required", "POST", "/api/agent/event", `{"data":1}`)
	h.wantCall(404, "not found", "POST", "/api/agent/event", `{"stream":"system","roomId":"nowhere"}`)
	h.wantCall(413, "1000 signals", "POST", "/api/signals", strings.Repeat(`{"type":"training_event"}`+"\n", 1001))
	if h.log.Head() != 4 {
		t.Errorf("what was refused was written: head %d", h.log.Head())
	}
}

var times = regexp.MustCompile(`"(ts|durationMs|startedAt|uptime)":\d+`)

// wantFrame compares a frame byte by byte, except for times.
func wantFrame(t *testing.T, f frame, want string) {
	t.Helper()
	if got := times.ReplaceAllString(f.raw, `"$1":TS`); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// GET /api/agent/events fills gaps.
func TestEvents(t *testing.T) {
	h := newHarness(t, nil)
	h.wantCall(200, `{"events":[],"latestEventId":null,"totalBuffered":0,"replayed":true}`, "GET", "/api/agent/events", "")
	h.publish(1, "") // no training events in the response
	for i := 1; i <= 5; i++ {
		h.wantCall(200, "", "POST", "/api/agent/event", fmt.Sprintf(`{"stream":"system","runId":"r%d","seq":%d}`, i%2, i))
	}
	for query, want := range map[string]string{
		"":                            "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?limit=2":                    "evt-2 evt-3",
		"?limit=0":                    "evt-2",
		"?limit=-7":                   "evt-2",
		"?limit=5000":                 "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?limit=99999999999999999999": "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?limit=x":                    "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?after=evt-4":                "evt-5 evt-6",
		"?after=evt-9999":             "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?after=x":                    "evt-2 evt-3 evt-4 evt-5 evt-6",
		"?runId=r1":                   "evt-2 evt-4 evt-6",
		"?runId=r1&fromSeq=3":         "evt-4 evt-6",
	} {
		code, body := h.call("GET", "/api/agent/events"+query, "")
		var a struct {
			Events []frame
			Latest *string `json:"latestEventId"`
			Total  int     `json:"totalBuffered"`
		}
		if err := json.Unmarshal([]byte(body), &a); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", query, code, body)
		}
		var ids []string
		for _, e := range a.Events {
			ids = append(ids, e.EventID)
		}
		if got := strings.Join(ids, " "); got != want || a.Total != 5 || len(ids) > 0 && *a.Latest != ids[len(ids)-1] {
			t.Errorf("%s: %s", query, body)
		}
	}
	h.wantCall(400, `Invalid \"fromSeq\" filter.`, "GET", "/api/agent/events?fromSeq=x", "")
}

// Only users who may read its conversation see a signal, and it is deleted with the conversation.
func TestSight(t *testing.T) {
	h := newHarness(t, nil)
	conv := h.create(alice)
	a, b := h.greeted("", as("alice")...), h.greeted("", as("bob")...)
	h.wantCall(404, "not found", "POST", "/api/agent/event", `{"stream":"system","roomId":"`+conv+`"}`, as("bob")...)
	h.wantCall(404, "not found", "POST", "/api/signals", `{"type":"agent_event","roomId":"`+conv+`"}`, as("bob")...)
	h.wantCall(403, "forbidden", "POST", "/api/agent/event", `{"stream":"system"}`, as("alice")...)
	h.wantCall(200, "", "POST", "/api/agent/event", `{"stream":"system","data":"of alice","roomId":"`+conv+`"}`, as("alice")...)
	if f := a.want("agent_event"); !strings.Contains(f.raw, "of alice") {
		t.Errorf("alice gets %s", f.raw)
	}
	h.wantCall(200, "", "POST", "/api/agent/event", `{"stream":"system","data":"of the harness"}`)
	b.send(`{"type":"ping"}`).want("pong")
	for who, want := range map[string]bool{"alice": true, "bob": false} {
		_, body := h.call("GET", "/api/agent/events", "", as(who)...)
		if strings.Contains(body, "of alice") != want || strings.Contains(body, "of the harness") {
			t.Errorf("%s sees %s", who, body)
		}
	}
	if _, err := h.gw.Do(t.Context(), alice, conv, gateway.Command{Type: gateway.CommandDelete}); err != nil {
		t.Fatal(err)
	}
	if _, body := h.call("GET", "/api/agent/events", ""); strings.Contains(body, "of alice") || !strings.Contains(body, "of the harness") {
		t.Errorf("after the delete: %s", body)
	}
	if f := h.greeted("").want("agent_event"); !strings.Contains(f.raw, "of the harness") {
		t.Errorf("replayed after the delete: %s", f.raw)
	}
	r, err := h.journal.Read(t.Context(), "$signals", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Events {
		if strings.Contains(string(r.Events[i].Get().Data), "of alice") {
			t.Error("the log still holds it")
		}
	}
}

// The signals of one of the gateway's own turns, as a client sees them.
func TestTurn(t *testing.T) {
	h := newHarness(t, nil)
	conv := h.create(admin)
	c := h.greeted("")
	c.send(`{"type":"ping"}`).want("pong")
	turn := h.send(admin, conv, "hi")
	event := func(seq int, stream, payload string) string {
		return fmt.Sprintf(`{"type":"agent_event","version":1,"eventId":"evt-N","ts":TS,"runId":%q,"seq":%d,"stream":%q,"agentId":"eliza","roomId":%q,"payload":%s}`, turn, seq, stream, conv, payload)
	}
	beat := func(payload string) string {
		return fmt.Sprintf(`{"type":"heartbeat_event","version":1,"eventId":"evt-N","ts":TS,"roomId":%q,"payload":%s}`, conv, payload)
	}
	want := []string{
		event(1, "lifecycle", `{"phase":"start"}`),
		beat(`{"channel":"web","durationMs":TS,"hasMedia":false,"indicatorType":"typing","status":"thinking","to":"web","ts":TS}`),
		beat(`{"channel":"web","durationMs":TS,"hasMedia":false,"indicatorType":"typing","preview":"re: hi","status":"replying","to":"web","ts":TS}`),
		event(2, "assistant", `{"final":false,"source":"client_chat","text":"re: hi"}`),
		event(3, "assistant", `{"final":true,"source":"client_chat","text":"re: hi"}`),
		event(4, "lifecycle", `{"durationMs":TS,"outcome":"completed","phase":"end"}`),
	}
	for i, want := range want {
		f := c.next()
		for f.Type == "status" {
			f = c.next()
		}
		if f.EventID != fmt.Sprint("evt-", i+1) {
			t.Errorf("number %d is %s", i+1, f.EventID)
		}
		f.raw = strings.Replace(f.raw, `"`+f.EventID+`"`, `"evt-N"`, 1)
		wantFrame(t, f, want)
	}
}

// The status of a socket: first with the uptime, then with the pending changes, and again when it changes.
func TestStatus(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial("", "Authorization", "Bearer "+secret)
	wantFrame(t, c.next(), `{"type":"status","state":"running","agentName":"eliza","model":"test","startedAt":TS,"uptime":TS}`)
	c.send(`{"type":"ping"}`).want("pong")
	conv := h.create(admin)
	send := func(want string) {
		t.Helper()
		_, err := h.gw.Do(t.Context(), admin, conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "x"}})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("a message is answered %q, want %q", got, want)
		}
	}
	step := func(action, state, status string) {
		t.Helper()
		h.wantCall(200, `{"ok":true,"status":{"state":"`+state+`"`, "POST", "/api/agent/"+action, "")
		wantFrame(t, c.next(), status)
	}
	step("pause", "paused", `{"type":"status","state":"paused","agentName":"eliza","model":"test","startedAt":TS,"pendingRestart":false,"pendingRestartReasons":[]}`)
	send("Agent is paused")
	step("stop", "stopped", `{"type":"status","state":"stopped","agentName":"eliza","model":"test","pendingRestart":false,"pendingRestartReasons":[]}`)
	send("Agent is not running")
	step("start", "running", `{"type":"status","state":"running","agentName":"eliza","model":"test","startedAt":TS,"pendingRestart":false,"pendingRestartReasons":[]}`)
	h.wantCall(403, "forbidden", "POST", "/api/agent/stop", "", as("alice")...)
	h.agent.Pend("Shell access enabled")
	wantFrame(t, c.next(), `{"type":"status","state":"running","agentName":"eliza","model":"test","startedAt":TS,"pendingRestart":true,"pendingRestartReasons":["Shell access enabled"]}`)
	h.send(admin, conv, "hi")
	f := c.next()
	for f.Type != "status" {
		f = c.next()
	}
	wantFrame(t, f, `{"type":"status","state":"running","agentName":"eliza","model":"model-1","startedAt":TS,"pendingRestart":true,"pendingRestartReasons":["Shell access enabled"]}`)
	_, body := h.call("GET", "/api/status", "")
	wantFrame(t, frame{raw: body}, `{"state":"running","agentName":"eliza","model":"model-1","startedAt":TS,"uptime":TS,"pendingRestart":true,"pendingRestartReasons":["Shell access enabled"],"canRespond":true,"startup":{},"cloud":{"connectionStatus":"disconnected","activeAgentId":null}}`)

	// An agent that fails repeatedly is in the state error, until it answers.
	for range 3 {
		h.send(admin, conv, "fail")
	}
	becomes := func(state status.State) { // the agent's state changes just after the readers have the turn's end
		t.Helper()
		late := time.After(30 * time.Second)
		for {
			changed := h.agent.Changed()
			if h.agent.Status().State == state {
				return
			}
			select {
			case <-changed:
			case <-late:
				t.Fatalf("it is %s, not %s", h.agent.Status().State, state)
			}
		}
	}
	becomes(status.StateFailing)
	h.send(admin, conv, "hi")
	becomes(status.StateRunning)
}
