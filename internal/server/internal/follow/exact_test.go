package follow_test

import (
	"context"
	"maps"
	"testing"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/answer"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/server/internal/follow"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// dots is an agent whose answer is one text of so many appends.
type dots int

func (n dots) Run(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	ops := []event.Event{
		{Type: event.MessageStart, Message: "m", Body: &event.Body{Role: event.Assistant}},
		{Type: event.PartStart, Message: "m", Part: "a", Body: &event.Body{Kind: event.KindText}},
	}
	for range n {
		ops = append(ops, event.Event{Type: event.PartAppend, Message: "m", Part: "a", Text: "."})
	}
	return out.Emit(ops, nil)
}

// numbers returns the numbers of the operations of an answer with their texts, read from the beginning.
func numbers(t *testing.T, gw *gateway.Gateway, conversation, turn string, isExact bool) map[int64]string {
	t.Helper()
	texts := map[int64]string{}
	err := follow.Answer{IsExact: isExact, Op: func(_ *answer.Answer, op *answer.Op) error {
		texts[op.Number] += op.Text
		return nil
	}}.Follow(t.Context(), gw, admin, conversation, turn, -1)
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// An exact reading has each append under the number with which it was committed: live, read afterwards, from the compacted log, and after a restart.
//
// Of a short answer, all events are in memory, where other readings get them merged. Of a long one, they are in the log.
func TestExact(t *testing.T) {
	testExact(t, 300)
	testExact(t, 6000)
}

func testExact(t *testing.T, n dots) {
	t.Helper()
	j := memory.New()
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	gw, stop := start(t, j, n)
	c, _, err := gw.Create(t.Context(), admin, gateway.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turn := send(t, gw, c.ID, "hi")
	live := numbers(t, gw, c.ID, turn, true)
	appends := 0
	for _, text := range live {
		if text == "." {
			appends++
		}
	}
	if appends != int(n) {
		t.Errorf("%d appends of one character, want %d", appends, n)
	}
	if again := numbers(t, gw, c.ID, turn, true); !maps.Equal(again, live) {
		t.Errorf("read again: %d operations, want %d", len(again), len(live))
	}
	if merged := numbers(t, gw, c.ID, turn, false); n < 1000 && len(merged) >= len(live) {
		t.Errorf("%d operations are merged ones, of %d", len(merged), len(live))
	}
	compact(t, gw, c.ID)
	if again := numbers(t, gw, c.ID, turn, true); !maps.Equal(again, live) {
		t.Errorf("compacted: %d operations, want %d", len(again), len(live))
	}
	stop()
	gw, _ = start(t, j, n)
	if again := numbers(t, gw, c.ID, turn, true); !maps.Equal(again, live) {
		t.Errorf("after a restart: %d operations, want %d", len(again), len(live))
	}
}
