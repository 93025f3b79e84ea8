package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// ends is an outbox that stores each end of a turn under a key of its own log.
type ends struct {
	mu    sync.Mutex
	fates []string
}

const endsLog = "$ends"

func (*ends) Entries(s *journal.Summary, events []event.Event) []journal.KeyValue {
	var keys []journal.KeyValue
	for i := range events {
		if e := &events[i]; e.Type == event.TurnEnd {
			v := fmt.Sprintf("%s %s %d open", s.Owner, e.Get().Outcome, len(s.Open))
			keys = append(keys, journal.KeyValue{Key: "ends/" + e.Turn, Value: []byte(v), Log: endsLog})
		}
	}
	return keys
}

func (r *ends) Finish(keys []journal.KeyValue, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, kv := range keys {
		switch {
		case err == nil:
			r.fates = append(r.fates, string(kv.Value))
		case errors.Is(err, journal.ErrUnknown):
			r.fates = append(r.fates, "unknown")
		default:
			r.fates = append(r.fates, "lost")
		}
	}
}

func (r *ends) want(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.fates, want) {
		t.Errorf("recorded %q, want %q", r.fates, want)
	}
}

func recording(t *testing.T, j journal.Journal, r *ends, a agent.Agent) *testGateway {
	t.Helper()
	err := j.Append(t.Context(), journal.Batch{Conversation: endsLog, Create: true, Summary: &journal.Summary{}})
	if err != nil && !errors.Is(err, journal.ErrExists) {
		t.Fatal(err)
	}
	return newTestGateway(t, j, one(a), func(c *gateway.Config) { c.Outboxes = []gateway.Outbox{r} })
}

// Entries of an outbox are durable together with the events, and survive the deletion of the conversation.
func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &ends{}
		h := recording(t, memory.New(), r, agentFunc(func(context.Context, agent.Input, *agent.Emitter) error { return nil }))
		defer h.close()
		c := h.create(alice)
		turn := h.send(c, "hello").Turn
		h.ended(c, turn)
		synctest.Wait()
		r.want(t, "alice completed 0 open")
		h.do(c, gateway.Command{Type: gateway.CommandDelete})
		if v, err := h.journal.Get(t.Context(), "ends/"+turn); err != nil || string(v) != "alice completed 0 open" {
			t.Errorf("after the delete: %q, %v", v, err)
		}
	})
}

// An outbox is notified of a commit that failed, and of one with an unknown result.
func TestRecorderLearnsTheFate(t *testing.T) {
	for want, fail := range map[string]error{"unknown": journal.ErrUnknown, "lost": journal.ErrFenced} {
		synctest.Test(t, func(t *testing.T) {
			r, gate := &ends{}, make(chan struct{})
			h := recording(t, memory.New(), r, agentFunc(func(context.Context, agent.Input, *agent.Emitter) error {
				<-gate
				return nil
			}))
			defer h.close()
			c := h.create(alice)
			turn := h.send(c, "hello").Turn
			synctest.Wait()
			h.journal.fail(fail)
			close(gate)
			synctest.Wait()
			r.want(t, want)
			h.journal.fail(nil)
			// Recovery ends the turn, which adds an entry.
			h.ended(c, turn)
			synctest.Wait()
			r.want(t, want, "alice interrupted 0 open")
			keys, err := h.journal.Keys(t.Context(), "ends/")
			if err != nil || len(keys) != 1 || !strings.HasPrefix(string(keys[0].Value), "alice interrupted") {
				t.Errorf("keys %v, %v", keys, err)
			}
		})
	}
}
