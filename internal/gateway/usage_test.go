package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/service/usage"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// spender uses 1,000 input and 100 output tokens, and a turn inside its own uses ten.
var spender = agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error {
	time.Sleep(3 * time.Second)
	err := out.Emit([]event.Event{
		{Type: event.TurnUpdate, Turn: "own", Body: &event.Body{Phase: "asking"}},
		{Type: event.TurnStart, Turn: "child", Body: &event.Body{Agent: "helper"}},
		{Type: event.TurnUpdate, Turn: "child", Body: &event.Body{Model: "small"}},
		{Type: event.TurnEnd, Turn: "child", Body: &event.Body{Outcome: event.Completed, Usage: &event.Usage{Input: 10}}},
	}, nil)
	if err != nil {
		return err
	}
	return out.End(event.Completed, "", &event.Usage{Model: "big", Input: 1000, Output: 100})
})

func priced(c *gateway.Config) {
	c.Prices = usage.Prices{{Model: "big", Input: 2_000_000_000, Output: 10_000_000_000}}
}

// rows returns all rows of the ledger, by turn.
func (h *testGateway) rows() map[string]usage.Row {
	h.t.Helper()
	keys, err := h.journal.Keys(context.Background(), usage.Prefix)
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string]usage.Row{}
	for _, kv := range keys {
		var r usage.Row
		if err := json.Unmarshal(kv.Value, &r); err != nil {
			h.t.Fatal(err)
		}
		if _, twice := all[r.Turn]; twice {
			h.t.Errorf("turn %s has two rows", r.Turn)
		}
		all[r.Turn] = r
	}
	return all
}

func TestTurnsAreBilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, gateway.Agents{"a": {Agent: spender}, "wait": {Agent: waiting}}, priced)
		defer h.close()
		c := h.create(alice)
		turn := h.as(alice, c, say("go")).Turn
		cmd := say("then")
		cmd.Agent = "wait"
		stopped := h.as(alice, c, cmd).Turn
		h.ended(c, turn)
		synctest.Wait()
		time.Sleep(time.Second)
		queued := h.as(alice, c, say("never")).Turn
		h.as(alice, c, gateway.Command{Type: gateway.CommandStop, Turn: queued})
		operators := h.send(c, "the operator's").Turn // in alice's conversation
		day := time.Now().UTC().Format(time.DateOnly)
		h.as(alice, c, gateway.Command{Type: gateway.CommandDelete})
		synctest.Wait()

		rows := h.rows()
		if len(rows) != 5 {
			t.Errorf("%d rows, want 5: %+v", len(rows), rows)
		}
		want := usage.Row{
			Day: day, Turn: turn, Agent: "a", Model: "big", Tenant: "t1", Subject: "alice", Tokens: usage.Tokens{Input: 1000, Output: 100},
			Reported: true, Cost: 3_000_000, Currency: "USD", Outcome: event.Completed, Duration: 3000,
		}
		if got := rows[turn]; got != want {
			t.Errorf("row\n got %+v\nwant %+v", got, want)
		}
		delete(rows, turn)
		if r := rows[stopped]; r.Outcome != event.Cancelled || r.Duration != 1000 || r.Reported || r.Agent != "wait" {
			t.Errorf("of the turn that the delete ended: %+v", r)
		}
		for _, id := range []string{queued, operators} {
			if r := rows[id]; r.Outcome != event.Cancelled || r.Duration != 0 || r.Subject != "alice" {
				t.Errorf("of a queued turn: %+v", r)
			}
			delete(rows, id)
		}
		delete(rows, stopped)
		for _, r := range rows {
			if r.Agent != "helper" || r.Model != "small" || r.Subject != "alice" || r.Input != 10 || r.Currency != "" {
				t.Errorf("of the turn inside: %+v", r)
			}
		}
	})
}

func TestUsageIsOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t, nil, one(spender), priced)
		defer h.close()
		for _, p := range []gateway.Principal{alice, alice, bob, carol} {
			c := h.create(p)
			h.ended(c, h.as(p, c, say("go")).Turn)
		}
		day := time.Now().UTC().Format(time.DateOnly)
		q := usage.Query{From: day, To: day, GroupBy: []usage.Dimension{usage.ByTenant, usage.BySubject}}
		wantUsage := func(p gateway.Principal, q usage.Query, want string) {
			t.Helper()
			got := ""
			rep, err := h.Usage(t.Context(), p, q)
			if err != nil {
				got = err.Error()
			} else {
				for _, g := range rep.Groups {
					got += fmt.Sprintf("%s/%s:%d ", g.Tenant, g.Subject, g.Turns)
				}
				got += rep.Total.Cost["USD"].String()
			}
			if got != want {
				t.Errorf("%s gets %q, want %q", p.Subject, got, want)
			}
		}
		t1, carols := "t1", "carol"
		wantUsage(admin, q, "t1/alice:4 t1/bob:2 t2/carol:2 0.012")
		wantUsage(alice, q, "t1/alice:4 0.006")
		wantUsage(bob, q, "t1/bob:2 0.003")
		wantUsage(gateway.Principal{Tenant: "t2", Subject: "alice"}, q, "0")
		q.Tenant = &t1
		wantUsage(admin, q, "t1/alice:4 t1/bob:2 0.009")
		wantUsage(bob, q, "t1/bob:2 0.003")
		wantUsage(carol, q, "forbidden")
		q.Subject = &carols
		wantUsage(bob, q, "forbidden")
		wantUsage(admin, q, "0")
		wantUsage(gateway.Principal{}, q, "forbidden")
		wantUsage(gateway.Principal{Tenant: "t1", Subject: "bob", Turn: "x"}, q, "forbidden")
		if _, err := h.Usage(t.Context(), admin, usage.Query{From: "x"}); !errors.As(err, new(*gateway.Rejection)) {
			t.Errorf("nonsense: %v", err)
		}
	})
}

// dying is a journal that fails before or after a certain commit.
type dying struct {
	journal.Journal
	at    int64 // which commit, counted from when it is armed
	after bool
	armed atomic.Bool
	seen  atomic.Int64
}

func (d *dying) Append(ctx context.Context, b journal.Batch) error {
	if !d.armed.Load() {
		return d.Journal.Append(ctx, b)
	}
	switch n := d.seen.Add(1); {
	case n < d.at:
		return d.Journal.Append(ctx, b)
	case n == d.at && d.after:
		if err := d.Journal.Append(ctx, b); err != nil {
			return err
		}
	}
	return journal.ErrClosed
}

// If a gateway dies before or after any commit, each ended turn has exactly one row in the ledger, and other turns have none.
func TestTurnsAreBilledOnceAcrossACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			died := false
			synctest.Test(t, func(t *testing.T) {
				disk := memory.New()
				j := &dying{Journal: disk, at: at, after: after}
				h := newTestGateway(t, j, gateway.Agents{"a": {Agent: spender}, "wait": {Agent: waiting}}, priced)
				j.armed.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				s, _, err := h.Create(ctx, alice, gateway.CreateOptions{ID: "c"})
				if err == nil {
					for i := range 3 {
						cmd := say(fmt.Sprint(i))
						if i == 1 {
							cmd.Agent = "wait"
						}
						ack, err := h.Do(ctx, alice, s.ID, cmd)
						if err != nil {
							break
						}
						time.Sleep(4 * time.Second)
						if i == 1 {
							_, _ = h.Do(ctx, alice, s.ID, gateway.Command{Type: gateway.CommandStop, Turn: ack.Turn})
						}
					}
				}
				died = j.seen.Load() >= j.at
				cancel()
				h.journal.fail(journal.ErrClosed)
				h.close()

				h = newTestGateway(t, disk, gateway.Agents{"a": {Agent: spender}, "wait": {Agent: waiting}}, priced)
				defer h.close()
				if _, err := disk.Conversation(t.Context(), "c"); err != nil {
					return // it died before
				}
				if _, err := h.Do(t.Context(), alice, "c", say("last")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				rows := h.rows()
				ended := 0
				r, err := disk.Read(t.Context(), "c", 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				for i := range r.Events {
					e := &r.Events[i]
					if e.Type != event.TurnEnd {
						continue
					}
					ended++
					if row, ok := rows[e.Turn]; !ok || row.Outcome != e.Get().Outcome {
						t.Errorf("commit %d: turn %s ended as %s, its row is %+v", at, e.Turn, e.Get().Outcome, row)
					}
				}
				if ended != len(rows) || ended == 0 {
					t.Errorf("commit %d: %d turns ended, %d rows", at, ended, len(rows))
				}
			})
			if !died || t.Failed() {
				if at < 8 {
					t.Errorf("after %d commits nothing was left to die at", at)
				}
				break
			}
		}
	}
}
