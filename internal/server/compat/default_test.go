package compat

import (
	"net/http"
	"testing"

	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/quota"
)

var paths = []string{"/v1/messages", "/v1/chat/completions"}

// A request without a model goes to the default agent, or to the agent of the conversation that it names.
func TestNoModel(t *testing.T) {
	h := newHarness(t, one(echo), quota.Limits{}, func(c *gateway.Config) {
		c.Agents.(gateway.Agents)["other"] = gateway.Agent{Agent: echo}
	})
	if _, _, err := h.gw.Create(t.Context(), admin, gateway.CreateOptions{ID: "others", Agent: "other"}); err != nil {
		t.Fatal(err)
	}
	const body = `{"max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`
	for _, path := range paths {
		for want, headers := range map[string][]string{"eliza": nil, "other": {headerConversation, "others"}} {
			var answer struct{ Model string }
			h.post(http.StatusOK, &answer, path, body, headers...)
			if answer.Model != want {
				t.Errorf("%s: answered by %q, want %q", path, answer.Model, want)
			}
		}
	}
	none := newHarness(t, nil, quota.Limits{})
	for _, path := range paths {
		wantError(t, none, path, body, http.StatusServiceUnavailable, "service_unavailable", "not_running", "Agent is not running")
	}
	if n := none.stored(); n != 0 {
		t.Errorf("%d conversations", n)
	}
}

// A request without a conversation leaves no entry in the list, unless it asks for one. Its messages are stored in any case.
func TestNoRow(t *testing.T) {
	for _, path := range paths {
		h := newHarness(t, one(echo), quota.Limits{})
		res := h.send(http.MethodPost, path, askOnce)
		readAll(t, res)
		id := res.Header.Get(headerConversation)
		if h.listed() != 0 || h.stored() != 1 {
			t.Errorf("%s: %d listed of %d", path, h.listed(), h.stored())
		}
		// It continues by its id, and stays unlisted.
		h.post(http.StatusOK, nil, path, askOnce, headerConversation, id)
		if h.listed() != 0 || h.stored() != 1 {
			t.Errorf("%s: %d listed of %d after a second message", path, h.listed(), h.stored())
		}
		h.post(http.StatusOK, nil, path, askOnce, headerListed, "true")
		if h.listed() != 1 {
			t.Errorf("%s: %d listed, though one was asked for", path, h.listed())
		}
		h.post(http.StatusOK, nil, path, `{"model":"eliza","max_tokens":10,"metadata":{"conversation_id":"k"},"messages":[{"role":"user","content":"hello"}]}`)
		if h.listed() != 2 {
			t.Errorf("%s: %d listed, though the second has a key", path, h.listed())
		}
	}
}
