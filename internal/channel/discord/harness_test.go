package discord

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/internal/channel"
)

// ann and bob are a person in a direct chat and in a channel of a server.
var (
	ann = fake.Direct("7", "Ann")
	bob = fake.Member("50", "8", "Bob")
)

// newBot returns a streaming bot whose requests a fake answers without sockets.
func newBot(o fake.Options) (*bot, *fake.Server) {
	o.Token = "test"
	server := fake.New(o)
	return openBot(server), server
}

func openBot(server *fake.Server) *bot {
	c := New(Options{Name: "dc", Token: "test", Streaming: true, URL: "http://discord.test", Log: slog.New(slog.DiscardHandler)}).(*bot)
	c.client.http = &http.Client{Transport: server}
	c.client.files, c.client.socket = c.client.http, c.client.http
	return c
}

// inbox collects what a bot receives. Its error, if set, is returned once.
type inbox struct {
	received chan channel.InboundMessage
	err      error
}

func (b *inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	if err := b.err; err != nil {
		b.err = nil
		return err
	}
	b.received <- m
	return nil
}

// next returns the message that was received next, or fails.
func (b *inbox) next(t *testing.T) channel.InboundMessage {
	t.Helper()
	synctest.Wait()
	select {
	case m := <-b.received:
		return m
	default:
		t.Fatal("no message")
		return channel.InboundMessage{}
	}
}

// start runs a bot until the returned function is called, which checks that Run ended well.
func start(t *testing.T, c channel.Channel) (*inbox, func()) {
	t.Helper()
	b := &inbox{received: make(chan channel.InboundMessage, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, b) }()
	synctest.Wait()
	return b, func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}
