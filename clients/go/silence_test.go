package leat_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	leat "github.com/leat-dev/leat/clients/go"
)

// dumb is a server whose streams say hello, then beat for a while, and then nothing more, without being closed.
type dumb struct {
	beats int
	asked []time.Time
}

func (d *dumb) RoundTrip(r *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, time.Now())
	out, in := io.Pipe()
	go func() {
		_, _ = io.WriteString(in, "data: {\"type\":\"hello\",\"protocol\":\"leat/1\"}\n\n")
		for range d.beats {
			time.Sleep(15 * time.Second) // of the bubble's clock
			_, _ = io.WriteString(in, ": ping\n\n")
		}
	}()
	context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: out, Request: r}, nil
}

// A connection without heartbeats is given up and replaced at once; one with heartbeats is retained.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dumb{beats: 10}
		c := &leat.Client{URL: "http://gateway", HTTP: &http.Client{Transport: d}}
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var why error
		err := c.FollowWith(ctx, "c", leat.FollowOptions{OnDisconnect: func(err error, next time.Duration) {
			why = err
			if next != 0 {
				t.Errorf("the next try is %v away", next)
			}
			if len(d.asked) == 2 {
				cancel()
			}
		}}, func(leat.Update) error { return nil })
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if why == nil || !strings.Contains(why.Error(), "no data received for 45s") {
			t.Errorf("lost: %v", why)
		}
		if len(d.asked) != 2 {
			t.Fatalf("connected %d times", len(d.asked))
		}
		if took := d.asked[1].Sub(start); took != 195*time.Second {
			t.Errorf("given up, and tried again, after %v", took)
		}
	})
}
