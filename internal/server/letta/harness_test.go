package letta

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/server/outputtest"
	"github.com/leat-dev/leat/internal/service/quota"
)

const secret = outputtest.Secret

type agentFunc = outputtest.AgentFunc

var echo = outputtest.Echo

// harness is a gateway with this surface behind a real listener.
type harness struct{ *outputtest.Harness }

func newHarness(t *testing.T, a agent.Agent, limits quota.Limits) *harness {
	t.Helper()
	return &harness{outputtest.Start(t, a, limits, func(h *outputtest.Harness) { Register(h.Server, h.Gateway) })}
}

// asking is an agent that asks for a permission.
var asking = outputtest.AskPermission

// body is the body of a message of the user.
func body(otid, text string) string {
	return `{"messages":[{"role":"user","otid":"` + otid + `","content":"` + text + `"}]}`
}

// lettaCode makes a request as Letta Code does, and returns the frames of the response.
func (h *harness) lettaCode(path, body string) (frames []frame) {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), http.MethodPost, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("X-Letta-Source", "letta-code")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		h.T.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
	}
	return framesOf(h.T, string(b))
}

// frame has the fields of a frame that the tests look at.
type frame struct {
	ID      string `json:"id"`
	Type    string `json:"message_type"`
	Otid    string `json:"otid"`
	Run     string `json:"run_id"`
	SeqID   int64  `json:"seq_id"`
	Date    string `json:"date"`
	Content string `json:"content"`
	Call    *call  `json:"tool_call"`
	CallID  string `json:"tool_call_id"`
	Return  string `json:"tool_return"`
	Status  string `json:"status"`
	Stop    string `json:"stop_reason"`
}

// framesOf returns the frames of a stream, without pings.
func framesOf(t *testing.T, stream string) (list []frame) {
	t.Helper()
	for line := range strings.Lines(stream) {
		data, isData := strings.CutPrefix(line, "data: ")
		if !isData || strings.HasPrefix(data, "[DONE]") {
			continue
		}
		var f frame
		if err := json.Unmarshal([]byte(data), &f); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if f.Type != typePing {
			list = append(list, f)
		}
	}
	return list
}

// find returns the frames of a type.
func find(frames []frame, kind string) (list []frame) {
	for _, f := range frames {
		if f.Type == kind {
			list = append(list, f)
		}
	}
	return list
}

// textIn returns the visible text of frames.
func textIn(frames []frame) (text string) {
	for _, f := range find(frames, typeAssistant) {
		text += f.Content
	}
	return text
}

// result is the body of a tool's result, and denial that of a refusal.
func result(callID, status, text string) string {
	return `{"messages":[{"type":"approval","approvals":[{"type":"tool","tool_call_id":"` + callID + `","status":"` + status + `","tool_return":` + encode(text) + `}]}]}`
}

func denial(callID, reason string) string {
	return `{"messages":[{"type":"approval","approvals":[{"type":"approval","tool_call_id":"` + callID + `","approve":false,"reason":"` + reason + `"}]}]}`
}

// answerJSON is the response without a stream.
type answerJSON struct {
	Messages []frame `json:"messages"`
}
