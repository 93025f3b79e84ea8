//go:build e2e

package letta

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/test/badnet"
	"github.com/leat-dev/leat/test/e2e/internal/harness"
	"github.com/leat-dev/leat/transcript"
)

// v1Stage is a real V1 server and a gateway in front of it.
type v1Stage struct {
	*harness.Client
	model    *harness.Model
	v1, leat *harness.Program
}

// TestV1 uses a real V1 server, which also needs PostgreSQL and Redis, so the test can't install it.
func TestV1(t *testing.T) {
	command, url := os.Getenv("LETTA_V1_COMMAND"), os.Getenv("LETTA_V1_URL")
	if command == "" || url == "" {
		t.Skip("SKIPPED: install letta==0.16.8 from PyPI with PostgreSQL and Redis, and set LETTA_V1_COMMAND to a script that starts it in the foreground and LETTA_V1_URL to where it answers")
	}
	s := &v1Stage{model: harness.NewModel(t, map[string][]harness.Reply{
		"PLAIN": {{Words: harness.Words(hello)}},
		"ASK":   {{Words: harness.Words("May I? "), Calls: []harness.Call{harness.NewCall("run_it", map[string]any{"command": "now"})}}, {Words: harness.Words("That was it.")}},
		"SLOW":  {{Words: harness.GatedWords(slowly, further), Pause: 30 * time.Millisecond}},
		"FAIL":  {{Status: http.StatusUnauthorized}},
	})}
	p := &harness.Program{Name: "Letta V1", Args: []string{command}, Env: os.Environ(), URL: url, Ready: "/v1/health/"}
	s.v1 = p.CloseWithTest(t)
	s.v1.Start(t)
	agent := s.agent(t)
	proxy, err := badnet.Listen(strings.TrimPrefix(url, "http://"), badnet.Faults{Seed: 1, Total: -1, MeanBytes: 2 << 10, Stall: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() }) // the proxy is not needed any more
	// The limit on silence is longer than the 20 s between the server's pings, to prove that pings don't count as progress.
	s.leat = harness.Leat(t, nil, "--agent", "v1=letta:"+url+"?agent="+agent+"&silence=25s",
		"--agent", "v1b=letta:"+url+"?agent="+agent, "--agent", "steps=letta:"+url+"?stream=steps&agent="+agent,
		"--agent", "front=letta:"+url+"?background=false&agent="+agent, "--agent", "cut=letta:http://"+proxy.Addr()+"?agent="+agent)
	s.leat.Start(t)
	s.Client = harness.NewClient(s.leat.URL)

	t.Run("plain", func(t *testing.T) {
		a := s.Ask(t, "v1", "please do SCRIPT-PLAIN")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, hello)
	})
	for decision, state := range map[event.Decision]event.PartState{event.Approve: event.PartDone, event.Deny: event.PartDenied} {
		t.Run("a tool: "+string(decision), func(t *testing.T) {
			c := s.CreateConversation(t, "v1")
			turn := s.SendText(t, c, "please do SCRIPT-ASK").Turn
			tr := s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { u := tr.Turn(turn); return u != nil && len(u.Requests) > 0 })
			if _, err := s.Answer(t.Context(), c, turn, tr.Turn(turn).Requests[0].ID, decision, ""); err != nil {
				t.Fatal(err)
			}
			a := s.WaitAnswer(t, c, turn)
			a.CheckOutcome(t, event.Completed)
			if got := a.PartsOf(event.KindTool)[0].State; got != state {
				t.Errorf("the tool is %q, want %q", got, state)
			}
		})
	}
	t.Run("steps", func(t *testing.T) {
		a := s.Ask(t, "steps", "please do SCRIPT-PLAIN")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, hello)
	})
	t.Run("an image", func(t *testing.T) {
		c := s.CreateConversation(t, "v1")
		res, err := http.Post(s.leat.URL+"/api/conversations/"+c+"/files?name=mine.png", "image/png", bytes.NewReader(drawing(t)))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var file struct{ Media event.Media }
		if err := json.NewDecoder(res.Body).Decode(&file); err != nil || file.Media.URL == "" {
			t.Fatalf("the upload failed: %s, %v", res.Status, err)
		}
		ack, err := s.Do(t.Context(), c, leat.Command{Type: "send", Message: &leat.Message{
			Text: "please do SCRIPT-PLAIN", Parts: []event.Part{{Kind: event.KindMedia, Media: &file.Media}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.WaitAnswer(t, c, ack.Turn).CheckText(t, hello)
		if images := s.model.Images(); len(images) != 1 || !bytes.Equal(images[0], drawing(t)) {
			t.Errorf("the model received %d images, want the one that was sent", len(images))
		}
	})
	t.Run("over connections that break", func(t *testing.T) {
		a := s.Ask(t, "cut", "please do SCRIPT-SLOW")
		a.CheckOutcome(t, event.Completed)
		a.CheckText(t, slow)
		if proxy.Cuts() == 0 {
			t.Error("no connection was broken")
		}
	})
	t.Run("Leat is killed during the answer", func(t *testing.T) {
		for name, outcome := range map[string]event.Outcome{"v1": event.Completed, "front": event.Interrupted} {
			s.model.CloseGate()
			c := s.CreateConversation(t, name)
			turn := s.StartTurn(t, c, "please do SCRIPT-SLOW")
			s.leat.Signal(syscall.SIGKILL)
			s.model.OpenGate()
			s.leat.Start(t)
			a := s.WaitAnswer(t, c, turn)
			a.CheckOutcome(t, outcome)
			a.CheckBeginning(t, slow)
			if outcome == event.Completed {
				a.CheckText(t, slow)
			}
		}
	})
	t.Run("Leat is killed while a request is open", func(t *testing.T) {
		for _, name := range []string{"v1", "front"} {
			c := s.CreateConversation(t, name)
			turn := s.SendText(t, c, "please do SCRIPT-ASK").Turn
			asked := func(tr *transcript.Transcript) bool { u := tr.Turn(turn); return u != nil && len(u.Requests) > 0 }
			s.WaitUntil(t, c, turn, asked)
			s.leat.Signal(syscall.SIGKILL)
			s.leat.Start(t)
			if _, err := s.Answer(t.Context(), c, turn, s.WaitUntil(t, c, turn, asked).Turn(turn).Requests[0].ID, event.Approve, ""); err != nil {
				t.Fatal(err)
			}
			a := s.WaitAnswer(t, c, turn)
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, "May I? \n\nThat was it.")
		}
	})
	t.Run("a message after a turn that was stopped while a request was open", func(t *testing.T) {
		for _, name := range []string{"v1", "front"} {
			c := s.CreateConversation(t, name)
			turn := s.SendText(t, c, "please do SCRIPT-ASK").Turn
			s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { u := tr.Turn(turn); return u != nil && len(u.Requests) > 0 })
			if _, err := s.Stop(t.Context(), c, turn); err != nil {
				t.Fatal(err)
			}
			s.WaitAnswer(t, c, turn).CheckOutcome(t, event.Cancelled)
			a := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn) // the server still waits for the answer
			a.CheckOutcome(t, event.Completed)
			a.CheckText(t, hello)
		}
	})
	t.Run("other clients", func(t *testing.T) { s.testFollow(t, agent) })
	t.Run("a stop cancels the run", func(t *testing.T) {
		for _, when := range []string{"at once", "in the answer"} {
			s.model.CloseGate()
			c := s.CreateConversation(t, "v1")
			turn := s.SendText(t, c, "please do SCRIPT-SLOW").Turn
			if when == "in the answer" {
				s.WaitUntil(t, c, turn, func(tr *transcript.Transcript) bool { return len(tr.Visible(turn)) > 20 })
			}
			if _, err := s.Stop(t.Context(), c, turn); err != nil {
				t.Fatal(err)
			}
			s.WaitAnswer(t, c, turn).CheckOutcome(t, event.Cancelled)
			s.idle(t, agent)
			s.model.OpenGate()
			b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn) // the conversation accepts messages again
			b.CheckOutcome(t, event.Completed)
			b.CheckText(t, hello)
		}
	})
	t.Run("the server is killed during the answer", func(t *testing.T) {
		s.model.CloseGate()
		c := s.CreateConversation(t, "v1")
		turn := s.StartTurn(t, c, "please do SCRIPT-SLOW")
		// Leat is stopped until the server is back, because it retries only for a minute.
		s.leat.Signal(syscall.SIGKILL)
		s.v1.Signal(syscall.SIGKILL)
		s.v1.Start(t) // it sends pings for the dead run, and lists it as running
		s.leat.Start(t)
		a := s.WaitAnswer(t, c, turn)
		a.CheckOutcome(t, event.Failed)
		a.CheckBeginning(t, slow)
		if a.Turn.Error == nil || a.Turn.Error.Code != "silence" || !strings.Contains(a.Turn.Error.Message, "running") {
			t.Errorf("the turn failed with %+v", a.Turn.Error)
		}
		s.idle(t, agent)
		s.model.OpenGate()
		b := s.WaitAnswer(t, c, s.SendText(t, c, "please do SCRIPT-PLAIN").Turn)
		b.CheckOutcome(t, event.Completed)
		b.CheckText(t, hello)
	})
}

