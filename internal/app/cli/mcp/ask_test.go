package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/service/quota"
)

// turns returns the number of turns of a conversation, as its client sees it.
func (p *peer) turns(conversation string) int {
	p.t.Helper()
	t, err := p.client.Transcript(p.t.Context(), conversation)
	if err != nil {
		p.t.Fatal(err)
	}
	return len(t.Turns)
}

// running waits until a turn of a conversation has written something, and returns it.
func running(t *testing.T, c *leat.Client, conversation string) (turn string) {
	t.Helper()
	if err := c.Follow(t.Context(), conversation, func(u leat.Update) error {
		for _, candidate := range u.Transcript.Turns {
			if candidate.Unfinished() && u.Transcript.Visible(candidate.ID) != "" {
				turn = candidate.ID
				return leat.ErrStop
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return turn
}

// ended waits until a turn has ended, or any turn if it is empty, and returns the outcome.
func ended(t *testing.T, c *leat.Client, conversation, turn string) (outcome string) {
	t.Helper()
	if err := c.Follow(t.Context(), conversation, func(u leat.Update) error {
		for _, candidate := range u.Transcript.Turns {
			if !candidate.Unfinished() && (turn == "" || candidate.ID == turn) {
				outcome = string(candidate.Outcome)
				return leat.ErrStop
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return outcome
}

// The ends of a turn, and the text of each for people.
func TestAsk(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	for _, tt := range []struct {
		question, state, text, err, shown string
		isError                           bool
	}{
		{"hello", "completed", "re: hello", "", "re: hello", false},
		{"nothing", "completed", "", "", "The agent has written no text (completed).", false},
		{"fail", "failed", "so far", "The model is busy.", "so far\n\nThe answer failed: The model is busy.", true},
	} {
		r := p.call("ask", arguments{"text": tt.question})
		if r.State != tt.state || r.Text != tt.text || r.Error != tt.err || r.shown() != tt.shown || r.IsError != tt.isError || r.Conversation == "" || r.Turn == "" {
			t.Errorf("%s: %+v", tt.question, r)
		}
	}
}

// Questions at the same time get their own answers, in separate conversations and in one, whose turns follow each other.
func TestParallelQuestions(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	first := p.call("ask", arguments{"text": "hello"})
	questions := map[int]string{}
	for i := range 20 {
		text, a := fmt.Sprint("question ", i), arguments{}
		if a["text"] = text; i%2 == 0 {
			a["conversation"] = first.Conversation
		}
		questions[p.start("ask", a)] = text
	}
	seen := map[string]bool{first.Turn: true}
	conversations := map[string]bool{}
	for id, text := range questions {
		r := p.result(id)
		if r.Text != "re: "+text || seen[r.Turn] {
			t.Errorf("%s: %+v", text, r)
		}
		seen[r.Turn], conversations[r.Conversation] = true, true
	}
	if n := p.turns(first.Conversation); n != 11 || len(conversations) != 11 {
		t.Errorf("%d turns in one of %d conversations", n, len(conversations))
	}
}

// A question of an agent is a result, and its answer continues the call.
func TestQuestion(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	asked := p.call("ask", arguments{"text": "permission"})
	if q := asked.Question; asked.State != stateWaiting || asked.IsError || q == nil || q.Request != "ask" || q.Prompt != "May I?" || strings.Join(q.Options, " ") != "approve deny" {
		t.Fatalf("%+v", asked)
	}
	if want := "The agent waits for an answer: May I? (approve, deny)\nConversation: " + asked.Conversation; asked.shown() != want {
		t.Errorf("shown %q", asked.shown())
	}
	for _, a := range []arguments{{"turn": "another"}, {"request": "another"}} {
		a["conversation"], a["decision"] = asked.Conversation, "approve"
		if r := p.call("answer", a); !r.IsError || !strings.Contains(r.shown(), "no agent waits for an answer") {
			t.Errorf("%v: %+v", a, r)
		}
	}
	done := p.call("answer", arguments{"conversation": asked.Conversation, "turn": asked.Turn, "request": "ask", "decision": "deny"})
	if done.Turn != asked.Turn || done.State != "completed" || done.Text != "the answer is deny" {
		t.Errorf("%+v", done)
	}
}

// A host that asks for progress gets it with its token and increasing numbers, also for a token that isn't a string. Without one it gets none.
func TestProgress(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	p := connect(t, c)
	conversation := p.call("ask", arguments{"text": "nothing"}).Conversation
	for meta, token := range map[string]string{`{"progressToken":"t"}`: `"t"`, `{"progressToken":7}`: `7`, `{"progressToken":null}`: ``, `{}`: ``, `null`: ``} {
		p.notes = nil
		p.calls++
		id := p.calls
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{"text":"wait","conversation":%q},"_meta":%s}}`, id, conversation, meta))
		running(t, c, conversation)
		if token != "" { // the report is sent before anything else
			var note message
			if err := json.Unmarshal([]byte(p.line()), &note); err != nil {
				t.Fatal(err)
			}
			p.notes = append(p.notes, note)
		}
		p.call("stop", arguments{"conversation": conversation})
		if r := p.result(id); r.State != "cancelled" || r.Text != "so far" {
			t.Errorf("%+v", r)
		}
		if token == "" {
			for _, n := range p.notes {
				t.Errorf("%s: %s %s", meta, n.Method, n.Params)
			}
			continue
		}
		for i, n := range p.notes {
			want := fmt.Sprintf(`{"message":"so far","progress":%d,"progressToken":%s}`, i+1, token)
			if n.Method != "notifications/progress" || string(n.Params) != want {
				t.Errorf("%s: %s %s, want %s", meta, n.Method, n.Params, want)
			}
		}
	}
}
