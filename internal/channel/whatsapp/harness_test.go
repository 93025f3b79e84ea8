package whatsapp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	fake "github.com/leat-dev/leat/chattest/whatsapp"
	"github.com/leat-dev/leat/internal/channel"
)

var ann = fake.Person{ID: "15550001", Name: "Ann"}

// inbox collects what a channel receives, as the pipeline does: each message once.
type inbox struct {
	mu       sync.Mutex
	failures []string
	messages []channel.InboundMessage
	isBroken bool
}

func (b *inbox) Fail(_ context.Context, chatID string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, chatID+": "+err.Error())
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

// serverOptions returns the options of a fake.
func serverOptions() fake.Options {
	return fake.Options{Token: "token", Number: "100", AppSecret: "secret", VerifyToken: "verify"}
}

// openNumber returns a channel whose requests a fake answers without sockets.
func openNumber(server *fake.Server, log slog.Handler) *number {
	n := New(Options{
		Name: "wa", Token: "token", Number: "100", AppSecret: "secret", VerifyToken: "verify", URL: "http://whatsapp.test/v24.0", Log: slog.New(log),
	}).(*number)
	n.client.http = &http.Client{Transport: server}
	n.client.files = n.client.http
	return n
}

// newNumber returns a channel that gets the events of its fake.
func newNumber(t *testing.T, o fake.Options) (*number, *fake.Server, *inbox, *strings.Builder) {
	t.Helper()
	s := serverOptions()
	o.Token, o.Number, o.AppSecret, o.VerifyToken = s.Token, s.Number, s.AppSecret, s.VerifyToken
	server, log, received := fake.New(o), &strings.Builder{}, &inbox{}
	n := openNumber(server, slog.NewTextHandler(log, nil))
	if err := n.options.Check(); err != nil {
		t.Fatal(err)
	}
	hook := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.ServeWebhook(w, r, received) })
	if err := server.Subscribe("http://leat.test/hook", fake.Handler(hook)); err != nil {
		t.Fatal(err)
	}
	return n, server, received, log
}

// check reports what the fake has seen that a bot must not do.
func check(t *testing.T, server *fake.Server) {
	t.Helper()
	for _, v := range server.Violations() {
		t.Error(v)
	}
}

// texts returns the texts of the messages that the number sent.
func texts(server *fake.Server, chat string) []string {
	var list []string
	for _, m := range server.Messages(chat) {
		if m.Bot {
			list = append(list, m.Text)
		}
	}
	return list
}
