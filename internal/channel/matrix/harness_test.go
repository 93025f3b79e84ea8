package matrix

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	fake "github.com/leat-dev/leat/chattest/matrix"
	"github.com/leat-dev/leat/internal/channel"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// newBot returns a streaming bot whose requests a fake answers without sockets.
func newBot(o fake.Options) (*bot, *fake.Server) {
	o.Token = "secret"
	server := fake.New(o)
	return botOf(server), server
}

// botOf returns another bot of the same homeserver, as after a restart.
func botOf(server *fake.Server) *bot {
	c := New(Options{Name: "mx", Server: "http://matrix.test", Token: "secret", Streaming: true, Log: slog.New(slog.DiscardHandler)}).(*bot)
	c.client.http = &http.Client{Transport: server}
	c.client.files = c.client.http
	c.account.Store(&account{id: "@leat:matrix.test"})
	return c
}

// inbox collects what a bot receives.
type inbox chan channel.InboundMessage

func (b inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b <- m
	return nil
}

// run runs a bot until stop is called, which returns the error of Run.
func run(t *testing.T, c *bot) (received inbox, stop func() error) {
	t.Helper()
	received = make(inbox, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, received) }()
	synctest.Wait()
	return received, func() error {
		cancel()
		return <-done
	}
}

const turnID = "turn"

// deliver delivers a story to a chat and returns a channel with the result.
func deliver(ctx context.Context, c *bot, chat, replyTo string, s *channeltest.Story) <-chan error {
	return s.Deliver(ctx, c, chat, replyTo, &channeltest.State{})
}

// check reports what the fake has seen that a bot must not do, and what remains of deleted messages.
func check(t *testing.T, server *fake.Server, rooms ...string) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
	for _, room := range rooms {
		if left := server.Leftovers(room); len(left) > 0 {
			t.Errorf("edits of deleted messages remain: %v", left)
		}
	}
}
