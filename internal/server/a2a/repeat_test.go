package a2a

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/service/quota"
)

// askingTwice is an agent that asks for two permissions, one after the other.
var askingTwice = agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
	for _, id := range []string{"one", "two"} {
		a, err := out.Ask(ctx, event.Request{ID: id, Kind: event.RequestApproval, Tool: "shell", Prompt: id + "?"})
		if err != nil {
			return err
		}
		if err := out.Text(id + " " + string(a.Decision) + ". "); err != nil {
			return err
		}
	}
	return nil
})

// An answer that is sent again, because its response was lost, must not approve what the agent asks next.
func TestRepeatedAnswer(t *testing.T) {
	h := newHarness(t, askingTwice, quota.Limits{})
	id := h.rpc("", "SendMessage", said("m", "c", "", "hello")).Result.Task.ID
	for range 2 {
		got := h.rpc("", "SendMessage", said("first", "c", id, "approve"))
		if got.Error != nil || got.Result.Task.Status.State != stateInput || *got.Result.Task.Status.Message.Parts[0].Text != "two?" {
			t.Fatalf("%+v", got)
		}
	}
	for range 2 { // also after the end
		got := h.rpc("", "SendMessage", said("second", "c", id, "deny"))
		if got.Error != nil || got.Result.Task.Status.State != stateCompleted || *got.Result.Task.Artifacts[0].Parts[0].Text != "one approve. two deny. " {
			t.Fatalf("%+v", got)
		}
	}
	if got := h.rpc("", "SendMessage", said("third", "c", id, "approve")); got.Error == nil || got.Error.Code != codeUnsupported {
		t.Errorf("%+v", got)
	}
	if got := h.rpc("", "SendMessage", said("", "c", id, "approve")); got.Error == nil || got.Error.Code != codeInvalidParams {
		t.Errorf("without an id: %+v", got)
	}
}

// Lists are limited to a state and a time. Values that can't be read are refused.
func TestListFilters(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	h.rpc("", "SendMessage", said("m", "c", "", "hello"))
	for filter, count := range map[string]int{
		`"status":"TASK_STATE_COMPLETED"`:                      1,
		`"status":"TASK_STATE_WORKING"`:                        0,
		`"statusTimestampAfter":"2020-01-01T00:00:00Z"`:        1,
		`"statusTimestampAfter":"9999-01-01T00:00:00.5+01:00"`: 0,
	} {
		if got := h.rpc("", "ListTasks", `{"contextId":"c",`+filter+`}`); got.Error != nil || len(got.Result.Tasks) != count {
			t.Errorf("%s: %+v", filter, got)
		}
	}
	for _, filter := range []string{`"statusTimestampAfter":"yesterday"`, `"status":"done"`, `"pageToken":"nothing"`} {
		if got := h.rpc("", "ListTasks", `{"contextId":"c",`+filter+`}`); got.Error == nil || got.Error.Code != codeInvalidParams {
			t.Errorf("%s: %+v", filter, got)
		}
	}
}

// A page begins after the task of its token, also if that task would not be listed any more.
func TestPageToken(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	var ids []string
	for _, text := range []string{"one", "two", "three"} {
		ids = append(ids, h.rpc("", "SendMessage", said(text, "c", "", text)).Result.Task.ID)
	}
	for state, count := range map[string]int{"TASK_STATE_COMPLETED": 1, "TASK_STATE_UNSPECIFIED": 1, "TASK_STATE_WORKING": 0} {
		got := h.rpc("", "ListTasks", `{"contextId":"c","pageToken":"`+ids[1]+`","status":"`+state+`"}`)
		if got.Error != nil || len(got.Result.Tasks) != count || count > 0 && got.Result.Tasks[0].ID != ids[0] {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

// The card says how to authenticate, in the words of both versions. The header with the version is checked.
func TestCardAndVersion(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	var card struct {
		Schemes map[string]struct {
			Type, Scheme string
			HTTP         struct{ Scheme string } `json:"httpAuthSecurityScheme"`
		} `json:"securitySchemes"`
		Required []struct {
			Schemes map[string]struct{ List []string }
		} `json:"securityRequirements"`
		Old []map[string][]string `json:"security"`
	}
	if err := json.NewDecoder(h.Do("", http.MethodGet, "/.well-known/agent-card.json", "", nil).Body).Decode(&card); err != nil {
		t.Fatal(err)
	}
	s := card.Schemes["bearer"]
	if s.Type != "http" || s.Scheme != "bearer" || s.HTTP.Scheme != "bearer" || len(card.Required) != 1 || card.Old[0]["bearer"] == nil {
		t.Errorf("%+v", card)
	}
	for version, code := range map[string]int{"": codeNoTask, "1.0": codeNoTask, "0.3": codeNoTask, "0.3.0": codeNoTask, "2.0": codeVersion, "x": codeVersion} {
		res := h.Do("", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"nothing"}}`, http.Header{"A2a-Version": {version}})
		var a answered
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || a.Error == nil || a.Error.Code != code {
			t.Errorf("%q: %v %+v", version, err, a.Error)
		}
	}
}
