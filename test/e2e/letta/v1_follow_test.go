//go:build e2e

package letta

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// theirs is another client of the V1 server, in one conversation.
type theirs struct {
	*v1Stage
	agent, conversation string
}

// The ways in which another client may send a message.
var v1Ways = map[string]map[string]any{
	"blocking":   {"streaming": false},
	"streaming":  {"streaming": true, "stream_tokens": true},
	"background": {"streaming": true, "stream_tokens": true, "background": true},
}

// send sends a message, and returns a function that waits for the end of the answer.
func (s *theirs) send(t *testing.T, way string, messages ...any) (end func()) {
	t.Helper()
	body := map[string]any{"messages": messages, "agent_id": s.agent}
	for k, v := range v1Ways[way] {
		body[k] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		res, err := http.Post(s.v1.URL+"/v1/conversations/"+s.conversation+"/messages", "application/json", bytes.NewReader(b))
		if err != nil {
			done <- err.Error()
			return
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode/100 != 2 {
			done <- res.Status + " " + string(answer)
			return
		}
		done <- ""
	}()
	return func() {
		t.Helper()
		if fault := <-done; fault != "" {
			t.Errorf("another client's message: %s", fault)
		}
	}
}

func (s *theirs) say(t *testing.T, way, text string) (end func()) {
	t.Helper()
	return s.send(t, way, map[string]any{"type": "message", "role": "user", "content": text})
}

// foreign returns the turns that other clients have started.
func foreign(tr *transcript.Transcript) (all []*transcript.Turn) {
	for _, u := range tr.Turns {
		if u.Source != "" {
			all = append(all, u)
		}
	}
	return all
}

// said waits until another client's message is shown.
func (s *theirs) said(t *testing.T, c, text string) {
	t.Helper()
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		for _, m := range tr.Messages {
			if m.Role == event.User && m.Source == "letta" && m.Visible() == text {
				return true
			}
		}
		return false
	})
}

// answered waits for the end of the n-th turn of other clients.
func (s *theirs) answered(t *testing.T, c string, n int) *harness.Answer {
	t.Helper()
	turn := ""
	s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
		if all := foreign(tr); len(all) >= n {
			turn = all[n-1].ID
		}
		return turn != ""
	})
	return s.WaitAnswer(t, c, turn)
}

