package soak

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

var errCut = errors.New("soak: connection interrupted")

// cutting is a transport that interrupts event streams after a random number of bytes, even within a frame or a character.
type cutting struct {
	base http.RoundTripper

	mu  sync.Mutex
	rng *rand.Rand
	// patience is the number of doublings of the next stream's bytes. It grows with each connection without progress, so that a large
	// frame arrives eventually.
	patience int
}

const (
	// A stream is interrupted after minCut to maxCut bytes: every few seconds at the rate of one conversation.
	minCut = 500
	maxCut = 40_000
	// maxPatience limits the doublings.
	maxPatience = 6
)

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.base.RoundTrip(r)
	if err != nil || r.Header.Get("Accept") != "text/event-stream" || res.StatusCode != http.StatusOK {
		return res, err
	}
	c.mu.Lock()
	limit := (minCut + c.rng.IntN(maxCut-minCut)) << c.patience
	c.patience = min(c.patience+1, maxPatience)
	c.mu.Unlock()
	res.Body = &cutBody{ReadCloser: res.Body, remaining: limit}
	return res, nil
}

// progress records that a frame arrived.
func (c *cutting) progress() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience = 0
}

type cutBody struct {
	io.ReadCloser
	remaining int // bytes until the interruption
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.remaining == 0 {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}
