package a2a

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
)

// answered is a response of the gateway.
type answered struct {
	Result struct {
		Task *task
		task
		Tasks []task
	}
	Error *rpcError
}

// rpc calls a method for a subject. params is JSON.
func (h *harness) rpc(subject, method, params string) (a answered) {
	h.T.Helper()
	res := h.Do(subject, http.MethodPost, "/a2a/eliza", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, nil)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		h.T.Fatal(err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body = bytes.TrimPrefix(body, []byte("data: ")) // the only event
	}
	if err := json.Unmarshal(body, &a); err != nil {
		h.T.Fatal(err)
	}
	return a
}

// said is the params of a message.
func said(id, context, taskID, text string) string {
	return `{"message":{"messageId":"` + id + `","contextId":"` + context + `","taskId":"` + taskID + `","role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}`
}

// Tasks and contexts belong to their users. The tasks of others can't be read, answered, canceled or listed.
func TestTasksAreTheirs(t *testing.T) {
	h := newHarness(t, asking, quota.Limits{})
	first := h.rpc("alice", "SendMessage", said("m", "one context", "", "hello"))
	if first.Error != nil || first.Result.Task.Status.State != stateInput {
		t.Fatalf("%+v", first)
	}
	id := first.Result.Task.ID
	for _, tt := range [][2]string{
		{"GetTask", `{"id":"` + id + `"}`},
		{"CancelTask", `{"id":"` + id + `"}`},
		{"SubscribeToTask", `{"id":"` + id + `"}`},
		{"SendMessage", said("n", "", id, "approve")},
	} {
		if got := h.rpc("bob", tt[0], tt[1]); got.Error == nil || got.Error.Code != codeNoTask {
			t.Errorf("%s: %+v", tt[0], got)
		}
	}
	if got := h.rpc("bob", "ListTasks", `{"contextId":"one context"}`); got.Error != nil || len(got.Result.Tasks) != 0 {
		t.Errorf("ListTasks: %+v", got)
	}
	// The same ids of another user are another context.
	other := h.rpc("bob", "SendMessage", said("m", "one context", "", "hello"))
	if other.Error != nil || other.Result.Task.ID == id {
		t.Errorf("%+v", other)
	}
	if got := h.rpc("alice", "SendMessage", said("o", "another", id, "approve")); got.Error == nil || got.Error.Code != codeInvalidParams {
		t.Errorf("a task of another context: %+v", got)
	}
	done := h.rpc("alice", "SendMessage", said("o", "one context", id, "approve"))
	if done.Error != nil || done.Result.Task.Status.State != stateCompleted || *done.Result.Task.Artifacts[0].Parts[0].Text != "the answer is approve" {
		t.Errorf("%+v", done)
	}
}

// replacing writes a text step by step, and takes some of it back.
func replacing(steps chan struct{}) agentFunc {
	return func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		op := func(kind event.Type, text string) error {
			select {
			case <-steps:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return errors.Join(out.Emit([]event.Event{{Type: kind, Message: "m", Part: "t", Text: text}}, nil), out.Flush())
		}
		err := out.Emit([]event.Event{
			{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
			{Type: event.PartStart, Message: "m", Part: "t", Body: &event.Body{Kind: event.KindText}},
		}, nil)
		return errors.Join(err, op(event.PartAppend, "It is nine."), op(event.PartReplace, "It is"), op(event.PartAppend, " ten."))
	}
}

// Text that is taken back is replaced in the artifact, and what follows is appended to the new text.
func TestReplacedText(t *testing.T) {
	steps := make(chan struct{})
	h := newHarness(t, replacing(steps), quota.Limits{})
	res := h.Do("", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":`+said("m", "", "", "hello")+`}`, nil)
	var got []string
	lines := bufio.NewScanner(res.Body)
	for begun := 0; lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue // a blank line, or a keep-alive
		}
		var e struct {
			Result struct {
				artifactUpdate
				Status *status
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		switch u := e.Result; {
		case u.Kind == "artifact-update" && u.IsAppend:
			got = append(got, "+"+*u.Artifact.Parts[0].Text)
		case u.Kind == "artifact-update":
			got = append(got, "="+*u.Artifact.Parts[0].Text)
		case u.Status.State == "completed":
			got = append(got, u.Kind)
		}
		if begun < 3 && (e.Result.Kind == "artifact-update" || e.Result.Kind == "task") {
			steps <- struct{}{}
			begun++
		}
	}
	if want := "=It is nine. =It is + ten. + status-update"; strings.Join(got, " ") != want && strings.Join(got, " ") != strings.Replace(want, " + status", " status", 1) {
		t.Errorf("%q", got)
	}
}

// A request that can't be read is an error of JSON-RPC with the status of the fault.
func TestRefusals(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	for _, tt := range []struct {
		body   string
		status int
		code   int
	}{
		{`{`, http.StatusBadRequest, codeParse},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"GetTask","params":{"id":"x"}}`, http.StatusOK, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","historyLength":-1}}`, http.StatusOK, codeInvalidParams},
		{`{"id":1,"method":"GetTask"}`, http.StatusOK, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"GetTask"}`, http.StatusOK, codeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}`, http.StatusOK, codeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}}`, http.StatusOK, codeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}}`, http.StatusOK, codeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"kind":"file","file":{"uri":"file:///etc/passwd"}}]}}}`, http.StatusOK, codeContentType},
		{`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user","parts":[{"text":"x"}]},"configuration":{"pushNotificationConfig":{"url":"http://x"}}}}`, http.StatusOK, codeNoPush},
		{`{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"contextId":"c","pageSize":101}}`, http.StatusOK, codeInvalidParams},
	} {
		res := h.Do("", http.MethodPost, "/a2a", tt.body, nil)
		var a answered
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode != tt.status || a.Error == nil || a.Error.Code != tt.code {
			t.Errorf("%s: %v, %d %+v", tt.body, err, res.StatusCode, a.Error)
		}
	}
	// A quota refuses with its own status, so that clients wait.
	limited := newHarness(t, echo, quota.Limits{Messages: 1})
	limited.rpc("alice", "SendMessage", said("m", "", "", "hello"))
	res := limited.Do("alice", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+said("n", "", "", "again")+`}`, http.Header{server.HeaderSubject: {"alice"}})
	if res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("above the quota: %d", res.StatusCode)
	}
}

// An error of a method that streams is the event of a stream, and any other one is a JSON response.
func TestErrorsOfStreams(t *testing.T) {
	h := newHarness(t, echo, quota.Limits{})
	for name, m := range methods {
		res := h.Do("", http.MethodPost, "/a2a", `{"jsonrpc":"2.0","id":7,"method":"`+name+`","params":{"id":"x","message":{"messageId":"m","taskId":"x"}}}`, nil)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		kind, begin, end := "application/json", `{"jsonrpc":"2.0","id":7,"error":{`, "}}\n"
		if m.isStream {
			kind, begin, end = "text/event-stream", "data: "+begin, "}}\n\n"
		}
		if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, kind) || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", name, res.StatusCode, got)
		}
		if got := string(body); !strings.HasPrefix(got, begin) || !strings.HasSuffix(got, end) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
