package feishu

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	fake "github.com/leat-dev/leat/chattest/feishu"
	"github.com/leat-dev/leat/internal/channel"
)

// ann and team are a person in the private chat and in a group.
var (
	ann  = fake.Private("oc_1", "ou_ann")
	team = fake.Group("oc_2", "ou_ann")
)

// inbox collects what a channel receives, as the pipeline does: each message once.
type inbox struct {
	mu       sync.Mutex
	messages []channel.InboundMessage
	isBroken bool
}

func (b *inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isBroken {
		return errors.New("the disk is full")
	}
	for _, o := range b.messages {
		if o.ID == m.ID {
			return nil
		}
	}
	b.messages = append(b.messages, m)
	return nil
}

// take returns the messages that have arrived and forgets them.
func (b *inbox) take() []channel.InboundMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.messages
	b.messages = nil
	return list
}

// options returns the options of a fake.
func options() fake.Options {
	return fake.Options{AppID: "cli_1", AppSecret: "secret", EncryptKey: "key", Rate: 5}
}

// openBot returns a bot whose requests a fake answers without sockets.
func openBot(server *fake.Server) *bot {
	o := Options{
		Name: "fs", AppID: "cli_1", AppSecret: "secret", EncryptKey: "key", Streaming: true, URL: "http://feishu.test", Log: slog.New(slog.DiscardHandler),
	}
	c := New(o).(*bot)
	c.client.http = &http.Client{Transport: server}
	c.client.files = c.client.http
	return c
}

// newBot returns a bot that knows itself and gets the fake's events.
func newBot(t *testing.T, o fake.Options) (*bot, *fake.Server, *inbox) {
	t.Helper()
	server, received := fake.New(o), &inbox{}
	c := openBot(server)
	if err := c.options.Check(); err != nil {
		t.Fatal(err)
	}
	if err := c.identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.ServeWebhook(w, r, received) })
	if err := server.Subscribe("http://leat.test/hook", fake.Handler(hook)); err != nil {
		t.Fatal(err)
	}
	return c, server, received
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}

// texts returns the texts of the bot's messages.
func texts(server *fake.Server, chat string) string {
	var list []string
	for _, m := range server.Visible(chat) {
		list = append(list, m.Text)
	}
	return strings.Join(list, "|")
}
