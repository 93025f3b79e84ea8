package letta

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

// requester is an agent that makes the request which the message names, and tells the answer.
var requester = agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	requests := map[string]event.Request{
		"approval": {Kind: event.RequestApproval, Tool: "shell", Prompt: `Run "ls"?`, Data: json.RawMessage(`{"command": "ls"}`), Options: []string{"always"}},
		"choice":   {Kind: event.RequestInput, Prompt: "Which colour?", Options: []string{"red", "green", "blue", "black", "white"}},
		"open":     {Kind: event.RequestInput, Prompt: "Your name?"},
		"tool":     {Kind: event.RequestInput, Tool: "getLocation"},
	}
	r, isKnown := requests[in.Message.Text]
	if !isKnown {
		return out.Text("re: " + in.Message.Text)
	}
	if err := out.Text("First. "); err != nil {
		return err
	}
	r.ID = "r"
	a, err := out.Ask(ctx, r)
	if err != nil {
		return err
	}
	return out.Text("decision=" + string(a.Decision) + " text=" + a.Text)
})

// Letta Code shows approvals and questions as forms, and what its user chooses or types reaches the agent.
func TestForms(t *testing.T) {
	approvalForm := `{"questions":[{"question":"Run ”ls”?\n\nshell ` + "`{”command”:”ls”}`" + `","header":"Approval","options":[{"label":"Yes","description":"Allow it"},` +
		`{"label":"No","description":"Refuse it, or type why"},{"label":"always","description":""}],"multiSelect":false}]}`
	choiceForm := `{"questions":[{"question":"Which colour?\n\nOr type:\n\n- white","header":"Question","options":[{"label":"red","description":""},` +
		`{"label":"green","description":""},{"label":"blue","description":""},{"label":"black","description":""}],"multiSelect":false}]}`
	openForm := `{"questions":[{"question":"Your name?","header":"Question","options":[{"label":"You decide","description":"Leave it to the agent"},` +
		`{"label":"Skip this question","description":"Don't answer"}],"multiSelect":false}]}`
	for _, test := range []struct{ request, form, answer, want string }{
		{"approval", approvalForm, "Yes", "decision=approve text="},
		{"approval", approvalForm, "No", "decision=deny text="},
		{"approval", approvalForm, "always", "decision=always text="},
		{"approval", approvalForm, "only in /tmp", "decision=deny text=only in /tmp"},
		{"choice", choiceForm, "blue", "decision=blue text="},
		{"choice", choiceForm, "White", "decision=white text="},
		{"choice", choiceForm, "pink", "decision= text=pink"},
		{"open", openForm, `Ann "the cat"`, `decision= text=Ann "the cat"`},
	} {
		h := newHarness(t, requester, quota.Limits{})
		path := h.begin("") + "/messages"
		first := h.lettaCode(path, body("m", test.request))
		asks := find(first, typeApproval)
		if len(asks) != 1 || asks[0].Call.Name != askTool || asks[0].Call.Arguments != test.form || first[len(first)-2].Stop != stopApproval {
			t.Fatalf("%s: got %+v, %+v\nwant %s", test.request, first, asks, test.form)
		}
		var in askInput
		if err := json.Unmarshal([]byte(asks[0].Call.Arguments), &in); err != nil {
			t.Fatal(err)
		}
		sentence := `User has answered your questions: "` + in.Questions[0].Question + `"="` + test.answer + `". You can now continue with the user's answers in mind.`
		rest := h.lettaCode(path, result(asks[0].Call.ID, "success", sentence))
		if got := textIn(rest); got != test.want {
			t.Errorf("%s: %q, want %q", test.answer, got, test.want)
		}
		// The client closes its form, in every window.
		if returns := find(rest, typeReturn); len(returns) != 1 || returns[0].CallID != asks[0].Call.ID || !strings.Contains(returns[0].Return, in.Questions[0].Question) {
			t.Errorf("%s: results %+v", test.answer, returns)
		}
		// Letta Code doesn't change a text any more after the response has ended.
		if before, after := find(first, typeAssistant), find(rest, typeAssistant); before[0].Otid == after[0].Otid || before[0].ID == after[0].ID {
			t.Errorf("the text before and after the answer has the id %s", after[0].ID)
		}
	}
}

