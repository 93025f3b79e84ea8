package telegram

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	fake "github.com/leat-dev/leat/chattest/telegram"
	"github.com/leat-dev/leat/internal/channel"
)

// failingInbox fails until it is repaired.
type failingInbox struct {
	inbox
	isRepaired bool
}

func (b *failingInbox) Receive(ctx context.Context, m channel.InboundMessage) error {
	if !b.isRepaired {
		return errors.New("the disk is full")
	}
	return b.inbox.Receive(ctx, m)
}

// With a webhook the server posts the updates. One that could not be stored is not confirmed, so it comes again.
func TestWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		c.webhook = "https://leat.test/api/channels/tg/webhook"
		received := &failingInbox{inbox: make(inbox, 10)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, received) }()
		synctest.Wait()
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.ServeWebhook(w, r, received) })
		server.Say(ann, "hello")
		if got := server.Push(handler); !slices.Equal(got, []int{503}) {
			t.Errorf("statuses %v", got)
		}
		received.isRepaired = true
		if got := server.Push(handler); !slices.Equal(got, []int{200}) {
			t.Errorf("statuses %v", got)
		}
		if m := <-received.inbox; m.Content != "hello" || m.ChatID != "7" {
			t.Errorf("%+v", m)
		}
		cancel()
		<-done
		check(t, server)
	})
}

// A request without the secret changes nothing.
func TestWebhookSecret(t *testing.T) {
	c, _ := newBot(fake.Options{})
	c.webhook = "https://leat.test/api/channels/tg/webhook"
	c.account.Store(&user{ID: 1})
	for _, secret := range []string{"", "wrong", c.client.token} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"update_id":1}`))
		r.Header.Set(secretHeader, secret)
		w := httptest.NewRecorder()
		if c.ServeWebhook(w, r, make(inbox)); w.Code != http.StatusUnauthorized {
			t.Errorf("secret %q: %d", secret, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("no update"))
	r.Header.Set(secretHeader, c.secret())
	w := httptest.NewRecorder()
	if c.ServeWebhook(w, r, make(inbox)); w.Code != http.StatusBadRequest {
		t.Errorf("no update: %d", w.Code)
	}
}

// A bot that polls removes the webhook of an earlier configuration, which would keep its updates.
func TestPollAfterWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		if err := c.client.call(t.Context(), requestLimit, "setWebhook", map[string]string{"url": "https://elsewhere.test/"}, nil); err != nil {
			t.Fatal(err)
		}
		server.Say(ann, "hello")
		received := make(inbox, 10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx, received) }()
		if m := <-received; m.Content != "hello" {
			t.Errorf("%+v", m)
		}
		cancel()
		<-done
	})
}
