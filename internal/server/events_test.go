package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leat-dev/leat/internal/gateway/hub"
	"github.com/leat-dev/leat/internal/server/elizaws"
)

// elizaEvents plays each row of the live event tables in docs/eliza.md against a running server and compares the JSON byte by
// byte. The key is the row's first cell with its direction. A new row needs an entry here.
var elizaEvents = map[string]func(*testing.T, *stage){
	"send auth": func(_ *testing.T, st *stage) {
		f := st.dial("")
		f.say(`{"type":"auth","token":"` + token + `"}`)
		f.hears("auth-ok", `{"type":"auth-ok"}`)
	},
	"send ping": func(_ *testing.T, st *stage) {
		f := st.join("")
		f.say(`{"type":"ping"}`)
		f.hears("pong", `{"type":"pong"}`)
	},
	"send active-conversation": func(_ *testing.T, st *stage) {
		st.conversation("conv-abc-123")
		st.conversation("recent")
		f := st.join("")
		speak := func(to string) {
			f.say(`{"type":"ping"}`)
			f.frame("pong") // it was taken
			st.call("POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"Hello"}}`)
			f.hears("proactive-message", `{"type":"proactive-message","conversationId":"`+to+`","message":{"id":"ID","role":"assistant","text":"Hello","timestamp":0,"source":"autonomy"}}`)
		}
		f.say(`{"type":"active-conversation","conversationId":"recent"}`)
		f.say(`{"type":"active-conversation","conversationId":"conv-abc-123"}`)
		speak("conv-abc-123")
		st.call("POST", "/api/conversations/recent/messages", `{"text":"hi"}`)
		f.say(`{"type":"active-conversation","conversationId":7}`)
		speak("recent")
	},
	"send conversation-read": func(t *testing.T, st *stage) {
		st.conversation("conv-abc-123")
		f := st.join("")
		st.call("POST", "/api/conversations/conv-abc-123/commands", `{"type":"inject","message":{"text":"note"}}`)
		f.hears("conversation-read", `{"type":"conversation-read","conversationId":"conv-abc-123","unread":true,"read":0}`)
		if got := st.call("GET", "/api/conversations", ""); !strings.Contains(got, `"unread":true`) {
			t.Errorf("listed %s", got)
		}
		f.say(`{"type":"conversation-read","conversationId":"conv-abc-123","seq":1}`)
		f.hears("conversation-read", `{"type":"conversation-read","conversationId":"conv-abc-123","unread":false,"read":1}`)
		if got := st.call("GET", "/api/conversations", ""); !strings.Contains(got, `"read":1`) || strings.Contains(got, "unread") {
			t.Errorf("listed %s", got)
		}
	},

	"get auth-ok": func(_ *testing.T, st *stage) {
		f := st.dial("")
		f.say(`{"type":"auth","token":"` + token + `"}`)
		f.hears("auth-ok", `{"type":"auth-ok"}`)
	},
	"get pong": func(_ *testing.T, st *stage) {
		f := st.join("")
		f.say(`{"type":"ping"}`)
		f.hears("pong", `{"type":"pong"}`)
	},
	"get status": func(_ *testing.T, st *stage) {
		f := st.dial("")
		f.say(`{"type":"auth","token":"` + token + `"}`)
		f.hears("status", `{"type":"status","state":"running","agentName":"eliza","model":"test","startedAt":0,"uptime":0}`)
		st.call("POST", "/api/agent/pause", "")
		f.hears("status", `{"type":"status","state":"paused","agentName":"eliza","model":"test","startedAt":0,"pendingRestart":false,"pendingRestartReasons":[]}`)
		st.agent.Pend("Shell access enabled")
		f.hears("status", `{"type":"status","state":"paused","agentName":"eliza","model":"test","startedAt":0,"pendingRestart":true,"pendingRestartReasons":["Shell access enabled"]}`)
	},
	"get restart-required": func(_ *testing.T, st *stage) {
		f := st.join("")
		st.hub.Send(elizaws.RestartRequired([]string{"Shell access enabled", "Plugin configuration changed"}))
		f.hears("restart-required", `{"type":"restart-required","reasons":["Shell access enabled","Plugin configuration changed"]}`)
	},
	"get agent_event": func(_ *testing.T, st *stage) {
		st.conversation("room")
		f := st.join("")
		st.call("POST", "/api/agent/event", `{"stream":"autonomy","data":{"thought":1},"roomId":"room","runId":"run-xyz","seq":42,"sessionKey":"session-key","agentId":"agent-uuid"}`)
		f.hears("agent_event", `{"type":"agent_event","version":1,"eventId":"evt-1","ts":0,"runId":"run-xyz","seq":42,"stream":"autonomy","sessionKey":"session-key","agentId":"agent-uuid","roomId":"room","payload":{"thought":1}}`)
		st.call("POST", "/api/agent/event", `{"stream":"system","data":7}`)
		f.hears("agent_event", `{"type":"agent_event","version":1,"eventId":"evt-2","ts":0,"stream":"system","payload":{"value":7}}`)
		st.call("POST", "/api/signals", `{"type":"agent_event","stream":"system"}`)
		f.hears("agent_event", `{"type":"agent_event","version":1,"eventId":"evt-3","ts":0,"stream":"system","payload":{}}`)
		st.call("POST", "/api/conversations/room/messages", `{"text":"hi"}`)
		f.hears("agent_event",
			`{"type":"agent_event","version":1,"eventId":"evt-4","ts":0,"runId":"ID","seq":1,"stream":"lifecycle","agentId":"eliza","roomId":"room","payload":{"phase":"start"}}`,
			`{"type":"agent_event","version":1,"eventId":"evt-7","ts":0,"runId":"ID","seq":2,"stream":"assistant","agentId":"eliza","roomId":"room","payload":{"final":false,"source":"client_chat","text":"re: hi"}}`,
			`{"type":"agent_event","version":1,"eventId":"evt-8","ts":0,"runId":"ID","seq":3,"stream":"assistant","agentId":"eliza","roomId":"room","payload":{"final":true,"source":"client_chat","text":"re: hi"}}`,
			`{"type":"agent_event","version":1,"eventId":"evt-9","ts":0,"runId":"ID","seq":4,"stream":"lifecycle","agentId":"eliza","roomId":"room","payload":{"durationMs":0,"outcome":"completed","phase":"end"}}`)
	},
	"get heartbeat_event": func(_ *testing.T, st *stage) {
		st.conversation("room")
		f := st.join("")
		const payload = `{"ts":0,"status":"thinking","to":"discord","preview":"Composing reply...","durationMs":0,"hasMedia":false,"reason":"asked","channel":"discord","silent":false,"indicatorType":"typing"}`
		st.call("POST", "/api/signals", `{"type":"heartbeat_event","payload":`+payload+`}`)
		f.hears("heartbeat_event", `{"type":"heartbeat_event","version":1,"eventId":"evt-1","ts":0,"payload":`+payload+`}`)
		st.call("POST", "/api/conversations/room/messages", `{"text":"hi","source":"discord"}`)
		f.hears("heartbeat_event",
			`{"type":"heartbeat_event","version":1,"eventId":"evt-3","ts":0,"roomId":"room","payload":{"channel":"discord","durationMs":0,"hasMedia":false,"indicatorType":"typing","status":"thinking","to":"discord","ts":0}}`,
			`{"type":"heartbeat_event","version":1,"eventId":"evt-4","ts":0,"roomId":"room","payload":{"channel":"discord","durationMs":0,"hasMedia":false,"indicatorType":"typing","preview":"re: hi","status":"replying","to":"discord","ts":0}}`)
	},
	"get training_event": func(_ *testing.T, st *stage) {
		f := st.join("")
		st.call("POST", "/api/signals", `{"type":"training_event","payload":{"phase":"training","progress":0.45,"message":"Training epoch 5/10"}}`+"\n"+`{"type":"training_event","payload":"done"}`)
		f.hears("training_event", `{"type":"training_event","version":1,"eventId":"evt-1","ts":0,"payload":{"phase":"training","progress":0.45,"message":"Training epoch 5/10"}}`,
			`{"type":"training_event","version":1,"eventId":"evt-2","ts":0,"payload":{"value":"done"}}`)
	},
	"get conversation-updated": func(_ *testing.T, st *stage) {
		frame := func(id, title string) string {
			return `{"type":"conversation-updated","conversation":{"id":"` + id + `","title":"` + title + `","roomId":"` + id + `","createdAt":"TIME","updatedAt":"TIME"}}`
		}
		pinned := func(title string) string {
			return strings.Replace(frame("conv-abc-123", title), `"TIME"}}`, `"TIME","pinned":true}}`, 1)
		}
		f := st.join("")
		st.conversation("conv-abc-123")
		f.hears("conversation-updated", frame("conv-abc-123", "New Chat"))
		sent := st.call("POST", "/api/conversations/conv-abc-123/messages", `{"text":"# What are AI agents?\nPlease tell."}`)
		f.hears("conversation-updated", frame("conv-abc-123", "What are AI agents?"))
		st.call("PATCH", "/api/conversations/conv-abc-123", `{"title":"Discussion about AI agents"}`)
		f.hears("conversation-updated", frame("conv-abc-123", "Discussion about AI agents"))
		st.call("PATCH", "/api/conversations/conv-abc-123", `{"metadata":{"pinned":true}}`)
		f.hears("conversation-updated", pinned("Discussion about AI agents"))
		st.call("PATCH", "/api/conversations/conv-abc-123", `{"generate":true}`)
		f.hears("conversation-updated", pinned("What are AI agents?"))
		id := regexp.MustCompile(`"userMessageId":"([^"]+)"`).FindStringSubmatch(sent)[1]
		st.call("POST", "/api/conversations/conv-abc-123/messages/truncate", `{"messageId":"`+id+`"}`)
		f.hears("conversation-updated", pinned("What are AI agents?"))
		st.conversation("past")
		f.hears("conversation-updated", frame("past", "New Chat"))
		st.call("POST", "/api/conversations/past/import", `{"messages":[{"role":"user","text":"Long ago"}]}`)
		f.hears("conversation-updated", frame("past", "Long ago"))
		st.call("POST", "/api/import", strings.Join([]string{
			`{"type":"export","version":1}`,
			`{"type":"conversation","id":"moved","title":"From elsewhere","created":1700000000000,"updated":1700000000000}`,
			`{"type":"event","event":{"seq":1,"at":1700000000000,"type":"message.add","message":"m1","role":"assistant","parts":[{"id":"p1","kind":"text","text":"old"}]}}`,
			`{"type":"end","conversations":1,"events":1}`,
		}, "\n"))
		f.hears("conversation-updated", frame("moved", "From elsewhere"))
	},
	"get conversation-deleted": func(t *testing.T, st *stage) {
		f := st.join("")
		for id, call := range map[string][2]string{
			"one": {"DELETE", "/api/conversations/one"},
			"two": {"POST", "/api/conversations/two/commands"},
		} {
			st.conversation(id)
			body := ""
			if call[0] == "POST" {
				body = `{"type":"delete"}`
			}
			st.call(call[0], call[1], body)
			f.hears("conversation-deleted", `{"type":"conversation-deleted","conversationId":"`+id+`"}`)
		}
		if got := st.call("GET", "/api/conversations", ""); strings.Contains(got, `"one"`) || strings.Contains(got, `"two"`) {
			t.Errorf("listed %s", got)
		}
	},
	"get proactive-message": func(t *testing.T, st *stage) {
		frame := func(text, source string) string {
			return `{"type":"proactive-message","conversationId":"conv-abc-123","message":{"id":"ID","role":"assistant","text":"` + text + `","timestamp":0,"source":"` + source + `"}}`
		}
		st.conversation("conv-abc-123")
		f := st.join("")
		st.call("POST", "/api/agent/event", `{"stream":"assistant","data":{"text":"I noticed something interesting..."}}`)
		f.hears("proactive-message", frame("I noticed something interesting...", "autonomy"))
		st.call("POST", "/api/conversations/conv-abc-123/commands", `{"type":"inject","message":{"text":"A note","source":"plugin"}}`)
		f.hears("proactive-message", frame("A note", "plugin"))
		st.call("POST", "/api/conversations/conv-abc-123/messages", `{"text":"an echo?"}`)
		st.call("POST", "/api/conversations/conv-abc-123/turns?dialect=eliza-actions", `{"type":"chunk","text":"Pushed"}`+"\n"+`{"type":"done"}`+"\n")
		f.hears("proactive-message", frame("Pushed", "autonomy"))
		if list := st.call("GET", "/api/conversations/conv-abc-123/messages", ""); strings.Count(list, `"role":"assistant"`) != 4 {
			t.Errorf("it is not stored: %s", list)
		}
	},
	"get emote": func(_ *testing.T, st *stage) {
		f := st.join("")
		st.call("POST", "/api/emote", `{"emoteId":"wave"}`)
		f.hears("emote", `{"type":"emote","emoteId":"wave","glbPath":"/emotes/wave.glb","duration":2,"loop":false}`)
	},
	"get install-progress":       installEvent,
	"get terminal-output start":  shellEvent("true", `{"type":"terminal-output","runId":"RUN","event":"start","command":"true","maxDurationMs":30000}`),
	"get terminal-output stdout": shellEvent("echo total 42", `"start"`, `{"type":"terminal-output","runId":"RUN","event":"stdout","data":"total 42\n"}`),
	"get terminal-output stderr": shellEvent("echo Warning >&2", `"start"`, `{"type":"terminal-output","runId":"RUN","event":"stderr","data":"Warning\n"}`),
	"get terminal-output exit":   shellEvent("exit 3", `"start"`, `{"type":"terminal-output","runId":"RUN","event":"exit","code":3}`),
	"get terminal-output timeout": func(t *testing.T, _ *stage) {
		runShell(t, newStage(t, 50*time.Millisecond), "sleep 100", `"start"`, `{"type":"terminal-output","runId":"RUN","event":"timeout","maxDurationMs":50}`)
	},
	"get terminal-output error": func(t *testing.T, _ *stage) {
		// A shell that is gone when it is needed.
		sh, err := exec.LookPath("sh")
		if err != nil {
			t.Skip("SKIPPED: sh is not installed; install a shell")
		}
		dir := t.TempDir()
		if err := os.Symlink(sh, filepath.Join(dir, "sh")); err != nil {
			t.Skipf("SKIPPED: needs a file system with symbolic links; set TMPDIR to one: %v", err)
		}
		t.Setenv("PATH", dir)
		st := newStage(t, time.Minute)
		if err := os.Remove(filepath.Join(dir, "sh")); err != nil {
			t.Fatal(err)
		}
		runShell(t, st, "true", `{"type":"terminal-output","runId":"RUN","event":"error","data":"fork/exec `+dir+`/sh: no such file or directory"}`)
	},
	"get notice": func(_ *testing.T, st *stage) {
		st.conversation("conv-abc-123")
		f := st.join("")
		st.call("POST", "/api/conversations/conv-abc-123/messages", `{"text":"hi"}`)
		f.hears("notice", `{"type":"notice","kind":"ended","conversation":"conv-abc-123","title":"hi","turn":"ID","outcome":"completed"}`)
	},
	"get conversation-read": func(_ *testing.T, st *stage) {
		st.conversation("conv-abc-123")
		phone, desk := st.join(""), st.join("")
		st.call("POST", "/api/conversations/conv-abc-123/commands", `{"type":"inject","message":{"text":"note"}}`)
		phone.hears("conversation-read", `{"type":"conversation-read","conversationId":"conv-abc-123","unread":true,"read":0}`)
		st.call("POST", "/api/conversations/conv-abc-123/read", `{}`)
		phone.hears("conversation-read", `{"type":"conversation-read","conversationId":"conv-abc-123","unread":false,"read":1}`)
		phone.say(`{"type":"active-conversation","conversationId":"conv-abc-123"}`)
		st.call("POST", "/api/conversations/conv-abc-123/commands", `{"type":"inject","message":{"text":"note"}}`)
		for !strings.Contains(desk.frame("conversation-read"), `"unread":false,"read":2`) {
			continue // what was before it
		}
	},
	"get replay-gap": func(_ *testing.T, st *stage) {
		for range 4 {
			st.call("POST", "/api/signals", strings.Repeat(`{"type":"training_event"}`+"\n", 500))
		}
		f := st.dial("?lastEventId=evt-3")
		f.say(`{"type":"auth","token":"` + token + `"}`)
		f.hears("replay-gap", `{"type":"replay-gap","after":"evt-3","first":"evt-501"}`)
		f.hears("training_event", `{"type":"training_event","version":1,"eventId":"evt-501","ts":0,"payload":{}}`)
	},
	"get resync": func(t *testing.T, st *stage) {
		f := st.join("")
		big := []byte(`{"type":"emote","padding":"` + strings.Repeat("x", 64<<10) + `"}`)
		const sent = 3000 // 200 MB, which no socket holds
		for range sent {
			st.hub.Send(hub.Frame{Broadcast: true, JSON: big})
		}
		got := f.frame("resync")
		m := regexp.MustCompile(`^{"type":"resync","missed":(\d+)}$`).FindStringSubmatch(got)
		if m == nil {
			t.Fatal(got)
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n < 1 || n >= sent {
			t.Errorf("%s of %d", got, sent)
		}
	},
}

// shellEvent runs a command; the last frame is compared whole, of those before it the event.
func shellEvent(command string, want ...string) func(*testing.T, *stage) {
	return func(t *testing.T, _ *stage) { runShell(t, newStage(t, 30*time.Second), command, want...) }
}

func runShell(t *testing.T, st *stage, command string, want ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the terminal is not served on Windows; run it on another system")
	}
	f, stranger := st.join("?clientId=ui-1"), st.join("?clientId=ui-2")
	st.call("POST", "/api/terminal/run", `{"command":"`+command+`","clientId":"ui-1"}`, "X-Eliza-Terminal-Token", "terminal-token")
	for i, w := range want {
		got := f.frame("terminal-output")
		if i < len(want)-1 && strings.Contains(got, `"event":`+w) || got == w {
			continue
		}
		t.Errorf("\n got %s\nwant %s", got, w)
	}
	st.call("POST", "/api/emote", `{"emoteId":"wave"}`)
	stranger.say(`{"type":"ping"}`)
	stranger.hears("emote", `{"type":"emote","emoteId":"wave","glbPath":"/emotes/wave.glb","duration":2,"loop":false}`)
}

var eventRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| \\S")

// TestElizaEvents: every row of the tables is played, and what is played has a row.
func TestElizaEvents(t *testing.T) {
	doc, err := os.ReadFile("../../docs/eliza.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for way, heading := range map[string]string{"send": "### What clients send\n", "get": "### What clients get\n"} {
		_, table, ok := strings.Cut(string(doc), heading)
		if !ok {
			t.Fatalf("docs/eliza.md has no %q", heading)
		}
		table, _, _ = strings.Cut(table, "\n#")
		for _, m := range eventRow.FindAllStringSubmatch(table, -1) {
			rows = append(rows, way+" "+strings.ReplaceAll(m[1], "`", ""))
		}
	}
	slices.Sort(rows)
	if len(rows) < 15 {
		t.Fatalf("only the rows %q", rows)
	}
	for _, row := range rows {
		play := elizaEvents[row]
		if play == nil {
			t.Errorf("the row %q is not played: add it to elizaEvents", row)
			continue
		}
		t.Run(row, func(t *testing.T) { play(t, newStage(t, time.Minute)) })
	}
	for event := range elizaEvents {
		if !slices.Contains(rows, event) {
			t.Errorf("%q has no row in docs/eliza.md that says how it is produced", event)
		}
	}
}

// Only stored signals are sent to sockets that connect later.
func TestElizaBuffered(t *testing.T) {
	st := newStage(t, time.Minute)
	f := st.join("")
	st.conversation("c")
	st.call("POST", "/api/conversations/c/messages", `{"text":"hi"}`)
	st.call("POST", "/api/conversations/c/commands", `{"type":"inject","message":{"text":"note"}}`)
	st.call("POST", "/api/emote", `{"emoteId":"wave"}`)
	// The signals of a turn and of a note are stored after the requests are answered, so the last signal could overtake them.
	f.frame("agent_event")
	f.frame("heartbeat_event")
	st.call("POST", "/api/signals", `{"type":"training_event","payload":{"last":1}}`)
	f.frame("training_event")
	late := st.dial("")
	late.say(`{"type":"auth","token":"` + token + `"}`)
	var kinds []string
	for over := false; !over; {
		_, b, err := late.conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kind := regexp.MustCompile(`^{"type":"([^"]+)"`).FindStringSubmatch(string(b))[1]
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		over = strings.Contains(string(b), `{"last":1}`)
	}
	if got := strings.Join(kinds, " "); got != "auth-ok status agent_event heartbeat_event training_event" {
		t.Errorf("a newcomer is shown %s", got)
	}
}
