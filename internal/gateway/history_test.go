package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
)

// The history is limited in messages and bytes. The oldest messages are left out, never cut.
func TestTheHistoryHasABudget(t *testing.T) {
	for _, tt := range []struct {
		messages, bytes int
		want            string // the first letters of the messages
	}{
		{0, 0, "abcdef"},
		{3, 0, "def"},
		{0, 10, "f"},
		{0, 9, ""},
		{0, 20, "ef"},
		{0, 40, "def"}, // c with its data exceeds the budget
		{0, 60, "bcdef"},
		{1, 60, "f"},
	} {
		t.Run(fmt.Sprintf("%d messages, %d bytes", tt.messages, tt.bytes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []agent.Message
				h := newTestGateway(t, nil, one(agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
					got = in.History
					return out.Text("ok")
				})), func(c *gateway.Config) { c.HistoryMessages, c.HistoryBytes = tt.messages, tt.bytes })
				defer h.close()
				c := h.create(admin)
				for _, letter := range []string{"a", "b", "c", "d", "e", "f"} {
					m := &gateway.CommandMessage{Text: strings.Repeat(letter, 10), Role: event.User}
					if letter == "c" {
						m.Text = "c"
						m.Parts = []event.Part{{Kind: event.KindData, Data: json.RawMessage(`"12345678901234567"`)}}
					}
					h.do(c, gateway.Command{Type: gateway.CommandInject, Message: m})
				}
				h.ended(c, h.send(c, "now").Turn)
				have := ""
				for _, m := range got {
					have += m.Text[:1]
				}
				if have != tt.want {
					t.Errorf("got %q, want %q", have, tt.want)
				}
			})
		})
	}
}

// Messages beyond the feed's memory are read from the log.
func TestALongHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []agent.Message
		keep := agentFunc(func(_ context.Context, in agent.Input, out *agent.Emitter) error {
			got = in.History
			return out.Text("ok")
		})
		want := func(n, first int) {
			t.Helper()
			if len(got) != n || got[0].Text != fmt.Sprint("m", first) {
				t.Errorf("%d messages from %q on, want %d from m%d", len(got), got[0].Text, n, first)
			}
			for i, m := range got {
				if m.Text != fmt.Sprint("m", first+i) {
					t.Fatalf("message %d is %q", i, m.Text)
				}
			}
		}
		h := newTestGateway(t, nil, one(keep), nil)
		c := h.create(admin)
		for i := range 500 {
			h.do(c, gateway.Command{Type: gateway.CommandInject, Message: &gateway.CommandMessage{Text: fmt.Sprint("m", i), Role: event.User}})
		}
		h.close()
		for _, tt := range []struct{ messages, n, first int }{{300, 300, 200}, {1000, 500, 0}} {
			h = newTestGateway(t, h.journal, one(keep), func(c *gateway.Config) { c.HistoryMessages = tt.messages })
			h.ended(c, h.send(c, "now").Turn)
			synctest.Wait()
			want(tt.n, tt.first)
			h.do(c, gateway.Command{Type: gateway.CommandTruncate, After: got[len(got)-1].ID})
			h.close()
		}
	})
}
