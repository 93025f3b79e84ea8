package leat

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// brokenSnapshots answers every stream with a hello and the beginning of a snapshot.
type brokenSnapshots struct{ connections int }

func (b *brokenSnapshots) RoundTrip(*http.Request) (*http.Response, error) {
	b.connections++
	body := "data: {\"type\":\"hello\",\"protocol\":\"leat/1\",\"turns\":[]}\n\ndata: {\"type\":\"snapshot\",\"cur"
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// A stream that breaks in each snapshot is retried with growing waits, although the gateway accepts the token each time.
func TestBrokenSnapshotsAreNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway := &brokenSnapshots{}
		c := &Client{URL: "http://gateway.test", HTTP: &http.Client{Transport: gateway}}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
		defer cancel()
		err := c.Stream(ctx, "c", StreamOptions{}, func(*Frame) error { return nil })
		if err == nil || ctx.Err() == nil {
			t.Errorf("the stream ended: %v", err)
		}
		if gateway.connections > 20 {
			t.Errorf("%d connections in 100 s", gateway.connections)
		}
	})
}
