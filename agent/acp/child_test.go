//go:build unix

package acp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary also runs as the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "child") {
		child(os.Args[1])
		return
	}
	goleak.VerifyTestMain(m)
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version int    `json:"protocolVersion"`
		Session string `json:"sessionId"`
		Dir     string `json:"cwd"`
		Servers []any  `json:"mcpServers"`
		Prompt  []struct{ Type, Text, Data, MimeType, URI, Name string }
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

var output sync.Mutex

func say(format string, args ...any) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf(`{"jsonrpc":"2.0",`+format+"}\n", args...)
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		os.Exit(9)
	}
	return string(b)
}

func text(session, s string) {
	say(`"method":"session/update","params":{"sessionId":%s,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}`, quote(session), quote(s))
}

func done(id json.RawMessage, reason string) { say(`"id":%s,"result":{"stopReason":%q}`, id, reason) }

// fail exits with an error if the client violates the protocol.
func fail(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(3)
}

// child is an agent that checks the client strictly and does what the prompt says. mode decides what it supports: "child" nothing,
// "child-load" session/load, "child-resume" session/resume.
func child(mode string) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	greeted := false
	sessions := map[string]json.RawMessage{} // open sessions, with the id of the running prompt
	pending := map[string]func(json.RawMessage){}
	for in.Scan() {
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil || !strings.Contains(in.Text(), `"jsonrpc":"2.0"`) {
			fail("no JSON-RPC")
		}
		if m.Method != "initialize" && !greeted {
			fail("before initialize")
		}
		switch m.Method {
		case "initialize":
			if m.Params.Version != 1 || greeted {
				fail("initialize")
			}
			if mode == "child-old" {
				say(`"id":%s,"result":{"protocolVersion":0}`, m.ID)
				continue
			}
			if mode == "child-dead" {
				fail("no licence")
			}
			greeted = true
			can := map[string]string{"child-load": `"loadSession":true`, "child-resume": `"sessionCapabilities":{"resume":{}}`}[mode]
			if can == "" {
				can = `"promptCapabilities":{"image":true}`
			}
			say(`"id":%s,"result":{"protocolVersion":1,"agentCapabilities":{%s}}`, m.ID, can)
		case "session/new":
			if mode == "child-login" {
				say(`"id":%s,"error":{"code":-32000,"message":"Authentication required"}`, m.ID)
				continue
			}
			if m.Params.Dir == "" || m.Params.Dir[0] != '/' || m.Params.Servers == nil {
				fail("session/new")
			}
			id := fmt.Sprintf("s%d-%d", os.Getpid(), len(sessions)+1)
			sessions[id] = nil
			say(`"id":%s,"result":{"sessionId":%q}`, m.ID, id)
		case "session/load", "session/resume":
			if m.Method != strings.Replace(mode, "child-", "session/", 1) {
				fail("the agent did not announce " + m.Method)
			}
			sessions[m.Params.Session] = nil
			if m.Method == "session/load" {
				text(m.Params.Session, "replayed history")
			}
			say(`"id":%s,"result":{}`, m.ID)
		case "session/cancel":
			if id := sessions[m.Params.Session]; id != nil && len(pending) == 0 {
				sessions[m.Params.Session] = nil
				done(id, "cancelled")
			}
		case "session/prompt":
			running, open := sessions[m.Params.Session]
			if !open || running != nil {
				fail("session/prompt in a session that is not open, or busy")
			}
			sessions[m.Params.Session] = m.ID
			if answer(m, mode, pending) {
				sessions[m.Params.Session] = nil
			}
		case "":
			f := pending[string(m.ID)]
			delete(pending, string(m.ID))
			if f == nil {
				continue // a response to a request whose result does not matter
			}
			f(m.Result)
			for s := range sessions {
				if slices.Equal(sessions[s], m.ID) {
					sessions[s] = nil
				}
			}
			for s, id := range sessions { // these tests run one prompt at a time
				if id != nil {
					sessions[s] = nil
				}
			}
		default:
			fail("unknown method " + m.Method)
		}
	}
}

// answer does what the last text of the prompt says and reports whether it has responded to the prompt.
func answer(m message, mode string, pending map[string]func(json.RawMessage)) bool {
	s := m.Params.Session
	var words []string
	for _, b := range m.Params.Prompt {
		if b.Type == "text" {
			words = append(words, b.Text)
		} else {
			words = append(words, b.Type+" "+b.Data+b.URI)
		}
	}
	last := words[len(words)-1]
	switch {
	case last == "tools":
		update := func(u string) { say(`"method":"session/update","params":{"sessionId":%q,"update":{%s}}`, s, u) }
		update(`"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm."}`)
		update(`"sessionUpdate":"plan","entries":[{"content":"Read","priority":"high","status":"in_progress"}]`)
		update(`"sessionUpdate":"tool_call","toolCallId":"c","title":"Read a.go","kind":"read","status":"pending"`)
		update(`"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"package a"}}]`)
		say(`"id":"fs","method":"fs/read_text_file","params":{"sessionId":%q,"path":"/a"}`, s)
		text(s, "Read.")
	case last == "ask":
		say(`"id":"p1","method":"session/request_permission","params":{"sessionId":%q,"toolCall":{"toolCallId":"c","title":"rm -rf","kind":"execute"},`+
			`"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}`, s)
		text(s, "Waiting. ")
		pending[`"p1"`] = func(result json.RawMessage) {
			text(s, string(result))
			done(m.ID, "end_turn")
		}
		return false
	case last == "wait", last == "deaf":
		text(s, "Waiting.")
		if last == "deaf" {
			pending["never"] = nil // makes the agent ignore session/cancel
		}
		return false
	case last == "beat": // messages without content
		text(s, "Begun.")
		for {
			output.Lock()
			fmt.Println()
			output.Unlock()
			say(`"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"available_commands_update","availableCommands":[]}}`, s)
			say(`"method":"_beat","params":{"sessionId":%q}`, s)
			time.Sleep(10 * time.Millisecond)
		}
	case last == "die":
		text(s, "Dying.")
		fail("out of memory")
	case last == "garbage":
		text(s, "So far.")
		output.Lock()
		fmt.Println("not JSON")
		output.Unlock()
		return false
	case last == "wrong":
		text(s, "So far.")
		say(`"method":"session/update","params":{"sessionId":%q,"update":"wrong"}`, s)
		return false
	case last == "refuse":
		done(m.ID, "refusal")
		return true
	case last == "error":
		say(`"id":%s,"error":{"code":-32603,"message":"overloaded"}`, m.ID)
		return true
	case last == "twice":
		text(s, "Once.")
		done(m.ID, "end_turn")
		text(s, "Late.")
		done(m.ID, "end_turn")
		return true
	case last == "half":
		text(s, "So far.")
		output.Lock()
		fmt.Printf(`{"jsonrpc":"2.0","method":"session/upd`)
		os.Exit(0)
	default:
		text(s, mode+": "+strings.Join(words, "|"))
	}
	done(m.ID, "end_turn")
	return true
}
