//go:build e2e

package openclaw

import (
	"syscall"
	"testing"

	"github.com/leat-dev/leat/test/e2e/internal/harness"
)

// TestStorm takes turns with everything that goes wrong, see [harness.Storm].
func TestStorm(t *testing.T) {
	s, model := harness.NewStorm(t, command)
	claw, _ := newest.gateway(t, model.URL)
	claw.Start(t)
	address, mend := s.BadNetwork(t, claw)
	// On a busy machine, a restart of the gateway can take more than two minutes.
	s.Leat = harness.Leat(t, []string{"OPENCLAW_TOKEN=" + token, "LEAT_SILENCE=10m"}, "--agent", "claw=openclaw:ws://"+address+"?token_env=OPENCLAW_TOKEN&session=storm-{conversation}")
	s.Leat.Start(t)
	s.Client = harness.NewClient(s.Leat.URL)
	s.Other = &outsider{meet(t, claw), claw}
	for range 3 {
		c := s.CreateConversation(t, "claw")
		s.Chats = append(s.Chats, &harness.Chat{Conversation: c, Session: "agent:main:storm-" + c})
	}
	s.Run(t)
	mend()
	s.Agree(t)
}

// outsider is the other client of a storm.
type outsider struct {
	*peer
	claw *harness.Program
}

// Send implements [harness.Other].
func (o *outsider) Send(t *testing.T, session, prompt string) (answered func(*testing.T)) {
	t.Helper()
	run := o.send(session, prompt)
	return func(t *testing.T) {
		t.Helper()
		o.over(run)
	}
}

// Note implements [harness.Other].
func (o *outsider) Note(t *testing.T, session, text string) bool {
	t.Helper()
	o.call("chat.inject", map[string]string{"sessionKey": session, "message": text}, nil)
	return true
}

// Kill implements [harness.Other].
func (o *outsider) Kill() { o.claw.Signal(syscall.SIGKILL) }

// Start implements [harness.Other].
func (o *outsider) Start(t *testing.T) {
	t.Helper()
	o.claw.Start(t)
	o.peer = meet(t, o.claw)
}

// History implements [harness.Other].
func (o *outsider) History(t *testing.T, session string) []harness.Item {
	t.Helper()
	return kept(o.history(session))
}
