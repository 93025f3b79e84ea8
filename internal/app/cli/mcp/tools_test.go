package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
)

// Each tool has schemas, and its output schema requires only what is listed.
func TestToolsList(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	var list struct {
		Tools []struct {
			Name, Description         string
			InputSchema, OutputSchema struct {
				Type       string
				Properties map[string]any
				Required   []string
			}
			Annotations struct{ ReadOnlyHint bool }
		}
	}
	if err := json.Unmarshal(p.response(p.send("tools/list", nil)).Result, &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.InputSchema.Type != "object" || tool.OutputSchema.Type != "object" {
			t.Errorf("%+v", tool)
		}
		if want := tool.Name == "read" || tool.Name == "conversations"; tool.Annotations.ReadOnlyHint != want {
			t.Errorf("%s: the hint readOnly is %v", tool.Name, !want)
		}
		for _, required := range slices.Concat(tool.InputSchema.Required, tool.OutputSchema.Required) {
			if tool.InputSchema.Properties[required] == nil && tool.OutputSchema.Properties[required] == nil {
				t.Errorf("%s requires %s, which it doesn't describe", tool.Name, required)
			}
		}
	}
	if got := strings.Join(names, " "); got != "ask answer conversations read stop" {
		t.Errorf("tools %s", got)
	}
}

// Invalid arguments are results with isError, so that the calling model can correct them, and have no effect.
func TestInvalidArguments(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	p := connect(t, c)
	for _, tt := range []struct {
		tool      string
		arguments any
		want      string
	}{
		{"ask", nil, "text is empty"},
		{"ask", arguments{"text": " \n"}, "text is empty"},
		{"ask", arguments{"text": 7}, "invalid params: json: cannot unmarshal number"},
		{"ask", []int{1}, "invalid params: json: cannot unmarshal array"},
		{"ask", arguments{"text": "x", "wait_seconds": -1}, "wait_seconds must be 1 to 86400"},
		{"ask", arguments{"text": "x", "wait_seconds": 86401}, "wait_seconds must be 1 to 86400"},
		{"ask", arguments{"text": "x", "wait_seconds": 1.5}, "invalid params: json: cannot unmarshal number 1.5"},
		{"ask", arguments{"text": "x", "agent": "nobody"}, "nobody"},
		{"ask", arguments{"text": "x", "conversation": "nowhere"}, "not found"},
		{"ask", arguments{"text": "x", "conversation": "../agents"}, "not found"},
		{"answer", arguments{"conversation": "nowhere"}, "an answer needs a decision or a text"},
		{"answer", arguments{"conversation": "nowhere", "text": "x"}, "not found"},
		{"answer", arguments{"conversation": "nowhere", "text": "x", "wait_seconds": -1}, "wait_seconds must be"},
		{"conversations", arguments{"limit": -1}, "limit must be 1 to 200"},
		{"conversations", arguments{"limit": 201}, "limit must be 1 to 200"},
		{"conversations", arguments{"limit": "all"}, "invalid params"},
		{"read", nil, "not found"},
		{"read", arguments{"conversation": "nowhere"}, "not found"},
		{"read", arguments{"conversation": "nowhere", "limit": 1000}, "limit must be 1 to 200"},
		{"stop", arguments{"conversation": "nowhere"}, "not found"},
		{"stop", arguments{"conversation": true}, "invalid params"},
	} {
		if r := p.call(tt.tool, tt.arguments); !r.IsError || !strings.Contains(r.shown(), tt.want) || r.Structured != nil {
			t.Errorf("%s %v: %+v, want %q", tt.tool, tt.arguments, r, tt.want)
		}
	}
	if list, err := c.Conversations(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, conversations %v", err, list)
	}
}

