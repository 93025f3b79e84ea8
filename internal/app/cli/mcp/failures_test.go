package mcp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/service/quota"
)

// A gateway that refuses or fails makes each tool a result with isError, which has the reason, and the server continues.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"invalid token", 401, `{"error":"invalid token","reason":"unauthorized"}`, "invalid token"},
		{"no access", 404, `{"error":"not found"}`, "not found"},
		{"too many requests", 429, `{"error":"too many messages","reason":"quota"}`, "too many messages"},
		{"broken", 503, `{"error":"the gateway is stopping","reason":"unavailable"}`, "the gateway is stopping"},
		{"a page of a proxy", 502, `<html>`, "the server responded with 502 Bad Gateway"},
		{"no gateway", 200, `<html>`, "not the protocol of this client"},
		{"unreachable", 0, ``, "connection refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := connect(t, through(&leat.Client{URL: "http://gateway", HTTP: &http.Client{}}, func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
				if tt.status == 0 {
					return nil, syscall.ECONNREFUSED
				}
				return &http.Response{StatusCode: tt.status, Status: "502 Bad Gateway", Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tt.body))}, nil
			}))
			calls := map[int]string{
				p.start("ask", arguments{"text": "hello"}):                                         "ask",
				p.start("ask", arguments{"text": "hello", "conversation": "c"}):                    "ask in a conversation",
				p.start("answer", arguments{"conversation": "c", "text": "x"}):                     "answer",
				p.start("conversations", nil):                                                      "conversations",
				p.start("read", arguments{"conversation": "c"}):                                    "read",
				p.start("stop", arguments{"conversation": "c"}):                                    "stop",
				p.start("read", arguments{"conversation": "c", "before": "a message of the page"}): "read before",
			}
			for id, name := range calls {
				if r := p.result(id); !r.IsError || !strings.Contains(r.shown(), tt.want) || r.Structured != nil {
					t.Errorf("%s, %s: %+v", tt.name, name, r)
				}
			}
			p.close()
		})
	}
}

// A question above a user's limit leaves no conversation, and one in a conversation leaves that as it is.
func TestQuota(t *testing.T) {
	operator := newGateway(t, quota.Limits{Turns: 1})
	c := &leat.Client{URL: operator.URL, Token: operator.Token, Subject: "ann", HTTP: operator.HTTP}
	p := connect(t, through(c, func(_ *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
		response, err := next()
		if err == nil && response.StatusCode == http.StatusTooManyRequests {
			response.Header.Set("Retry-After", "60") // so long that the client doesn't wait and try again
		}
		return response, err
	}))
	first := p.call("ask", arguments{"text": "permission"})
	for _, a := range []arguments{{"text": "more"}, {"text": "more", "conversation": first.Conversation}} {
		if r := p.call("ask", a); !r.IsError || !strings.Contains(r.shown(), "turns") {
			t.Errorf("%+v", r)
		}
	}
	list, err := c.Conversations(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != first.Conversation || p.turns(first.Conversation) != 1 {
		t.Errorf("%v, conversations %+v", err, list)
	}
	if r := p.call("answer", arguments{"conversation": first.Conversation, "decision": "approve"}); r.Text != "the answer is approve" {
		t.Errorf("%+v", r)
	}
}

// A question that the gateway refuses leaves no conversation. After a failure that leaves open whether the question was stored, the conversation
// stays, since it may have a turn.
func TestRefusedSend(t *testing.T) {
	for status, want := range map[int]int{413: 0, 400: 0, 408: 1, 503: 1} {
		c := newGateway(t, quota.Limits{})
		p := connect(t, through(c, func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
			if commandOf(t, r) != "send" {
				return next()
			}
			// The client doesn't wait so long, and doesn't try again.
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"60"}}, Body: io.NopCloser(strings.NewReader(`{"error":"no"}`))}, nil
		}))
		if r := p.call("ask", arguments{"text": "hello"}); !r.IsError || !strings.Contains(r.shown(), "no") || r.Structured != nil {
			t.Errorf("%d: %+v", status, r)
		}
		if list, err := c.Conversations(t.Context()); err != nil || len(list) != want {
			t.Errorf("%d: %v, conversations %+v", status, err, list)
		}
	}
}

// A long text arrives whole.
func TestLongText(t *testing.T) {
	text := strings.Repeat("ö\n", 64<<10)
	if r := connect(t, newGateway(t, quota.Limits{})).call("ask", arguments{"text": text}); r.Text != "re: "+text {
		t.Errorf("%.300s", r.shown())
	}
}

// brokenBody is the body of a response that breaks after some bytes.
type brokenBody struct {
	io.ReadCloser
	left int
}

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("connection reset")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// A stream that breaks is resumed, and an acknowledgement that is lost doesn't send the question twice.
func TestDisconnects(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	var streams, sends atomic.Int32
	p := connect(t, through(c, func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
		response, err := next()
		switch {
		case err != nil:
		case strings.HasSuffix(r.URL.Path, "/events") && streams.Add(1) == 1:
			response.Body = &brokenBody{response.Body, 300}
		case commandOf(t, r) == "send" && sends.Add(1) == 1:
			_ = response.Body.Close()
			return nil, errors.New("connection reset")
		}
		return response, err
	}))
	r := p.call("ask", arguments{"text": "hello"})
	if r.State != "completed" || r.Text != "re: hello" || streams.Load() < 2 || sends.Load() != 2 || p.turns(r.Conversation) != 1 {
		t.Errorf("%+v, %d streams, %d sends", r, streams.Load(), sends.Load())
	}
}

// A conversation that is deleted while a call waits ends the call.
func TestDeletedConversation(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	p := connect(t, c)
	conversation := p.call("ask", arguments{"text": "nothing"}).Conversation
	id := p.start("ask", arguments{"text": "wait", "conversation": conversation})
	running(t, c, conversation)
	if err := c.Delete(t.Context(), conversation); err != nil {
		t.Fatal(err)
	}
	if r := p.result(id); !r.IsError || r.shown() == "" {
		t.Errorf("%+v", r)
	}
}
