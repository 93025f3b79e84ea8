package discord

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/leat-dev/leat/chattest/discord"
	"github.com/leat-dev/leat/internal/channel"
)

// A long message is sent in parts within the limit. Mentions in it don't notify.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		first := server.Say(bob, "hello")
		text := "@everyone <@8> " + strings.Repeat("A sentence of it. ", 300)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "50", Content: text, ReplyTo: first, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		shown := server.Visible("50")
		if len(shown) != 3 || shown[0].Mentions || shown[0].ReplyTo != first || shown[0].Silent {
			t.Errorf("%+v", shown)
		}
		if err := openBot(server).Send(t.Context(), channel.OutboundMessage{ChatID: "50", Content: text, ReplyTo: first, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		if n := len(server.Visible("50")); n != 3 {
			t.Errorf("%d messages after a repetition", n)
		}
		check(t, server)
	})
}

// A message is sent once, whatever its requests meet, also if the platform has forgotten its nonce meanwhile.
func TestSendOnce(t *testing.T) {
	refused := func(wait time.Duration) fake.Fault {
		return fake.Fault{Route: fake.CreateMessage, Status: http.StatusTooManyRequests, RetryAfter: wait}
	}
	shared := refused(30 * time.Second)
	shared.Code, shared.Scope = 20028, fake.ScopeShared
	lost := fake.Fault{Route: fake.CreateMessage, After: true}
	for name, faults := range map[string][]fake.Fault{
		"penalty":                   {refused(2500 * time.Millisecond)},
		"global penalty":            {{Status: http.StatusTooManyRequests, RetryAfter: 90 * time.Second, Scope: fake.ScopeGlobal}},
		"limit of writing":          {shared},
		"lost":                      {lost},
		"not arrived":               {{Route: fake.CreateMessage, Before: true}},
		"fault of the server":       {{Route: fake.CreateMessage, Status: http.StatusBadGateway}},
		"lost and a penalty":        {lost, refused(10 * time.Minute)},
		"not arrived and a penalty": {{Route: fake.CreateMessage, Before: true}, refused(10 * time.Minute)},
		"lost and a penalty, and the search fails": {
			lost, refused(10 * time.Minute),
			{Route: fake.GetMessages, Status: http.StatusInternalServerError},
			{Route: fake.GetMessages, Before: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := newBot(fake.Options{})
				server.Say(ann, "hello")
				for _, f := range faults {
					server.Fail(f)
				}
				began := time.Now()
				if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "97", Content: "answer"}); err != nil {
					t.Fatal(err)
				}
				if n := len(server.Visible("97")); n != 1 {
					t.Errorf("%d messages", n)
				}
				if took := time.Since(began); name == "penalty" && took != 2500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				check(t, server)
			})
		})
	}
}

// A channel that can't be reached is reported as such, without further requests.
func TestSendUnreachable(t *testing.T) {
	for _, code := range []int{codeUnknownChannel, codeNoAccess, codeClosedDirect, codeNoPermission} {
		synctest.Test(t, func(t *testing.T) {
			c, server := newBot(fake.Options{})
			server.Say(ann, "hello")
			server.Refuse("97", code)
			err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "97", Content: "answer"})
			if !errors.Is(err, channel.ErrUnreachable) || len(server.Requests()) != 1 {
				t.Errorf("%d: %v", code, err)
			}
		})
	}
	c, _ := newBot(fake.Options{})
	if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "../users", Content: "a"}); !errors.Is(err, channel.ErrUnreachable) {
		t.Error(err)
	}
}

// Send ends with its context, and its error has no secrets.
func TestSendCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		server.Say(ann, "hello")
		server.Fail(fake.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Send(ctx, channel.OutboundMessage{ChatID: "97", Content: "answer"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// A reply that the platform refuses is sent as a normal message.
func TestReplyRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		first := server.Say(ann, "hello")
		server.Fail(fake.Fault{Route: fake.CreateMessage, Status: http.StatusBadRequest, Code: codeNoHistory})
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "97", Content: "answer", ReplyTo: first}); err != nil {
			t.Error(err)
		}
		server.Remove("97", first)
		if err := c.Send(t.Context(), channel.OutboundMessage{ChatID: "97", Content: "answer", ReplyTo: first}); err != nil {
			t.Error(err)
		}
		for _, m := range server.Visible("97") {
			if m.ReplyTo != "" {
				t.Errorf("%+v", m)
			}
		}
	})
}

// The bot keeps to the headers: many messages in many channels meet no refusal.
func TestLimitsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := newBot(fake.Options{})
		done := make(chan error)
		chats := []string{"50", "51", "52", "53", "54", "55", "56", "57", "58", "59"}
		for _, chat := range chats {
			server.Say(fake.Member(chat, "8", "Bob"), "hello")
			go func() {
				done <- c.Send(t.Context(), channel.OutboundMessage{ChatID: chat, Content: strings.Repeat("A sentence of it. ", 2000)})
			}()
		}
		for range chats {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		for _, r := range server.Requests() {
			if r.Status != http.StatusOK {
				t.Errorf("%+v", r)
			}
		}
		check(t, server)
	})
}

// The limiter waits for the end of a window whose requests are used up, for each channel.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter{buckets: map[string]string{}, windows: map[string]window{}}
		e := at(http.MethodDelete, "/channels/%s/messages/%s", "1", "2")
		header := http.Header{}
		for key, value := range map[string]string{"Bucket": "b", "Remaining": "1", "Reset-After": "0.75"} {
			header.Set("X-RateLimit-"+key, value)
		}
		l.update(e, header, apiError{})
		if wait, _ := l.take(e); wait != 0 {
			t.Error("the last one of the window was refused")
		}
		if wait, isGlobal := l.take(e); wait != 750*time.Millisecond || isGlobal {
			t.Error(wait)
		}
		if wait, _ := l.take(at(http.MethodDelete, "/channels/%s/messages/%s", "2", "2")); wait != 0 {
			t.Error("another channel waits")
		}
		time.Sleep(750 * time.Millisecond)
		if wait, _ := l.take(e); wait != 0 {
			t.Error("the next window was refused")
		}
		l.update(e, http.Header{}, apiError{Status: http.StatusTooManyRequests, RetryAfter: time.Second, Global: true})
		if wait, isGlobal := l.take(at(http.MethodGet, "/users/@me")); wait != time.Second || !isGlobal {
			t.Error(wait)
		}
		if wait, _ := l.take(at(http.MethodPost, "/interactions/%[2]s/%[1]s/callback", "t", "1")); wait != 0 {
			t.Error("an interaction waits")
		}
	})
}

// Errors name what was wrong, and not the tokens in addresses.
func TestErrors(t *testing.T) {
	const body = `{"message":"Invalid Form Body","code":50035,
		"errors":{"content":{"_errors":[{"code":"X","message":"Must be 2000 or fewer in length."}]}}}`
	err := decodeError(at(http.MethodPatch, "/webhooks/%[2]s/%[1]s/messages/@original", "secret", "1").route(), 400, http.Header{}, []byte(body))
	const want = "discord: PATCH /webhooks/%[2]s/%[1]s/messages/@original: 400 Invalid Form Body (code 50035): content: Must be 2000 or fewer in length."
	if err.Error() != want {
		t.Errorf("%v", err)
	}
	e := refusal(decodeError("r", http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, []byte("<html>")))
	if !e.Global || e.RetryAfter != 7*time.Second {
		t.Errorf("%+v", e)
	}
}
