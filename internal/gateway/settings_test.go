package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/usage"
)

// New settings apply to later commands and turns, and zero means the default.
func TestAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var histories []int
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, in agent.Input, out *agent.Emitter) error {
			histories = append(histories, len(in.History))
			return spender(ctx, in, out)
		})), nil)
		defer h.close()
		c := h.create(alice)
		h.ended(c, h.send(c, "one").Turn)
		h.ended(c, h.send(c, "two").Turn)
		h.Adjust(gateway.Settings{MaxMessage: 10, HistoryMessages: 1, Prices: usage.Prices{{Model: "big", Input: 2_000_000_000, Output: 10_000_000_000}}})
		h.refused(c, say(strings.Repeat("x", 11)), gateway.ReasonTooLarge)
		priced := h.send(c, "three").Turn
		h.ended(c, priced)
		h.Adjust(gateway.Settings{})
		last := h.send(c, strings.Repeat("x", 11)).Turn
		h.ended(c, last)
		if rows := h.rows(); rows[priced].Cost == 0 || rows[last].Cost != 0 {
			t.Errorf("costs %v and then %v", rows[priced].Cost, rows[last].Cost)
		}
		if len(histories) != 4 || histories[2] != 1 || histories[3] != 3 {
			t.Errorf("messages of the history: %v", histories)
		}
	})
}
