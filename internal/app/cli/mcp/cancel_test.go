package mcp

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
	"github.com/leat-dev/leat/internal/service/quota"
)

// gated returns a client whose command of a type waits for release after arrived was closed. Later ones pass. If isLate is true, the gateway has
// carried the command out before that, and only its response waits.
func gated(t *testing.T, c *leat.Client, command string, isLate bool) (client *leat.Client, arrived, release chan struct{}) {
	t.Helper()
	arrived, release = make(chan struct{}), make(chan struct{})
	wait := func() {
		select {
		case <-arrived:
		default:
			close(arrived)
		}
		<-release
	}
	return through(c, func(r *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
		if commandOf(t, r) != command {
			return next()
		}
		if !isLate {
			wait()
			return next()
		}
		response, err := next()
		wait()
		return response, err
	}), arrived, release
}

// A question that is canceled while its conversation is created leaves nothing, also if its host has closed the input.
func TestCancelDuringCreate(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		for _, isEnd := range []bool{false, true} {
			c := newGateway(t, quota.Limits{})
			client, arrived, release := gated(t, c, "create", isLate)
			p := connect(t, client)
			id := p.start("ask", arguments{"text": "hello"})
			<-arrived
			if isEnd {
				p.end()
			} else {
				p.cancel(id)
			}
			close(release)
			p.close()
			if list, err := c.Conversations(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("late %v, end %v: %v, conversations %+v", isLate, isEnd, err, list)
			}
		}
	}
}

// A question that is canceled while it is sent has a turn, which runs on, or is stopped if the call has asked for that.
func TestCancelDuringSend(t *testing.T) {
	for _, isLate := range []bool{false, true} {
		for _, stops := range []bool{false, true} {
			for _, isEnd := range []bool{false, true} {
				c := newGateway(t, quota.Limits{})
				client, arrived, release := gated(t, c, "send", isLate)
				p := connect(t, client)
				id := p.start("ask", arguments{"text": "wait", "stop_on_cancel": stops})
				<-arrived
				if isEnd {
					p.end()
				} else {
					p.cancel(id)
				}
				close(release)
				list, err := c.Conversations(t.Context())
				if err != nil || len(list) != 1 {
					t.Fatalf("%v, conversations %+v", err, list)
				}
				if stops && !isEnd {
					if got := ended(t, c, list[0].ID, ""); got != "cancelled" {
						t.Errorf("late %v: the turn is %s", isLate, got)
					}
					p.close()
					continue
				}
				p.close()
				turn := running(t, c, list[0].ID)
				if _, got, err := c.Turn(t.Context(), turn); err != nil || !got.Unfinished() {
					t.Errorf("late %v, end %v: %v, the turn is %s", isLate, isEnd, err, got.Outcome)
				}
			}
		}
	}
}

// A call that is canceled while it waits gets no response. Its turn runs on, unless it has asked for a stop. The end of the input stops nothing.
func TestCancelWhileWaiting(t *testing.T) {
	c := newGateway(t, quota.Limits{})
	p := connect(t, c)
	conversation := p.call("ask", arguments{"text": "nothing"}).Conversation
	for _, stops := range []bool{true, false} {
		id := p.start("ask", arguments{"text": "wait", "conversation": conversation, "stop_on_cancel": stops})
		turn := running(t, c, conversation)
		p.cancel(id)
		if stops {
			if got := ended(t, c, conversation, turn); got != "cancelled" {
				t.Errorf("the turn is %s", got)
			}
		}
		p.response(p.send("ping", nil))
		if m, ok := p.responses[id]; ok {
			t.Errorf("a canceled call has the response %+v", m)
		}
	}
	// Another call in the same conversation isn't concerned.
	turn := running(t, c, conversation)
	other := p.start("ask", arguments{"text": "hello", "conversation": conversation})
	for p.turns(conversation) < 4 { // until it is stored
	}
	if _, err := c.Stop(t.Context(), conversation, turn); err != nil {
		t.Fatal(err)
	}
	if r := p.result(other); r.Text != "re: hello" {
		t.Errorf("%+v", r)
	}
	// The cancellation of a call that has its response is ignored.
	p.cancel(other)
	p.start("ask", arguments{"text": "wait", "conversation": conversation, "stop_on_cancel": true})
	turn = running(t, c, conversation)
	p.close()
	if _, got, err := c.Turn(t.Context(), turn); err != nil || !got.Unfinished() {
		t.Errorf("%v, the turn is %s", err, got.Outcome)
	}
}

// A gateway that doesn't respond doesn't keep a canceled question, or a closed host, for longer than sendGrace.
func TestCancelWithoutResponse(t *testing.T) {
	for _, isEnd := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			arrived, givenUp := make(chan struct{}), make(chan time.Time, 1)
			p := connect(t, through(&leat.Client{URL: "http://gateway", HTTP: &http.Client{}}, func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
				close(arrived)
				<-r.Context().Done()
				givenUp <- time.Now()
				return nil, r.Context().Err()
			}))
			id := p.start("ask", arguments{"text": "hello"})
			<-arrived
			began := time.Now()
			if isEnd {
				p.end()
			} else {
				p.cancel(id)
			}
			if took := (<-givenUp).Sub(began); took != sendGrace {
				t.Errorf("end %v: given up after %v", isEnd, took)
			}
			p.close()
			if took := time.Since(began); took != sendGrace {
				t.Errorf("end %v: the server has ended after %v", isEnd, took)
			}
		})
	}
}

// outlast ends some time after its context, and at once by its function.
func TestOutlast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		longer, end := outlast(parent, time.Second)
		defer end()
		time.Sleep(time.Hour)
		if longer.Err() != nil {
			t.Error("it has ended before its parent")
		}
		cancel()
		began := time.Now()
		<-longer.Done()
		if took := time.Since(began); took != time.Second || !errors.Is(longer.Err(), context.Canceled) {
			t.Errorf("ended after %v: %v", took, longer.Err())
		}
		early, endEarly := outlast(t.Context(), time.Second)
		endEarly()
		if early.Err() == nil {
			t.Error("it has not ended")
		}
	})
}
