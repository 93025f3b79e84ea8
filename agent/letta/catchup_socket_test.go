package letta

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leat-dev/leat/dialect/letta"
)

// refusals is a network that refuses each connection and counts them.
type refusals struct{ count atomic.Int32 }

func (r *refusals) RoundTrip(*http.Request) (*http.Response, error) {
	r.count.Add(1)
	return nil, errors.New("connection refused")
}

// TestCatchUpRetriesQuickly checks that the connection that follows a session is retried at short intervals for as long as a turn waits
// for it. The back-off has grown beyond the time that the turn waits: with a single early attempt, runs that the connection has missed
// would be shown after the turn's answer.
func TestCatchUpRetriesQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &refusals{}
		k := newSocket(base{url: &url.URL{Scheme: "ws", Host: "letta", Path: "/ws"}, dialect: letta.Code(), times: defaultTimes})
		k.client = &http.Client{Transport: network}
		k.Start(slog.New(slog.DiscardHandler))
		b := newBook(t, session{Agent: "agent-1", Conversation: "local-conv-1"})
		end := b.follow(k)
		defer end()
		time.Sleep(10 * time.Minute)
		before := network.count.Load()
		begin := time.Now()
		k.catchUp(t.Context(), followed)
		if took := time.Since(begin); took != defaultTimes.catchUpLimit {
			t.Errorf("the turn waited %v for a server that is down, want %v", took, defaultTimes.catchUpLimit)
		}
		if n := network.count.Load() - before; n < 4 {
			t.Errorf("%d attempts while a turn waited, want at least 4", n)
		}
	})
}
