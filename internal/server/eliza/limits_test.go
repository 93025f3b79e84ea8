package eliza

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/internal/server"
	"github.com/leat-dev/leat/internal/service/quota"
)

var asAnn = []string{server.HeaderSubject, "ann", server.HeaderTenant, "t"}

// limited is withTrouble with limits, and a conversation of ann.
func limited(t *testing.T, user quota.Limits, test func(h *harness, j *troubled, next func(), c string)) {
	t.Helper()
	withTrouble(t, []string{"one"}, func(h *harness, j *troubled, next func()) {
		h.stop()
		h.user = user
		h.start()
		var made struct{ Conversation struct{ ID string } }
		h.do(200, &made, "POST", "/api/conversations", "{}", asAnn...)
		test(h, j, next, made.Conversation.ID)
	})
}

func TestRefusedMessages(t *testing.T) {
	limited(t, quota.Limits{Turns: 1, Messages: 2}, func(h *harness, _ *troubled, next func(), c string) {
		first := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`, asAnn...)
		synctest.Wait()
		for _, path := range []string{"/messages", "/messages/stream"} {
			var body struct{ Error, Reason string }
			header := h.do(429, &body, "POST", at(c, path), `{"text":"more"}`, asAnn...)
			if header.Get("Retry-After") != "5" || body.Reason != "quota" || !strings.Contains(body.Error, "1 turns waiting or running at a time") {
				t.Errorf("%s: Retry-After %q, %+v", path, header.Get("Retry-After"), body)
			}
		}
		next()
		first.wait()
		var list struct{ Messages []message }
		h.do(200, &list, "GET", at(c, "/messages"), "", asAnn...)
		if len(list.Messages) != 2 {
			t.Errorf("what was refused left something: %+v", list.Messages)
		}
	})
}

// If a message is refused after the headers were sent, the stream has the error.
func TestRefusedLate(t *testing.T) {
	limited(t, quota.Limits{Messages: 1}, func(h *harness, j *troubled, next func(), c string) {
		j.set(func(context.Context) error { time.Sleep(8 * time.Second); return nil })
		first := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`, asAnn...)
		synctest.Wait()
		late := h.stream("POST", at(c, "/messages/stream"), `{"text":"more"}`, asAnn...)
		late.wait()
		if want := `"type":"error"`; late.status != 200 || !strings.Contains(string(late.body), want) {
			t.Fatalf("%d %s", late.status, late.body)
		}
		for _, want := range []string{`"reason":"rate_limited"`, `"retryable":true`, `"retryAfter":5`, `1 messages per minute`} {
			if !strings.Contains(string(late.body), want) {
				t.Errorf("the stream ends without %s: %s", want, late.body)
			}
		}
		j.set(nil)
		next()
		first.wait()
	})
}

func TestViewersAreBound(t *testing.T) {
	limited(t, quota.Limits{Viewers: 1}, func(h *harness, _ *troubled, next func(), c string) {
		first := h.stream("POST", at(c, "/messages/stream"), `{"text":"hi"}`, asAnn...)
		synctest.Wait()
		header := h.do(429, nil, "GET", at(c, "/messages/stream"), "", asAnn...)
		if header.Get("Retry-After") != "5" {
			t.Errorf("Retry-After %q", header.Get("Retry-After"))
		}
		h.do(429, nil, "POST", at(c, "/messages/stream"), `{"text":"more"}`, asAnn...)
		first.cancel()
		<-first.over
		again := h.stream("GET", at(c, "/messages/stream"), "", asAnn...)
		synctest.Wait()
		next()
		if got := again.wait(); !strings.Contains(string(again.body), "one") {
			t.Errorf("%+v: %s", got, again.body)
		}
	})
}
