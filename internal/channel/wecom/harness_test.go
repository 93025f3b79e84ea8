package wecom

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	fake "github.com/leat-dev/leat/chattest/wecom"
	"github.com/leat-dev/leat/internal/channel"
)

// ann and team are a person in the private chat and in a group.
var (
	ann  = fake.Private("ann")
	team = fake.Group("group", "ann")
)

// inbox collects what a channel receives.
type inbox struct {
	mu       sync.Mutex
	messages []channel.InboundMessage
	failures int // how many messages are refused before
}

func (b *inbox) Receive(_ context.Context, m channel.InboundMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures > 0 {
		b.failures--
		return errors.New("the disk is full")
	}
	b.messages = append(b.messages, m)
	return nil
}

// take returns the messages that have arrived and forgets them.
func (b *inbox) take() []channel.InboundMessage {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.messages
	b.messages = nil
	return list
}

// bench is a bot that is connected to a fake without sockets.
type bench struct {
	*bot
	server *fake.Server
	inbox  *inbox
	log    *strings.Builder
	stop   func() error // ends Run
}

func openBot(server *fake.Server, log *strings.Builder) *bot {
	o := Options{Name: "wc", BotID: "bot", Secret: "secret", Streaming: true, URL: "ws://wecom.test", Log: slog.New(slog.NewTextHandler(log, nil))}
	c := New(o).(*bot)
	c.dialer = &http.Client{Transport: server}
	c.files = c.dialer
	return c
}

// runBot runs a bot until the result is called, which returns the error of Run.
func runBot(c *bot, received channel.Inbox) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, received) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// start runs a bot until the test ends.
func start(t *testing.T, server *fake.Server) *bench {
	t.Helper()
	b := &bench{server: server, inbox: &inbox{}, log: &strings.Builder{}}
	b.bot = openBot(server, b.log)
	if err := b.options.Check(); err != nil {
		t.Fatal(err)
	}
	b.stop = runBot(b.bot, b.inbox)
	synctest.Wait()
	return b
}

// test runs a test with a connected bot in virtual time.
func test(t *testing.T, o fake.Options, f func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		o.BotID, o.Secret = "bot", "secret"
		b := start(t, fake.New(o))
		f(t, b)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		for _, v := range b.server.Violations() {
			t.Error(v)
		}
	})
}