// With -p, Letta Code refuses the form. The agent gets the reason, and it isn't an answer of the person.
func TestRefusedForms(t *testing.T) {
	for _, test := range []struct{ request, body, want string }{
		{"approval", "denial", "decision=deny text=headless"},
		{"approval", "error", "decision=deny text=headless"},
		{"choice", "denial", "decision= text=Error: headless"},
		{"choice", "error", "decision= text=Error: headless"},
		{"tool", "error", "decision= text=Error: headless"},
	} {
		h := newHarness(t, requester, quota.Limits{})
		path := h.begin("") + "/messages"
		c := find(h.lettaCode(path, body("m", test.request)), typeApproval)[0].Call
		answer := denial(c.ID, "headless")
		if test.body == "error" {
			answer = result(c.ID, "error", "headless")
		}
		if got := textIn(h.lettaCode(path, answer)); got != test.want {
			t.Errorf("%s, %s: %q, want %q", test.request, test.body, got, test.want)
		}
	}
}

// A tool of the client keeps its name, and other clients than Letta Code get approvals as before.
func TestWithoutForms(t *testing.T) {
	h := newHarness(t, requester, quota.Limits{})
	path := h.begin("") + "/messages"
	if c := find(h.lettaCode(path, body("m", "tool")), typeApproval)[0].Call; c.Name != "getLocation" {
		t.Errorf("the call is %+v", c)
	}
	path = h.begin("") + "/messages"
	plain := framesOf(t, h.Ask(http.StatusOK, "", http.MethodPost, path, body("m", "approval")))
	if c := find(plain, typeApproval)[0].Call; c.Name != "shell" || c.Arguments != `{"command": "ls"}` {
		t.Errorf("the call is %+v", c)
	}
	// A program that offers the tool gets a form too.
	path = h.begin("") + "/messages"
	offer := strings.TrimSuffix(body("m", "approval"), "}") + `,"client_tools":[{"name":"AskUserQuestion","description":"","parameters":{}}]}`
	if c := find(framesOf(t, h.Ask(http.StatusOK, "", http.MethodPost, path, offer)), typeApproval)[0].Call; c.Name != askTool {
		t.Errorf("the call is %+v", c)
	}
}

// A form that is open when Letta Code starts is in the list and in the context. An answer that comes after another one gets what the agent did since, and
// changes nothing.
func TestAnsweredElsewhere(t *testing.T) {
	h := newHarness(t, requester, quota.Limits{})
	conversationPath := h.begin("")
	path := conversationPath + "/messages"
	c := find(h.lettaCode(path, body("m", "choice")), typeApproval)[0]
	var list []frame
	query := path + "?limit=50&order=desc&include_return_message_types=approval_request_message&include_return_message_types=assistant_message"
	if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, "", http.MethodGet, query, "")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].ID != c.ID || list[0].Date <= list[1].Date || list[1].Content != "First. " {
		t.Errorf("the list is %+v", list)
	}
	var state conversation
	if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, "", http.MethodGet, conversationPath, "")), &state); err != nil {
		t.Fatal(err)
	}
	if len(state.InContext) != 1 || !strings.HasPrefix(c.ID, state.InContext[0]+":tool:") {
		t.Errorf("in the context are %v, the request is %s", state.InContext, c.ID)
	}
	h.Ask(http.StatusOK, "", http.MethodPost, path, result(c.Call.ID, "success", "blue"))
	late := h.lettaCode(path, result(c.Call.ID, "success", answerBegin+"Which colour?"+answerMiddle+"red"+answerEnd))
	if got := textIn(late); got != "decision=blue text=" {
		t.Errorf("the late window gets %q", got)
	}
	if returns := find(late, typeReturn); len(returns) != 1 || !strings.Contains(returns[0].Return, `"="blue"`) {
		t.Errorf("the late window gets the results %+v", returns)
	}
	// A client that knew nothing of it gets all.
	whole := h.lettaCode("/letta/v1/runs/"+c.Run+"/stream", "{}")
	if got := textIn(whole); got != "First. decision=blue text=" || len(find(whole, typeApproval)) != 1 || len(find(whole, typeReturn)) != 1 {
		t.Errorf("the whole run is %+v", whole)
	}
}

