package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/transcript"
)

// Initial messages start no turn, and the agent gets them as history.
func TestSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var history []string
		h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, in agent.Input, _ *agent.Emitter) error {
			for _, m := range in.History {
				history = append(history, string(m.Role)+" "+m.Text)
			}
			return nil
		})), nil)
		defer h.close()
		title := "T"
		c, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{Title: title, Key: "k", Messages: []gateway.CommandMessage{
			{Role: event.System, Text: "be kind"}, {Text: "a", ID: "first"}, {Role: event.Assistant, Text: "b"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		h.ended(c.ID, h.send(c.ID, "c").Turn)
		want := []string{"system be kind", "user a", "assistant b"}
		if d := cmp.Diff(want, history); d != "" {
			t.Errorf("history (-want +got):\n%s", d)
		}
		err = h.ViewTranscript(t.Context(), alice, c.ID, func(tr *transcript.Transcript) bool {
			if len(tr.Messages) != 4 || len(tr.Turns) != 1 || tr.Message("first") == nil || tr.Title != title {
				t.Errorf("%d messages, %d turns, title %q", len(tr.Messages), len(tr.Turns), tr.Title)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
		// A repetition with the same key but other messages is a conflict.
		again := gateway.CreateOptions{Title: title, Key: "k", Messages: []gateway.CommandMessage{{Text: "other"}}}
		var r *gateway.Rejection
		if _, _, err := h.Create(t.Context(), alice, again); !errors.As(err, &r) || r.Reason != gateway.ReasonConflict {
			t.Errorf("the key with other messages: %v", err)
		}
	})
}

func TestSeedRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil })), func(c *gateway.Config) { c.MaxMessage = 10 })
		defer h.close()
		for name, c := range map[string]struct {
			messages []gateway.CommandMessage
			reason   string
		}{
			"empty":        {[]gateway.CommandMessage{{}}, gateway.ReasonInvalid},
			"unknown role": {[]gateway.CommandMessage{{Role: "narrator", Text: "a"}}, gateway.ReasonInvalid},
			"same id":      {[]gateway.CommandMessage{{ID: "x", Text: "a"}, {ID: "x", Text: "b"}}, gateway.ReasonConflict},
			"one too long": {[]gateway.CommandMessage{{Text: strings.Repeat("a", 11)}}, gateway.ReasonTooLarge},
			"all too long": {[]gateway.CommandMessage{{Text: "aaaaaa"}, {Text: "aaaaaa"}}, gateway.ReasonTooLarge},
		} {
			var r *gateway.Rejection
			if _, _, err := h.Create(t.Context(), alice, gateway.CreateOptions{ID: "c", Messages: c.messages}); !errors.As(err, &r) || r.Reason != c.reason {
				t.Errorf("%s: %v, want %s", name, err, c.reason)
			}
		}
		if _, err := h.Conversation(t.Context(), alice, gateway.ActionRead, "c"); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("it was made nevertheless: %v", err)
		}
	})
}
