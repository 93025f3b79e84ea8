package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/event"
	"github.com/leat-dev/leat/internal/gateway"
	"github.com/leat-dev/leat/internal/store/journal/memory"
)

// keeper stores the session that the message names, and answers with the one that it had before.
type keeper struct{ t *testing.T }

func (k keeper) Run(ctx context.Context, in agent.Input, out *agent.Emitter) error {
	switch in.Message.Text {
	case "look":
	case "forget":
		if err := out.KeepSession(ctx, nil); err != nil {
			return err
		}
	case "ask":
		if err := out.KeepSession(ctx, json.RawMessage(`"asked"`)); err != nil {
			return err
		}
		if _, err := out.Ask(ctx, event.Request{ID: "q", Kind: event.RequestApproval}); err != nil {
			return err
		}
	case "stopped":
		<-ctx.Done()
		if err := out.KeepSession(context.WithoutCancel(ctx), json.RawMessage(`"stopped"`)); err != nil {
			k.t.Errorf("a stopped turn can't keep its session: %v", err)
		}
	default:
		if err := out.KeepSession(ctx, json.RawMessage(in.Message.Text)); err != nil {
			return err
		}
	}
	return out.Text("had " + string(in.Session))
}

func (k keeper) Answer(_ context.Context, in agent.Input, _ event.Answer) error {
	if string(in.Session) != `"asked"` {
		k.t.Errorf("answer with the session %s", in.Session)
	}
	return nil
}

func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory.New()
		agents := gateway.Agents{"a": {Agent: keeper{t}}, "b": {Agent: keeper{t}}}
		h := newTestGateway(t, j, agents, nil)
		conv, other := h.create(alice), h.create(alice)
		wants := func(conv, name, text, want string) {
			t.Helper()
			ack := h.do(conv, gateway.Command{Type: gateway.CommandSend, Agent: name, Message: &gateway.CommandMessage{Text: text}})
			wantOutcome(t, h.ended(conv, ack.Turn), event.Completed, "")
			all := texts(h.view(conv))
			if got := all[len(all)-1]; got != "assistant: had "+want {
				t.Errorf("%s %s: %s, want %s", name, text, got, want)
			}
		}
		wants(conv, "a", `{"key":1}`, "")
		wants(conv, "a", "look", `{"key":1}`)
		wants(conv, "b", "look", "")
		wants(other, "a", "look", "")
		h.close()
		h = newTestGateway(t, j, agents, nil)
		defer h.close()
		wants(conv, "a", "look", `{"key":1}`)

		ack := h.do(conv, gateway.Command{Type: gateway.CommandSend, Message: &gateway.CommandMessage{Text: "ask"}})
		synctest.Wait()
		h.do(conv, gateway.Command{Type: gateway.CommandAnswer, Turn: ack.Turn, Request: "q", Decision: event.Approve})
		h.ended(conv, ack.Turn)

		ack = h.send(conv, "stopped")
		synctest.Wait()
		h.do(conv, gateway.Command{Type: gateway.CommandStop, Turn: ack.Turn})
		wants(conv, "a", "look", `"stopped"`)
		wants(conv, "a", "forget", `"stopped"`)
		wants(conv, "a", `"again"`, "")
		h.truncate(conv)
		wants(conv, "a", `"last"`, "")
		h.do(conv, gateway.Command{Type: gateway.CommandDelete})
		if left, err := j.Keys(t.Context(), "session/"); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

func TestSessionRefused(t *testing.T) {
	h := newTestGateway(t, nil, one(agentFunc(func(ctx context.Context, _ agent.Input, out *agent.Emitter) error {
		for _, bad := range []string{"{", `"` + strings.Repeat("x", agent.MaxSession) + `"`} {
			if err := out.KeepSession(ctx, json.RawMessage(bad)); err == nil || errors.Is(err, agent.ErrNoSession) {
				return errors.New("taken: " + bad[:1])
			}
		}
		return nil
	})), nil)
	defer h.close()
	conv := h.create(alice)
	wantOutcome(t, h.ended(conv, h.send(conv, "x").Turn), event.Completed, "")
}
