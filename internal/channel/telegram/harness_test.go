package telegram

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/internal/channel/channeltest"
)

// ann and group are a person in the private chat and in a group.
var (
	ann   = fake.Private(7, "Ann")
	group = fake.Group(-100, 7, "Ann")
)

// newBot returns a streaming bot whose requests a fake answers without sockets.
func newBot(o fake.Options) (*bot, *fake.Server) {
	o.Token = "1:test"
	server := fake.New(o)
	c := New(Options{Name: "tg", Token: o.Token, Streaming: true, URL: "http://telegram.test", Log: slog.New(slog.DiscardHandler)}).(*bot)
	c.client.http = &http.Client{Transport: server}
	c.client.files = c.client.http
	return c, server
}

const turnID = "turn"

// deliver runs SendStream in a goroutine and returns a channel with its result.
func deliver(ctx context.Context, c *bot, at place, state *channeltest.State, s *channeltest.Story) <-chan error {
	return s.Deliver(ctx, c, at.id(), messageRef(at.chat, 1), state)
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}