// The same for a client that answers a call which the agent has begun, after the turn has ended.
func TestLateApproval(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		tool, err := out.Tool("shell", "c")
		if err != nil {
			return err
		}
		a, err := out.Ask(ctx, event.Request{ID: "r", Kind: event.RequestApproval, Tool: "shell"})
		if err != nil {
			return err
		}
		return errors.Join(tool.Done(), out.Text("decision="+string(a.Decision)))
	}), quota.Limits{})
	path := h.begin("") + "/messages"
	c := find(framesOf(t, h.Ask(http.StatusOK, "", http.MethodPost, path, body("m", "hi"))), typeApproval)[0].Call
	for range 2 {
		frames := framesOf(t, h.Ask(http.StatusOK, "", http.MethodPost, path, denial(c.ID, "no")))
		if got := textIn(frames); got != "decision=deny" {
			t.Errorf("got %q", got)
		}
		if returns := find(frames, typeReturn); len(returns) != 1 || returns[0].CallID != c.ID {
			t.Errorf("the results are %+v", returns)
		}
	}
}

// Of two requests at once, the second follows the answer to the first, whatever the agent writes meanwhile.
func TestTwoForms(t *testing.T) {
	h := newHarness(t, agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		answers := make(chan string)
		for _, id := range []string{"one", "two"} {
			go func() {
				a, err := out.Ask(ctx, event.Request{ID: id, Kind: event.RequestApproval, Prompt: id + "?"})
				if err != nil {
					a.Decision = event.Decision(err.Error())
				}
				answers <- id + "=" + string(a.Decision)
			}()
		}
		first, second := <-answers, <-answers
		return out.Text(min(first, second) + " " + max(first, second))
	}), quota.Limits{})
	path := h.begin("") + "/messages"
	frames := h.lettaCode(path, body("m", "hi"))
	for i := range 2 {
		asks := find(frames, typeApproval)
		if len(asks) != 1 {
			t.Fatalf("answer %d: requests %+v", i, asks)
		}
		label := labelYes
		if strings.Contains(asks[0].Call.Arguments, "two?") {
			label = labelNo
		}
		frames = h.lettaCode(path, result(asks[0].Call.ID, "success", label))
	}
	if got := textIn(frames); got != "one=approve two=deny" {
		t.Errorf("got %q", got)
	}
}

// A user who closes the form and writes something else refuses, and gets the rest of the run and then the answer to the message in one response.
func TestMessageInsteadOfAnswer(t *testing.T) {
	h := newHarness(t, requester, quota.Limits{})
	path := h.begin("") + "/messages"
	c := find(h.lettaCode(path, body("m", "approval")), typeApproval)[0].Call
	both := strings.TrimSuffix(denial(c.ID, "cancelled"), "]}") + `,` + strings.TrimPrefix(body("m2", "hello"), `{"messages":[`)
	frames := h.lettaCode(path, both)
	if got := textIn(frames); got != "decision=deny text=cancelledre: hello" {
		t.Errorf("got %q", got)
	}
	if stops := find(frames, typeStop); len(stops) != 1 || stops[0].Stop != stopEnd {
		t.Errorf("the stops are %+v", stops)
	}
	var whole answerJSON
	if err := json.Unmarshal([]byte(h.Ask(http.StatusOK, "", http.MethodPost, path, strings.TrimSuffix(both, "}")+`,"streaming":false}`)), &whole); err != nil {
		t.Fatal(err)
	}
	if got := textIn(whole.Messages); got != "First. decision=deny text=cancelledre: hello" {
		t.Errorf("the repetition gets %q", got)
	}
}

// The tools that a client offers reach the agent, except the one that asks its user: agents ask by questions.
func TestClientTools(t *testing.T) {
	h := newHarness(t, outputtest.ListTools, quota.Limits{})
	tools := `"client_tools":[{"name":"Bash","description":"runs a command","parameters":{"type":"object"}},{"name":"AskUserQuestion"}],`
	stream := h.Ask(http.StatusOK, "alice", http.MethodPost, h.begin("alice")+"/messages", "{"+tools+strings.TrimPrefix(body("m", "hi"), "{"))
	if want := `[{\"name\":\"Bash\",\"description\":\"runs a command\",\"parameters\":{\"type\":\"object\"}}]`; !strings.Contains(stream, want) {
		t.Errorf("the agent is offered other tools than %s: %s", want, stream)
	}
}
