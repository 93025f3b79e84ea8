package gateway_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// ViewTranscript shows the part in memory, the whole log if fn asks for it, and nothing to principals without access.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil })), nil)
		defer h.close()
		c := h.create(alice)
		first := h.send(c, "first")
		h.ended(c, first.Turn)
		for range 120 { // more than a feed has in memory
			h.ended(c, h.send(c, "more").Turn)
		}
		synctest.Wait()
		for id, calls := range map[string]int{first.Message: 2, h.send(c, "last").Message: 1, "none": 2} {
			n, text := 0, ""
			err := h.ViewTranscript(t.Context(), alice, c, func(tr *transcript.Transcript) bool {
				n++
				m := tr.Message(id)
				if m != nil {
					text = m.Visible()
				}
				return m != nil
			})
			if err != nil || n != calls || (text == "") != (id == "none") {
				t.Errorf("%s: %q after %d calls, want %d; %v", id, text, n, calls, err)
			}
		}
		never := func(*transcript.Transcript) bool { t.Error("it was shown"); return true }
		if err := h.ViewTranscript(t.Context(), bob, c, never); !errors.Is(err, gateway.ErrNotFound) {
			t.Error("another subject:", err)
		}
		h.do(c, gateway.Command{Type: gateway.CommandDelete})
		if err := h.ViewTranscript(t.Context(), admin, c, never); !errors.Is(err, gateway.ErrNotFound) {
			t.Error("deleted:", err)
		}
	})
}