// drawing returns a small PNG image.
func drawing(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// call sends a request to the V1 server.
func (s *v1Stage) call(t *testing.T, method, path string, body, to any) {
	t.Helper()
	s.callAt(t, s.v1.URL, method, path, body, to)
}

func (s *v1Stage) callAt(t *testing.T, url, method, path string, body, to any) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s, %v\n%s", method, path, res.Status, err, answer)
	}
	if err := json.Unmarshal(answer, to); err != nil {
		t.Fatal(err)
	}
}

// agent creates an agent with the scripted model and a tool that needs approval.
func (s *v1Stage) agent(t *testing.T) string {
	t.Helper()
	var tool, made struct{ ID string }
	s.call(t, http.MethodPost, "/v1/tools/", map[string]any{
		"source_code":               "def run_it(command: str) -> str:\n    \"\"\"Runs a command.\n\n    Args:\n        command (str): the command\n\n    Returns:\n        str: what it printed\n    \"\"\"\n    return 'ran ' + command\n",
		"default_requires_approval": true,
	}, &tool)
	s.call(t, http.MethodPost, "/v1/agents/", map[string]any{
		"name": "leat-e2e", "agent_type": "letta_v1_agent", "include_base_tools": false, "tool_ids": []string{tool.ID},
		"memory_blocks":    []any{map[string]string{"label": "human", "value": "x"}},
		"llm_config":       map[string]any{"model": "scripted", "model_endpoint_type": "openai", "model_endpoint": s.model.URL + "/v1", "context_window": 32000},
		"embedding_config": map[string]any{"embedding_model": "x", "embedding_endpoint_type": "openai", "embedding_endpoint": s.model.URL + "/v1", "embedding_dim": 8},
	}, &made)
	return made.ID
}

// idle waits until no run of the agent is running.
func (s *v1Stage) idle(t *testing.T, agent string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the server has no event for it
		var runs []struct {
			ID, Status string
			Background bool // the server never updates other runs
		}
		s.call(t, http.MethodGet, "/v1/runs/?limit=5&agent_id="+agent, nil, &runs)
		busy := false
		for _, r := range runs {
			busy = busy || r.Background && (r.Status == "running" || r.Status == "created")
		}
		if !busy {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("runs of the server: %+v", runs)
		}
	}
}
