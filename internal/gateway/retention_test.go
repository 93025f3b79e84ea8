package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/gateway/push"
	"github.com/leat-dev/leat/internal/service/audit"
	"github.com/leat-dev/leat/internal/store/journal"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

func says(text string) agent.Agent {
	return agentFunc(func(_ context.Context, _ agent.Input, out *agent.Emitter) error { return out.Text(text) })
}

// audited returns the audit log, a line for each entry.
func (h *testGateway) audited() (lines []string) {
	h.t.Helper()
	if err := h.Audit().Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.Audit().Read(h.t.Context(), audit.Query{}, func(e audit.Entry) error {
		who := e.Actor.Subject + e.Actor.Gateway
		if e.Actor.Admin {
			who = "admin"
		}
		if e.Blanked {
			who = "-"
		}
		lines = append(lines, strings.TrimSpace(e.Action+" "+who+" "+e.Result))
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return lines
}

func (h *testGateway) wantAudit(want ...string) {
	h.t.Helper()
	if d := cmp.Diff(want, h.audited()); d != "" {
		h.t.Errorf("audit log (-want +got):\n%s", d)
	}
}

// truncate removes all messages after the agent of the last turn has returned.
func (h *testGateway) truncate(conv string) {
	h.t.Helper()
	for {
		_, err := h.Do(h.t.Context(), admin, conv, gateway.Command{Type: gateway.CommandTruncate})
		var r *gateway.Rejection
		if errors.As(err, &r) && r.Reason == gateway.ReasonUnfinished {
			runtime.Gosched()
			continue
		}
		if err != nil {
			h.t.Fatal(err)
		}
		return
	}
}

func TestAuditOfCommands(t *testing.T) {
	h := newTestGateway(t, nil, one(says("secret answer")), nil)
	defer h.close()
	ctx := gateway.WithFrom(t.Context(), "192.0.2.7")
	conv := h.create(alice)
	send := gateway.Command{Type: gateway.CommandSend, Key: "k", Message: &gateway.CommandMessage{Text: "secret question"}}
	ack, err := h.Do(ctx, alice, conv, send)
	if err != nil {
		t.Fatal(err)
	}
	h.ended(conv, ack.Turn)
	if again, err := h.Do(ctx, alice, conv, send); err != nil || !again.Repeated {
		t.Errorf("repeat: %+v, %v", again, err)
	}
	if _, err := h.Do(ctx, bob, conv, send); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("bob: %v", err)
	}
	title := "secret title"
	h.do(conv, gateway.Command{Type: gateway.CommandUpdate, Title: &title})
	h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: ack.Turn})
	h.truncate(conv)
	h.wantAudit("create alice done", "send alice done", "update admin done", "stop admin already_ended", "truncate admin done")
	r, err := h.journal.Read(t.Context(), audit.Conversation, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal(r.Events)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), "secret") {
		t.Errorf("the audit log contains text of the conversation:\n%s", all)
	}
	var e audit.Entry
	if err := json.Unmarshal(r.Events[1].Body.Data, &e); err != nil {
		t.Fatal(err)
	}
	want := audit.Entry{
		At: e.At, Action: "send", Actor: audit.Actor{Tenant: "t1", Subject: "alice", From: "192.0.2.7"}, Result: audit.Done,
		Conversation: conv, Turn: ack.Turn, Message: ack.Message, Effect: ack.Seq,
	}
	if d := cmp.Diff(want, e); d != "" || e.At == 0 {
		t.Errorf("entry (-want +got):\n%s", d)
	}
	// A delete blanks the audit entries of the conversation, except that of the delete.
	h.do(conv, gateway.Command{Type: gateway.CommandDelete})
	h.wantAudit("create -", "send -", "update -", "stop -", "truncate -", "delete admin done")
}

// TestAuditSurvivesDelete interrupts a delete. Its audit entry is first stored as a key of the conversation, and must not be deleted
// with it.
func TestAuditSurvivesDelete(t *testing.T) {
	j := memory.New()
	conv := "c"
	s := journal.Summary{Tenant: "t1", Owner: "alice"}
	h := newTestGateway(t, j, nil, nil)
	kv, err := h.Audit().Note(audit.Entry{Action: "delete", Actor: audit.Actor{Admin: true}, Conversation: conv})
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	if err := j.Append(t.Context(), journal.Batch{Conversation: conv, Create: true, Summary: &s, Keys: []journal.KeyValue{kv, {Key: "deleting/" + conv, Value: []byte("1")}}}); err != nil {
		t.Fatal(err)
	}
	h = newTestGateway(t, j, nil, nil)
	defer h.close()
	h.wantAudit("delete admin done")
	if _, err := j.Conversation(t.Context(), conv); !errors.Is(err, journal.ErrDeleted) {
		t.Errorf("the delete was not finished: %v", err)
	}
}

func TestSystemLogsAreNobodys(t *testing.T) {
	h := newTestGateway(t, nil, one(says("x")), nil)
	defer h.close()
	h.create(alice)
	for _, p := range []gateway.Principal{admin, alice} {
		for _, typ := range []string{gateway.CommandSend, gateway.CommandInject, gateway.CommandTruncate, gateway.CommandUpdate, gateway.CommandDelete} {
			if _, err := h.Do(t.Context(), p, audit.Conversation, gateway.Command{Type: typ, Message: &gateway.CommandMessage{Text: "x"}}); !errors.Is(err, gateway.ErrNotFound) {
				t.Errorf("%s: %v", typ, err)
			}
		}
		if _, err := h.Conversation(t.Context(), p, gateway.ActionRead, audit.Conversation); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("look up: %v", err)
		}
		if _, err := h.Feed(t.Context(), p, audit.Conversation); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("feed: %v", err)
		}
		if _, _, err := h.Push(t.Context(), p, audit.Conversation, push.Options{Dialect: "eliza-actions"}); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("push: %v", err)
		}
		list, err := h.List(t.Context(), p, nil, 0)
		if err != nil || len(list) != 1 {
			t.Errorf("list: %v, %v", list, err)
		}
	}
}