// testFollow lets another client send messages to a conversation that Leat follows.
func (s *v1Stage) testFollow(t *testing.T, id string) {
	s.model.OpenGate()
	c := s.CreateConversation(t, "v1")
	s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
	var list []struct{ ID string }
	s.call(t, http.MethodGet, "/v1/conversations/?limit=1&agent_id="+id, nil, &list)
	other := &theirs{v1Stage: s, agent: id, conversation: list[0].ID}
	n := 0
	for _, way := range []string{"blocking", "streaming", "background"} {
		t.Run(way, func(t *testing.T) {
			n++
			other.say(t, way, way+": please do SCRIPT-PLAIN")()
			a := other.answered(t, c, n)
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, hello)
			other.said(t, c, way+": please do SCRIPT-PLAIN")
			if a.Turn.Usage == nil || a.Turn.Usage.Output != 50 {
				t.Errorf("the turn's usage is %+v", a.Turn.Usage)
			}
		})
	}
	t.Run("live", func(t *testing.T) {
		n++
		s.model.CloseGate()
		end := other.say(t, "background", "live: please do SCRIPT-SLOW")
		turn := ""
		s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
			if all := foreign(tr); len(all) == n {
				turn = all[n-1].ID
			}
			return turn != "" && len(tr.Visible(turn)) > 20
		})
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		s.model.OpenGate()
		end()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
		other.said(t, c, "live: please do SCRIPT-SLOW")
	})
	t.Run("while Leat is down", func(t *testing.T) {
		s.leat.Signal(syscall.SIGKILL)
		for _, way := range []string{"blocking", "background"} {
			n++
			other.say(t, way, "away, "+way+": please do SCRIPT-PLAIN")()
		}
		s.leat.Start(t)
		for i, way := range []string{"blocking", "background"} {
			a := other.answered(t, c, n-1+i)
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, hello)
			other.said(t, c, "away, "+way+": please do SCRIPT-PLAIN")
		}
	})
	for decision, state := range map[event.Decision]event.PartState{event.Approve: event.PartDone, event.Deny: event.PartDenied} {
		t.Run("a request that Leat answers: "+string(decision), func(t *testing.T) {
			n++
			other.say(t, "background", string(decision)+": please do SCRIPT-ASK")()
			tr := s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
				all := foreign(tr)
				return len(all) == n && len(all[n-1].Requests) > 0
			})
			u := foreign(tr)[n-1]
			if _, err := s.Answer(t.Context(), c, u.ID, u.Requests[0].ID, decision, ""); err != nil {
				t.Fatal(err)
			}
			a := s.WaitAnswer(t, c, u.ID)
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, "May I? \n\nThat was it.")
			if got := a.PartsOf(event.KindTool)[0].State; got != state {
				t.Errorf("the tool is %q, want %q", got, state)
			}
		})
		for _, way := range []string{"background", "blocking"} {
			t.Run("a request that its client answers, "+way+": "+string(decision), func(t *testing.T) {
				n++
				other.say(t, way, string(decision)+": please do SCRIPT-ASK")()
				tr := s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
					all := foreign(tr)
					return len(all) == n && len(all[n-1].Requests) > 0
				})
				u := foreign(tr)[n-1]
				other.send(t, way, map[string]any{"type": "approval", "approvals": []any{
					map[string]any{"type": "approval", "tool_call_id": u.Requests[0].ID, "approve": decision == event.Approve},
				}})()
				a := s.WaitAnswer(t, c, u.ID)
				a.CheckOutcome(t, event.Completed)
				a.CheckText(t, "May I? \n\nThat was it.")
				if got := a.PartsOf(event.KindTool)[0].State; got != state {
					t.Errorf("the tool is %q, want %q", got, state)
				}
			})
		}
	}
	t.Run("a request of Leat's turn that another client answers", func(t *testing.T) {
		turn := s.SendText(t, c, "ours: please do SCRIPT-ASK").Turn
		tr := s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { u := tr.Turn(turn); return u != nil && len(u.Requests) > 0 })
		other.send(t, "background", map[string]any{"type": "approval", "approvals": []any{
			map[string]any{"type": "approval", "tool_call_id": tr.Turn(turn).Requests[0].ID, "approve": true},
		}})()
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, "May I? \n\nThat was it.")
	})
	t.Run("a message of Leat instead of an answer", func(t *testing.T) {
		n++
		other.say(t, "background", "unanswered: please do SCRIPT-ASK")()
		tr := s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
			all := foreign(tr)
			return len(all) == n && len(all[n-1].Requests) > 0
		})
		s.WaitAnswer(t, c, s.SendText(t, c, refusedMessage).Turn).CheckOutcome(t, event.Failed)
		u := foreign(tr)[n-1]
		if _, err := s.Answer(t.Context(), c, u.ID, u.Requests[0].ID, event.Approve, ""); err != nil {
			t.Fatal(err)
		}
		s.WaitAnswer(t, c, u.ID).CheckOutcome(t, event.Completed)
	})
	t.Run("a run that fails", func(t *testing.T) {
		n++
		other.say(t, "background", "please do SCRIPT-FAIL")()
		a := other.answered(t, c, n)
		a.CheckOutcome(t, event.Failed)
		if a.Turn.Error == nil || a.Turn.Error.Code != "llm_authentication" {
			t.Errorf("the turn failed with %+v", a.Turn.Error)
		}
	})
	t.Run("a stop in Leat", func(t *testing.T) {
		n++
		s.model.CloseGate()
		end := other.say(t, "background", "stopped: please do SCRIPT-SLOW")
		tr := s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
			all := foreign(tr)
			return len(all) == n && len(tr.Visible(all[n-1].ID)) > 20
		})
		if _, err := s.Stop(t.Context(), c, foreign(tr)[n-1].ID); err != nil {
			t.Fatal(err)
		}
		s.WaitAnswer(t, c, foreign(tr)[n-1].ID).CheckOutcome(t, event.Cancelled)
		s.idle(t, id)
		s.model.OpenGate()
		end()
	})
	t.Run("a message of Leat while another client's run is in progress", func(t *testing.T) {
		n++
		s.model.CloseGate()
		end := other.say(t, "background", "busy: please do SCRIPT-SLOW")
		tr := s.WaitUntil(t, c, "", func(tr *transcript.Transcript) bool {
			all := foreign(tr)
			return len(all) == n && len(tr.Visible(all[n-1].ID)) > 20
		})
		turn := s.SendText(t, c, "meanwhile: please do SCRIPT-PLAIN").Turn
		s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { u := tr.Turn(turn); return u != nil && u.Phase == "retrying" })
		s.model.OpenGate()
		end()
		s.WaitAnswer(t, c, foreign(tr)[n-1].ID).CheckText(t, slow)
		s.WaitAnswer(t, c, turn).CheckText(t, hello)
		other.said(t, c, "busy: please do SCRIPT-SLOW")
	})
	t.Run("the server is killed", func(t *testing.T) {
		s.v1.Signal(syscall.SIGKILL)
		s.v1.Start(t)
		n++
		other.say(t, "background", "again: please do SCRIPT-PLAIN")()
		other.answered(t, c, n).CheckText(t, hello)
		other.said(t, c, "again: please do SCRIPT-PLAIN")
	})
	t.Run("everything once, as the server has it", func(t *testing.T) {
		s.WaitAnswer(t, c, s.SendText(t, c, "last: please do SCRIPT-PLAIN").Turn).CheckText(t, hello)
		s.leat.Signal(syscall.SIGKILL)
		s.leat.Start(t)
		n++
		other.say(t, "background", "end: please do SCRIPT-PLAIN")()
		other.answered(t, c, n).CheckText(t, hello)
		other.said(t, c, "end: please do SCRIPT-PLAIN")
		tr, err := s.Transcript(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(foreign(tr)); got != n {
			t.Errorf("%d turns of other clients, want %d", got, n)
		}
		// The server stores neither stopped answers nor rejected messages.
		missing := func(i harness.Item) bool {
			return strings.HasPrefix(slow, i.Text) || i.Text == refusedMessage
		}
		for _, fault := range harness.Compare(seen(tr), other.history(t), missing) {
			t.Error(fault)
		}
	})
	t.Run("attached with its history", func(t *testing.T) {
		var infos struct{ Sessions []agent.SessionInfo }
		s.api(t, http.MethodGet, "/api/agents/v1b/sessions", nil, &infos)
		found := false
		for _, i := range infos.Sessions {
			found = found || i.ID == other.conversation
		}
		if !found {
			t.Errorf("the list of sessions lacks %s: %+v", other.conversation, infos)
		}
		var made struct{ Conversation string }
		s.api(t, http.MethodPost, "/api/agents/v1b/sessions", map[string]any{"session": other.conversation, "history": true}, &made)
		tr, err := s.Transcript(t.Context(), made.Conversation)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range harness.Compare(seen(tr), other.history(t), func(harness.Item) bool { return false }) {
			t.Error(fault)
		}
		other.say(t, "background", "attached: please do SCRIPT-PLAIN")()
		other.said(t, made.Conversation, "attached: please do SCRIPT-PLAIN")
		b := s.WaitAnswer(t, made.Conversation, s.SendText(t, made.Conversation, "ours: please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
		other.said(t, c, "ours: please do SCRIPT-PLAIN")
	})
}

// refusedMessage is sent while a request for approval is open.
const refusedMessage = "instead: please do SCRIPT-PLAIN"

// history returns the conversation as the server has stored it.
func (s *theirs) history(t *testing.T) (items []harness.Item) {
	t.Helper()
	var rows []struct {
		Type    string `json:"message_type"`
		Content string `json:"content"`
		Call    struct {
			Args string `json:"arguments"`
			ID   string `json:"tool_call_id"`
		} `json:"tool_call"`
		CallID string `json:"tool_call_id"`
		Return string `json:"tool_return"`
	}
	s.call(t, http.MethodGet, "/v1/conversations/"+s.conversation+"/messages?order=asc&limit=1000&agent_id="+s.agent, nil, &rows)
	at := map[string]int{}
	for _, r := range rows {
		switch r.Type {
		case "user_message":
			items = append(items, harness.Item{Kind: harness.ItemUser, Text: strings.TrimSpace(r.Content)})
		case "assistant_message":
			items = append(items, harness.Item{Kind: harness.ItemText, Text: strings.TrimSpace(r.Content)})
		case "tool_call_message", "approval_request_message":
			var in struct{ Command string }
			_ = json.Unmarshal([]byte(r.Call.Args), &in) // the arguments are the test's own JSON
			at[r.Call.ID] = len(items)
			items = append(items, harness.Tool(in.Command, ""))
		case "tool_return_message":
			items[at[r.CallID]].Text += strings.TrimSpace(r.Return)
		}
	}
	return withoutDenials(items)
}

// seen returns the items that a reader sees.
func seen(tr *transcript.Transcript) []harness.Item { return withoutDenials(harness.VisibleItems(tr)) }

// withoutDenials removes the results of denied tools, which the server stores but doesn't stream.
func withoutDenials(items []harness.Item) []harness.Item {
	for i := range items {
		if items[i].Kind == harness.ItemTool {
			items[i].Text, _, _ = strings.Cut(items[i].Text, "Error: request to call tool denied.")
		}
	}
	return items
}

// api sends a request to the gateway.
func (s *v1Stage) api(t *testing.T, method, path string, body, to any) {
	t.Helper()
	s.callAt(t, s.leat.URL, method, path, body, to)
}
