//go:build e2e

package openclaw

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/leat-dev/leat/e2e/internal/house"
)

// TestStorm takes turns with everything that goes wrong, see [house.Storm].
func TestStorm(t *testing.T) {
	s, model := house.NewStorm(t, command)
	claw, _ := newest.gateway(t, model.URL)
	claw.Start(t)
	address, mend := s.BadNetwork(t, claw)
	s.Leat = house.Leat(t, []string{"OPENCLAW_TOKEN=" + token}, "--agent", "claw=openclaw:ws://"+address+"?token_env=OPENCLAW_TOKEN&session=storm-{conversation}")
	s.Leat.Start(t)
	s.Client = house.NewClient(s.Leat.URL)
	s.Other = &outsider{operator: newOperator(t, claw), claw: claw}
	for range 3 {
		c := s.Converse(t, "claw")
		s.Chats = append(s.Chats, &house.Chat{Conversation: c, Session: "agent:main:storm-" + c})
	}
	s.Run(t)
	mend()
	s.Agree(t)
}

// outsider is the other client of a storm.
type outsider struct {
	*operator
	claw *house.Program
	sent int
}

// Send implements [house.Other].
func (o *outsider) Send(t *testing.T, session, prompt string) (answered func(*testing.T)) {
	t.Helper()
	o.sent++
	run := fmt.Sprintf("other-%d", o.sent)
	o.call(t, "chat.send", map[string]any{"sessionKey": session, "message": prompt, "idempotencyKey": run})
	return func(t *testing.T) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), callLimit)
		defer cancel()
		for {
			select {
			case ended := <-o.ended:
				if ended == run {
					return
				}
			case <-ctx.Done():
				t.Fatalf("run %s of another client does not end", run)
			}
		}
	}
}

// Note implements [house.Other].
func (o *outsider) Note(t *testing.T, session, text string) bool {
	t.Helper()
	o.call(t, "chat.inject", map[string]any{"sessionKey": session, "message": text})
	return true
}

// Restart implements [house.Other].
func (o *outsider) Restart(t *testing.T) {
	t.Helper()
	o.leave()
	o.claw.Signal(syscall.SIGKILL)
	o.claw.Start(t)
	o.connect(t)
}

// History implements [house.Other].
func (o *outsider) History(t *testing.T, session string) []house.Item {
	t.Helper()
	return kept(o.history(t, session))
}