func TestHold(t *testing.T) {
	j := memory.New()
	h := newTestGateway(t, j, one(says("answer")), nil)
	mine, other := h.create(alice), h.create(bob)
	h.ended(mine, h.send(mine, "question").Turn)
	place := func(hold gateway.Hold) {
		t.Helper()
		if _, err := h.Holds().Place(t.Context(), admin, hold); err != nil {
			t.Fatal(err)
		}
	}
	remove := []gateway.Command{{Type: gateway.CommandDelete}, {Type: gateway.CommandTruncate}}
	for _, hold := range []gateway.Hold{{Conversation: mine}, {Tenant: "t1", Subject: "alice"}} {
		if _, err := h.Holds().Place(t.Context(), alice, hold); !errors.Is(err, gateway.ErrForbidden) {
			t.Errorf("a user places a hold: %v", err)
		}
		place(hold)
		place(hold)
		for _, c := range remove {
			h.refused(mine, c, gateway.ReasonHeld)
		}
		if gone, err := h.Expire(t.Context(), "retention", mine, 1<<60); gone || err != nil {
			t.Errorf("expired: %v, %v", gone, err)
		}
		// It survives a restart.
		h.close()
		h = newTestGateway(t, j, one(says("answer")), nil)
		h.refused(mine, remove[0], gateway.ReasonHeld)
		if list := h.Holds().List(); len(list) != 1 || list[0].Conversation != hold.Conversation || list[0].Subject != hold.Subject || list[0].Since == 0 {
			t.Errorf("holds: %+v", list)
		}
		// Other conversations can be deleted, and protected ones still work.
		h.ended(mine, h.send(mine, "more").Turn)
		if err := h.Holds().Release(t.Context(), admin, hold); err != nil {
			t.Fatal(err)
		}
		if err := h.Holds().Release(t.Context(), admin, hold); !errors.Is(err, gateway.ErrNotFound) {
			t.Errorf("released twice: %v", err)
		}
	}
	h.wantAudit(
		"create alice done", "create bob done", "send admin done",
		"hold admin done", "delete admin held", "truncate admin held", "delete admin held", "send admin done", "release admin done",
		"hold admin done", "delete admin held", "truncate admin held", "delete admin held", "send admin done", "release admin done",
	)
	for _, bad := range []gateway.Hold{{}, {Conversation: mine, Subject: "alice"}, {Tenant: "t1"}, {Subject: "a\nb"}} {
		var r *gateway.Rejection
		if _, err := h.Holds().Place(t.Context(), admin, bad); !errors.As(err, &r) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := h.Holds().Place(t.Context(), admin, gateway.Hold{Conversation: "nobody's"}); !errors.Is(err, gateway.ErrNotFound) {
		t.Errorf("hold of nothing: %v", err)
	}
	h.truncate(mine)
	h.do(mine, remove[0])
	h.do(other, remove[0])
	h.close()
}

func TestExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
			<-block
			return out.Text("x")
		})), nil)
		defer h.close()
		conv := h.create(alice)
		ack := h.send(conv, "x")
		before := func() int64 { return time.Now().UnixMilli() }
		time.Sleep(time.Minute)
		if gone, err := h.Expire(t.Context(), "retention", conv, before()); gone || err != nil {
			t.Errorf("with an open turn: %v, %v", gone, err)
		}
		close(block)
		h.ended(conv, ack.Turn)
		synctest.Wait()
		if gone, err := h.Expire(t.Context(), "retention", conv, before()); gone || err != nil {
			t.Errorf("just used: %v, %v", gone, err)
		}
		time.Sleep(time.Second)
		for _, want := range []bool{true, false} {
			if gone, err := h.Expire(t.Context(), "retention", conv, before()); gone != want || err != nil {
				t.Errorf("idle: %v, %v", gone, err)
			}
		}
		h.wantAudit("create -", "send -", "expire retention done")
	})
}

// A pushed turn that is stopped in the queue leaves no state behind.
func TestStoppedPushLeavesNoKeys(t *testing.T) {
	h := newTestGateway(t, nil, nil, func(c *gateway.Config) { c.Drain = time.Millisecond })
	defer h.close()
	conv := h.create(alice)
	opt := push.Options{Dialect: "eliza-actions"}
	first, _, err := h.Push(t.Context(), alice, conv, opt)
	if err != nil {
		t.Fatal(err)
	}
	second, ack, err := h.Push(t.Context(), alice, conv, opt)
	if err != nil {
		t.Fatal(err)
	}
	h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: ack.Turn})
	keys, err := h.journal.Keys(t.Context(), "turn/"+ack.Turn+"/")
	if err != nil || len(keys) > 0 {
		t.Errorf("left: %v, %v", keys, err)
	}
	for _, p := range []*push.Producer{first, second} {
		_ = p.Close(false) // one of the turns has ended
	}
}