// conversations lists as many as were asked for, the one that was used last first, and those whose agent waits.
func TestConversations(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	p := connect(t, c)
	if r := p.call("conversations", nil); r.IsError || r.shown() != `{"conversations":[]}` {
		t.Errorf("without conversations: %+v", r)
	}
	for i := range 22 {
		if _, err := c.Create(t.Context(), leat.CreateOptions{Title: fmt.Sprint("title ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	waiting := p.call("ask", arguments{"text": "permission"})
	for limit, want := range map[any]int{nil: 20, 3: 3, 200: 23} {
		a := arguments{}
		if limit != nil {
			a["limit"] = limit
		}
		r := p.call("conversations", a)
		list := r.Structured["conversations"].([]any)
		first := list[0].(map[string]any)
		if r.IsError || len(list) != want || first["id"] != waiting.Conversation || first["waiting"] != true || first["title"] != "PERMISSION" {
			t.Errorf("limit %v: %d conversations, the first is %v", limit, len(list), first)
		}
		var shown map[string]any
		if err := json.Unmarshal([]byte(r.shown()), &shown); err != nil || len(shown["conversations"].([]any)) != want {
			t.Errorf("%v, the text is %s", err, r.shown())
		}
	}
}

// read returns messages by page, and cuts long ones between characters.
func TestRead(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	conversation, err := c.Create(t.Context(), leat.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := "x" + strings.Repeat("ö", maxText)
	var want []string
	for i := range 130 {
		want = append(want, fmt.Sprint("message ", i))
		if i == 129 {
			want[i] = long
		}
		if _, err := c.Do(t.Context(), conversation.ID, leat.Command{Type: "inject", Message: &leat.Message{Role: event.User, Text: want[i]}}); err != nil {
			t.Fatal(err)
		}
	}
	p := connect(t, c)
	var got []string
	before := ""
	for {
		a := arguments{"conversation": conversation.ID, "limit": 50}
		if before != "" {
			a["before"] = before
		}
		r := p.call("read", a)
		var page []string
		messages := r.Structured["messages"].([]any)
		if len(messages) == 0 {
			t.Fatal("an empty page")
		}
		for _, m := range messages {
			page = append(page, m.(map[string]any)["text"].(string))
		}
		got = append(page, got...)
		before = messages[0].(map[string]any)["id"].(string)
		if r.Structured["earlier"] == false {
			break
		}
	}
	last := got[len(got)-1]
	if text, isCut := strings.CutSuffix(last, "… (cut)"); !isCut || !strings.HasPrefix(long, text) || len(text) < maxText-utf8.UTFMax || len(text) > maxText {
		t.Errorf("the long message has %d bytes and ends with %q", len(last), last[len(last)-20:])
	}
	if !slices.Equal(got[:129], want[:129]) || len(got) != 130 {
		t.Errorf("%d messages: %.2000v", len(got), got)
	}
	if r := p.call("read", arguments{"conversation": conversation.ID, "before": "nothing"}); !r.IsError {
		t.Errorf("before an unknown message: %+v", r)
	}
}

// stop stops all turns, or one.
func TestStop(t *testing.T) {
	p := connect(t, newGateway(t, quota.Limits{}))
	asked := p.call("ask", arguments{"text": "permission"})
	running, queued := asked.Turn, p.start("ask", arguments{"text": "wait", "conversation": asked.Conversation})
	for p.turns(asked.Conversation) < 2 { // until it is stored
	}
	if r := p.call("stop", arguments{"conversation": asked.Conversation, "turn": "another"}); len(r.Structured["stopped"].([]any)) != 0 {
		t.Errorf("another turn: %+v", r)
	}
	r := p.call("stop", arguments{"conversation": asked.Conversation})
	if stopped := r.Structured["stopped"].([]any); len(stopped) != 2 || stopped[1] != running {
		t.Errorf("stopped %v, the running turn is %s", stopped, running)
	}
	if r := p.result(queued); r.State != "cancelled" || r.IsError || r.shown() != "The agent has written no text (cancelled)." {
		t.Errorf("the queued question: %+v", r)
	}
	if r := p.call("stop", arguments{"conversation": asked.Conversation}); len(r.Structured["stopped"].([]any)) != 0 {
		t.Errorf("a second stop: %+v", r)
	}
}
